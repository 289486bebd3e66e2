"""Table: queries need no model any more; each of their tokens has a weight, learnt from documents that were scored."""

from typing import TYPE_CHECKING, Any, Literal

from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CANDIDATES, CORPUS, Inputs
from sparse_adapt.stages.stage import Effort, Sizes, Stage
from sparse_adapt.stages.terms import term
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Task

PARTS = "sparse_adapt.stages.parts"


class TableWeights(Settings):
    """Weights of the loss terms."""

    kd: float = term(
        1.0,
        "Distance of the scores to the teacher's, as `kd` counts it.",
        f"{PARTS}.scored:kd",
        source="Nardini et al. 2025, arXiv:2505.01452",
    )
    hold: float = term(
        0.05, "How far the tokens of a query are from where they started.", f"{PARTS}.token_weights:hold"
    )


class QueryTable(Training):
    """Give queries a table of token weights in the place of the model. The model itself stays as it is."""

    weights: TableWeights = setting(TableWeights(), "Weights of the loss terms.")
    train: Trained = setting("all", "No effect here: the table learns, and nothing else.")
    steps: int | None = setting(400, ge=1)
    batch_size: int = setting(64, "Queries of a step, each with its candidates.", unit="queries", ge=1)
    new_learning_rate: float = setting(0.02, "Highest learning rate of the logarithms of weights.", gt=0)
    kd: Literal["mse", "margin_mse", "kl"] = setting(
        "kl",
        "How scores are held to the teacher's: each by itself, by gaps to the best, or by their softmax.",
        source="kl: Hinton et al. 2015, arXiv:1503.02531; margin_mse: Hofstätter et al. 2020, arXiv:2010.02666",
    )
    temperature: float = setting(2.0, "What scores are divided by in both softmaxes of `kl`.", gt=0)
    back: float = setting(
        0.25,
        "How far the learnt factors are taken back to 1. By this much made-up queries that were set aside are answered "
        "best, over four collections and three seeds.",
        unit="share of the way back",
        ge=0,
        lt=1,
    )
    calibrate: bool = setting(
        True, "Whether the teacher's scores are brought to the mean and spread of those at the start."
    )


def effort(settings: QueryTable, sizes: Sizes) -> Effort:
    """Documents of the candidates are read once, before the first step; a step then takes no time to speak of."""
    first = min(sizes.documents, sizes.queries * sizes.candidates)
    return Effort(settings.steps_for(sizes.queries), 0.0, before=first)


def build(encoder: "EitherEncoder", inputs: Inputs, settings: QueryTable) -> "Task[Any]":
    """The task over queries with scored candidates; the encoder weighs queries by a table from now on."""
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.stages.parts.scored import with_theirs
    from sparse_adapt.stages.parts.token_weights import TokenWeights

    assert isinstance(encoder, SparseEncoder), "no dense encoder takes this stage"
    entries = inputs[CANDIDATES]
    documents = {document.document_id: document.full_text for document in inputs[CORPUS]}
    return TokenWeights(encoder, entries, with_theirs(documents, entries), settings)


TABLE = Stage("table", QueryTable, (CANDIDATES, CORPUS), build, dense=False, effort=effort)
