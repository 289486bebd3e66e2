"""One general passage and the question that it answers, and what every source's text goes through."""

import hashlib
import html
import re
from dataclasses import dataclass

WORDS = (12, 90)  # of a passage, least and most
_TAG = re.compile(r"<[^>]+>")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Entry:
    """A passage about `subject`, and a question in a form that people type. The text of an untitled one names it."""

    source: str
    subject: str
    title: str
    text: str
    question: str


def drawn(key: str, sides: int) -> int:
    """A number below `sides` that depends on the key alone: the same on every machine."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8], "big") % sides


def plain(text: str) -> str:
    """The text without tags, entities and doubled spaces."""
    return _SPACE.sub(" ", _TAG.sub(" ", html.unescape(text))).strip()


def cut(text: str) -> str:
    """The text's first sentences, as many as a passage may hold; at least its first words."""
    parts: list[str] = []
    for sentence in re.split(r"(?<=[.!?;])\s+", text):
        words = sentence.split()
        if parts and len(parts) + len(words) > WORDS[1]:
            break
        parts += words
    return " ".join(parts[: WORDS[1]]).rstrip(";")
