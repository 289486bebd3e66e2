"""Texts to exact words: in lower case, stemmed, without stop words; identifiers whole and in their parts.

| text | words |
|---|---|
| `Flying planes` | `fli`, `plane` |
| `maxConnections`, `max_connections` | the whole in lower case, `max`, `connect` |
| `ERR-4012`, `a.b.c`, `C++` | the whole in lower case, and each part; of `C++` the whole alone |
| `long-term` | `long`, `term` |
| Chinese, Japanese, Korean, Thai | pairs of neighbouring characters |

A compound is an identifier where a capital stands inside it, or a digit, or a sign other than a hyphen or apostrophe.
"""

import re
import unicodedata
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from sparse_adapt.model.exact.language import Language
from sparse_adapt.terms.words import LETTER, with_marks

COMPOUND = rf"{LETTER}+(?:[-._/:@#+&'\u2019]+{LETTER}+)*(?:\+\+|#(?!\w))?"
PART = rf"{LETTER}+"
ASCII_COMPOUND, ASCII_PART = re.compile(COMPOUND), re.compile(PART)
CAPITAL_INSIDE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
SIGN = re.compile(r"[._/:@#+&]|\d")  # of an identifier
ENDING = re.compile(r"['\u2019](?:s|t|d|m|re|ve|ll)$", re.IGNORECASE)  # it's, we've
NEGATED = re.compile(r"n['\u2019]t$", re.IGNORECASE)  # of an auxiliary verb: don't, isn't
HYPHENS = dict.fromkeys(map(ord, "\u2010\u2011\u2212"), "-")
UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff"))  # soft hyphen, spaces without width
UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]+"
)
LONGEST = 100  # characters; what is longer is no word (a key, a picture in letters)
MOST_KNOWN = 500_000  # compounds whose words are kept for the next text


class Word(NamedTuple):
    """An exact word: as it is compared, and as it stands in the text in lower case."""

    stem: str
    surface: str


class Analyzer:
    """Texts of one language to exact words, the same on every machine."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self._known: dict[str, tuple[Word, ...]] = {}

    def words(self, text: str) -> Iterator[Word]:
        """The exact words of a text in its order, each as often as it stands there."""
        compound = ASCII_COMPOUND
        if not text.isascii():
            text = unicodedata.normalize("NFKC", text).translate(HYPHENS | UNSEEN)
            compound = with_marks(COMPOUND)
        for match in compound.finditer(text):
            surface = match.group()
            words = self._known.get(surface)
            if words is None:
                words = tuple(self._of_compound(surface))
                if len(self._known) >= MOST_KNOWN:
                    self._known.clear()
                self._known[surface] = words
            yield from words

    def _of_compound(self, compound: str) -> Iterator[Word]:
        if UNSPACED.search(compound):
            yield from self._of_unspaced(compound)
            return
        if NEGATED.search(compound):
            return
        compound = ENDING.sub("", compound)
        if not compound or len(compound) > LONGEST:
            return
        parts = parts_of(compound)
        if is_identifier(compound, parts):
            yield Word(compound.lower(), compound.lower())
        if len(parts) == 1 and parts[0] != compound:  # C++: its part alone says another thing
            return
        for part in parts:
            surface = part.lower()
            if surface not in self.language.stop_words:
                yield Word(self.language.stem(surface), surface)

    def _of_unspaced(self, compound: str) -> Iterator[Word]:
        """Pairs of characters where no space parts words; what stands between as elsewhere."""
        end = 0
        for run in UNSPACED.finditer(compound):
            yield from self.words(compound[end : run.start()])
            characters = run.group()
            pairs = [a + b for a, b in pairwise(characters)] or [characters]
            yield from (Word(pair, pair) for pair in pairs)
            end = run.end()
        yield from self.words(compound[end:])


def parts_of(compound: str) -> list[str]:
    """The parts of a compound between signs and before capitals inside it."""
    part = ASCII_PART if compound.isascii() else with_marks(PART)
    return [each for letters in part.findall(compound) for each in CAPITAL_INSIDE.split(letters)]


def is_identifier(compound: str, parts: list[str]) -> bool:
    """Whether a compound is looked for whole, too: `max_connections` and `ERR-4012` are, `long-term` isn't."""
    inside = len(parts) > 1 and (SIGN.search(compound) or CAPITAL_INSIDE.search(compound))
    return bool(inside) or compound[-1] in "+#"
