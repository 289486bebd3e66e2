"""Logits: each token of a text gets the logits that another model with the same vocabulary gives it.

A vector of a whole text tells little of what each state should be, and the head takes as long as the body. The squared
distance between two models' logits, summed over the vocabulary, needs no logit: it is a quadratic form of both states,
whose matrices are products of the decoders' rows (`parts.logits`). So the body learns for the cost of the body.
"""

from typing import TYPE_CHECKING, Any

from sparse_adapt.errors import ConfigError
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import BEFORE, CORPUS, Inputs
from sparse_adapt.stages.stage import Effort, Sizes, Stage
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Task


class LogitsWeights(Settings):
    """Weights of the loss terms."""

    logits: float = setting(1.0, "Share of the other model's variance of logits that isn't matched.", ge=0)


class Logits(Training):
    """Give each token of a text the logits that another model gives it. Their vocabulary is the same."""

    weights: LogitsWeights = setting(LogitsWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    steps: int | None = setting(1_000, ge=1)
    batch_size: int = setting(24, "Texts of a step.", unit="texts", ge=1)
    learning_rate: float = setting(5e-4, gt=0)
    words: int = setting(
        96, "Words of a text that is read; which of a document's, is drawn.", unit="words", ge=1
    )
    rare: float = setting(
        0.3,
        "How much of the distance counts every token alike. The rest counts tokens as often as they are lit.",
        ge=0,
        le=1,
    )


def effort(settings: Logits, sizes: Sizes) -> Effort:
    """A batch is read by both models, one of which learns."""
    read = settings.batch_size * settings.gradient_accumulation
    return Effort(settings.steps_for(sizes.documents), read, looked_at=read)


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Logits) -> "Task[Any]":
    """The task with the model that is named as the teacher. Raises ConfigError for one of another vocabulary."""
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.stages.parts.logits import TokenLogits

    source = inputs.get(BEFORE)
    if source is None:
        raise ConfigError(
            f"{inputs.model}: the stage logits needs the model whose logits it learns; name it with --baseline"
        )
    assert isinstance(encoder, SparseEncoder)
    teacher = SparseEncoder.load(source, str(encoder.device))
    if teacher.tokenizer.get_vocab() != encoder.tokenizer.get_vocab():
        raise ConfigError(f"{inputs.model} and {source}: their vocabularies differ; name another --baseline")
    return TokenLogits(encoder, teacher, [document.full_text for document in inputs[CORPUS]], settings)


LOGITS = Stage("logits", Logits, (CORPUS, BEFORE), build, dense=False, effort=effort, refuses=("table",))
