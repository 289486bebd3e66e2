"""What isn't read of texts: no more of a long one is tokenised than is needed, and what is left out is counted."""

from collections.abc import Sequence
from typing import Any

from transformers import BatchEncoding, PreTrainedTokenizerBase

from sparse_adapt.errors import InputError
from sparse_adapt.report.printable import is_unicode
from sparse_adapt.report.unread import note_cut

SIGNS_A_TOKEN = 100  # so many hold one token at least, as good as always
TEXTS_AT_ONCE = 1024  # what a tokenizer says of a token takes hundreds of bytes


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


def _ids_of(
    tokenizer: PreTrainedTokenizerBase, texts: Sequence[str], longest: int, special: bool
) -> list[list[int]]:
    starts = [_start_of(text, SIGNS_A_TOKEN * longest) for text in texts]
    encoded = _encoded(tokenizer, starts, longest, special)
    ids: list[list[int]] = encoded["input_ids"]
    for number, (text, start) in enumerate(zip(texts, starts, strict=True)):
        beyond = _beyond(encoded, number)
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
    wanted: dict[str, Any] = {"return_attention_mask": False, "return_token_type_ids": False}
    wanted["add_special_tokens"] = special
    encoded: BatchEncoding = tokenizer(texts, truncation=True, max_length=longest, **wanted)
    return encoded


def _start_of(text: str, signs: int) -> str:
    """A text up to the last space before so many signs; all of one that has none there."""
    if len(text) <= signs:
        return text
    return text[: text.rfind(" ", 0, signs)] if " " in text[:signs] else text


def _beyond(encoded: BatchEncoding, number: int) -> int:
    """How many tokens of a text were cut off, special ones aside."""
    parts = encoded.encodings[number].overflowing if encoded.encodings is not None else ()
    return sum(len(part.ids) - sum(part.special_tokens_mask) for part in parts)
