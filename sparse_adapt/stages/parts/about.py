"""Which terms a text is about, even where it doesn't say them: what it defines, or what answers it says.

Dimensions: S sources, D new tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.collection.glossary import Definition, sentence
from sparse_adapt.errors import ConfigError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.stages.parts.texts import Texts


@dataclass(frozen=True, slots=True)
class Sources:
    """Texts as token ids, and which terms each is about (S, D)."""

    token_ids: Sequence[TokenIds]
    about: NDArray[np.bool_]

    def __add__(self, other: "Sources") -> "Sources":
        return Sources([*self.token_ids, *other.token_ids], np.concatenate([self.about, other.about]))

    def of_terms(self, terms: NDArray[np.int64]) -> "Sources":
        """The same of some of the terms, by their places."""
        return Sources(self.token_ids, self.about[:, terms])


@dataclass(frozen=True, slots=True)
class DefinedTexts:
    """What definitions say, and documents behind that; about: (S, D). The first `sayings` texts are of definitions."""

    texts: Texts
    about: NDArray[np.bool_]
    sayings: int

    @property
    def documents(self) -> range:
        """The rows of the documents."""
        return range(self.sayings, len(self.texts))

    @property
    def defined(self) -> NDArray[np.int64]:
        """The places of the terms that are defined, among the new tokens."""
        return np.flatnonzero(self.about[: self.sayings].any(axis=0))


@dataclass(frozen=True, slots=True)
class AnsweredQuery:
    """A query, and the texts that answer it."""

    query: str
    answers: Sequence[str]


def defined_texts(
    encoder: SparseEncoder, definitions: Sequence[Definition], documents: Sequence[str]
) -> DefinedTexts:
    """The texts of a stage that teaches definitions. Raises ConfigError where none is of a new term."""
    said = sayings(definitions)
    texts = Texts(encoder, [*said, *documents])
    about = texts.says.copy()
    about[: len(said)] = defined(definitions, texts.says[: len(said)])
    if not about[: len(said)].any():
        raise ConfigError(
            f"none of the {len(definitions):,} definitions is of a new term; extend the model with these terms first"
        )
    return DefinedTexts(texts, about, len(said))


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
