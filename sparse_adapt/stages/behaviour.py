"""Behaviour: an extended model says of every text what the model before the extension said.

So does a grafted model, which has another body: what it is made to say is named with `before`.
"""

from typing import TYPE_CHECKING, Any

from sparse_adapt.errors import ConfigError
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import BEFORE, CORPUS, Inputs
from sparse_adapt.stages.record import extended_from
from sparse_adapt.stages.stage import Effort, Sizes, Stage
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Task


class BehaviourWeights(Settings):
    """Weights of the loss terms."""

    old: float = setting(1.0, "Distance of the old dimensions to what they were.", ge=0)
    new: float = setting(1.0, "Distance of the added dimensions to what they take over.", ge=0)
    extra: float = setting(
        0.3, "Weight of tokens that had none before, as a share of all the weight before.", ge=0
    )


class Behaviour(Training):
    """Give texts the vectors that the model before the extension gives them."""

    weights: BehaviourWeights = setting(BehaviourWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    steps: int | None = setting(300, ge=1)
    learning_rate: float = setting(1e-4, gt=0)
    everyday: float = setting(
        0.25, "Share of the texts that are made of everyday words.", unit="share of the texts", ge=0, le=1
    )
    handed: float = setting(
        0.5, "Share of a term's match that its own token takes over from its pieces.", ge=0, le=1
    )
    document_words: int = setting(
        96, "Words of the longest text. Half of the texts are that long.", unit="words", ge=1
    )
    snippet_words: int = setting(12, "Words of the longest snippet, a text like a query.", unit="words", ge=2)


def effort(settings: Behaviour, sizes: Sizes) -> Effort:
    """A batch is read by both models. Half of its texts are snippets, and the others are parts of documents."""
    read = settings.batch_size * settings.gradient_accumulation / 3
    return Effort(settings.steps_for(sizes.documents), read, looked_at=read)


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


BEHAVIOUR = Stage("behaviour", Behaviour, (CORPUS, BEFORE), build, effort=effort)
