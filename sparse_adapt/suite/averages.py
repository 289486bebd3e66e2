"""Each row of a suite over all of its collections: the average, the queries that found nothing, and the spread."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.errors import MissingExtraError
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.suite.measure import MeasuredSuite


def averages_table(outcome: MeasuredSuite) -> Table:
    """The mean of each row's measure over the collections, and the share of all queries at zero.

    Without rows where there is one collection.
    """
    suite, rows = outcome.suite, list[Row]()
    for row in suite.rows if len(suite.collections) > 1 else ():
        means = [outcome.at(row, name).measured.means[suite.top.measure] for name in suite.collections]
        values = of_every_query(outcome, row)
        rows.append({"row": row, "average": float(np.mean(means)), "at_zero": float((values == 0.0).mean())})
    columns = (
        Column("row", "", "text"),
        Column("average", suite.top.measure, decimals=3),
        Column("at_zero", "queries at zero", "share", decimals=1),
    )
    title = f"Average of {len(suite.collections)} collections"
    return Table(title, columns, rows, "each collection counts as much as another, each query too at zero")


def of_every_query(outcome: MeasuredSuite, row: str) -> NDArray[np.float64]:
    """A row's measure on the queries of all collections, one after the other."""
    suite = outcome.suite
    held = [outcome.at(row, name).measured.values[suite.top.measure] for name in suite.collections]
    return np.concatenate([np.asarray(values, dtype=np.float64) for values in held])


def plot_queries(outcome: MeasuredSuite, path: Path) -> None:
    """A box a row over all queries, with a line at the median. Raises MissingExtraError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot") from error
    rows = list(outcome.suite.rows)
    figure = Figure(figsize=(2 + 0.9 * len(rows), 4), layout="constrained")
    axes = figure.add_subplot()
    axes.boxplot([of_every_query(outcome, row) for row in rows], widths=0.6)
    axes.set_xticks(range(1, len(rows) + 1), rows, rotation=30, ha="right", parse_math=False)
    axes.set_ylabel(f"{outcome.suite.top.measure} by query")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
