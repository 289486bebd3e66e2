"""Each row of a suite over all of its collections: averages, queries that found nothing, the spread, clusters."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from sparse_adapt.errors import MissingExtraError
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.research.suite.measure import MeasuredSuite
from sparse_adapt.retrieve.significance import Values


def averages_table(outcome: MeasuredSuite) -> Table:
    """The share of each row's queries at zero; of several collections also the mean of the row's measure."""
    suite = outcome.suite
    several = len(suite.collections) > 1
    rows: list[Row] = []
    for row in suite.rows:
        means = [outcome.at(row, name).measured.means[suite.top.measure] for name in suite.collections]
        shares = {f"zero in {name}": _at_zero(values) for name, values in _by_collection(outcome, row)}
        whole = {"average": float(np.mean(means)), "at_zero": _at_zero(of_every_query(outcome, row))}
        rows.append({"row": row, **(whole if several else {}), **shares})
    columns = [Column("row", "", "text")]
    if several:
        columns += [
            Column("average", suite.top.measure, decimals=3),
            Column("at_zero", "queries at zero", "share", decimals=1),
        ]
    columns += [
        Column(f"zero in {name}", f"zero in {name}", "share", decimals=1) for name in suite.collections
    ]
    title = f"Average of {len(suite.collections)} collections" if several else "Queries at zero"
    note = "each collection counts the same in the average, each query the same in the share"
    return Table(title, tuple(columns), rows, note if several else "")


def clusters_table(outcome: MeasuredSuite) -> Table:
    """The V-measure of each row on every file of groups, and the mean of several."""
    names, found = tuple(outcome.suite.groups), {(each.row, each.groups): each for each in outcome.clusters}
    rows: list[Row] = []
    for row in dict.fromkeys(each.row for each in outcome.clusters):
        values = {f"groups {name}": found[row, name].v_measure for name in names}
        rows.append({"row": row, **values, "average": float(np.mean(list(values.values())))})
    columns = [
        Column("row", "", "text"),
        *(Column(f"groups {name}", name, decimals=3) for name in names),
    ]
    if len(names) > 1:
        columns.append(Column("average", "average", decimals=3))
    note = "V-measure of as many clusters as groups, by k-means"
    return Table("Clusters", tuple(columns), rows, note)


def of_every_query(outcome: MeasuredSuite, row: str) -> Values:
    """A row's measure on the queries of all collections, one after the other."""
    return np.concatenate([values for _, values in _by_collection(outcome, row)])


def _by_collection(outcome: MeasuredSuite, row: str) -> Iterator[tuple[str, Values]]:
    """Each collection, and the row's measure on its queries."""
    for name in outcome.suite.collections:
        values = outcome.at(row, name).measured.values[outcome.suite.top.measure]
        yield name, np.asarray(values, dtype=np.float64)


def _at_zero(values: Values) -> float:
    return float((values == 0.0).mean())


def plot_queries(outcome: MeasuredSuite, path: Path) -> None:
    """A panel for each collection, a box a row over its queries, with a line at the median.

    Each row's name stands beside its share of queries at zero. Raises MissingExtraError without matplotlib.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot") from error
    rows, names = list(outcome.suite.rows), list(outcome.suite.collections)
    held = {row: dict(_by_collection(outcome, row)) for row in rows}
    figure = Figure(figsize=((1.5 + 0.9 * len(rows)) * len(names), 4), layout="constrained")
    panels = figure.subplots(1, len(names), sharey=True, squeeze=False)[0]
    for axes, name in zip(panels, names, strict=True):
        values = [held[row][name] for row in rows]
        axes.boxplot(values, widths=0.6)
        labels = [f"{row}\n{_at_zero(own):.0%} at zero" for row, own in zip(rows, values, strict=True)]
        axes.set_xticks(range(1, len(rows) + 1), labels, rotation=30, ha="right", parse_math=False)
        axes.set_title(name, fontsize=10, parse_math=False)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"{outcome.suite.top.measure} by query")
    figure.savefig(path, dpi=150)
