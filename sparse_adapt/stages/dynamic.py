"""Dynamic masking: of a sentence's words that the domain has to itself, those that the model finds hardest."""

from typing import TYPE_CHECKING, Literal

from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CORPUS, Inputs
from sparse_adapt.stages.stage import Effort, Sizes, Stage
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    from sparse_adapt.model.encoder import Encoder
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Task


SENTENCES = 8  # of a document, about
ZHANG = "Zhang et al. 2025, Electronics 14, 4882"


class DynamicWeights(Settings):
    """Weights of the loss terms."""

    mlm: float = setting(1.0, "Masked words, guessed among the domain's words.", ge=0)
    sparsity: float = setting(
        0.005,
        "Expected work of scoring the sentences. Dense encoders have no such term.",
        source="Paria et al. 2020, arXiv:2004.05665",
        ge=0,
    )


class Dynamic(Training):
    """Guess masked words of sentences: those of the domain that the model finds hardest."""

    weights: DynamicWeights = setting(DynamicWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    learning_rate: float = setting(
        1e-4,
        "Highest learning rate of the base model's weights, for one of 4 million; a larger model takes 3e-5.",
        gt=0,
    )
    new_learning_rate: float = setting(5e-3, gt=0)
    batch_size: int = setting(32, "How many sentences teach in one step.", unit="sentences", ge=1)
    masking: Literal["dynamic", "random"] = setting(
        "dynamic", "Which of a sentence's candidates are masked: the hardest, or any.", source=ZHANG
    )
    candidates: int = setting(
        5, "Words of a sentence that may be masked, K in the paper.", unit="words", source=ZHANG, ge=1
    )
    hardest: int = setting(
        3, "Words of a sentence that are masked together, N in the paper.", unit="words", source=ZHANG, ge=1
    )
    easing: bool = setting(
        False,
        "Whether fewer words are masked the longer it learns, down to one at the end.",
        source=ZHANG,
    )
    summed: bool = setting(
        False, "Whether the loss is the sum over the masked words of a step, as published, or their mean."
    )
    together: int = setting(
        1,
        "Neighbouring sentences that are read as one text; 2 for pairs.",
        unit="sentences",
        source=ZHANG,
        ge=1,
    )
    refresh: int = setting(
        16, "Batches after which it is measured anew how hard each word is.", unit="batches", ge=1
    )
    visits: int = setting(4, "How often a sentence teaches between two measurements, on average.", ge=1)
    context: int = setting(
        24,
        "Tokens around a word that the model sees when it guesses the word, to tell how hard it is.",
        unit="tokens",
        ge=1,
    )
    longest: int = setting(64, "Tokens of a sentence that are read.", unit="tokens", ge=8)
    softmax: Literal["domain", "full"] = setting(
        "domain", "What a masked word is guessed among: the tokens of the corpus, or the whole vocabulary."
    )


def effort(settings: Dynamic, sizes: Sizes) -> Effort:
    """Sentences are short. Each candidate word of a sentence is looked at once for several visits."""
    batch = settings.batch_size * settings.gradient_accumulation
    asked = settings.candidates / settings.visits if settings.masking == "dynamic" else 0.0
    steps = settings.steps_for(SENTENCES * sizes.documents)
    return Effort(steps, 0.0, 2 * batch, looked_at=asked * batch / SENTENCES)


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Dynamic) -> "Task[Encoder]":
    """The task over the sentences of a corpus."""
    from sparse_adapt.stages.parts import dynamic

    return dynamic.Dynamic(encoder, [document.full_text for document in inputs[CORPUS]], settings)


# As published: the loss is a sum, and fewer words are masked the longer it learns. By our reading, words are guessed
# among the whole vocabulary, from whole sentences, and weighed anew for each batch. Other numbers are ours.
PLAIN = {"summed": True, "easing": True, "softmax": "full", "context": 64, "refresh": 1, "visits": 1}

DYNAMIC = Stage(
    "dynamic", Dynamic, (CORPUS,), build, effort=effort, refuses=("prompts",), presets={"plain": PLAIN}
)
