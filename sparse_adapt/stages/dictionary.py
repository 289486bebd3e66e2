"""Dictionary: the model learns from definitions, both ways, and from synthetic texts which term is meant.

The sentence that defines a term is read with the term or its defining words masked; and the definition alone,
without the term, must bring the term to mind, as a query does that describes a thing without its name. Definitions
are few, so most of a step are texts made from them and from the documents, whose meaning a semantic labeller tells.
First the rows of the new terms are fitted to a body that stands still. Frozen features can't follow the labeller far,
so then every weight learns, held by an anchor on the corpus and on general passages. With `train = "rows"` the fit is
all (`teach_rows`): old tokens keep the same bits, and terms can be added later.

Rows alone learn from the same examples with all of the background texts, most of which mean no term: no step holds
anything else, so that they alone keep a term inactive where nobody means it. The states are whitened, for a row can't
do more afterwards than it does here. Where a model ties its rows, a taught row is also what texts that say the term are
read by, so they are read again while it is fitted.

Dimensions: S texts of the stage, D terms that are taught.
"""

from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from sparse_adapt.errors import ConfigError
from sparse_adapt.objectives.targets import LABELLER, many_steps
from sparse_adapt.report.progress import remark
from sparse_adapt.settings import setting
from sparse_adapt.stages.inputs import CANDIDATES, CORPUS, Inputs, beside, inherited
from sparse_adapt.stages.inputs import DICTIONARY as DEFINITIONS
from sparse_adapt.stages.stage import Changed, Stage
from sparse_adapt.stages.warmup import PUBLISHED as PUBLISHED_WARMUP
from sparse_adapt.stages.warmup import TermTask, Warmup, WarmupWeights
from sparse_adapt.training.settings import Trained

if TYPE_CHECKING:
    from sparse_adapt.collection.glossary import Definition
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.model.tokens import TokenIds
    from sparse_adapt.objectives.meanings import AnsweredQuery, DefinedTexts
    from sparse_adapt.objectives.rows import FittingExamples
    from sparse_adapt.synthetic.labelled import LabelledMeanings


STEPS = 100  # that teach one term, once its row is fitted
A_TERM = 500  # synthetic texts for each term where rows alone are fitted: of more, the fit draws no more
FLOOR = 0.01  # share of the largest variance below which a direction of the states isn't widened further
ALONE = 1.5  # activation threshold of a single term whose row alone is fitted: it has no rival
REREAD = 100  # steps of the fit after which texts that say a term are read again, where rows are tied


class DictionaryWeights(WarmupWeights):
    """Weights of the loss terms."""

    anchor: float = setting(20.0, ge=0)


class Dictionary(Warmup):
    """Guess masked words of definitions, and tell which term a synthetic text means. The whole model learns."""

    fits_rows: ClassVar[bool] = True

    weights: DictionaryWeights = setting(DictionaryWeights())
    train: Trained = setting("all")
    narrow_rate: ClassVar[float] = 2e-4
    new_learning_rate: float = setting(1e-3, gt=0)
    steps: int | None = setting(
        None,
        "How many times the weights move; the default follows from the number of terms.",
        unit="steps",
        ge=1,
    )
    batch_size: int = setting(
        4, "Definitions and documents of a step, beside many synthetic texts.", unit="texts", ge=1
    )
    entries: Literal["split", "whole"] = setting(
        "split",
        "What is read of an entry: its sentence, the bare definition and each example, or the sentence alone.",
    )
    labeller: str = setting(LABELLER)
    samples: int | None = setting(64, ge=1)

    def settled(self, *, queries: int = 0, terms: int = 0) -> Self:
        """These settings with nothing open: for so many new terms."""
        return self if self.steps is not None else self.model_copy(update={"steps": many_steps(terms, STEPS)})

    def labelled_share(self, terms: int) -> float:
        """The share of the texts that the labeller reads: in proportion where the steps are fewer than by default."""
        return 1.0 if self.steps is None else min(1.0, self.steps / many_steps(terms, STEPS))


PUBLISHED = PUBLISHED_WARMUP | {"entries": "whole"}  # one text for each entry


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Dictionary) -> TermTask | Changed:
    """The task over definitions; the documents and the queries of scored candidates tell what else means a term.

    Where rows alone are to learn, the encoder is taught at once.
    """
    from sparse_adapt.model.sparse import SparseEncoder

    assert isinstance(encoder, SparseEncoder)
    if settings.train == "rows":
        check_examples(settings)
    documents = {each.document_id: each.full_text for each in inputs.get(CORPUS) or ()}
    queries = queries_with_answers(inputs, documents)
    others = [] if masked_words_alone(settings) else list(documents.values())
    if settings.train == "rows":
        return teach_rows(encoder, inputs[DEFINITIONS], others, settings, queries)
    return dictionary(encoder, inputs[DEFINITIONS], others, settings, queries)


def teach_rows(
    encoder: "SparseEncoder",
    definitions: "Sequence[Definition]",
    documents: Sequence[str],
    settings: Dictionary,
    queries: "Sequence[AnsweredQuery]" = (),
) -> Changed:
    """Fit the output rows and biases of the terms that are defined, and change nothing else.

    Terms that an earlier extension added stay as they are, unless they are defined here. Raises ConfigError where no
    definition is of a new term.
    """
    import numpy as np

    from sparse_adapt.objectives.meanings import Sources, defined_texts, labeller_named, queries_about
    from sparse_adapt.objectives.rows import Fitting, fit_rows
    from sparse_adapt.synthetic.labelled import LabelledMeanings

    stage = defined_texts(encoder, definitions, documents, whole=settings.entries == "whole")
    sources = (Sources(stage.texts.sources, stage.about) + queries_about(encoder, queries)).of_terms(
        stage.defined
    )
    labeller, random = labeller_named(settings.labeller), np.random.default_rng(settings.seed)
    labelled = LabelledMeanings(
        encoder, sources.token_ids, sources.about, labeller, random, stage.documents, A_TERM
    )
    token_ids, examples = _examples(encoder, stage, labelled, settings)
    rows = (stage.texts.first + stage.defined).tolist()
    fit_rows(encoder, token_ids, examples, Fitting(rows, settings.seed, FLOOR, REREAD))
    terms = [token.term for token in encoder.new_tokens if token.token_id in set(rows)]
    summary = f"{len(rows):,} of {len(encoder.new_tokens):,} new tokens fitted to {len(token_ids):,} texts"
    return Changed(f"{summary}; nothing else has changed", {"taught": terms})


def _examples(
    encoder: "SparseEncoder", stage: "DefinedTexts", labelled: "LabelledMeanings", settings: Dictionary
) -> "tuple[list[TokenIds], FittingExamples]":
    """The texts of the fit as token ids, and which of the terms (D) each of them should activate."""
    import numpy as np

    from sparse_adapt.objectives.rows import FITTED, FittingExamples, fitted_texts
    from sparse_adapt.objectives.targets import Targets
    from sparse_adapt.objectives.texts import general_passages

    about = stage.about[:, stage.defined] | labelled.unknown[: len(stage.texts)]
    read = fitted_texts(stage.texts, about, general_passages(encoder), stage.defined)
    samples = labelled.draw(FITTED, np.random.default_rng(settings.seed)).beside(labelled.background())
    targets = settings.targets or (
        Targets(threshold=ALONE) if len(stage.defined) == 1 else Targets.of(labelled=True)
    )
    examples = FittingExamples(read.says, read.inactive, samples, targets, settings.inactive_weight)
    return [*read.token_ids, *samples.token_ids], examples


def check_examples(settings: Dictionary) -> None:
    """Refuse to fit rows alone where no labeller tells what synthetic texts mean, from which they learn."""
    if settings.labeller == "none" or settings.weights.recall == 0.0:
        raise ConfigError(
            'train = "rows" learns from synthetic texts that a labeller has read; name a labeller, and give recall a '
            "weight"
        )


def masked_words_alone(settings: Dictionary) -> bool:
    """Whether nothing is learnt but masked words, those of the definitions."""
    return not any(weight for key, weight in settings.weights.model_dump().items() if key != "mlm")


def queries_with_answers(inputs: Inputs, documents: dict[str, str]) -> "list[AnsweredQuery]":
    """Queries with the documents that their teacher finds relevant."""
    from sparse_adapt.objectives.meanings import AnsweredQuery
    from sparse_adapt.objectives.scores import relevant_to, with_theirs

    entries = inputs.get(CANDIDATES) or []
    texts = with_theirs(documents, entries)
    return [
        AnsweredQuery(entry.query, [texts[name] for name in compress(entry.document_ids, relevant_to(entry))])
        for entry in entries
    ]


def dictionary(
    encoder: "SparseEncoder",
    definitions: "Sequence[Definition]",
    others: Sequence[str],
    settings: Dictionary,
    queries: "Sequence[AnsweredQuery]" = (),
) -> TermTask:
    """The task over definitions, with `others` as the texts that have nothing to do with most of them.

    `queries`: what the labeller knows besides of texts that mean a term. Raises ConfigError where no definition is of
    a new term.
    """
    from sparse_adapt.objectives.meanings import defined_texts, queries_about

    read = defined_texts(encoder, definitions, others, whole=settings.entries == "whole")
    terms = len(encoder.new_tokens)
    share, settings = settings.labelled_share(terms), settings.settled(terms=terms)
    if share < 1.0 and settings.labeller != "none":
        steps = f"{settings.steps:,} of {many_steps(terms, STEPS):,} steps"
        remark(f"dictionary: {steps}, so {share:.0%} of the texts are labelled")
    examples = read.texts, read.about, settings, settings.steps_for(read.sayings)
    also = queries_about(encoder, queries)
    return TermTask("dictionary", encoder, *examples, also, read.documents, share)


DICTIONARY = Stage(
    "dictionary",
    Dictionary,
    (DEFINITIONS, inherited(CORPUS), beside(CANDIDATES)),
    build,
    dense=False,
    refuses=("sum", "table", "prompts"),
    presets={"published": PUBLISHED},
    texts=5.0,
)
