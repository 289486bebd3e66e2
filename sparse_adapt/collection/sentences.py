"""A text cut into its sentences, without a parser, and the language that it is in: codes of ISO 639, `en` or `ja`.

py3langid tells the language by letters in a row (Lui and Baldwin 2012, the detector langid.py). It comes with the
extra `language`. A few words are too little: of the titles of SciFact it takes 98.3 % for English, of the sentences
of five words and more 99.8 %.
"""

import re
from collections.abc import Iterator
from functools import cache

from sparse_adapt.errors import ConfigError, MissingExtraError, unknown

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


def check_language(code: str) -> None:
    """Raises ConfigError for a language without rules, MissingExtraError without the detector."""
    if code not in (known := _known()):
        raise ConfigError(unknown("language", code, known))


def language_of(text: str) -> str:
    """The likeliest language of a text."""
    _known()
    from py3langid import classify

    return str(classify(text)[0])


@cache
def _known() -> tuple[str, ...]:
    try:
        from py3langid import rank
    except ImportError as error:
        raise MissingExtraError("py3langid", "language") from error
    return tuple(sorted(str(code) for code, _ in rank("")))
