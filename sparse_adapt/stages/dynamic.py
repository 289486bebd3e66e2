"""Dynamic masking: of a sentence's words that the domain has to itself, those that the model finds hardest."""

from typing import TYPE_CHECKING

from sparse_adapt.config import Dynamic
from sparse_adapt.stages.inputs import CORPUS, Inputs
from sparse_adapt.stages.stage import Stage

if TYPE_CHECKING:
    from sparse_adapt.model.encoder import Encoder
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Stage as Task


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Dynamic) -> "Task[Encoder]":
    """The task over the sentences of a corpus."""
    from sparse_adapt.stages.parts import dynamic

    return dynamic.Dynamic(encoder, [document.full_text for document in inputs[CORPUS]], settings)


DYNAMIC = Stage("dynamic", Dynamic, (CORPUS,), build)
