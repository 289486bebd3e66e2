"""What stages teach a dense encoder: to rank a query's candidates as a teacher does, and to keep what it did before.

The terms of the sparse encoder's stages that need no vocabulary, and the anchor, which holds the vectors of background
texts. A cosine differs by tenths where scores differ by tens, so scores are cosines times a constant, as in a softmax
at the usual temperature (Gao, Yao and Chen 2021, arXiv:2104.08821).

Dimensions: Q queries, B documents, N candidates of a query, H hidden. A loss term is a scalar: ().
"""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch
from numpy.random import Generator
from torch import Tensor

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.model.idf import Shares, document_frequencies
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import cut
from sparse_adapt.objectives.anchor import Background, SparseBackground
from sparse_adapt.objectives.balance import balanced
from sparse_adapt.objectives.loss_terms import functions
from sparse_adapt.objectives.scores import CandidateBatch, Compared, ScoreComparison, Scored
from sparse_adapt.objectives.scoring import Scoring
from sparse_adapt.objectives.token_scales import LearntScales
from sparse_adapt.plugins.research.stages.masked import unmasked
from sparse_adapt.settings import Settings
from sparse_adapt.stages.distill import Distill
from sparse_adapt.stages.preserve import PreserveBatch, Preserving
from sparse_adapt.stages.rank import Rank
from sparse_adapt.stages.record import before_extension
from sparse_adapt.synthetic.background import LIKE_PASSAGES, TEXTS, synthetic
from sparse_adapt.training import losses

SCALE = 20.0  # of a cosine


class DenseBackground(Background):
    """The dense vectors that background texts had by the model before."""

    def __init__(self, encoder: SentenceEncoder, before: SentenceEncoder, seed: int) -> None:
        """`before`: whose vectors are to stay."""
        texts = synthetic(TEXTS, seed)
        super().__init__(encoder.tokenize(texts))
        self.before, self.before_ids = before.requires_grad_(False), before.tokenize(texts)
        self.count_as(encoder)

    def count_as(self, encoder: SentenceEncoder) -> None:
        """Have the model before count each token in a mean as the encoder does, if that has token scales."""
        if encoder.token_scales is not None:
            self.before.token_scales = encoder.token_scales_of()[: self.before.vocabulary_size]

    def distance(
        self, encoder: SentenceEncoder, rows: list[int], token_scales: LearntScales | None = None
    ) -> Tensor:
        """Squared distance to the vectors that were, of length 1."""
        with torch.no_grad():
            wanted = unmasked(self.before, [self.before_ids[row] for row in rows]).to(encoder.device)
        return losses.distance(unmasked(encoder, [self.ids[row] for row in rows]), wanted)

    def share(self, size: int) -> Shares:
        """Say it."""
        return document_frequencies(self.ids[LIKE_PASSAGES], size) / len(self.ids[LIKE_PASSAGES])


def background_for(encoder: EitherEncoder, before: EitherEncoder | None, seed: int) -> Background:
    """For an encoder of either kind; without a model before, what it says now is to stay."""
    match encoder, before or copy.deepcopy(encoder):
        case SparseEncoder(), SparseEncoder() as reference:
            return SparseBackground(encoder, reference, seed)
        case SentenceEncoder(), SentenceEncoder() as reference:
            return DenseBackground(encoder, reference, seed)
    raise AssertionError("an extension doesn't make a dense encoder of a sparse one")


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


class DensePreserve(Preserving[SentenceEncoder]):
    """The same vectors as before."""

    learnt = ("old",)

    def terms(self, encoder: SentenceEncoder, batch: PreserveBatch) -> dict[str, Tensor]:
        """`old`: squared distance to the vector before, both of length 1: 2 less two cosines. A mean, ()."""
        with torch.no_grad():
            wanted = unmasked(self.reference, batch.before).to(encoder.device)
        return {"old": (unmasked(encoder, batch.ids) - wanted).square().sum(dim=1).mean()}


def scores(
    name: str,
    encoder: SentenceEncoder,
    candidates: Sequence[Candidates],
    documents: Mapping[str, str],
    settings: Rank | Distill,
    extended: str | None,
) -> DenseScores:
    """The task of `rank` or `distill` for a dense encoder, with the anchor's model behind that of the stage."""
    before = before_extension(extended, str(encoder.device), SentenceEncoder.load)
    distance = {} if isinstance(settings, Rank) else {"tau": settings.tau, "margin": settings.margin}
    task = DenseScores(name, encoder, candidates, documents, settings, settings.weights, before, **distance)
    if settings.balanced:
        task.weights = balanced(encoder, task, apart={"anchor"})
    return task
