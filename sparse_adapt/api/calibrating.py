"""New terms lowered or raised in a saved model: `calibrate`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType

from sparse_adapt.api.models import ModelGiven, load_sparse
from sparse_adapt.collection.given import Corpus, DocumentsGiven, QueriesGiven, queries_of
from sparse_adapt.collection.sources import judged_split
from sparse_adapt.errors import ConfigError
from sparse_adapt.pipeline.calibrate import (
    amounts_for,
    amounts_of,
    check_calibrates,
    save_calibrated,
    tabulate,
    tabulate_amounts,
)
from sparse_adapt.pipeline.lowering import Bought, Scales
from sparse_adapt.report.progress import watching
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Row, Table, to_rich
from sparse_adapt.retrieve.evaluate import Collection, read_collection


@dataclass(frozen=True, repr=False)
class Calibration(Result):
    """A model whose new terms light less or more: where it lies, which terms moved, and what that buys and costs."""

    folder: Path
    terms: Table
    bought: tuple[Bought, ...]

    @property
    def headline(self) -> str:
        """The folder, how many terms moved, and everyday queries that light one."""
        first, moved = self.bought[0], len(self.terms.rows)
        return f"{self.folder}: {moved:,} terms moved, {first.name} {first.before:.1%} to {first.after:.1%}"

    def rows(self) -> list[Row]:
        """Each figure before and after."""
        return [each._asdict() for each in self.bought]

    def to_dict(self) -> dict[str, Any]:
        """Terms with their amounts, and every figure."""
        return {
            "lowered": {str(row["term"]): row["amount"] for row in self.terms.rows},
            "figures": self.rows(),
        }

    def renderable(self) -> RenderableType:
        """Both tables."""
        return Group(to_rich(self.terms), to_rich(tabulate(self.bought)))


def calibrate(
    model: ModelGiven,
    out: str | Path,
    *,
    lower: Mapping[str, float] | None = None,
    target_strays: float | None = None,
    corpus: DocumentsGiven | None = None,
    queries: QueriesGiven | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
) -> Calibration:
    """Lower the biases of new terms, and of nothing else, and save the model in `out`.

    lower: by how much each named term's logit is lowered; a negative amount raises it. target_strays: instead, the
    share of everyday queries that may light a term, from 0 to 1. corpus: what the change is measured on, with its
    judgements where it has some. queries: of your users, which of them light a term before and after.

    Raises ConfigError where neither or both are given and for a term that the model wasn't given, ModelError for a
    model that a bias doesn't reach.
    """
    if (lower is None) == (target_strays is None):
        raise ConfigError("name either the terms to lower or the target of strays")
    if target_strays is not None and not 0 <= target_strays <= 1:
        raise ConfigError(f"a target of {target_strays:.0%} strays is none; choose 0% to 100%")
    held, encoder = load_sparse(model, "cpu")
    check_calibrates(encoder, held.source)
    amounts = amounts_of(encoder, lower) if lower is not None else amounts_for(encoder, target_strays or 0.0)
    given = None if corpus is None else Corpus.of(corpus)
    documents = [] if given is None else list(given.read())
    asked = [] if queries is None else [query.text for query in queries_of(queries)]
    with watching(progress) as bars:
        heard = bars.count("documents", len(documents))
        scales = Scales.of(encoder, asked, documents, None if given is None else _judged(given.place), heard)
    bought = scales.bought(amounts)
    place = Path(out)
    save_calibrated(encoder, held.source, amounts, bought, place, overwrite=overwrite)
    return Calibration(place, tabulate_amounts(encoder, amounts), tuple(bought))


def _judged(corpus: str | None) -> Collection | None:
    """The judged queries of a collection on disk, of the test split before others; None where there are none."""
    split = None if corpus is None else judged_split(corpus)
    return None if corpus is None or split is None else read_collection(corpus, split)
