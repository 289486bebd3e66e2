"""Distillation of a dense encoder: it learns to rank a query's candidates as a teacher does.

The terms of the sparse encoder's stage that need no vocabulary (`kd`, `rank`, `contrast`), and `anchor`, which
holds the vectors of everyday texts. A cosine differs by tenths where scores differ by tens, so scores are cosines
times a constant, as in a softmax at the usual temperature (Gao, Yao and Chen 2021, arXiv:2104.08821).

Dimensions: Q queries, B documents, N candidates of a query, H hidden.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from numpy.random import Generator
from torch import Tensor

from sparse_adapt.collection.readers import Candidates
from sparse_adapt.model.batches import cut
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.stages.distill import Distill
from sparse_adapt.stages.parts.everyday import everyday_for
from sparse_adapt.stages.parts.masked import unmasked
from sparse_adapt.stages.parts.scored import Drawn, Scored
from sparse_adapt.training import losses
from sparse_adapt.training.loop import epochs_to_steps

SCALE = 20.0  # of a cosine
TERMS = ("kd", "rank", "contrast", "anchor")


@dataclass(frozen=True, slots=True)
class Batch(Drawn):
    """Queries with their candidates, and everyday texts."""

    others: list[int]


class DenseDistill:
    """The stage over queries with scored candidates, for `training.train`."""

    name = "distill"

    def __init__(
        self,
        encoder: SentenceEncoder,
        candidates: Sequence[Candidates],
        documents: Mapping[str, str],
        settings: Distill,
        before: SentenceEncoder | None = None,
    ) -> None:
        """`documents`: text of every document, by id; the candidates are among them.

        `before`: whose vectors of everyday texts are held; by default the encoder's own.
        """
        self.settings = settings = settings.settled(0, 0)  # the other pace was measured on sparse models
        self.scored = Scored(candidates, list(documents))
        self.steps = epochs_to_steps(settings, len(candidates))
        given: dict[str, float] = settings.weights.model_dump()
        self.weights: Mapping[str, float] = {
            key: given[key] for key in TERMS if key != "anchor" or given[key] > 0.0
        }
        self.queries = cut(encoder.tokenize([entry.query for entry in candidates]), settings.longest)
        self.documents = cut(encoder.tokenize(list(documents.values())), settings.longest)
        anchored = "anchor" in self.weights
        self.everyday = everyday_for(encoder, before, settings.seed) if anchored else None
        self.scale = self._scale(encoder)

    def batch(self, random: Generator) -> Batch:
        """Queries drawn without repetition, each with all of its candidates, and everyday texts."""
        assert self.settings.batch_size is not None, "settled when the stage was made"
        drawn = self.scored.draw(self.settings.batch_size, random)
        others = [] if self.everyday is None else self.everyday.draw(random)
        return Batch(drawn.queries, drawn.documents, drawn.places, drawn.teacher, drawn.present, others)

    def terms(self, encoder: SentenceEncoder, batch: Batch) -> dict[str, Tensor]:
        """`kd`, `rank` and `contrast`, and `anchor` where it has a weight, unweighted."""
        ids = [self.queries[row] for row in batch.queries] + [self.documents[row] for row in batch.documents]
        vectors = unmasked(encoder, ids)
        count = len(batch.queries)
        scores = SCALE * losses.scores(vectors[:count], vectors[count:])
        scores = scores.gather(1, batch.places.to(encoder.device))
        terms = self.scored.terms(scores, batch, self.scale, self.settings)
        if self.everyday is not None:
            terms["anchor"] = self.everyday.distance(encoder, batch.others)
        return terms

    @torch.no_grad()
    def _scale(self, encoder: SentenceEncoder) -> losses.Scale:
        """How teacher scores map to those that the encoder gives the same candidates before it learns."""
        drawn = self.scored.evenly()
        queries = unmasked(encoder, [self.queries[row] for row in drawn.queries])
        documents = unmasked(encoder, [self.documents[row] for row in drawn.documents])
        scores = SCALE * losses.scores(queries, documents).cpu().gather(1, drawn.places)
        return self.scored.scale(drawn, scores)
