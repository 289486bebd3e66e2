"""A teacher's ranking and nothing else, of a sparse encoder, while everyday texts keep their vectors.

What a match on each token counts is learnt beside the encoder.
Dimensions: Q queries, B documents, V vocabulary.
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.random import Generator
from torch import Tensor, nn

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.stages.imitate import Imitate
from sparse_adapt.stages.parts.everyday import SparseEveryday
from sparse_adapt.stages.parts.factors import LearntFactors, first_factors
from sparse_adapt.stages.parts.matching import Matched, Reading
from sparse_adapt.stages.parts.scored import Comparison, Drawn
from sparse_adapt.stages.parts.sparsity import Cost, penalty
from sparse_adapt.stages.terms import functions


@dataclass(frozen=True, slots=True)
class ImitationBatch(Drawn):
    """Queries with their candidates, and everyday texts."""

    others: list[int]


class Imitation:
    """The task over queries with scored candidates, for `training.train`."""

    name = "imitate"

    def __init__(
        self,
        encoder: SparseEncoder,
        candidates: Sequence[Candidates],
        documents: Mapping[str, str],
        settings: Imitate,
        before: SparseEncoder | None = None,
    ) -> None:
        """`documents`: text of every document, by id; the candidates are among them.

        `before`: whose vectors of everyday texts are held; by default the encoder's own.
        """
        self.settings = settings
        self.steps = settings.steps_for(len(candidates))
        self.weights: Mapping[str, float] = settings.weights.model_dump()
        self.functions = functions(type(settings.weights))
        self.matched = Matched(encoder, candidates, documents, settings.longest)
        reference = copy.deepcopy(encoder).requires_grad_(False)
        self.everyday: SparseEveryday | None = None
        if self.weights["anchor"] > 0.0:
            self.everyday = SparseEveryday(encoder, before or reference, settings.seed)
        first, begun = self.matched.first_vectors(reference), None
        if settings.factors != "none" or reference.factors is not None:
            general = None if self.everyday is None else self.everyday.share
            begun = first_factors(reference, lambda: first.documents, general)
        rate = settings.factor_rate if settings.factors == "learnt" else 0.0
        self.factors = None if begun is None else LearntFactors(begun, rate)
        self.beside = self.factors or nn.Module()
        scale = first.scale(begun)
        self.comparison = Comparison(settings.kd, settings.temperature, scale if settings.calibrate else None)
        costly = penalty(settings.penalised, encoder, first.share)
        first_new = self.matched.documents.first
        self.cost = Cost(settings.flops_query, settings.flops_document, settings.common, costly, first_new)

    def batch(self, random: Generator) -> ImitationBatch:
        """Queries drawn without repetition, each with all of its candidates, and everyday texts."""
        drawn = self.matched.scored.draw(self.settings.batch_size, random)
        others = [] if self.everyday is None else self.everyday.draw(random)
        found = (drawn.queries, drawn.documents, drawn.places, drawn.teacher, drawn.present)
        return ImitationBatch(*found, others)

    def terms(self, encoder: SparseEncoder, batch: ImitationBatch) -> dict[str, Tensor]:
        """Each term of what the encoder makes of a batch, unweighted."""
        read = ImitationReading(self, encoder, batch, *self.matched.read(encoder, batch))
        return {key: function(read) for key, function in self.functions.items()}

    def conclude(self, encoder: SparseEncoder) -> Mapping[str, Any]:
        """Give a taught encoder the factors that it was taught with; a table for queries takes them up."""
        if self.factors is not None:
            encoder.factors = self.factors.values
            encoder.fold_factors()
        return {}


@dataclass
class ImitationReading(Reading):
    """What one step has read."""

    task: Imitation
    drawn: ImitationBatch

    def moved(self) -> Tensor:
        """How far everyday texts are from the vectors that they had."""
        everyday = self.task.everyday
        if everyday is None:
            return self.nothing
        return everyday.distance(self.encoder, self.drawn.others, self.task.factors)
