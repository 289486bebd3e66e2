"""A word with its inflected forms, and the same forms of another word: plasmid, plasmids; brovid, brovids.

A form is found where it stands as a word of its own, whatever its case, between hyphens or before a possessive
ending. Derived words (plasmidic) are words of their own.
"""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping
from typing import NamedTuple

VOWELS = "aeiou"
SIBILANTS = ("s", "x", "z", "ch", "sh")
LATIN = (
    ("is", "es"),
    ("us", "i"),
    ("um", "a"),
)  # metastasis, metastases; nucleus, nuclei; bacterium, bacteria
SHORTEST = 4  # letters of a base; shorter ones have too many words that only look like their forms
LETTERS = re.compile(r"[^\W\d_]+")
WORD = re.compile(r"\w+")


class Family(NamedTuple):
    """A base and its forms in a corpus: `forms[form]` is the ending that the form adds ("", s, ed, ing)."""

    base: str
    forms: Mapping[str, str]


def find_families(words: Container[str], bases: Iterable[str]) -> list[Family]:
    """The families of those bases that aren't a form of another word, each with the forms that `words` holds."""
    families, children = [], set()
    for base in bases:
        forms = {form: ending for form, ending in inflect(base).items() if form in words or form == base}
        children |= forms.keys() - {base}
        families.append(Family(base, forms))
    return [family for family in families if family.base not in children]


def inflect(base: str) -> dict[str, str]:
    """The forms that a word in lower case may have, with the ending that each stands for."""
    if len(base) < SHORTEST:
        return {base: ""}
    forms = {base: ""}
    if base.endswith(SIBILANTS):
        forms[f"{base}es"] = "s"
    elif base.endswith("y") and base[-2] not in VOWELS:
        forms |= {f"{base[:-1]}ies": "s", f"{base[:-1]}ied": "ed"}
    else:
        forms[f"{base}s"] = "s"
    forms |= {base[: -len(one)] + many: "s" for one, many in LATIN if base.endswith(one)}
    if base.endswith("e"):
        return forms | {f"{base}d": "ed", f"{base[:-1]}ing": "ing"}
    doubled = base + base[-1] if base[-1] not in f"{VOWELS}wxy" and base[-2] in VOWELS else base
    return forms | {f"{stem}{ending}": ending for stem in (base, doubled) for ending in ("ed", "ing")}


class Coinage:
    """Families and the word that stands for each; counts what it replaces."""

    def __init__(self, families: Iterable[Family], coined: Mapping[str, str]) -> None:
        """coined: base -> the word that replaces it, form by form."""
        self.base: dict[str, str] = {}
        self.form: dict[str, str] = {}
        for family in families:
            for form, ending in family.forms.items():
                self.base[form] = family.base
                self.form[form] = coined[family.base] + ending

    def bases(self, text: str) -> dict[str, Counter[str]]:
        """The families that a text holds: base -> form -> occurrences."""
        held: dict[str, Counter[str]] = {}
        for word in words_of(text):
            if word in self.base:
                held.setdefault(self.base[word], Counter())[word] += 1
        return held

    def replace(self, text: str) -> str:
        """The text with every form of every family replaced, in the case that it had."""
        return WORD.sub(self._replaced, text)

    def _replaced(self, match: re.Match[str]) -> str:
        surface = match.group()
        if "_" in surface:  # identifiers are made of words, too
            return LETTERS.sub(self._part, surface)
        return self._part(match)

    def _part(self, match: re.Match[str]) -> str:
        surface = match.group()
        coined = self.form.get(surface.lower())
        return surface if coined is None else in_case_of(surface, coined)


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; parts of compounds and of identifiers count as words."""
    return [word for run in WORD.findall(text.lower()) for word in run.split("_") if word]


def in_case_of(surface: str, word: str) -> str:
    """A word in the case of a surface: CAPITALS, Capitalised, or small."""
    if surface.isupper() and len(surface) > 1:
        return word.upper()
    return word.capitalize() if surface[0].isupper() else word
