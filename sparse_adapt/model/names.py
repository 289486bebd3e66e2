"""What each token is called: the entry of the tokenizer's vocabulary, in every table, file and explanation."""

from collections.abc import Iterable

from transformers import PreTrainedTokenizerBase


def names_of_all(tokenizer: PreTrainedTokenizerBase, size: int) -> list[str]:
    """The name of each token by its id, `size` of them; empty for a row that stands for none.

    A tokenizer that is asked for the tokens of ids gives what it looks for in a text, which has spaces that its
    normalizer put in (` \u738b  \u8005 ` for `\u738b\u8005`).
    """
    names = [""] * size
    for token, token_id in tokenizer.get_vocab().items():
        if token_id < size:
            names[token_id] = token
    return names


def names_of(tokenizer: PreTrainedTokenizerBase, token_ids: Iterable[int]) -> tuple[str, ...]:
    """The names of some tokens."""
    ids, added = list(token_ids), tokenizer.added_tokens_decoder
    spelt = tokenizer.convert_ids_to_tokens(ids)
    return tuple(
        str(added[each]) if each in added else name or "" for each, name in zip(ids, spelt, strict=True)
    )
