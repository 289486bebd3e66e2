"""Distill: the whole model, of either kind, learns to score as a teacher does."""

from typing import TYPE_CHECKING, Any, Literal

from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages.inputs import CANDIDATES, CORPUS, DICTIONARY, Inputs, inherited
from sparse_adapt.stages.parts.targets import JUDGE, Targets, many_steps
from sparse_adapt.stages.record import before_extension
from sparse_adapt.stages.stage import Effort, Sizes, Stage
from sparse_adapt.stages.terms import term
from sparse_adapt.training.settings import Trained, Training

if TYPE_CHECKING:
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.training.loop import Task


PARTS = "sparse_adapt.stages.parts"
FEW = 32  # queries up to which a distillation is short
MANY_QUERIES = 300  # steps of more queries, for one term


class DistillWeights(Settings):
    """Weights of the six terms, of the anchor, which keeps the rest, and of lessons of made-up texts."""

    kd: float = term(
        0.05, "Distance of the scores to the teacher's, as `kd` counts it.", f"{PARTS}.scored:kd"
    )
    rank: float = term(0.5, "The teacher's best candidate before the others.", f"{PARTS}.scored:rank")
    sparsity: float = term(
        0.1,
        "Expected work of scoring queries and documents.",
        f"{PARTS}.sparsity:sparsity",
        source="Paria et al. 2020, arXiv:2004.05665",
        sparse=True,
    )
    contrast: float = term(
        0.2, "Relevant candidates score a margin above the others.", f"{PARTS}.scored:contrast"
    )
    domain: float = term(
        1.0, "A term lights up where it is said, and nowhere else.", f"{PARTS}.hinges:domain", sparse=True
    )
    expand: float = term(
        1.0,
        "A query lights the terms that its relevant documents say.",
        f"{PARTS}.hinges:expand",
        sparse=True,
    )
    anchor: float = term(
        20.0,
        "Distance of texts to the vectors that they had; of dense encoders everyday texts.",
        f"{PARTS}.anchors:anchor",
    )
    recall: float = term(
        1.0,
        "A term lights up where it is meant, in made-up texts.",
        f"{PARTS}.made_up_lessons:recall_term",
        sparse=True,
    )


class Distill(Training):
    """Score a query's candidates as a teacher does, while other texts keep their vectors. For queries of people."""

    weights: DistillWeights = setting(DistillWeights(), "Weights of the loss terms.")
    train: Trained = setting("all")
    steps: int | None = setting(
        None,
        "How many times the weights move; the default follows from the numbers of queries and terms.",
        unit="steps",
        ge=1,
    )
    batch_size: int | None = setting(  # type: ignore[assignment] # settled before use
        None, "Queries of a step; the default follows from the number of queries.", unit="queries", ge=1
    )
    new_learning_rate: float = setting(1e-3, gt=0)
    kd: Literal["mse", "margin_mse", "kl"] = setting(
        "margin_mse",
        "How scores are held to the teacher's: each by itself, by gaps to the best, or by their softmax.",
        source="margin_mse: Hofstätter et al. 2020, arXiv:2010.02666; kl: Hinton et al. 2015, arXiv:1503.02531",
    )
    temperature: float = setting(1.0, "What scores are divided by in both softmaxes of `kl`.", gt=0)
    calibrate: bool = setting(
        True, "Whether the teacher's scores are brought to the mean and spread of the model's own."
    )
    tau: float = setting(1.0, "What scores are divided by in `rank`. Below 1 the best counts more.", gt=0)
    margin: float = setting(
        5.0, "Gap between relevant and other candidates in `contrast`.", unit="score", gt=0
    )
    targets: Targets | None = setting(
        None, "Logits that a term should have; the default follows from the number of terms."
    )
    judge: str = setting(
        JUDGE,
        "Dense encoder that judges which term a made-up text means; with `none` a text means what it was made from.",
    )
    longest: int | None = setting(
        None, "Tokens of a text that teach; by default as many as the model reads.", unit="tokens", ge=8
    )
    samples: int = setting(
        64,
        "Made-up texts of a step that are drawn from everywhere; as many more mean a term.",
        unit="texts",
        ge=1,
    )
    raw_logits: bool = setting(
        True, "Whether terms are held to raw logits. Pooled weights give a silent token no gradient."
    )
    flops_query: float = setting(
        0.01, "What the work of all tokens of queries counts within `sparsity`.", ge=0
    )
    flops_document: float = setting(
        0.01, "What the work of all tokens of documents counts within `sparsity`.", ge=0
    )
    penalised: Literal["none", "frequent", "function"] = setting(
        "function",
        "Tokens that cost more than others: none, frequent ones, or words that say nothing of a topic.",
        source="Porco et al. 2025, arXiv:2505.15070",
    )
    common: float = setting(10.0, "What penalised tokens cost within `sparsity`.", ge=0)
    general_candidates: int = setting(
        4,
        "General passages among the candidates of each query, those that the model finds first; 0 for none.",
        unit="passages",
        ge=0,
    )
    silence: float = setting(
        2.0,
        "Weight of texts that don't mean a term, beside those that do: a higher one gives fewer strays.",
        ge=0,
    )

    def settled(self, queries: int, terms: int) -> "Distill":
        """These settings with nothing open: what isn't given is that for so many queries and new terms.

        Many queries are drawn two at a time, so that more steps teach, by made-up texts, which of many terms is
        meant.
        """
        steps, size = (150, 4) if queries <= FEW else (many_steps(terms, MANY_QUERIES), 2)
        return self.model_copy(update={"steps": self.steps or steps, "batch_size": self.batch_size or size})


def effort(settings: Distill, sizes: Sizes) -> Effort:
    """Queries with their candidates, documents for the anchor, and made-up texts, half of which mean a term."""
    settings = settings.settled(sizes.queries, sizes.terms)
    assert settings.batch_size is not None, "settled"
    batch = settings.batch_size * settings.gradient_accumulation
    general = settings.general_candidates
    first = min(sizes.documents, sizes.queries * sizes.candidates) + sizes.queries * general
    documents = batch * (sizes.candidates + general + 0.5)
    return Effort(settings.steps_for(sizes.queries), documents, batch + 2 * settings.samples, before=first)


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Distill) -> "Task[Any]":
    """The task over queries with scored candidates; definitions read before tell what else means a term."""
    from sparse_adapt.model.sentence import SentenceEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.stages.parts.dense_scores import DenseScores
    from sparse_adapt.stages.parts.general_candidates import with_general
    from sparse_adapt.stages.parts.scored import with_theirs
    from sparse_adapt.stages.parts.six_terms import SixTerms

    entries = inputs[CANDIDATES]
    documents = {document.document_id: document.full_text for document in inputs[CORPUS]}
    documents = with_theirs(documents, entries)
    if isinstance(encoder, SparseEncoder):
        entries, passages = with_general(encoder, entries, documents, settings.general_candidates)
        return SixTerms(encoder, entries, documents, settings, inputs.get(DICTIONARY) or [], passages)
    extended = inputs.model if settings.weights.anchor > 0.0 else None
    before = before_extension(extended, str(encoder.device), SentenceEncoder.load)
    settings = settings.settled(0, 0)  # the other pace was measured on sparse models
    return DenseScores("distill", encoder, entries, documents, settings, before)


DISTILL = Stage(
    "distill",
    Distill,
    (CANDIDATES, CORPUS, inherited(DICTIONARY)),
    build,
    refuses=("sum", "table", "prompts"),
    became={"plain": "plain", "corpus": "imitate"},
    effort=effort,
)
