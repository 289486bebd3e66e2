"""The words of a corpus as they are written, counted in one pass. Memory grows with distinct words only.

A word is a run of letters and digits, or several joined by `-`, `_` or `.` (a compound: `max_connections`,
`IL-6`, `long-term`), or one with `++` or `#` behind it. Case variants are one word where the tokenizer's
normalizer makes them one, possessives always, plurals where the singular occurs too. Accents and vowel signs that
follow a letter belong to it. Scripts that put no space between words (Japanese, Chinese, Thai) are passed over.

Texts from PDF and HTML are full of signs that no reader sees: soft hyphens, zero-width spaces, joiners, control signs.
Many tokenizers delete such a sign, some take it for a space, others leave it; words of a text are words of what the
tokenizer makes of it.
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

LINK = re.compile(r"(?:https?://|www\.)\S+|(?<!\S)\S[^\s@]*+@\S+\.\w+")
LETTER = r"[^\W_]"
WORD = rf"{LETTER}+(?:(?:_+|[-.]){LETTER}+)*(?:\+\+|#(?!\w))?"
ASCII_WORD = re.compile(WORD)
JOINERS = "\u200c\u200d"  # within words of Persian and of scripts of India
LAST_OF_SCRIPTS, SELECTORS = 0x1FFFF, range(0xE0100, 0xE01F0)  # no mark stands between
JOINT = re.compile(r"[-.]")
UNSPACED = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]")
LONGEST = 40
PLURALS_IN_ES = ("sses", "shes", "ches", "xes", "zes")
NO_PLURALS = ("ss", "us", "is")
SPACE_MARK = "\u2581"  # SentencePiece writes it for a space
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
UNSEEN = ("Cf", "Cc")  # of Unicode's categories: formats and controls


class VisibleText:
    """Texts as a tokenizer sees them, as far as unseen signs go; everything else stays as it is written."""

    def __init__(self, tokenizer: "PreTrainedTokenizerFast") -> None:
        self.normalizer = tokenizer.backend_tokenizer.normalizer
        self.table: dict[int, str] = {}

    def __call__(self, text: str) -> str:
        """The text without the signs that the tokenizer deletes, and with spaces for those that it takes for one."""
        if self.normalizer is None or (text.isascii() and CONTROL.search(text) is None):
            return text
        for sign in set(map(ord, text)) - self.table.keys():
            self.table[sign] = self._seen(chr(sign))
        return text.translate(self.table)

    def _seen(self, sign: str) -> str:
        if unicodedata.category(sign) not in UNSEEN or sign.isspace():
            return sign
        spelling = self._normalised(f"a{sign}a")
        if spelling == self._normalised("aa"):
            return ""
        return " " if spelling == self._normalised("a a") else sign

    def _normalised(self, text: str) -> str:
        assert self.normalizer is not None, "looked at only with one"
        return str(self.normalizer.normalize_str(text)).replace(SPACE_MARK, " ")


@dataclass(slots=True)
class Count:
    """How often something occurs, in how many documents, and how much that is worth as evidence."""

    occurrences: int = 0
    documents: int = 0
    support: float = 0.0  # sum over documents of 1 + ln(occurrences there): repeats within one count for less

    def add(self, occurrences: int) -> None:
        """Count one more document."""
        self.occurrences += occurrences
        self.documents += 1
        self.support += 1 + math.log(occurrences)

    def without(self, occurrences: int) -> "Count":
        """What is left when some occurrences belong elsewhere; documents and support are estimates then."""
        left = max(0, self.occurrences - occurrences)
        share = left / self.occurrences if self.occurrences else 0.0
        return Count(left, min(self.documents, left), self.support * share)


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a corpus: `count` holds its occurrences on its own and as a part of compounds."""

    key: str  # as the tokenizer's normalizer makes it
    surfaces: tuple[str, ...]  # most frequent first
    count: Count


class Words:
    """Counts of every word, its key being what `normalise` makes of it; `seen` is what becomes of texts before."""

    def __init__(self, normalise: Callable[[str], str], seen: Callable[[str], str] = str) -> None:
        self.normalise, self.seen = normalise, seen
        self.total = 0
        self.by_key: dict[str, Count] = defaultdict(Count)
        self.by_singular: dict[str, Count] = defaultdict(Count)
        self.surfaces: dict[str, Counter[str]] = defaultdict(Counter)
        self.keys: dict[str, str] = {}

    def add(self, text: str) -> None:
        """Count one document."""
        keys: Counter[str] = Counter()
        singulars: Counter[str] = Counter()
        for surface, occurrences in Counter(find_words(self.seen(text))).items():
            self.total += occurrences
            for unit in (surface, *parts_of(surface)):
                key = self._key(unit)
                if key:
                    keys[key] += occurrences
                    singulars[singular(key)] += occurrences
                    self.surfaces[key][unit] += occurrences
        for key, occurrences in keys.items():
            self.by_key[key].add(occurrences)
        for key, occurrences in singulars.items():
            self.by_singular[key].add(occurrences)

    def folded(self, is_token: Callable[[str], bool]) -> Iterator[Word]:
        """Every word once: a plural under its singular where both occur.

        A plural stays by itself if it is a token of its own, or spelt in capitals (`HTTPS` is no plural).
        """
        for key, count in self.by_key.items():
            if self._is_plural(key, singular(key)) and not is_token(key):
                continue
            forms = (f"{key}s", f"{key}es", f"{key[:-1]}ies")
            plurals = [form for form in forms if self._is_plural(form, key)]
            if any(map(is_token, plurals)):
                plurals = []
            surfaces = [surface for each in (key, *plurals) for surface in self.ranked(each)]
            yield Word(key, tuple(surfaces), self.by_singular[key] if plurals else count)

    def ranked(self, key: str) -> list[str]:
        """The surfaces of a key, most frequent first, and lower case before upper where they are level."""
        counts = self.surfaces[key]
        return sorted(counts, key=lambda surface: (-counts[surface], surface.swapcase()))

    def _key(self, unit: str) -> str:
        key = self.keys.get(unit)
        if key is None:
            key = self.keys[unit] = self.normalise(unit)
        return key

    def _is_plural(self, key: str, other: str) -> bool:
        if key == other or singular(key) != other or singular(other) != other:
            return False
        return key in self.by_key and other in self.by_key and not self.ranked(key)[0].isupper()


def find_words(text: str) -> Iterator[str]:
    """The words of a text as they are written, links and addresses left out, possessive endings cut off."""
    word_pattern = ASCII_WORD
    if not text.isascii():
        text, word_pattern = unicodedata.normalize("NFC", text), with_marks(WORD)
    if "www." in text or "://" in text or "@" in text:
        text = LINK.sub(" ", text)
    for match in word_pattern.finditer(text):
        word = match.group()
        if len(word) <= LONGEST and not UNSPACED.search(word):
            yield word


@cache
def with_marks(pattern: str) -> re.Pattern[str]:
    """A pattern of `LETTER` in any script: a letter takes along the marks behind it, which `\\w` doesn't know."""
    marks = [
        sign
        for sign in map(chr, (*range(0x300, LAST_OF_SCRIPTS), *SELECTORS))
        if unicodedata.category(sign)[0] == "M"
    ]
    return re.compile(pattern.replace(LETTER + "+", f"(?:{LETTER}[{''.join(marks)}{JOINERS}]*)+"))


def parts_of(surface: str) -> list[str]:
    """What a hyphen or a full stop joins; nothing for a simple word, nor for an identifier with `_`."""
    if "_" in surface or not ("-" in surface or "." in surface):
        return []
    return JOINT.split(surface)


def singular(key: str) -> str:
    """What a key would be without a plural ending, right or wrong: compare only with words that occur."""
    if len(key) < 4 or not key.endswith("s") or key.endswith(NO_PLURALS):
        return key
    if key.endswith("ies"):
        return f"{key[:-3]}y"
    return key[:-2] if key.endswith(PLURALS_IN_ES) else key[:-1]
