"""Imitate: the whole model, of either kind, learns a teacher's ranking alone, gently, at no more weights a text.

For queries that nobody asked: they are made of the documents, so what they say of other texts isn't to be trusted. The
vectors of everyday texts are held, and beside the model it is learnt what a match on each token counts.
"""

import math
from typing import TYPE_CHECKING, Any, Literal

from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CANDIDATES, CORPUS, Inputs
from sparse_adapt.stages.record import before_extension
from sparse_adapt.stages.stage import Effort, Sizes, Stage
from sparse_adapt.stages.terms import term
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Task

PASSES, MOST_STEPS = 4, 300
EVERYDAY = 32  # everyday texts of a step
PARTS = "sparse_adapt.stages.parts"


class ImitateWeights(Settings):
    """Weights of the loss terms; with `balanced` they are shares of the gradient, but for that of the anchor."""

    anchor: float = term(
        10.0, "Distance of everyday texts to the vectors that they had.", f"{PARTS}.anchors:anchor"
    )
    kd: float = term(1.0, "Distance of the scores to the teacher's, as `kd` counts it.", f"{PARTS}.scored:kd")
    sparsity: float = term(
        0.05,
        "Expected work of scoring queries and documents.",
        f"{PARTS}.sparsity:sparsity",
        source="Paria et al. 2020, arXiv:2004.05665",
        sparse=True,
    )


class Imitate(Training):
    """Rank a query's candidates as a teacher does, while general texts keep their vectors. For made-up queries."""

    weights: ImitateWeights = setting(ImitateWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    steps: int | None = setting(
        None,
        "How many times the weights move; by default as often as four passes over the queries take, 300 at the most.",
        unit="steps",
        ge=1,
    )
    batch_size: int = setting(8, "Queries of a step, each with its candidates.", unit="queries", ge=1)
    learning_rate: float = setting(6e-5, gt=0)
    new_learning_rate: float = setting(3e-4, gt=0)
    kd: Literal["mse", "margin_mse", "kl"] = setting(
        "kl",
        "How scores are held to the teacher's: each by itself, by gaps to the best, or by their softmax.",
        source="kl: Hinton et al. 2015, arXiv:1503.02531; margin_mse: Hofstätter et al. 2020, arXiv:2010.02666",
    )
    temperature: float = setting(2.0, "What scores are divided by in both softmaxes of `kl`.", gt=0)
    calibrate: bool = setting(
        True, "Whether the teacher's scores are brought to the mean and spread of the model's own."
    )
    longest: int | None = setting(
        None, "Tokens of a text that teach; by default as many as the model reads.", unit="tokens", ge=8
    )
    factors: Literal["none", "idf", "learnt"] = setting(
        "learnt", "What a match on each token counts: as it is, by its idf, or by a factor that is learnt."
    )
    factor_rate: float = setting(6e-3, "Highest learning rate of the factors' logarithms.", gt=0)
    flops_query: float = setting(
        0.01, "What the work of all tokens of queries counts within `sparsity`.", ge=0
    )
    flops_document: float = setting(
        0.01, "What the work of all tokens of documents counts within `sparsity`.", ge=0
    )
    penalised: Literal["none", "frequent", "function"] = setting(
        "frequent",
        "Tokens that cost more than others: none, frequent ones, or words that say nothing of a topic.",
        source="Porco et al. 2025, arXiv:2505.15070",
    )
    common: float = setting(1.0, "What penalised tokens cost within `sparsity`.", ge=0)
    balanced: bool = setting(
        True,
        "Whether loss weights are shares of the gradient, beside that of the first term that has one.",
        source="Chen et al. 2018, arXiv:1711.02257",
    )

    def settled(self, queries: int) -> "Imitate":
        """These settings with nothing open: for so many queries, which few steps already teach by heart if few."""
        passes = math.ceil(PASSES * queries / (self.batch_size * self.gradient_accumulation))
        return self.model_copy(update={"steps": self.steps or max(1, min(MOST_STEPS, passes))})


def effort(settings: Imitate, sizes: Sizes) -> Effort:
    """Queries with their candidates, and everyday texts."""
    settings = settings.settled(sizes.queries)
    batch = settings.batch_size * settings.gradient_accumulation
    everyday = EVERYDAY if settings.weights.anchor > 0.0 else 0
    first = min(sizes.documents, sizes.queries * sizes.candidates)
    return Effort(settings.steps_for(sizes.queries), batch * sizes.candidates, batch + everyday, before=first)


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Imitate) -> "Task[Any]":
    """The task over queries with scored candidates, with its weights at rest before the first step."""
    from sparse_adapt.model.sentence import SentenceEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.stages.parts.balance import balanced
    from sparse_adapt.stages.parts.dense_scores import DenseScores
    from sparse_adapt.stages.parts.imitation import Imitation
    from sparse_adapt.stages.parts.scored import with_theirs

    entries, device = inputs[CANDIDATES], str(encoder.device)
    settings = settings.settled(len(entries))
    documents = {document.document_id: document.full_text for document in inputs[CORPUS]}
    documents = with_theirs(documents, entries)
    extended = inputs.model if settings.weights.anchor > 0.0 else None
    task: Imitation | DenseScores
    if isinstance(encoder, SparseEncoder):
        before = before_extension(extended, device, SparseEncoder.load)
        task = Imitation(encoder, entries, documents, settings, before)
    else:
        begun = before_extension(extended, device, SentenceEncoder.load)
        task = DenseScores("imitate", encoder, entries, documents, settings, begun)
    if settings.balanced:
        task.weights = balanced(encoder, task, apart={"anchor"})
    return task


IMITATE = Stage("imitate", Imitate, (CANDIDATES, CORPUS), build, effort=effort)
