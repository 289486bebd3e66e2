"""Files damaged in every way that disks, editors and attackers have, from a seed: the same seed, the same damage."""

import bz2
import gzip
import json
import lzma
import random
from collections.abc import Callable
from typing import Any

Damage = Callable[[random.Random, bytes], bytes]

ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1.5, 10**30, -(10**30), 2**31, 2**63, 1e308),
    *("", " ", "x", "../../etc/passwd", "\x1b]52;c;eA==\x07", "\u202egnp", "\u2028", "\x00", "a" * 5000),
    *([], [[]], {}, {"": None}, [None], ["x"], [1, 2, 3], {"x": {"y": [1]}}),
)
ODD_BYTES = (
    *(
        b"",
        b"\x00",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\r",
        b"\n",
        b"\t",
        b"\xe2\x80\xa8",
        b"\x1b[2J",
        b"\\ud800",
    ),
    *(
        b"NaN",
        b"Infinity",
        b"1e999",
        b'"',
        b"{",
        b"}",
        b"]",
        b"<",
        b"<top>",
        b"\\",
        b"9" * 5000,
        b"[" * 100_000,
    ),
)
PACKED = (gzip.compress, bz2.compress, lzma.compress)


def damaged(chance: random.Random, content: bytes) -> bytes:
    """The content with one to three kinds of damage."""
    for _ in range(chance.choice((1, 1, 2, 3))):
        content = chance.choice(DAMAGES)(chance, content)
    return content


def _cut(chance: random.Random, content: bytes) -> bytes:
    return content[: chance.randrange(len(content) + 1)]


def _flip(chance: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(min(len(changed), chance.choice((1, 1, 3, 30)))):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _put_in(chance: random.Random, content: bytes) -> bytes:
    place = chance.randrange(len(content) + 1)
    return content[:place] + chance.choice(ODD_BYTES) + content[place:]


def _take_out(chance: random.Random, content: bytes) -> bytes:
    start = chance.randrange(len(content) + 1)
    return content[:start] + content[start + chance.randrange(1, 40) :]


def _twice(chance: random.Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    place = chance.randrange(len(lines))
    return b"\n".join([*lines[: place + 1], *lines[place:]])


def _other(chance: random.Random, content: bytes) -> bytes:
    """Not the file at all."""
    return chance.choice(
        (
            b"",
            b"\n\n",
            b"null",
            b"[]",
            b"{}",
            b'"text"',
            b"7",
            chance.randbytes(200),
            content.decode("utf-8", "replace").encode("utf-16"),
            chance.choice(PACKED)(content),
        )
    )


def _value(chance: random.Random, content: bytes) -> bytes:
    """A value of JSON replaced, removed, renamed or moved, in a line or in the whole file."""
    lines = content.split(b"\n")
    place = chance.randrange(len(lines))
    for text, put in ((content, lambda new: new), (lines[place], _line_put(lines, place))):
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            continue
        return put(json.dumps(_changed(chance, value)).encode())
    return _put_in(chance, content)


def _line_put(lines: list[bytes], place: int) -> Callable[[bytes], bytes]:
    return lambda new: b"\n".join([*lines[:place], new, *lines[place + 1 :]])


def _changed(chance: random.Random, value: Any) -> Any:
    if isinstance(value, dict) and value and chance.random() < 0.85:
        key = chance.choice(list(value))
        how = chance.random()
        if how < 0.15:
            return {name: each for name, each in value.items() if name != key}
        if how < 0.25:
            return {(f"{name}x" if name == key else name): each for name, each in value.items()}
        return {**value, key: _changed(chance, value[key])}
    if isinstance(value, list) and value and chance.random() < 0.85:
        place = chance.randrange(len(value))
        return [*value[:place], _changed(chance, value[place]), *value[place + 1 :]]
    return chance.choice(ODD_VALUES)


DAMAGES: tuple[Damage, ...] = (
    _cut,
    _flip,
    _put_in,
    _take_out,
    _twice,
    _other,
    _value,
    _value,
    _value,
    _value,
)
