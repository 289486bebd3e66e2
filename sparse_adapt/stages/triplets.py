"""Triplets and labelled: a text nearer to what says the same than to what only looks the same."""

from typing import TYPE_CHECKING

from sparse_adapt.config import Triplets
from sparse_adapt.stages.inputs import LABELLED, Input, Inputs
from sparse_adapt.stages.inputs import TRIPLETS as GENERATED
from sparse_adapt.stages.stage import Stage

if TYPE_CHECKING:
    from sparse_adapt.collection.triplets import Triplet
    from sparse_adapt.model.encoder import Encoder
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Stage as Task


def learning_from(name: str, read: "Input[list[Triplet]]") -> Stage[Triplets]:
    """The stage of that name over the triplets of one input."""

    def build(encoder: "EitherEncoder", inputs: Inputs, settings: Triplets) -> "Task[Encoder]":
        from sparse_adapt.stages.parts.triplets import Opposing

        return Opposing(name, encoder, inputs[read], settings)

    return Stage(name, Triplets, (read,), build)


TRIPLETS = learning_from("triplets", GENERATED)
LABELLED_PAIRS = learning_from("labelled", LABELLED)
