"""Joint and contrast: a query's own document before the others of its batch, with words masked or without."""

from functools import partial
from typing import TYPE_CHECKING

from sparse_adapt.config import Contrast, Joint
from sparse_adapt.stages.inputs import CORPUS, PAIRS, Inputs
from sparse_adapt.stages.record import extended_from
from sparse_adapt.stages.stage import Stage

if TYPE_CHECKING:
    from sparse_adapt.model.encoder import Encoder
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Stage as Task


def build(name: str, encoder: "EitherEncoder", inputs: Inputs, settings: Contrast) -> "Task[Encoder]":
    """The task of the stage of that name over pairs."""
    from sparse_adapt.model.kinds import load_encoder
    from sparse_adapt.stages.parts.pairing import Pairing

    documents = {document.document_id: document.full_text for document in inputs[CORPUS]}
    extended = extended_from(inputs.model) if settings.weights.anchor > 0.0 else None
    before = None if extended is None else load_encoder(extended, str(encoder.device))
    return Pairing(name, encoder, inputs[PAIRS], documents, settings, before)


JOINT = Stage("joint", Joint, (PAIRS, CORPUS), partial(build, "joint"))
CONTRAST = Stage("contrast", Contrast, (PAIRS, CORPUS), partial(build, "contrast"))
