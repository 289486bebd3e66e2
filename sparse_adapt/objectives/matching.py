"""Queries and the documents of their candidates, read by a sparse encoder, matched, and what their tokens cost.

Dimensions: Q queries, N candidates each, B documents of a step, D new tokens, V vocabulary.
A loss term is a scalar: ().
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
from sparse_adapt.model.idf import TokenScales, scaled, shares_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.objectives.scores import Compared, Drawn, ScoreComparison, Scored
from sparse_adapt.objectives.scoring import Penalised
from sparse_adapt.objectives.texts import Texts, vectors
from sparse_adapt.objectives.token_scales import LearntScales
from sparse_adapt.terms.function_words import function_tokens
from sparse_adapt.training import losses

USUAL_BATCH = 8  # queries of a step for which the weight of sparsity stands


@dataclass(frozen=True, slots=True)
class Cost:
    """What tokens cost: those of queries, of documents, and penalised ones (V, in [0, 1], or None for none).

    first_new: the first token that an extension added; a match costs on the tokens before it.
    """

    query: float
    document: float
    common: float
    penalty: Tensor | None
    first_new: int


def penalty(kind: Penalised, encoder: SparseEncoder, share: NDArray[np.float64]) -> Tensor | None:
    """How much more each token costs than others (V), in [0, 1]; None where none does.

    share: (V) of the documents that give it weight. A corpus's frequent words are rare in an index with other texts,
    where a document without them sinks. Words that say nothing of a topic are known by name.
    """
    match kind:
        case "none":
            return None
        case "frequent":
            return losses.frequency_penalty(torch.from_numpy(share))
        case "function":
            costs = np.zeros(len(share), np.float32)
            costs[np.flatnonzero(function_tokens(encoder.tokenizer))] = 1.0
            return torch.from_numpy(costs)


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
        query_ids = [self.queries.ids[row] for row in drawn.queries]
        side = reference.query_side
        queries = vectors(reference, query_ids) if side is None else side.vectors(query_ids)
        return FirstVectors(self.scored, drawn, queries, documents)

    def read(self, encoder: SparseEncoder, drawn: Drawn) -> tuple[Tensor, Tensor]:
        """Weights of the queries (Q, V) and of the documents (B, V) of a step; a table reads its queries."""
        ids, count = self.ids(drawn), len(drawn.queries)
        if encoder.query_side is None:
            queries, documents = encoder(ids, self.documents.unclipped).weights.split(
                [count, len(ids) - count]
            )
            return queries, documents
        weights = torch.from_numpy(encoder.query_side.vectors(ids[:count]).toarray()).to(encoder.device)
        return weights, encoder(ids[count:], self.documents.unclipped).weights


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

    def scale(self, token_scales: TokenScales | None) -> losses.Scale:
        """How the teacher's scores map to the encoder's, each token counting by its scale (V)."""
        rows, queries = self.documents, self.queries
        if token_scales is not None:
            rows, queries = scaled(rows, token_scales), scaled(queries, token_scales)
        student = torch.zeros_like(self.drawn.teacher)
        for number, present in enumerate(self.drawn.present):
            places = self.drawn.places[number][present].numpy()
            product = (rows[places] @ queries[number].T).toarray().ravel()
            student[number, present] = torch.from_numpy(product)
        return self.scored.scale(self.drawn, student)


class Matching(Protocol):
    """A task that matches queries and documents."""

    @property
    def matched(self) -> Matched:
        """Queries and documents as token ids."""

    @property
    def comparison(self) -> ScoreComparison:
        """How their scores are held against the teacher's."""

    @property
    def token_scales(self) -> LearntScales | None:
        """What a match on each token counts; None where all count the same."""

    @property
    def cost(self) -> Cost:
        """What tokens cost."""


@dataclass
class StepReading:
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
        return weights if self.task.token_scales is None else self.task.token_scales(weights)


def sparsity(read: StepReading) -> Tensor:
    """What a match costs on old tokens, and the squared means of queries and documents.

    The mean of a sparse weight over few texts has the larger square, about as many fold as they are fewer.
    """
    queries, documents, cost = read.queries, read.documents, read.task.cost
    fewer = min(1.0, len(queries) / USUAL_BATCH)
    old = torch.ones(queries.shape[1], device=queries.device)
    old[cost.first_new :] = 0.0
    penalty = None if cost.penalty is None else cost.penalty.to(queries.device)
    cross = losses.cross_sparsity(queries, documents, old if penalty is None else old * penalty)
    plain = cost.query * losses.flops(queries) + cost.document * losses.flops(documents)
    if penalty is None:
        return fewer * (cross + plain)
    common = losses.flops(queries, penalty) + losses.flops(documents, penalty)
    return fewer * (cost.common * (cross + common) + plain)
