"""Which words of a collection to replace: words of its domain that documents and queries hold.

No judgement is read. A word is of the domain if it is much more frequent here than in general language.
"""

import math
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from sparse_adapt.research.coin.families import Family, find_families, words_of

LEAST_DOCUMENTS = 5  # enough to learn a word from
LARGEST_SHARE = 0.1  # of the documents; beyond it, a word is the corpus's background
TIMES_GENERAL = 30.0  # more frequent here than in general language
SHORTEST = 5  # letters; shorter words are often more than one word
RAREST = 1e-9  # share of general language that a word without an entry is given


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
    asked = _queries_a_form(queries)
    total = counts.occurrences.total()
    found = []
    for family in families:
        documents = max(counts.holding[form] for form in family.forms)
        carried: set[int] = set().union(*(asked.get(form, ()) for form in family.forms))
        here = sum(counts.occurrences[form] for form in family.forms) / total
        elsewhere = max(RAREST, sum(general.get(form, 0.0) for form in family.forms))
        if (
            len(family.base) >= SHORTEST
            and carried
            and LEAST_DOCUMENTS <= documents <= max(LEAST_DOCUMENTS, LARGEST_SHARE * counts.documents)
            and here / elsewhere >= TIMES_GENERAL
        ):
            found.append(Candidate(family, documents, len(carried), round(here / elsewhere, 1)))
    return found


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
    held: dict[str, set[int]] = {}
    for number, text in enumerate(queries):
        for word in set(words_of(text)):
            held.setdefault(word, set()).add(number)
    return held
