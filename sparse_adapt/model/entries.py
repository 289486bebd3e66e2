"""How a tokenizer finds a new token in a text, and the tokenizer that finds some more.

Plain words join a WordPiece vocabulary, so that they keep their inflections (`kubectl`, `##s`). Words that the
pre-tokenizer splits (`max_connections`), or that would break ordinary words (`repl` in `replenish`), and all words of
other tokenizers, are matched whole before the model runs; so are all words once a tokenizer has such tokens, whose ids
stand behind its vocabulary. In scripts that put no spaces between words, "whole" means nothing: a term is matched
wherever it stands.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tokenizers import AddedToken, Tokenizer
from transformers import PreTrainedTokenizerFast

from sparse_adapt.terms.signs import SPACE_MARK

ORDINARY_WORDS = 200_000
UNSPACED = re.compile(  # Thai to Lao, Burmese, Khmer, Japanese kana, Chinese
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff]"
)
INFLECTIONS = frozenset({"s", "es", "ed", "d", "ing", "er", "ers", "ly", "ism", "ist"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A token, and how it is matched whole; None where it joins the WordPiece vocabulary."""

    token: str
    whole: AddedToken | None


def choose_entries(
    tokenizer: PreTrainedTokenizerFast, tokens: list[str]
) -> tuple[list[Entry], dict[str, list[str]]]:
    """How each token is best found, and which are matched whole for the sake of which ordinary words."""
    guarded: dict[str, list[str]] = {}
    joins = set[str]()
    model = _state(tokenizer)["model"]
    if is_wordpiece(tokenizer) and len(tokenizer) == len(model["vocab"]):
        plain = [token for token in tokens if _is_one_word(tokenizer, token, model)]
        guarded = _ordinary_words_broken_by(frozenset(plain), model["vocab"])
        joins = {token for token in plain if token not in guarded}
    return [
        Entry(token, None if token in joins else _matched_whole(tokenizer, token)) for token in tokens
    ], guarded


def entries_of(tokenizer: PreTrainedTokenizerFast, tokens: Sequence[str]) -> list[Entry]:
    """How a tokenizer finds tokens that were given to it."""
    added = {str(token): token for token in tokenizer.added_tokens_decoder.values()}
    return [Entry(token, added.get(token)) for token in tokens]


def with_entries(tokenizer: PreTrainedTokenizerFast, entries: Sequence[Entry]) -> PreTrainedTokenizerFast:
    """A tokenizer like this one that finds some more tokens: those that join its vocabulary have the first ids."""
    state = _state(tokenizer)
    joins = [entry.token for entry in entries if entry.whole is None]
    if joins:
        state["model"]["vocab"].update({token: len(tokenizer) + number for number, token in enumerate(joins)})
    raw = Tokenizer.from_str(json.dumps(state))
    raw.add_tokens([entry.whole for entry in entries if entry.whole is not None])
    return _wrap(raw, tokenizer)


def is_wordpiece(tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether words are cut by the longest entry of a vocabulary that they begin with."""
    return type(tokenizer.backend_tokenizer.model).__name__ == "WordPiece"


def normalised(tokenizer: PreTrainedTokenizerFast, text: str) -> str:
    """A text as the tokenizer's normalizer leaves it."""
    normalizer = tokenizer.backend_tokenizer.normalizer
    return text if normalizer is None else str(normalizer.normalize_str(text))


def pieces_of(tokenizer: PreTrainedTokenizerFast, tokens: Sequence[str]) -> list[tuple[int, ...]]:
    """Ids of tokens inside a text, that is after a space where the tokenizer marks one."""
    if not tokens:
        return []
    space = "" if is_wordpiece(tokenizer) else " "
    encoded = tokenizer([f"{space}{token}" for token in tokens], add_special_tokens=False)
    return [tuple(ids) for ids in encoded["input_ids"]]


def _state(tokenizer: PreTrainedTokenizerFast) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(tokenizer.backend_tokenizer.to_str())
    return state


def _wrap(raw: Tokenizer, model: PreTrainedTokenizerFast) -> PreTrainedTokenizerFast:
    """A tokenizer that transformers loads just as `tokenizers` does, from tokenizer.json alone."""
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        model_max_length=model.model_max_length,
        model_input_names=model.model_input_names,
        padding_side=model.padding_side,
        truncation_side=model.truncation_side,
        clean_up_tokenization_spaces=False,
        extra_special_tokens=model.extra_special_tokens,
        **model.special_tokens_map,
    )


def _matched_whole(tokenizer: PreTrainedTokenizerFast, token: str) -> AddedToken:
    """A token that is looked for in the normalised text, or in the raw one where normalising marks spaces."""
    return AddedToken(
        token,
        single_word=not (UNSPACED.match(token[0]) and UNSPACED.match(token[-1])),
        normalized=SPACE_MARK not in normalised(tokenizer, " a a"),
        lstrip=not is_wordpiece(tokenizer),  # others write the space before a word into its token
    )


def _is_one_word(tokenizer: PreTrainedTokenizerFast, token: str, model: dict[str, Any]) -> bool:
    """Whether the WordPiece model is asked for this token where it stands in a text: as one word of its own."""
    pre_tokenizer = tokenizer.backend_tokenizer.pre_tokenizer
    if len(token) > model["max_input_chars_per_word"] or UNSPACED.search(token):
        return False
    text = normalised(tokenizer, token)
    return pre_tokenizer is None or [word for word, _ in pre_tokenizer.pre_tokenize_str(text)] == [token]


def _ordinary_words_broken_by(tokens: frozenset[str], vocabulary: dict[str, int]) -> dict[str, list[str]]:
    """Which tokens an insertion into WordPiece would let loose on which ordinary words (wordfreq, English).

    WordPiece takes the longest token that a word begins with; the rest is harmless where it is an inflection.
    """
    shortest = min(map(len, tokens), default=0)
    broken: dict[str, list[str]] = {}
    for word in _ordinary_words() if tokens else ():
        if word in vocabulary or word in tokens:
            continue
        for end in range(len(word) - 1, shortest - 1, -1):
            start = word[:end]
            if start in tokens and word[end:] not in INFLECTIONS:
                broken.setdefault(start, []).append(word)
            if start in tokens or start in vocabulary:
                break
    return broken


@cache
def _ordinary_words() -> list[str]:
    from wordfreq import top_n_list

    return list(top_n_list("en", ORDINARY_WORDS))
