"""Distill: the whole model, of either kind, learns to score as a teacher does."""

from typing import TYPE_CHECKING, Any

from sparse_adapt.config import Distill
from sparse_adapt.stages.inputs import CANDIDATES, CORPUS, DICTIONARY, Inputs, inherited
from sparse_adapt.stages.record import extended_from
from sparse_adapt.stages.stage import Stage

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Stage as Task


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Distill) -> "Task[Any]":
    """The task over queries with scored candidates; definitions read before tell what else means a term."""
    from sparse_adapt.model.sentence import SentenceEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.stages.parts import distill
    from sparse_adapt.stages.parts.balance import balanced
    from sparse_adapt.stages.parts.distill_dense import DenseDistill
    from sparse_adapt.stages.parts.scored import with_theirs

    entries = inputs[CANDIDATES]
    documents = {document.document_id: document.full_text for document in inputs[CORPUS]}
    documents = with_theirs(documents, entries)
    extended, device = extended_from(inputs.model), str(encoder.device)
    task: distill.Distill | DenseDistill
    if isinstance(encoder, SparseEncoder):
        asked = extended if settings.anchored == "everyday" else None
        before = None if asked is None else SparseEncoder.load(asked, device)
        defined = inputs.get(DICTIONARY) or []
        task = distill.Distill(encoder, entries, documents, settings, before, defined)
    else:
        asked = extended if settings.weights.anchor > 0.0 else None
        begun = None if asked is None else SentenceEncoder.load(asked, device)
        task = DenseDistill(encoder, entries, documents, settings, begun)
    if settings.balanced:
        task.weights = balanced(encoder, task, apart={"anchor"})  # at rest before the first step
    return task


DISTILL = Stage("distill", Distill, (CANDIDATES, CORPUS, inherited(DICTIONARY)), build)
