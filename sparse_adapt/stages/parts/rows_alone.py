"""Terms taught by fitted rows alone: the body stands still, and so does every token but those that are taught.

The lessons are those of the dictionary stage with all of its everyday texts, most of which mean no term: no step holds
anything else, so that they alone keep a term silent where nobody means it. The states are whitened, for a row can't do
more afterwards than it does here. Where a model ties its rows, a taught row is also what texts that say the term are
read by, so they are read again while it is fitted.

Dimensions: S texts of the stage, D terms that are taught.
"""

from collections.abc import Sequence

import numpy as np

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.stages.dictionary import Dictionary
from sparse_adapt.stages.parts.about import AnsweredQuery, DefinedTexts, Sources, asked, defined_texts
from sparse_adapt.stages.parts.fitted_rows import FittedLessons, Fitting, fit_rows
from sparse_adapt.stages.parts.fitted_texts import FITTED, fitted_texts
from sparse_adapt.stages.parts.made_up_lessons import judge_named
from sparse_adapt.stages.parts.targets import Targets
from sparse_adapt.stages.parts.texts import general_passages
from sparse_adapt.stages.stage import Changed
from sparse_adapt.synthetic.judged import JudgedMeanings

A_TERM = 500  # made-up texts for each term: of more, the fit draws no more
FLOOR = 0.01  # share of the largest variance below which a direction of the states isn't widened further
ALONE = Targets(border=1.5)  # of a single term: without a rival, it is on top wherever it is lit in doubt
REREAD = 100  # steps of the fit after which texts that say a term are read again, where rows are tied


def teach_rows(
    encoder: SparseEncoder,
    definitions: Sequence[Definition],
    documents: Sequence[str],
    settings: Dictionary,
    queries: Sequence[AnsweredQuery] = (),
) -> Changed:
    """Fit the output rows and biases of the terms that are defined, and change nothing else.

    Terms that an earlier extension added stay as they are, unless they are defined here. Raises ConfigError where no
    definition is of a new term.
    """
    stage = defined_texts(encoder, definitions, documents)
    sources = (Sources(stage.texts.ids, stage.about) + asked(encoder, queries)).of_terms(stage.defined)
    judge, random = judge_named(settings.judge), np.random.default_rng(settings.seed)
    judged = JudgedMeanings(encoder, sources.token_ids, sources.about, judge, random, stage.documents, A_TERM)
    token_ids, lessons = _lessons(encoder, stage, judged, settings)
    taught = (stage.texts.first + stage.defined).tolist()
    fit_rows(encoder, token_ids, lessons, Fitting(taught, settings.seed, FLOOR, REREAD))
    terms = [token.term for token in encoder.new_tokens if token.token_id in set(taught)]
    said = f"{len(taught):,} of {len(encoder.new_tokens):,} new tokens fitted to {len(token_ids):,} texts"
    return Changed(f"{said}; nothing else has changed", {"taught": terms})


def _lessons(
    encoder: SparseEncoder, stage: DefinedTexts, judged: JudgedMeanings, settings: Dictionary
) -> tuple[list[TokenIds], FittedLessons]:
    """The texts of the fit as token ids, and which of the terms (D) each of them should light."""
    about = stage.about[:, stage.defined] | judged.unknown[: len(stage.texts)]
    read = fitted_texts(stage.texts, about, general_passages(encoder), stage.defined)
    samples = judged.draw(FITTED, np.random.default_rng(settings.seed)).beside(judged.everyday())
    targets = settings.targets or (ALONE if len(stage.defined) == 1 else Targets.of(judged=True))
    lessons = FittedLessons(read.says, read.quiet, samples, targets, settings.silence)
    return [*read.token_ids, *samples.token_ids], lessons
