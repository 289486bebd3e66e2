"""Warm-up: the new rows learn from the corpus, and nothing else moves.

Masked language modelling alone teaches a row what stands beside its word, and, when it trains every weight,
costs the model its sparsity. Here it is one of four terms, over the domain's vocabulary, for the new rows.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from sparse_adapt.errors import ConfigError
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CORPUS, Inputs
from sparse_adapt.stages.parts.targets import Targets
from sparse_adapt.stages.stage import Effort, Sizes, Stage
from sparse_adapt.training.settings import Training

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.stages.parts.term_lessons import TermLessons


SAMPLES = 128  # made-up texts a step at most, where their number goes by that of the terms; they are short


class WarmupWeights(Settings):
    """Weights of the loss terms."""

    mlm: float = setting(0.1, "Masked words, guessed among the domain's words.", ge=0)
    anchor: float = setting(1.0, "Distance of the old dimensions to what the base model has there.", ge=0)
    domain: float = setting(1.0, "A term lights up where it is said, and nowhere else.", ge=0)
    recall: float = setting(1.0, "A term lights up where it is meant, in made-up texts.", ge=0)


class Warmup(Training):
    """Guess masked words of the corpus, and learn where a term is said. Only the rows of new tokens learn."""

    steps: int | None = setting(100, ge=1)
    weights: WarmupWeights = setting(WarmupWeights(), "Weights of the loss terms.")
    mask_rate: float = setting(
        0.15,
        "How often an ordinary token is masked.",
        unit="share of the tokens",
        source="Devlin et al. 2019, arXiv:1810.04805",
        gt=0,
        lt=1,
    )
    new_mask_rate: float = setting(
        0.5, "How often the token of a new term is masked.", unit="share of the tokens", gt=0, lt=1
    )
    softmax: Literal["domain", "full"] = setting(
        "domain",
        "What a masked word is guessed among: the tokens of the stage's texts, or the whole vocabulary.",
    )
    targets: Targets | None = setting(
        None, "Logits that a term should have; the default follows from the number of terms."
    )
    silence: float = setting(
        2.0,
        "Weight of texts that don't mean a term, beside those that do: a higher one gives fewer strays.",
        ge=0,
    )
    judge: str = setting(
        "none",
        "Dense encoder that judges which term a made-up text means; with `none` a text means what it was made from.",
    )
    samples: int | None = setting(
        None,
        "Made-up texts of a step that are drawn from everywhere; the default follows from the number of terms.",
        unit="texts",
        ge=1,
    )
    shared_steps: float = setting(
        2.0,
        "How fast words that the judge finds alike learn together, beside the learning rate of all weights.",
        source="Mikolov et al. 2013, arXiv:1309.4168",
        ge=0,
    )
    raw_logits: bool = setting(
        True, "Whether terms are held to raw logits. Pooled weights give a silent token no gradient."
    )


def effort(settings: Warmup, sizes: Sizes) -> Effort:
    """A batch is read masked and as it is, beside made-up texts, half of which mean a term."""
    batch = settings.batch_size * settings.gradient_accumulation
    made_up = settings.samples or max(2 * batch, min(SAMPLES, 4 * sizes.terms))
    return Effort(settings.steps_for(sizes.documents), 2 * batch, 2 * made_up, before=sizes.documents)


# Masked language modelling of all weights over the whole vocabulary, as published.
PLAIN = {
    "train": "all",
    "learning_rate": 5e-5,
    "new_learning_rate": 5e-5,
    "epochs": 50,
    "batch_size": 4,
    "ramp": 0.0,
    "softmax": "full",
    "judge": "none",
    "weights": {"mlm": 1.0, "anchor": 0.0, "domain": 0.0, "recall": 0.0},
}


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Warmup) -> "TermLessons":
    """The task over the documents of a corpus."""
    from sparse_adapt.model.sparse import SparseEncoder

    assert isinstance(encoder, SparseEncoder)
    return warmup(encoder, [document.full_text for document in inputs[CORPUS]], settings)


def warmup(encoder: "SparseEncoder", documents: Sequence[str], settings: Warmup) -> "TermLessons":
    """The task over document texts. Raises ConfigError where no document says a new term."""
    from sparse_adapt.stages.parts.term_lessons import TermLessons
    from sparse_adapt.stages.parts.texts import Texts

    texts = Texts(encoder, documents)
    if encoder.new_tokens and not len(texts.saying):
        raise ConfigError(
            f"none of the {len(documents):,} documents holds any of the {len(encoder.new_tokens):,} new terms; "
            "warm up on a corpus that uses them"
        )
    return TermLessons("warmup", encoder, texts, texts.says, settings, settings.steps_for(len(documents)))


WARMUP = Stage(
    "warmup",
    Warmup,
    (CORPUS,),
    build,
    dense=False,
    presets={"plain": PLAIN},
    effort=effort,
    refuses=("sum", "table", "prompts"),
)
