"""What the stages of the core teach a dense encoder: `preserve`, `rank` and `distill`."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.objectives.balance import balanced
from sparse_adapt.plugins.research.stages.dense_scores import DenseScores
from sparse_adapt.plugins.research.stages.masked import unmasked
from sparse_adapt.stages.distill import Distill
from sparse_adapt.stages.preserve import PreserveBatch, Preserving
from sparse_adapt.stages.rank import Rank
from sparse_adapt.stages.record import before_extension


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
