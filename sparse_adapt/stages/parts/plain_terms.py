"""The six published terms of distillation on pooled weights, of a sparse encoder.

A text of a step that is a candidate of two queries counts twice, as where every query brings its own candidates.
Dimensions: Q queries, N candidates each, C candidates of a step, D domain tokens, V vocabulary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.stages.parts.factors import LearntFactors
from sparse_adapt.stages.parts.made_up_lessons import marks
from sparse_adapt.stages.parts.matching import Matched, Reading
from sparse_adapt.stages.parts.scored import Compared, Comparison, Drawn
from sparse_adapt.stages.parts.sparsity import Cost
from sparse_adapt.stages.plain import Plain
from sparse_adapt.stages.terms import functions
from sparse_adapt.training import losses


class PlainTerms:
    """The task over queries with scored candidates, for `training.train`."""

    name = "plain"
    factors: LearntFactors | None = None

    def __init__(
        self,
        encoder: SparseEncoder,
        candidates: Sequence[Candidates],
        documents: Mapping[str, str],
        settings: Plain,
        terms: Sequence[str] = (),
    ) -> None:
        """`documents`: text of every document, by id; the candidates are among them.

        `terms`: those of them that are one token are domain tokens, as the new tokens of the encoder are.
        """
        self.settings = settings
        self.steps = settings.steps_for(len(candidates))
        self.weights: Mapping[str, float] = settings.weights.model_dump()
        self.functions = functions(type(settings.weights))
        self.matched = Matched(encoder, candidates, documents, None)
        self.comparison = Comparison("mse", 1.0, None, settings.tau, settings.margin)
        self.domain = domain_tokens(encoder, terms)
        self.cost = Cost(0.0, 0.0, 0.0, None, encoder.old_size)
        self.queries_say = says(self.matched.queries.ids, self.domain)
        self.documents_say = says(self.matched.documents.ids, self.domain)
        row = self.matched.scored.row
        relevant = [[row[name] for name in relevant_of(entry)] for entry in candidates]
        self.wanted = np.array([self.documents_say[rows].any(axis=0) for rows in relevant])

    def batch(self, random: Generator) -> Drawn:
        """Queries drawn without repetition, each with all of its candidates."""
        return self.matched.scored.draw(self.settings.batch_size, random)

    def terms(self, encoder: SparseEncoder, batch: Drawn) -> dict[str, Tensor]:
        """Each term of what the encoder makes of a batch, unweighted."""
        read = PlainReading(self, encoder, batch, *self.matched.read(encoder, batch))
        return {key: function(read) for key, function in self.functions.items()}


@dataclass
class PlainReading(Reading):
    """What one step has read."""

    task: PlainTerms

    @cached_property
    def compared(self) -> Compared:
        """The scores of the candidates beside the teacher's; what the teacher scores above 0 is relevant."""
        products = losses.scores(self.queries, self.documents)
        scores = products.gather(1, self.drawn.places.to(self.encoder.device))
        found = self.task.matched.scored.compared(scores, self.drawn, self.task.comparison)
        return replace(found, positive=(found.teacher > 0.0) & found.present)

    @cached_property
    def slots(self) -> Tensor:
        """The row of each candidate among the documents of the step: (C)."""
        return self.drawn.places[self.drawn.present]

    @cached_property
    def candidates(self) -> Tensor:
        """Weights of all candidates, one that two queries share twice: (C, V)."""
        return self.documents[self.slots.to(self.encoder.device)]

    @property
    def domain(self) -> Tensor:
        """Ids of the domain tokens: (D)."""
        return torch.from_numpy(self.task.domain).to(self.encoder.device)


def sparsity(read: PlainReading) -> Tensor:
    """Mean query weight times mean candidate weight, over all tokens but those of the domain."""
    old = torch.ones(read.queries.shape[1], device=read.queries.device)
    old[read.domain] = 0.0
    return losses.cross_sparsity(read.queries, read.candidates, old)


def domain(read: PlainReading) -> Tensor:
    """Domain tokens have the weight of the floor where a query or a candidate holds them."""
    task, drawn = read.task, read.drawn
    queries, candidates = read.queries[:, read.domain], read.candidates[:, read.domain]
    asked = marks(task.queries_say[drawn.queries], queries)
    said = marks(task.documents_say[np.array(drawn.documents)[read.slots.numpy()]], queries)
    floor = task.settings.floor
    return losses.hinge_share(queries, asked, floor) + losses.hinge_share(candidates, said, floor)


def expand(read: PlainReading) -> Tensor:
    """A query has the domain tokens that its relevant documents hold."""
    weights = read.queries[:, read.domain]
    return losses.expand_by_query(weights, marks(read.task.wanted[read.drawn.queries], weights))


def domain_tokens(encoder: SparseEncoder, terms: Sequence[str]) -> NDArray[np.int64]:
    """Sorted ids of the new tokens and of the terms that are one token: (D)."""
    new = {token.token_id for token in encoder.new_tokens}
    inside = [f" {text}" for text in terms]  # as within a text, where some tokenizers mark a word's beginning
    pieces = encoder.tokenizer(inside, add_special_tokens=False)["input_ids"] if inside else []
    single = {ids[0] for ids in pieces if len(ids) == 1} - {encoder.tokenizer.unk_token_id}
    return np.array(sorted(new | single), dtype=np.int64)


def says(token_ids: Sequence[TokenIds], tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of some tokens each text holds: (B, D) booleans."""
    return np.array([np.isin(tokens, ids) for ids in token_ids], dtype=bool).reshape(
        len(token_ids), len(tokens)
    )


def relevant_of(entry: Candidates) -> list[str]:
    """The candidates that the teacher scores above 0."""
    return [name for name, score in zip(entry.document_ids, entry.teacher_scores, strict=True) if score > 0]
