"""Joint and contrast: a query's own document before the others of its batch, with words masked or without."""

from functools import partial
from typing import TYPE_CHECKING, Literal

from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CORPUS, PAIRS, Inputs
from sparse_adapt.stages.record import before_extension
from sparse_adapt.stages.stage import Effort, Sizes, Stage
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    from sparse_adapt.model.encoder import Encoder
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Task


MOSAIC = "Pavlova and Makhlouf, MOSAIC"


class ContrastWeights(Settings):
    """Weights of the loss terms."""

    infonce: float = setting(
        1.0,
        "A query's own document before the others of its batch, in either form.",
        source="van den Oord et al. 2018, arXiv:1807.03748",
        ge=0,
    )
    sparsity: float = setting(
        0.015,
        "Expected work of scoring queries and documents. Dense encoders have no such term.",
        source="Paria et al. 2020, arXiv:2004.05665",
        ge=0,
    )
    anchor: float = setting(
        0.0, "Distance of everyday texts to the vectors that they had before the extension.", ge=0
    )


class JointWeights(ContrastWeights):
    """Weights of the loss terms."""

    mlm: float = setting(0.3, "Masked words of the same texts, alpha in the paper.", source=MOSAIC, ge=0)


class Contrast(Training):
    """Rank a query's document before the other documents of its batch."""

    weights: ContrastWeights = setting(ContrastWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    learning_rate: float = setting(
        1e-4,
        "Highest learning rate of the base model's weights, for one of 4 million; a larger model takes 3e-5.",
        gt=0,
    )
    new_learning_rate: float = setting(1e-3, gt=0)
    batch_size: int = setting(
        32, "Pairs of a step, each with the documents of the others as negatives.", unit="pairs", ge=1
    )
    form: Literal["infonce", "nt-xent"] = setting(
        "infonce",
        "The document by the query (`infonce`), or both ways among all texts of the batch (`nt-xent`).",
        source="nt-xent: Chen et al. 2020, arXiv:2002.05709",
    )
    projection: bool | None = setting(
        None,
        "Whether a head stands between vectors and loss while a dense encoder learns; by default with nt-xent.",
        source="Chen et al. 2020, arXiv:2002.05709",
    )
    temperature: float | None = setting(
        None,
        "What similarities are divided by; by default 3 for a product, .05 for a cosine, .1 in nt-xent.",
        gt=0,
    )
    factors: Literal["none", "idf", "learnt"] = setting(
        "none",
        "What a match on each token counts: as it is, by its idf, or by a factor that is learnt (sparse encoders).",
    )
    factor_rate: float = setting(3e-3, "Highest learning rate of the factors' logarithms.", gt=0)
    longest: int = setting(128, "Tokens of a text that are read.", unit="tokens", ge=8)
    hard_negatives: int = setting(
        0,
        "Hard negatives: documents beside each pair that the incoming model ranks high for the query.",
        unit="documents",
        source="Moreira et al. 2024, arXiv:2407.15831",
        ge=0,
    )
    depth: int = setting(30, "Lowest rank of a hard negative.", unit="rank", ge=1)
    below: float = setting(
        0.95,
        "Highest score of a hard negative; a document that scores higher may be relevant.",
        unit="share of the own document's score",
        gt=0,
        le=1,
    )


class Joint(Contrast):
    """Rank a query's document before the others while words are masked, and guess the masked words at once."""

    weights: JointWeights = setting(JointWeights())
    masked: Literal["domain", "all"] = setting(
        "domain",
        "What may be masked, and a masked word is guessed among: the new tokens, or all.",
        source=MOSAIC,
    )
    mask_rate: float = setting(
        0.15,
        "How often a token that may be masked is.",
        unit="share of the tokens",
        source=MOSAIC,
        gt=0,
        lt=1,
    )


def effort(settings: Contrast, sizes: Sizes) -> Effort:
    """A query and its document a pair, and the documents that are mined once before."""
    batch = settings.batch_size * settings.gradient_accumulation
    mined = sizes.documents if settings.hard_negatives else 0
    documents = batch * (1 + settings.hard_negatives)
    return Effort(settings.steps_for(sizes.queries), documents, batch, before=mined)


def build(name: str, encoder: "EitherEncoder", inputs: Inputs, settings: Contrast) -> "Task[Encoder]":
    """The task of the stage of that name over pairs."""
    from sparse_adapt.model.kinds import load_encoder
    from sparse_adapt.stages.parts.pairing import Pairing

    documents = {document.document_id: document.full_text for document in inputs[CORPUS]}
    extended = inputs.model if settings.weights.anchor > 0.0 else None
    before = before_extension(extended, str(encoder.device), load_encoder)
    return Pairing(name, encoder, inputs[PAIRS], documents, settings, before)


JOINT = Stage("joint", Joint, (PAIRS, CORPUS), partial(build, "joint"), effort=effort, refuses=("table",))
CONTRAST = Stage(
    "contrast", Contrast, (PAIRS, CORPUS), partial(build, "contrast"), effort=effort, refuses=("table",)
)
