"""Behaviour: an extended model says of every text what the model before the extension said."""

from typing import TYPE_CHECKING, Any

from sparse_adapt.config import Behaviour
from sparse_adapt.errors import ConfigError
from sparse_adapt.stages.inputs import BEFORE, CORPUS, Inputs
from sparse_adapt.stages.record import extended_from
from sparse_adapt.stages.stage import Stage

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Stage as Task


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Behaviour) -> "Task[Any]":
    """The task with the model before the extension as the teacher: the one that is named, or that was extended."""
    from sparse_adapt.model.kinds import load_encoder
    from sparse_adapt.model.sentence import SentenceEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.stages.parts.behaviour import DenseBehaviour, SparseBehaviour

    extended = inputs.get(BEFORE) or extended_from(inputs.model)
    if extended is None:
        raise ConfigError(
            f"{inputs.model}: nothing says which model was extended to this one; name it with --baseline"
        )
    documents = [document.full_text for document in inputs[CORPUS]]
    match encoder, load_encoder(extended, str(encoder.device)):
        case SparseEncoder(), SparseEncoder() as before:
            return SparseBehaviour(encoder, before, documents, settings)
        case SentenceEncoder(), SentenceEncoder() as before:
            return DenseBehaviour(encoder, before, documents, settings)
    raise ConfigError(
        f"{inputs.model} and {extended}: one is sparse, the other dense; name another --baseline"
    )


BEHAVIOUR = Stage("behaviour", Behaviour, (CORPUS, BEFORE), build)
