"""Which terms a text is about, even where it doesn't say them: what it defines, or what answers it says.

Dimensions: S sources, D new tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.collection.glossary import Definition, sentence
from sparse_adapt.model.batches import TokenIds
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.stages.parts.texts import Texts


@dataclass(frozen=True, slots=True)
class Sources:
    """Texts as token ids, and which terms each is about (S, D)."""

    token_ids: Sequence[TokenIds]
    about: NDArray[np.bool_]

    def __add__(self, other: "Sources") -> "Sources":
        return Sources([*self.token_ids, *other.token_ids], np.concatenate([self.about, other.about]))


@dataclass(frozen=True, slots=True)
class AnsweredQuery:
    """A query, and the texts that answer it."""

    query: str
    answers: Sequence[str]


def sayings(definitions: Sequence[Definition]) -> list[str]:
    """Of each definition the rendered sentence, the definition alone, and each example."""
    return [text for definition in definitions for text in _sayings(definition)]


def defined(definitions: Sequence[Definition], says: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What each saying is about: all that the first of its definition, which holds the term, says. Both (S, D)."""
    about, start = says.copy(), 0
    for definition in definitions:
        end = start + len(_sayings(definition))
        about[start:end] |= says[start]
        start = end
    return about


def asked(encoder: SparseEncoder, queries: Sequence[AnsweredQuery]) -> Sources:
    """Queries, about what they say and what the texts say that answer them."""
    texts = Texts(encoder, [each.query for each in queries])
    answers = list(dict.fromkeys(answer for each in queries for answer in each.answers))
    place = {answer: row for row, answer in enumerate(answers)}
    answered = Texts(encoder, answers).says
    about = texts.says.copy()
    for row, each in enumerate(queries):
        about[row] |= answered[[place[answer] for answer in each.answers]].any(axis=0)
    return Sources(texts.ids, about)


def _sayings(definition: Definition) -> list[str]:
    return [sentence(definition), definition.definition, *definition.examples]
