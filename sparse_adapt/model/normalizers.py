"""How long a text can become before it is cut into tokens, by what `tokenizer.json` has done to it first.

A few replacements in a row, each of one character by ten, make a terabyte of one word. What they can come to is known
before any text is read: the product of what each step makes of one character.
"""

import base64
import binascii
import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from sparse_adapt.errors import ModelError
from sparse_adapt.files.records import JsonObject
from sparse_adapt.model.folder import ModelSource

TOKENIZER_FILE = "tokenizer.json"
MOST = 100  # characters that may come of one
BY_UNICODE = {
    "NFKC": 18,
    "NFKD": 18,
    "NFC": 3,
    "NFD": 4,
    "Lowercase": 3,
    "BertNormalizer": 12,
    "ByteLevel": 4,
}
LONGEST_TEMPLATE = 64  # special tokens around a text


def check_growth(folder: Path, source: ModelSource) -> None:
    """Raise ModelError, naming `source`, for a tokenizer that makes far more of a text than the text holds.

    A file that can't be read is left to loading, which refuses it.
    """
    try:
        state = json.loads((folder / TOKENIZER_FILE).read_bytes())
    except (OSError, ValueError, RecursionError):
        return
    if not isinstance(state, dict):
        return
    growth = 1
    for step in (*steps_of(state.get("normalizer")), *steps_of(state.get("pre_tokenizer"))):
        growth *= max(1, _growth(step))
        if growth > MOST:
            raise ModelError(
                f"{source}: its tokenizer makes over {MOST} characters of one ({step.get('type')}); choose another "
                "model"
            )
    for step in steps_of(state.get("post_processor")):
        if any(_is_long(step.get(name)) for name in ("single", "pair")):
            raise ModelError(
                f"{source}: its tokenizer puts over {LONGEST_TEMPLATE} tokens around a text; choose another model"
            )


def steps_of(step: object) -> Iterator[JsonObject]:
    """A step of a tokenizer, or those that it consists of, however deep."""
    waiting = [step]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            parts = [each[key] for key in ("normalizers", "pretokenizers", "processors") if key in each]
            waiting += [inner for part in parts if isinstance(part, list) for inner in reversed(part)]
            if not parts:
                yield each


def _growth(step: JsonObject) -> int:
    """Characters that a step makes of one at most."""
    kind = step.get("type")
    if kind == "Replace":
        pattern, content = step.get("pattern"), step.get("content")
        found = pattern.get("String") if isinstance(pattern, dict) else None
        put = len(content) if isinstance(content, str) else 0
        if isinstance(found, str) and found:
            return -(-put // len(found))
        return put + 1  # an expression may match between characters, which stay
    if kind == "Precompiled":
        return _longest_of(step.get("precompiled_charsmap"))
    return BY_UNICODE.get(str(kind), 1)


def _longest_of(charsmap: object) -> int:
    """The longest text that SentencePiece's table puts in place of another, in characters."""
    try:
        table = base64.b64decode(charsmap if isinstance(charsmap, str) else "")
    except (ValueError, binascii.Error):
        return 1  # which loading refuses
    texts = table[4 + int.from_bytes(table[:4], "little") :]
    ends = [-1, *(place for place, byte in enumerate(texts) if not byte), len(texts)]
    longest = max(pairwise(ends), key=lambda pair: pair[1] - pair[0])
    return len(texts[longest[0] + 1 : longest[1]].decode("utf-8", "replace"))


def _is_long(template: object) -> bool:
    return isinstance(template, list) and len(template) > LONGEST_TEMPLATE
