"""Definitions without what the page that they stood on had around them: markup, links, labels, letters of an index."""

import html
import re
from collections import Counter
from collections.abc import Sequence

TAG = re.compile(r"</?[a-zA-Z][^<>]{0,200}>")
MARKDOWN_LINK = re.compile(r"!?\[([^\[\]]*)\]\([^()\s]*(?:\s+\"[^\"]*\")?\)")
URL = re.compile(r"\(?\b(?:https?://|www\.)[^\s()]+\)?")
EMPHASIS = re.compile(r"(\*\*|__|`)(.+?)\1")
INDEX = re.compile(r"(?:Numbers and Symbols\s+)?(?:\b[A-Z]\b[\s|,\u00b7]*){6,}$")
LABELS = re.compile(r"^(?:definition|meaning|description|def|n|noun|v|verb|adj)[.:]\s+", re.I)
DATED = re.compile(r"(?<!\s)\s*+\(\d{4}-\d{2}-\d{2}\)\s*$")
SHORTEST, MOST_WORDS = 2, 6  # words of a beginning that definitions have in common
SHARE, FEWEST = 0.5, 10  # of the definitions, and how many at least


def cleaned(text: str) -> str:
    """A definition in plain words on one line."""
    text = html.unescape(text)
    text = MARKDOWN_LINK.sub(r"\1", text)
    text = EMPHASIS.sub(r"\2", TAG.sub(" ", text))
    text = DATED.sub("", URL.sub(" ", text))
    text = INDEX.sub("", " ".join(text.split())).strip()
    text = LABELS.sub("", text).strip()
    return re.sub(r"\s+([.,;:])(?=\s|$)", r"\1", text)


def common_beginning(texts: Sequence[str]) -> str:
    """The words with which more than half of the definitions begin; empty where they begin in ways of their own."""
    for count in range(MOST_WORDS, SHORTEST - 1, -1):
        starts = Counter(start for text in texts if (start := _start(text, count)))
        for start, often in starts.most_common(1):
            if often >= FEWEST and often > SHARE * len(texts):
                return start
    return ""


def _start(text: str, words: int) -> str:
    """So many words of a text with the spaces behind them; empty for a text that has no more."""
    match = re.match(rf"(?:\S+\s+){{{words}}}(?=\S)", text)
    return match[0] if match is not None else ""
