"""Queries and the documents of their candidates, read by a sparse encoder and matched as the encoder counts them.

Dimensions: Q queries, N candidates each, B documents of a step, D new tokens, V vocabulary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.model.idf import Factors, scaled, shares_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.stages.parts.factors import LearntFactors
from sparse_adapt.stages.parts.scored import Compared, Comparison, Drawn, Scored
from sparse_adapt.stages.parts.sparsity import Cost
from sparse_adapt.stages.parts.texts import Texts, vectors
from sparse_adapt.training import losses


class Matched:
    """Scored candidates as token ids of a sparse encoder."""

    def __init__(
        self,
        encoder: SparseEncoder,
        candidates: Sequence[Candidates],
        documents: Mapping[str, str],
        longest: int | None,
    ) -> None:
        """`documents`: text of every document, by id; the candidates are among them. `longest`: tokens of a text."""
        self.scored = Scored(candidates, list(documents))
        self.documents = Texts(encoder, list(documents.values()), longest)
        self.queries = Texts(encoder, [entry.query for entry in candidates], longest, "query")

    def ids(self, drawn: Drawn) -> list[list[int]]:
        """Token ids of the queries of a step, then of its documents."""
        return [
            *(self.queries.ids[row] for row in drawn.queries),
            *(self.documents.ids[row] for row in drawn.documents),
        ]

    def first_vectors(self, reference: SparseEncoder) -> "FirstVectors":
        """What an encoder makes of the candidates before it learns. Of many queries some are taken."""
        drawn = self.scored.evenly()
        documents = vectors(reference, [self.documents.ids[row] for row in drawn.documents])
        asked = [self.queries.ids[row] for row in drawn.queries]
        side = reference.query_side
        queries = vectors(reference, asked) if side is None else side.vectors(asked)
        return FirstVectors(self.scored, drawn, queries, documents)

    def read(self, encoder: SparseEncoder, drawn: Drawn) -> tuple[Tensor, Tensor]:
        """Weights of the queries (Q, V) and of the documents (B, V) of a step; a table reads its queries."""
        ids, count = self.ids(drawn), len(drawn.queries)
        if encoder.query_side is None:
            queries, documents = encoder(ids, self.documents.asked).weights.split([count, len(ids) - count])
            return queries, documents
        asked = torch.from_numpy(encoder.query_side.vectors(ids[:count]).toarray()).to(encoder.device)
        return asked, encoder(ids[count:], self.documents.asked).weights


class FirstVectors(NamedTuple):
    """Weights of queries (Q, V) and documents (B, V) before the first step."""

    scored: Scored
    drawn: Drawn
    queries: csr_matrix
    documents: csr_matrix

    @property
    def share(self) -> NDArray[np.float64]:
        """The share of the documents that give each token weight: (V)."""
        return shares_of(self.documents)

    def scale(self, factors: Factors | None) -> losses.Scale:
        """How the teacher's scores map to the encoder's, each token counting by its factor (V)."""
        rows, queries = self.documents, self.queries
        if factors is not None:
            rows, queries = scaled(rows, factors), scaled(queries, factors)
        student = torch.zeros_like(self.drawn.teacher)
        for number, present in enumerate(self.drawn.present):
            held = self.drawn.places[number][present].numpy()
            product = (rows[held] @ queries[number].T).toarray().ravel()
            student[number, present] = torch.from_numpy(product)
        return self.scored.scale(self.drawn, student)


class Matching(Protocol):
    """A task that matches queries and documents."""

    @property
    def matched(self) -> Matched:
        """Queries and documents as token ids."""

    @property
    def comparison(self) -> Comparison:
        """How their scores are held against the teacher's."""

    @property
    def factors(self) -> LearntFactors | None:
        """What a match on each token counts; None where all count the same."""

    @property
    def cost(self) -> Cost:
        """What tokens cost."""


@dataclass
class Reading:
    """What one step of a task has read: weights of its queries (Q, V) and of its documents (B, V)."""

    task: Matching
    encoder: SparseEncoder
    drawn: Drawn
    queries: Tensor
    documents: Tensor

    @cached_property
    def compared(self) -> Compared:
        """The scores of the candidates beside the teacher's."""
        products = losses.scores(self._weighed(self.queries), self._weighed(self.documents))
        scores = products.gather(1, self.drawn.places.to(self.encoder.device))
        return self.task.matched.scored.compared(scores, self.drawn, self.task.comparison)

    @property
    def nothing(self) -> Tensor:
        """A loss of zero, for a term that has nothing to say."""
        return self.encoder.output_rows.sum() * 0.0

    def _weighed(self, weights: Tensor) -> Tensor:
        """Weights (B, V) as a match counts them."""
        return weights if self.task.factors is None else self.task.factors(weights)
