"""A text cut into its sentences, without a parser."""

import re
from collections.abc import Iterator

CHARACTERS = 20_000  # of a document that are looked at

END = re.compile("(?<=[.!?])[\"'\u2019\u201d)]*\\s+(?=[^a-z\\s])|(?<=[\u3002\uff01\uff1f])|\\n+")
ABBREVIATION = re.compile(r"(?:\b(?:[A-Za-z]|e\.g|i\.e|cf|vs|al|etc|Fig|No|Dr|St|approx|resp))\.$")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text as they stand in it; what follows an abbreviation or an initial stays with it."""
    start = 0
    for end in END.finditer(text):
        piece = text[start : end.end()]
        if ABBREVIATION.search(piece.rstrip()):
            continue
        if piece.strip():
            yield piece.strip()
        start = end.end()
    if text[start:].strip():
        yield text[start:].strip()
