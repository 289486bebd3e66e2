"""Scores of a dense encoder: it learns to rank a query's candidates as a teacher does.

The terms of the sparse encoder's stages that need no vocabulary, and the anchor, which holds the vectors of background
texts. A cosine differs by tenths where scores differ by tens, so scores are cosines times a constant, as in a softmax
at the usual temperature (Gao, Yao and Chen 2021, arXiv:2104.08821).

Dimensions: Q queries, B documents, N candidates of a query, H hidden. A loss term is a scalar: ().
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from numpy.random import Generator
from torch import Tensor

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.tokens import cut
from sparse_adapt.objectives.loss_terms import functions
from sparse_adapt.objectives.scores import CandidateBatch, Compared, ScoreComparison, Scored
from sparse_adapt.objectives.scoring import Scoring
from sparse_adapt.plugins.research.stages.backgrounds import background_for
from sparse_adapt.plugins.research.stages.masked import unmasked
from sparse_adapt.settings import Settings
from sparse_adapt.training import losses

SCALE = 20.0  # of a cosine


class DenseScores:
    """The task over queries with scored candidates, for `training.train`."""

    def __init__(
        self,
        name: str,
        encoder: SentenceEncoder,
        candidates: Sequence[Candidates],
        documents: Mapping[str, str],
        settings: Scoring,
        weights: Settings,
        before: SentenceEncoder | None = None,
        *,
        tau: float = 1.0,
        margin: float = 0.0,
    ) -> None:
        """`documents`: text of every document, by id; the candidates are among them. `weights`: of the loss terms.

        tau, margin: see `Comparison`. `before`: whose vectors of background texts are held; by default the encoder's
        own.
        """
        self.name, self.settings = name, settings
        self.scored = Scored(candidates, list(documents))
        self.steps = settings.steps_for(len(candidates))
        loss_weights: dict[str, float] = weights.model_dump()
        anchored = loss_weights["anchor"] > 0.0
        losses = functions(type(weights), dense=True)
        self.functions = {key: each for key, each in losses.items() if anchored or key != "anchor"}
        self.weights: Mapping[str, float] = {key: loss_weights[key] for key in self.functions}
        self.queries = cut(encoder.tokenize([entry.query for entry in candidates], "query"), settings.longest)
        self.documents = cut(encoder.tokenize(list(documents.values())), settings.longest)
        self.background = background_for(encoder, before, settings.seed) if anchored else None
        comparison = ScoreComparison(settings.kd, settings.temperature, None, tau, margin)
        self.comparison = replace(comparison, scale=self._scale(encoder) if settings.calibrate else None)

    def batch(self, random: Generator) -> CandidateBatch:
        """Queries drawn without repetition, each with all of its candidates, and background texts."""
        assert self.settings.batch_size is not None, "settled when the task was made"
        drawn = self.scored.draw(self.settings.batch_size, random)
        others = [] if self.background is None else self.background.draw(random)
        return drawn.beside(others)

    def terms(self, encoder: SentenceEncoder, batch: CandidateBatch) -> dict[str, Tensor]:
        """Each term of what the encoder makes of a batch, unweighted."""
        ids = [self.queries[row] for row in batch.queries] + [self.documents[row] for row in batch.documents]
        vectors = unmasked(encoder, ids)
        count = len(batch.queries)
        scores = SCALE * losses.scores(vectors[:count], vectors[count:])
        scores = scores.gather(1, batch.places.to(encoder.device))
        compared = self.scored.compared(scores, batch, self.comparison)
        read = DenseScoresReading(self, encoder, batch, compared)
        return {key: function(read) for key, function in self.functions.items()}

    @torch.no_grad()
    def _scale(self, encoder: SentenceEncoder) -> losses.Scale:
        """How teacher scores map to those that the encoder gives the same candidates before it learns."""
        drawn = self.scored.evenly()
        queries = unmasked(encoder, [self.queries[row] for row in drawn.queries])
        documents = unmasked(encoder, [self.documents[row] for row in drawn.documents])
        scores = SCALE * losses.scores(queries, documents).cpu().gather(1, drawn.places)
        return self.scored.scale(drawn, scores)


@dataclass(frozen=True, slots=True)
class DenseScoresReading:
    """What one step has read: scores beside the teacher's."""

    task: DenseScores
    encoder: SentenceEncoder
    drawn: CandidateBatch
    compared: Compared

    def moved(self) -> Tensor:
        """How far background texts are from the vectors that they had."""
        assert self.task.background is not None, "of texts that are held"
        return self.task.background.distance(self.encoder, self.drawn.others)
