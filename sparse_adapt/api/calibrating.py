"""New terms lowered or raised in a saved model: `calibrate`."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sparse_adapt.api.checks import check_output, some_queries
from sparse_adapt.api.following import exported
from sparse_adapt.api.options import (
    Columns,
    LatestCorpus,
    LatestModel,
    Option,
    Overwrite,
    declared,
    out_option,
)
from sparse_adapt.api.runs import subject_of
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Row

if TYPE_CHECKING:
    from sparse_adapt.collection.arguments import QueriesLike
    from sparse_adapt.retrieve.evaluate import Collection

NO_COSTS = (
    "what it costs shows on documents that say the terms, and no corpus is known; name one: --corpus CORPUS"
)


@declared
def calibrate(
    model: LatestModel,
    out: Annotated[str | Path | None, out_option("Folder to write the model in.", "DIR")],
    *,
    lower_bias: Annotated[
        "Mapping[str, float] | Sequence[str] | None",
        Option(
            "Lower a term's logit by an amount: texts whose logit was below it no longer activate the term. A negative "
            "amount raises the logit. May be given several times.",
            metavar="TERM=AMOUNT",
            many=True,
        ),
    ] = None,
    target_activations: Annotated[
        "float | str | None",
        Option(
            "Lower every term until at most this share of background queries activates a term, such as 5%.",
            metavar="SHARE",
        ),
    ] = None,
    corpus: LatestCorpus = None,
    queries: Annotated[
        "QueriesLike | None",
        Option(
            "Queries of your users: how many of them activate a new term, before and after.",
            metavar="FILE",
            check=some_queries,
        ),
    ] = None,
    columns: Columns = (),
    overwrite: Overwrite = False,
    progress: bool | None = None,
) -> Result:
    """Have new terms activate less, and show the effect.

    Only the biases of new tokens change, so every other weight stays as it was.

    `lower_bias` is a dictionary of terms and amounts. Judgements of the corpus are measured on too, where it has some.

    Raises ConfigError where neither or both are given and for a term that the model wasn't given, ModelError for a
    model that a bias doesn't reach.

    >>> import tempfile, sparse_adapt as sa
    >>> place = tempfile.mkdtemp()
    >>> model = sa.load("splade-tiny", device="cpu")
    >>> _ = model.extend(["gatrocraptic"])
    >>> _ = model.save(place + "/extended")
    >>> sa.calibrate(place + "/extended", place + "/lowered", lower_bias={"gatrocraptic": 1.5}).terms.rows[0]["amount"]
    1.5
    """
    if out is None:
        raise ConfigError("calibrate needs -o DIR, the folder to write the model in")
    if (not lower_bias) == (target_activations is None):
        raise ConfigError(
            "calibrate needs --lower-bias TERM=AMOUNT or --target-activations SHARE, one of both"
        )
    named = None if not lower_bias else _amounts(lower_bias)
    target = None if target_activations is None else _share(target_activations)
    if model is None:
        subject = subject_of(None, corpus if isinstance(corpus, str) else None)
        model, corpus = subject.model, corpus or subject.corpus
    place = Place(Path(out), overwrite, reads=[str(model)])
    check_output(place)
    from sparse_adapt.api.models import load_sparse
    from sparse_adapt.collection.arguments import Corpus, queries_of
    from sparse_adapt.pipeline.before_after import Scales
    from sparse_adapt.pipeline.calibrate import (
        amounts_for,
        amounts_of,
        check_calibrates,
        save_calibrated,
        tabulate_amounts,
        tabulate_before_after,
    )
    from sparse_adapt.stages.record import read_before

    sparse_model, encoder = load_sparse(model, "cpu")
    check_calibrates(encoder, sparse_model.source)
    corpus = corpus if corpus is not None else read_before(sparse_model.source).get("corpus")
    amounts = amounts_for(encoder, target or 0.0) if named is None else amounts_of(encoder, named)
    source = None if corpus is None else Corpus.of(corpus, columns)
    documents = [] if source is None else list(source.read())
    query_texts = [] if queries is None else [query.text for query in queries_of(queries, columns)]
    with progress_bars(progress) as bars:
        advance = bars.count("documents", len(documents))
        scales = Scales.of(
            encoder, query_texts, documents, None if source is None else _judged(source.place), advance
        )
    before_after = scales.before_after(amounts)
    save_calibrated(encoder, sparse_model.source, amounts, before_after, place)
    moved, first, folder = tabulate_amounts(encoder, amounts), before_after[0], place.folder
    figures: list[Row] = [each._asdict() for each in before_after]
    lowered = {str(row["term"]): row["amount"] for row in moved.rows}
    at = source.place if source else None
    return Result(
        f"{folder}: {len(moved.rows):,} terms moved, {first.name} {first.before:.1%} to {first.after:.1%}",
        {"lowered": lowered, "figures": figures},
        [moved, tabulate_before_after(before_after), *([] if documents else [NO_COSTS])],
        [(folder, "the calibrated model, and calibration.json with these figures")],
        [exported(str(folder), at, f"{folder}-export")] if at else [],
        rows=figures,
        folder=folder,
        terms=moved,
        before_after=tuple(before_after),
    )


def _amounts(lower_bias: Mapping[str, float] | Sequence[str]) -> Mapping[str, float]:
    """Terms and amounts, from words such as term=1.5 as well. Raises ConfigError for anything else."""
    if isinstance(lower_bias, Mapping):
        return lower_bias
    amounts = {}
    for word in [lower_bias] if isinstance(lower_bias, str) else lower_bias:
        term, _, amount = word.rpartition("=")
        amounts[term.strip()] = value = _number(amount)
        if not term.strip() or not math.isfinite(value):
            raise ConfigError(f"--lower-bias {word}: write a term and a number, such as gatrocraptic=1.5")
    return amounts


def _share(amount: float | str) -> float:
    """A share from 0 to 1, also as a percentage. Raises ConfigError for anything else."""
    word = str(amount)
    value = _number(word.removesuffix("%")) / (100 if word.endswith("%") else 1)
    if not 0 <= value <= 1:
        raise ConfigError(f"--target-activations {word}: write a share, such as 5%")
    return value


def _number(word: str) -> float:
    try:
        return float(word)
    except ValueError:
        return math.nan


def _judged(corpus: str | None) -> "Collection | None":
    """The judged queries of a collection on disk, of the test split before others; None where there are none."""
    from sparse_adapt.collection.sources import judged_split
    from sparse_adapt.retrieve.evaluate import read_collection

    split = None if corpus is None else judged_split(corpus)
    return None if corpus is None or split is None else read_collection(corpus, split)
