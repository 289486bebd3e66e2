"""Texts as token ids, no more of a long one than is read; the names of tokens; and groups that need little padding.

Dimensions: B texts, L positions.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import RLock

import torch
from torch import Tensor
from transformers import BatchEncoding, PreTrainedTokenizerBase

from sparse_adapt.errors import InputError, ModelError, first_line, is_panic
from sparse_adapt.report.messages import note_cut
from sparse_adapt.report.printable import is_unicode

TokenIds = Sequence[int]

ONE_AT_A_TIME = RLock()
SIGNS_A_TOKEN = 100  # so many hold one token at least, as good as always
TEXTS_AT_ONCE = 1024  # what a tokenizer says of a token takes hundreds of bytes
PADDED_TOKENS_A_PASS = 4096


def tokenize(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], longest: int, *, special: bool = True
) -> list[list[int]]:
    """Token ids of each text, with special tokens where `special`, cut at `longest`. A text that is cut is noted."""
    for number, text in enumerate(texts, start=1):
        if not text.isascii() and not is_unicode(text):
            problem = "isn't Unicode: it holds half of a surrogate pair (\\ud800 to \\udfff alone); remove it"
            raise InputError("texts", problem, line=number)
    ids = list[list[int]]()
    for first in range(0, len(texts), TEXTS_AT_ONCE):
        ids += _ids_of(tokenizer, texts[first : first + TEXTS_AT_ONCE], longest, special)
    return ids


def encoded(tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], **options: bool | int) -> BatchEncoding:
    """What a tokenizer says of texts: asked by one thread at a time, for its settings are its own.

    Raises ModelError where its library gives up on a text.
    """
    try:
        with ONE_AT_A_TIME:
            found: BatchEncoding = tokenizer(list(texts), **options)
    except BaseException as error:
        if not is_panic(error):
            raise
        raise ModelError(
            f"the tokenizer gave up on a text ({first_line(error)}); choose another model"
        ) from error
    return found


def check_rows(tokenizer: PreTrainedTokenizerBase, rows: int) -> None:
    """Raise ModelError for a tokenizer with a token for which a model has no row."""
    if len(tokenizer) > rows:
        raise ModelError(
            f"the tokenizer has {len(tokenizer):,} tokens, the model rows for {rows:,}; take both from the same model"
        )
    largest = max([*tokenizer.get_vocab().values(), *encoded(tokenizer, [""])["input_ids"][0]], default=0)
    if largest >= rows:
        raise ModelError(
            f"the tokenizer gives token {largest:,}, the model has rows for {rows:,}; take both from the same model"
        )


def _ids_of(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], longest: int, special: bool
) -> list[list[int]]:
    starts = [_start_of(text, SIGNS_A_TOKEN * longest) for text in texts]
    found = _encoded(tokenizer, starts, longest, special)
    ids: list[list[int]] = found["input_ids"]
    for number, (text, start) in enumerate(zip(texts, starts, strict=True)):
        beyond = _beyond(found, number)
        if len(start) < len(text) and not beyond:  # hardly anything but spaces
            whole = _encoded(tokenizer, [text], longest, special)
            ids[number], beyond = whole["input_ids"][0], _beyond(whole, 0)
        elif len(start) < len(text):
            beyond = round((beyond + longest) * len(text) / len(start)) - longest
        if beyond:
            note_cut(text, beyond, longest)
    return ids


def _encoded(
    tokenizer: PreTrainedTokenizerBase, texts: list[str], longest: int, special: bool
) -> BatchEncoding:
    return encoded(
        tokenizer,
        texts,
        truncation=True,
        max_length=longest,
        add_special_tokens=special,
        return_attention_mask=False,
        return_token_type_ids=False,
    )


def _start_of(text: str, signs: int) -> str:
    """A text up to the last space before so many signs; all of one that has none there."""
    if len(text) <= signs:
        return text
    return text[: text.rfind(" ", 0, signs)] if " " in text[:signs] else text


def _beyond(found: BatchEncoding, number: int) -> int:
    """How many tokens of a text were cut off, special ones aside."""
    parts = found.encodings[number].overflowing if found.encodings is not None else ()
    return sum(len(part.ids) - sum(part.special_tokens_mask) for part in parts)


def names_of_all(tokenizer: PreTrainedTokenizerBase, size: int) -> list[str]:
    """The name of each token by its id, `size` of them; empty for a row that stands for none.

    A tokenizer's tokens of ids are what it looks for in a text, which has spaces that its
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


# -- batches --------------------------------------------------------------------------------------


def pad(texts: Sequence[TokenIds], pad_id: int) -> tuple[Tensor, Tensor]:
    """Token ids (B, L) filled up on the right with `pad_id`, and the attention mask (B, L) of ones and zeros.

    L is 1 at least, for texts of no tokens.
    """
    longest = max([1, *map(len, texts)])
    ids = torch.full((len(texts), longest), pad_id, dtype=torch.long)
    mask = torch.zeros((len(texts), longest), dtype=torch.long)
    for row, text in enumerate(texts):
        ids[row, : len(text)] = torch.tensor(text, dtype=torch.long)
        mask[row, : len(text)] = 1
    return ids, mask


def cut(token_ids: list[list[int]], longest: int | None) -> list[list[int]]:
    """Texts of at most so many tokens, the last special one kept; None: as they are."""
    if longest is None:
        return token_ids
    return [ids if len(ids) <= longest else [*ids[: longest - 1], ids[-1]] for ids in token_ids]


def group_by_length(lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    """Indices of texts in groups of like length, longest first, each group at most `tokens` when padded.

    A text longer than `tokens` is a group of its own. The first group is the largest in memory, so a
    batch that doesn't fit fails at once.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    start = 0
    while start < len(order):
        width = max(1, tokens // max(1, lengths[order[start]]))
        yield order[start : start + width]
        start += width


def read_by_length(
    texts: Sequence[TokenIds],
    tokens: int,
    pad_id: int,
    device: torch.device,
    read: Callable[[Tensor, Tensor, list[int]], Tensor],
) -> Tensor:
    """What `read` gives for each text, a row each in the order of the texts, which are read in groups of like length.

    read: padded token ids (B, L) of a group, its attention mask (B, L) and the group's indices, to B rows.
    tokens: of a group when padded, as in `group_by_length`. There is one text at least.
    """
    groups = list(group_by_length([len(text) for text in texts], tokens))
    parts = []
    for group in groups:
        ids, mask = pad([texts[row] for row in group], pad_id)
        parts.append(read(ids.to(device), mask.to(device), group))
    order = torch.tensor([row for group in groups for row in group]).argsort()
    return torch.cat(parts)[order.to(device)]
