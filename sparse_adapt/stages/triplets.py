"""Triplets and labelled: a text nearer to what says the same than to what only looks the same."""

from typing import TYPE_CHECKING, Literal

from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import LABELLED, Input, Inputs
from sparse_adapt.stages.inputs import TRIPLETS as GENERATED
from sparse_adapt.stages.stage import Stage
from sparse_adapt.training.settings import GENTLE, Training

if TYPE_CHECKING:
    from sparse_adapt.collection.examples import Triplet
    from sparse_adapt.model.encoder import Encoder
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Task


class TripletsWeights(Settings):
    """Weights of the loss terms."""

    contradict: float = setting(
        1.0,
        "A text nearer to its twin than to contradictions and to other texts.",
        source="Chen, Handa and Shirahama, JCSE",
        ge=0,
    )
    sparsity: float = setting(
        0.005,
        "Expected work of scoring a text. Dense encoders have no such term.",
        source="Paria et al. 2020, arXiv:2004.05665",
        ge=0,
    )


class Triplets(Training):
    """Bring a text nearer to a twin of itself than to a text that contradicts it."""

    weights: TripletsWeights = setting(TripletsWeights(), "Weights of the loss terms.")
    train: Literal["new", "all"] = setting(
        "all", "What learns beside the rows of new tokens: all weights, or nothing (`new`)."
    )
    learning_rate: float = setting(GENTLE, gt=0)
    new_learning_rate: float = setting(1e-3, gt=0)
    batch_size: int = setting(
        32, "Texts of a step, each read twice, with one contradiction each.", unit="texts", ge=1
    )
    temperature: float | None = setting(
        None, "What similarities are divided by; by default 3 for a product, .05 for a cosine.", gt=0
    )
    longest: int = setting(128, "Tokens of a text that are read.", unit="tokens", ge=8)
    own: float = setting(1.0, "What a text's own contradiction counts beside those of the other texts.", ge=0)


# As published a text's own contradiction has no weight in the first stage, and the whole of it in the second.
PLAIN = {"triplets": {"own": 0.0}, "labelled": {"own": 1.0}}


def learning_from(name: str, read: "Input[list[Triplet]]") -> Stage[Triplets]:
    """The stage of that name over the triplets of one input."""

    def build(encoder: "EitherEncoder", inputs: Inputs, settings: Triplets) -> "Task[Encoder]":
        from sparse_adapt.stages.parts.triplets import Contradictions

        return Contradictions(name, encoder, inputs[read], settings)

    return Stage(name, Triplets, (read,), build, refuses=("table",), presets={"plain": PLAIN[name]})


TRIPLETS = learning_from("triplets", GENERATED)
LABELLED_PAIRS = learning_from("labelled", LABELLED)
