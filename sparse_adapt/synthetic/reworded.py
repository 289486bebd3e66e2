"""Definitions in other words: what a verdict asks a model that was taught these definitions.

Lessons are made of the definitions' own words and of words that the judge finds most like them, so neither tells
whether the meaning was learnt. Here each telling word of a definition gives way to one that the judge finds further
off, beyond all that lessons draw from, and of many such texts the few that it finds nearest to their definition stay.
Dimensions: B texts, W words, D definitions, H width of a dense vector.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from wordfreq import top_n_list, zipf_frequency

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.synthetic.judged import ALIKE, LEAST_ALIKE

WORDS = 8_000  # common ones that may stand for another
FURTHER = 8  # words that a word is drawn from, after the `ALIKE` that lessons draw from
TRIED, TEXTS = 24, 3  # texts of a definition: those made, and those of them that stay
TELLING = 5.8  # zipf frequency (Speer 2022, wordfreq) from which on a word stays as it is

WORD = re.compile(r"[^\W\d_]+")


class Reworded(NamedTuple):
    """A definition in other words, and the term that it defines."""

    term: str
    text: str


def reworded(definitions: Sequence[Definition], dense: DenseEncoder, seed: int) -> list[Reworded]:
    """A few texts for each definition, nearer to it than to any other definition as the dense encoder sees them.

    There may be none for a definition whose words aren't common ones, or that is much like another.
    """
    random = np.random.default_rng([seed, 5])
    others = _others(definitions, dense)
    made = [
        (row, text)
        for row, each in enumerate(definitions)
        for _ in range(TRIED)
        if (text := _in_other_words(each.definition, others, random))
    ]
    if not made:
        return []
    own, tried = np.array([row for row, _ in made]), [text for _, text in made]
    cosines = dense.encode(tried) @ dense.encode([each.definition for each in definitions]).T  # (B, D)
    meant = cosines.argmax(axis=1) == own
    nearness = cosines[np.arange(len(own)), own]
    found = []
    for row, definition in enumerate(definitions):
        able = [int(place) for place in np.flatnonzero((own == row) & meant)]
        best = sorted(able, key=lambda place: -float(nearness[place]))
        texts = dict.fromkeys(tried[place] for place in best)
        found += [Reworded(definition.term, text) for text in list(texts)[:TEXTS]]
    return found


def _others(definitions: Sequence[Definition], dense: DenseEncoder) -> Mapping[str, list[str]]:
    """For each telling word of the definitions, the words that may stand for it."""
    said = sorted({word for each in definitions for word in _words(each.definition) if _tells(word)})
    if not said:
        return {}
    common = [word for word in top_n_list("en", WORDS) if WORD.fullmatch(word) and _tells(word)]
    cosines: NDArray[np.float32] = dense.encode(said) @ dense.encode(common).T  # (said, W)
    found = {}
    for word, row in zip(said, cosines, strict=True):
        order = [int(place) for place in np.argsort(-row, kind="stable") if common[place] != word]
        alike = [common[place] for place in order[ALIKE : ALIKE + FURTHER] if row[place] > LEAST_ALIKE]
        found[word] = alike
    return found


def _in_other_words(definition: str, others: Mapping[str, list[str]], random: Generator) -> str:
    """A text with another word for each telling one; one that nothing may stand for is left out."""
    words = []
    for word in _words(definition):
        if not _tells(word):
            words.append(word)
        elif others[word]:
            words.append(str(random.choice(others[word])))
    return " ".join(words) if any(map(_tells, words)) else ""


def _words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def _tells(word: str) -> bool:
    return zipf_frequency(word, "en") < TELLING
