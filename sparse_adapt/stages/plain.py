"""Plain: the six published loss terms as they are, with the weights that their authors' log gives away.

Kept to be compared with: `distill` has these terms on raw logits, on calibrated scores and beside an anchor.
"""

from typing import TYPE_CHECKING

from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CANDIDATES, CORPUS, TERMS, Inputs, beside
from sparse_adapt.stages.stage import Effort, Sizes, Stage
from sparse_adapt.stages.terms import term
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.stages.parts.plain_terms import PlainTerms

PARTS = "sparse_adapt.stages.parts"


class PlainWeights(Settings):
    """Weights of the six terms, solved from eight lines of the published log (they leave at most 6e-4)."""

    kd: float = term(1.0, "Squared distance of each score to the teacher's.", f"{PARTS}.scored:kd")
    rank: float = term(0.5, "The teacher's best candidate before the others.", f"{PARTS}.scored:rank")
    sparsity: float = term(
        1e-4,
        "Mean query weight times mean document weight, summed over all but domain tokens.",
        f"{PARTS}.plain_terms:sparsity",
    )
    domain: float = term(
        10.0, "A domain token has weight where a text holds it.", f"{PARTS}.plain_terms:domain"
    )
    contrast: float = term(
        5.0, "Relevant candidates score a margin above the others.", f"{PARTS}.scored:contrast"
    )
    expand: float = term(
        10.0,
        "A query has the domain tokens that its relevant documents hold.",
        f"{PARTS}.plain_terms:expand",
    )


class Plain(Training):
    """Score documents as a teacher does, by the six published terms and nothing else.

    Domain tokens are the terms that are one token of the model, those that it had before an extension as well.
    """

    weights: PlainWeights = setting(PlainWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    learning_rate: float = setting(1e-5, gt=0)
    new_learning_rate: float = setting(1e-5, gt=0)
    epochs: float | None = setting(50, gt=0, le=1e6)
    batch_size: int = setting(2, "Queries of a step, each with its candidates.", unit="queries", ge=1)
    ramp: float = setting(0.0, ge=0, le=1)
    tau: float = setting(1.0, "What scores are divided by in `rank`. Below 1 the best counts more.", gt=0)
    margin: float = setting(
        5.0, "Gap between relevant and other candidates in `contrast`.", unit="score", gt=0
    )
    floor: float = setting(
        2.0, "Weight that a domain token should have where a text holds it.", unit="weight", gt=0
    )


def effort(settings: Plain, sizes: Sizes) -> Effort:
    """Queries with their candidates."""
    batch = settings.batch_size * settings.gradient_accumulation
    return Effort(settings.steps_for(sizes.queries), batch * sizes.candidates, batch)


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Plain) -> "PlainTerms":
    """The task over queries with scored candidates. Terms that nobody names lie beside the corpus."""
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.stages.parts.plain_terms import PlainTerms
    from sparse_adapt.stages.parts.scored import with_theirs

    assert isinstance(encoder, SparseEncoder)
    documents = {document.document_id: document.full_text for document in inputs[CORPUS]}
    documents = with_theirs(documents, inputs[CANDIDATES])
    terms = [each.text for each in inputs.get(TERMS) or ()]
    return PlainTerms(encoder, inputs[CANDIDATES], documents, settings, terms)


PLAIN = Stage(
    "plain",
    Plain,
    (CANDIDATES, CORPUS, beside(TERMS)),
    build,
    dense=False,
    refuses=("sum", "table", "prompts"),
    effort=effort,
)
