"""Words of a collection that can be replaced, and words that nobody has used to stand for them.

A family is a word with its inflected forms, which become the same forms of another word: plasmid, plasmids; brovid,
brovids. A form is found where it stands as a word of its own, whatever its case, between hyphens or before a possessive
ending. Derived words (plasmidic) are words of their own. No judgement is read: a word is of the domain if it is much
more frequent here than in general language. An invented word is pronounceable, and a letter or more away from every
word that somebody has.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np

# of families
VOWELS = "aeiou"
SIBILANTS = ("s", "x", "z", "ch", "sh")
LATIN = (("is", "es"), ("us", "i"), ("um", "a"))  # metastases; nuclei; bacteria
SHORTEST_BASE = 4  # letters; shorter ones have too many words that only look like their forms
LETTERS = re.compile(r"[^\W\d_]+")
WORD = re.compile(r"\w+")

# of words that can be replaced
LEAST_DOCUMENTS = 5  # enough to learn a word from
LARGEST_SHARE = 0.1  # of the documents; beyond it, a word is the corpus's background
TIMES_GENERAL = 30.0  # more frequent here than in general language
SHORTEST = 5  # letters; shorter words are often more than one word
RAREST = 1e-9  # share of general language that a word without an entry is given

# of invented words
ONSETS = "b bl br d dr f fl fr g gl gr k kl kr l m n p pl pr r sk sl sm sn sp st t tr v vr w z".split()  # noqa: SIM905
INNER = "b d f g k l lb ld lv m mb n nd nv p r rd rg rv t v z".split()  # noqa: SIM905
CODAS = "b d g k l m n nd p rb rd rk rm rn t lt nk v".split()  # noqa: SIM905
ENDINGS = ("s", "ed", "ing")  # a coda takes them without any change: brovid, brovids, brovided, broviding
SYLLABLES = (2, 2, 3)  # two of three words have two
TRIES = 200  # for each word that is asked for; nine in ten are taken at the first


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
    if len(base) < SHORTEST_BASE:
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
        forms: dict[str, Counter[str]] = {}
        for word in words_of(text):
            if word in self.base:
                forms.setdefault(self.base[word], Counter())[word] += 1
        return forms

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
        return surface if coined is None else _in_case_of(surface, coined)


def words_of(text: str) -> list[str]:
    """The words of a text in lower case; parts of compounds and of identifiers count as words."""
    return [word for run in WORD.findall(text.lower()) for word in run.split("_") if word]


def _in_case_of(surface: str, word: str) -> str:
    """A word in the case of a surface: CAPITALS, Capitalised, or small."""
    if surface.isupper() and len(surface) > 1:
        return word.upper()
    return word.capitalize() if surface[0].isupper() else word


# -- which words to replace ----------------------------------------------------------------------


class Counts(NamedTuple):
    """What one pass over a corpus counts: occurrences and documents of each word in lower case."""

    documents: int
    occurrences: Counter[str]
    holding: Counter[str]


class Candidate(NamedTuple):
    """A family that could be replaced, and the evidence. `documents` counts those of its most frequent form."""

    family: Family
    documents: int
    queries: int
    times_general: float


def count_words(texts: Iterable[str]) -> Counts:
    """Count every word of every text. Memory grows with distinct words only."""
    counts = Counts(0, Counter(), Counter())
    documents = 0
    for documents, text in enumerate(texts, start=1):  # noqa: B007 - the last number is what counts
        words = words_of(text)
        counts.occurrences.update(words)
        counts.holding.update(set(words))
    return counts._replace(documents=documents)


def find_candidates(counts: Counts, queries: Iterable[str]) -> list[Candidate]:
    """Every family of the domain that is in enough documents and in a query, in alphabetical order."""
    from wordfreq import get_frequency_dict

    general = get_frequency_dict("en", "best")
    bases = sorted(word for word in counts.occurrences if word.isascii() and word.isalpha())
    families = find_families(counts.occurrences, bases)
    by_form = _queries_a_form(queries)
    total = counts.occurrences.total()
    candidates = []
    for family in families:
        documents = max(counts.holding[form] for form in family.forms)
        carried: set[int] = set().union(*(by_form.get(form, ()) for form in family.forms))
        here = sum(counts.occurrences[form] for form in family.forms) / total
        elsewhere = max(RAREST, sum(general.get(form, 0.0) for form in family.forms))
        if (
            len(family.base) >= SHORTEST
            and carried
            and LEAST_DOCUMENTS <= documents <= max(LEAST_DOCUMENTS, LARGEST_SHARE * counts.documents)
            and here / elsewhere >= TIMES_GENERAL
        ):
            candidates.append(Candidate(family, documents, len(carried), round(here / elsewhere, 1)))
    return candidates


def choose_words(candidates: list[Candidate], count: int, generator: np.random.Generator) -> list[Candidate]:
    """`count` of them by chance, likelier the more queries say them, in alphabetical order.

    Weighted sampling without replacement: the largest of log(u) / weight (Efraimidis and Spirakis 2006). More
    queries a word make a difference between models that is less a matter of chance.
    """
    draws = generator.random(len(candidates))
    keys = [
        math.log(1.0 - draw) / candidate.queries for draw, candidate in zip(draws, candidates, strict=True)
    ]
    chosen = sorted(range(len(candidates)), key=lambda index: -keys[index])[:count]
    return [candidates[index] for index in sorted(chosen)]


def _queries_a_form(queries: Iterable[str]) -> dict[str, set[int]]:
    """Which queries hold each word, by number."""
    rows: dict[str, set[int]] = {}
    for number, text in enumerate(queries):
        for word in set(words_of(text)):
            rows.setdefault(word, set()).add(number)
    return rows


# -- what stands for them ------------------------------------------------------------------------


def invent_words(count: int, taken: Collection[str], generator: np.random.Generator) -> list[str]:
    """`count` invented words in lower case, no two of them alike, none near a word of English.

    `taken` holds words that are in use: those of a corpus, entries of a vocabulary. English is what `wordfreq`
    has counted (Speer 2022); an invented word isn't there, and neither is one that differs in one letter.
    """
    from wordfreq import get_frequency_dict

    english = get_frequency_dict("en", "best")
    invented: list[str] = []
    refused = set[str]()
    for _ in range(TRIES * max(1, count)):
        if len(invented) == count:
            break
        word = _pronounceable(generator)
        near = set(neighbours(word))
        forms = {word, *(word + ending for ending in ENDINGS)}
        if forms & refused or any(each in taken or each in english for each in near | forms):
            continue
        invented.append(word)
        refused |= near | forms
    assert len(invented) == count, (len(invented), count)
    return invented


def neighbours(word: str) -> Iterator[str]:
    """Every string that differs from a word in one letter: left out, put in, or another one."""
    for place in range(len(word) + 1):
        before, after = word[:place], word[place:]
        if after:
            yield before + after[1:]
        for letter in ascii_lowercase:
            yield before + letter + after
            if after and letter != after[0]:
                yield before + letter + after[1:]


def _pronounceable(generator: np.random.Generator) -> str:
    """Syllables of consonants and a vowel, and a consonant at the end."""

    def one(choices: Sequence[str]) -> str:
        return choices[int(generator.integers(len(choices)))]

    syllables = SYLLABLES[int(generator.integers(len(SYLLABLES)))]
    word = one(ONSETS) + one(VOWELS)
    for _ in range(syllables - 1):
        word += one(INNER) + one(VOWELS)
    return word + one(CODAS)
