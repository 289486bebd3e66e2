"""Dictionary: the model learns from definitions, both ways, and from made-up texts which term is meant.

The sentence that defines a term is read with the term or its defining words masked; and the definition alone,
without the term, must bring the term to mind, as a query does that describes a thing without its name. Definitions
are few, so most of a step are texts made from them and from the documents, whose meaning a dense encoder judges.
First the rows of the new terms are fitted to a body that stands still. Frozen features can't follow the judge far, so
then every weight learns, held by an anchor on the corpus and on general passages. With `train = "rows"` the fit is all
(`parts.rows_alone`): old tokens keep the same bits, and terms can be added later.
"""

from collections.abc import Sequence
from itertools import compress
from typing import TYPE_CHECKING, ClassVar

from sparse_adapt.errors import ConfigError
from sparse_adapt.settings import setting
from sparse_adapt.stages.inputs import CANDIDATES, CORPUS, Inputs, beside, inherited
from sparse_adapt.stages.inputs import DICTIONARY as DEFINITIONS
from sparse_adapt.stages.parts.targets import JUDGE, many_steps
from sparse_adapt.stages.stage import Changed, Effort, Sizes, Stage
from sparse_adapt.stages.warmup import PLAIN as PLAIN_WARMUP
from sparse_adapt.stages.warmup import Warmup, WarmupWeights
from sparse_adapt.stages.warmup import effort as warmup_effort
from sparse_adapt.training.settings import Trained

if TYPE_CHECKING:
    from sparse_adapt.collection.glossary import Definition
    from sparse_adapt.model.kinds import EitherEncoder
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.stages.parts.about import AnsweredQuery
    from sparse_adapt.stages.parts.term_lessons import TermLessons


SAYINGS = 2  # of a definition without examples
STEPS = 100  # that teach one term, once its row is fitted
FITTED_AS_DOCUMENTS = 2_000  # documents that take about as long to read as the made-up texts of a fit


class DictionaryWeights(WarmupWeights):
    """Weights of the loss terms."""

    anchor: float = setting(20.0, ge=0)


class Dictionary(Warmup):
    """Guess masked words of definitions, and tell which term a made-up text means. The whole model learns."""

    fits_rows: ClassVar[bool] = True

    weights: DictionaryWeights = setting(DictionaryWeights())
    train: Trained = setting("all")
    learning_rate: float = setting(
        2e-4,
        "Highest learning rate of the base model's weights, for one of 4 million; a larger model takes 3e-5.",
        gt=0,
    )
    new_learning_rate: float = setting(1e-3, gt=0)
    steps: int | None = setting(
        None,
        "How many times the weights move; the default follows from the number of terms.",
        unit="steps",
        ge=1,
    )
    batch_size: int = setting(
        4, "Definitions and documents of a step, beside many made-up texts.", unit="texts", ge=1
    )
    judge: str = setting(JUDGE)
    samples: int | None = setting(64, ge=1)

    def settled(self, terms: int) -> "Dictionary":
        """These settings with nothing open: for so many new terms."""
        return self if self.steps is not None else self.model_copy(update={"steps": many_steps(terms, STEPS)})


def effort(settings: Dictionary, sizes: Sizes) -> Effort:
    """As in the warm-up, over the sayings of each definition, for as many steps as so many terms take.

    A fit of rows alone reads each text once.
    """
    if settings.train == "rows":
        return Effort(0, 0.0, before=sizes.documents + FITTED_AS_DOCUMENTS)
    settings = settings.settled(sizes.terms)
    return warmup_effort(settings, sizes)._replace(steps=settings.steps_for(SAYINGS * sizes.terms))


PLAIN = PLAIN_WARMUP | {"weights": {"mlm": 1.0, "anchor": 0.0, "domain": 0.0, "recall": 0.0}}


def build(encoder: "EitherEncoder", inputs: Inputs, settings: Dictionary) -> "TermLessons | Changed":
    """The task over definitions; the documents and the queries of scored candidates tell what else means a term.

    Where rows alone are to learn, the encoder is taught at once.
    """
    from sparse_adapt.model.sparse import SparseEncoder

    assert isinstance(encoder, SparseEncoder)
    if settings.train == "rows":
        check_lessons(settings)
    documents = {each.document_id: each.full_text for each in inputs.get(CORPUS) or ()}
    asked = queries(inputs, documents)
    others = [] if masked_words_alone(settings) else list(documents.values())
    if settings.train == "rows":
        from sparse_adapt.stages.parts.rows_alone import teach_rows

        return teach_rows(encoder, inputs[DEFINITIONS], others, settings, asked)
    return dictionary(encoder, inputs[DEFINITIONS], others, settings, asked)


def check_lessons(settings: Dictionary) -> None:
    """Refuse to fit rows alone where no judge tells what made-up texts mean, from which they learn."""
    if settings.judge == "none" or settings.weights.recall == 0.0:
        raise ConfigError(
            'train = "rows" learns from made-up texts that a judge has read; name a judge, and give recall a weight'
        )


def masked_words_alone(settings: Dictionary) -> bool:
    """Whether nothing is learnt but masked words, those of the definitions."""
    return not any(weight for key, weight in settings.weights.model_dump().items() if key != "mlm")


def queries(inputs: Inputs, documents: dict[str, str]) -> "list[AnsweredQuery]":
    """Queries with the documents that their teacher finds relevant."""
    from sparse_adapt.stages.parts.about import AnsweredQuery
    from sparse_adapt.stages.parts.scored import relevant_to, with_theirs

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
) -> "TermLessons":
    """The task over definitions, with `others` as the texts that have nothing to do with most of them.

    `queries`: what the judge knows besides of texts that mean a term. Raises ConfigError where no definition is of
    a new term.
    """
    from sparse_adapt.stages.parts.about import asked, defined_texts
    from sparse_adapt.stages.parts.term_lessons import TermLessons

    read = defined_texts(encoder, definitions, others)
    settings = settings.settled(len(encoder.new_tokens))
    lessons = read.texts, read.about, settings, settings.steps_for(read.sayings)
    return TermLessons("dictionary", encoder, *lessons, asked(encoder, queries), read.documents)


DICTIONARY = Stage(
    "dictionary",
    Dictionary,
    (DEFINITIONS, inherited(CORPUS), beside(CANDIDATES)),
    build,
    dense=False,
    refuses=("sum", "table", "prompts"),
    presets={"plain": PLAIN},
    effort=effort,
)
