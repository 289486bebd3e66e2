"""New terms lowered or raised in a saved model: `calibrate`."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from sparse_adapt.api.results import After, CommandResult
from sparse_adapt.api.runs import subject_of
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.report.sections import Section, untitled
from sparse_adapt.report.tables import Row, Table

if TYPE_CHECKING:
    from sparse_adapt.collection.arguments import QueriesLike
    from sparse_adapt.pipeline.before_after import BeforeAfter
    from sparse_adapt.retrieve.evaluate import Collection

NO_COSTS = (
    "what it costs shows on documents that say the terms, and no corpus is known; name one: --corpus CORPUS"
)


@dataclass(frozen=True, repr=False)
class Calibration(CommandResult):
    """A model whose new terms activate less or more: where it lies, which terms moved, and its effect, before and
    after.
    """

    folder: Path
    terms: Table
    before_after: tuple["BeforeAfter", ...]
    corpus: str = ""
    measured: bool = True  # on documents, which show what it costs

    @property
    def headline(self) -> str:
        """The folder, how many terms moved, and background queries that activate one."""
        first, moved = self.before_after[0], len(self.terms.rows)
        return f"{self.folder}: {moved:,} terms moved, {first.name} {first.before:.1%} to {first.after:.1%}"

    def rows(self) -> list[Row]:
        """Each figure before and after."""
        return [each._asdict() for each in self.before_after]

    def to_dict(self) -> dict[str, object]:
        """Terms with their amounts, and every figure."""
        return {
            "lowered": {str(row["term"]): row["amount"] for row in self.terms.rows},
            "figures": self.rows(),
        }

    def sections(self) -> Sequence[Section]:
        """Both tables."""
        from sparse_adapt.pipeline.calibrate import tabulate_before_after

        return untitled(
            self.terms, tabulate_before_after(self.before_after), *(() if self.measured else (NO_COSTS,))
        )

    def after(self) -> After:
        """The model, and how its vectors are written."""
        wrote = (self.folder, "the calibrated model, and calibration.json with these figures")
        steps = [exported(str(self.folder), self.corpus, f"{self.folder}-export")] if self.corpus else []
        return After(wrote=[wrote], next_steps=steps)


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
) -> Calibration:
    """Have new terms activate less, and show the effect.

    Only the biases of new tokens change, so every other weight stays as it was.

    model: by default that of the latest run. lower_bias: by how much each named term's logit is lowered; a negative
    amount raises it. target_activations: instead, the share of background queries that may activate a term, from 0 to 1
    or such as "5%". corpus: what the change is measured on, with its judgements where it has some; by default what the
    model was made for. queries: of your users, which of them activate a term before and after.

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
    return Calibration(
        place.folder,
        tabulate_amounts(encoder, amounts),
        tuple(before_after),
        (source.place if source else None) or "",
        bool(documents),
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
