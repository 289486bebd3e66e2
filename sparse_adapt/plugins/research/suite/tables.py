"""A measured suite as tables, as one JSON object, as a page and as a plot."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np

from sparse_adapt.errors import MissingExtraError
from sparse_adapt.files.folders import write_json, write_text
from sparse_adapt.files.writing import write_bytes
from sparse_adapt.plugins.research.drawing import empty_figure, markdown_of
from sparse_adapt.plugins.research.suite.measure import MeasuredSuite
from sparse_adapt.registry import registry
from sparse_adapt.report.charts import intervals
from sparse_adapt.report.sections import Picture
from sparse_adapt.report.tables import Column, Row, Table, to_latex
from sparse_adapt.retrieve.evaluate import MEASURES
from sparse_adapt.retrieve.significance import Values, interval

SHOWN = tuple(name for name in MEASURES if not name.startswith("p@"))  # a terminal has room for; JSON has all
NOTE = "difference: to {baseline} in {measure}, 95 % of resamples; p: randomisation test, Holm over {tests} tests"
QUERIES_PICTURE = "suite-queries.png"
SPREAD = "; spread: standard deviation of {measure} over the models of a row"


def measures_table(outcome: MeasuredSuite, collection: str) -> Table:
    """Every row's measures on one collection, beside the baseline."""
    suite = outcome.suite
    columns = [Column("row", "", "text"), *(Column(name, name, decimals=3) for name in SHOWN)]
    if len(suite.rows) > 1:
        columns += [
            Column("difference", "difference", decimals=3, signed=True),
            Column("low", "from", decimals=3, signed=True),
            Column("high", "to", decimals=3, signed=True),
            Column("p", "p", decimals=4),
        ]
    place = suite.collections[collection]
    if any(outcome.at(row, collection).spread is not None for row in suite.rows):
        columns.append(Column("spread", "spread", decimals=3))
    if place.control:
        columns.append(Column("control", f"loses at most {place.loses_at_most:g}", "text"))
    queries = len(outcome.at(suite.top.baseline, collection).measured.query_ids)
    title = f"{collection}: {queries} queries of {suite.split(collection)}" + (
        ", control" if place.control else ""
    )
    tests = len(outcome.differences)
    note = NOTE.format(baseline=suite.top.baseline, measure=suite.top.measure, tests=tests) if tests else ""
    if any(column.key == "spread" for column in columns):
        note += SPREAD.format(measure=suite.top.measure)
    return Table(title, tuple(columns), [_measures(outcome, row, collection) for row in suite.rows], note)


def kinds_table(outcome: MeasuredSuite, collection: str) -> Table:
    """Every row's measure on each kind of query that a collection names."""
    kinds, measure = outcome.kinds[collection], outcome.suite.top.measure
    named = [kind for kind in dict.fromkeys(kinds) if kind]
    rows: list[Row] = []
    for row in outcome.suite.rows if named else ():
        values = outcome.at(row, collection).measured.values[measure]
        chosen = {kind: values[[each == kind for each in kinds]] for kind in named}
        rows.append({"row": row, **{kind: float(of_kind.mean()) for kind, of_kind in chosen.items()}})
    columns = (
        Column("row", "", "text"),
        *(Column(kind, f"{kind} ({kinds.count(kind)})", decimals=3) for kind in named),
    )
    return Table(
        f"{collection}: {measure} by kind of query", columns, rows, "in brackets: queries of the kind"
    )


def _measures(outcome: MeasuredSuite, row: str, collection: str) -> Row:
    reached = outcome.at(row, collection)
    cells: dict[str, object] = {"row": row, **reached.measured.means, "spread": reached.spread}
    for each in outcome.differences:
        if (each.row, each.collection) == (row, collection):
            cells |= {"difference": each.value.value, "low": each.value.low, "high": each.value.high}
            cells |= {"p": each.adjusted, "p_value": each.p_value}
            cells |= {"control": None if each.holds is None else "holds" if each.holds else "LOSES MORE"}
    return cells


def costs_table(outcome: MeasuredSuite) -> Table:
    """What every sparse row's vectors cost, and what is known of its training."""
    columns = (
        Column("collection", "collection", "text"),
        Column("row", "", "text"),
        Column("nonzero_document", "non-zeros a document", decimals=1),
        Column("nonzero_query", "a query", decimals=1),
        Column("flops", "FLOPS", decimals=3),
        Column("longest_list", "longest list"),
        Column("training_seconds", "training", unit="s"),
        Column("peak_memory", "peak memory", unit="MB"),
    )
    rows: list[Row] = []
    for each in outcome.reached:
        if each.costs is not None:
            known = outcome.training.get(each.row)
            memory = None if known is None or known.peak_memory is None else known.peak_memory / 1e6
            rows.append(
                {
                    "collection": each.collection,
                    "row": each.row,
                    **each.costs._asdict(),
                    "training_seconds": None if known is None else known.seconds,
                    "peak_memory": memory,
                }
            )
    return Table("Costs", columns, rows, "FLOPS: products an average query takes with an average document")


def recovery_table(outcome: MeasuredSuite) -> Table:
    """How much of the loss to coined terms each row brings back."""
    columns = (
        Column("collection", "collection", "text"),
        Column("row", "", "text"),
        Column("queries", "queries"),
        Column("floor", "floor", decimals=3),
        Column("reached", "reached", decimals=3),
        Column("ceiling", "ceiling", decimals=3),
        Column("recovery", "recovery", "share"),
        Column("low", "from", "share"),
        Column("high", "to", "share"),
    )
    rows: list[Row] = []
    for (row, collection), recovery in outcome.recoveries.items():
        numbers = {
            "queries": recovery.queries,
            "floor": recovery.floor,
            "reached": recovery.adapted,
            "ceiling": recovery.ceiling,
        }
        rows.append({"collection": collection, "row": row, **numbers, **recovery.share()})
    note = "queries that carried a coined word; floor and ceiling: the baseline, on coined and original documents"
    return Table("Coined terms", columns, rows, note)


def changes_table(outcome: MeasuredSuite, collection: str) -> Table:
    """The queries that gained and lost most, and the shared tokens that did it."""
    columns = (
        Column("row", "", "text"),
        Column("query", "query", "text"),
        Column("before", outcome.suite.top.baseline, decimals=2),
        Column("after", "row", decimals=2),
        Column("document_id", "document", "text"),
        Column("ranks", "rank", "text"),
        Column("tokens", "by shared tokens: contribution before, after", "text"),
    )
    rows: list[Row] = [
        {
            "row": change.row,
            "query": change.query,
            "before": change.before,
            "after": change.after,
            "document_id": change.document_id,
            "ranks": f"{change.rank_before or 'none'} to {change.rank_after or 'none'}",
            "tokens": "; ".join(
                f"{each.token} {each.before:.1f}, {each.after:.1f}" for each in change.tokens
            ),
        }
        for change in outcome.changes
        if change.collection == collection
    ]
    return Table(f"{collection}: what gained and lost most", columns, rows)


# -- over all collections ----------------------------------------------------------------------------


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
    names, clusters = (
        tuple(outcome.suite.groups),
        {(each.row, each.groups): each for each in outcome.clusters},
    )
    rows: list[Row] = []
    for row in dict.fromkeys(each.row for each in outcome.clusters):
        values = {f"groups {name}": clusters[row, name].v_measure for name in names}
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
    """A row's measure on the queries of all collections, one after the other: (queries,)."""
    return np.concatenate([values for _, values in _by_collection(outcome, row)])


def _by_collection(outcome: MeasuredSuite, row: str) -> Iterator[tuple[str, Values]]:
    """Each collection, and the row's measure on its queries (queries,)."""
    for name in outcome.suite.collections:
        values = outcome.at(row, name).measured.values[outcome.suite.top.measure]
        yield name, np.asarray(values, dtype=np.float64)


def _at_zero(values: Values) -> float:
    return float((values == 0.0).mean())


# -- all of it ---------------------------------------------------------------------------------------


def suite_tables(outcome: MeasuredSuite) -> Iterator[Table]:
    """Every table of a suite that has a row."""
    for name in outcome.suite.collections:
        yield measures_table(outcome, name)
        for table in (kinds_table(outcome, name), changes_table(outcome, name)):
            if table.rows:
                yield table
    whole = (averages_table, clusters_table, costs_table, recovery_table)
    for table in (each(outcome) for each in whole):
        if table.rows:
            yield table


def suite_object(outcome: MeasuredSuite) -> dict[str, object]:
    """Every figure of a suite, for a program."""
    suite = outcome.suite
    return {
        "settings": suite.settings(),
        "results": {
            name: [
                {**_measures(outcome, row, name), "queries": len(outcome.at(row, name).measured.query_ids)}
                for row in suite.rows
            ]
            for name in suite.collections
        },
        "kinds": {name: list(kinds_table(outcome, name).rows) for name in suite.collections},
        "averages": list(averages_table(outcome).rows),
        "clusters": [each._asdict() for each in outcome.clusters],
        "costs": list(costs_table(outcome).rows),
        "recovery": list(recovery_table(outcome).rows),
        "changes": [
            {**change._asdict(), "tokens": [token._asdict() for token in change.tokens]}
            for change in outcome.changes
        ],
        "queries": {
            f"{each.collection}/{each.row}": dict(
                zip(each.measured.query_ids, each.measured.values[suite.top.measure].tolist(), strict=True)
            )
            for each in outcome.reached
        },
    }


def write_results(outcome: MeasuredSuite, folder: Path) -> None:
    """Put suite.json, suite.md, suite.tex and suite.svg into a folder, and the pictures that extras draw."""
    write_json(folder / "suite.json", suite_object(outcome))
    write_text(folder / "suite.md", markdown_of(suite_tables(outcome)))
    write_text(folder / "suite.tex", "\n".join(to_latex(table) for table in suite_tables(outcome)))
    picture = plot_suite(outcome)
    write_text(folder / "suite.svg", registry().find("renderers", "svg")(picture))
    for form in ("png", "pdf"):
        with _or_none(folder / f"suite.{form}") as path:
            write_bytes(path, registry().find("renderers", form)(picture))
    with _or_none(folder / QUERIES_PICTURE) as path:
        plot_queries(outcome, path)


@contextmanager
def _or_none(path: Path) -> Iterator[Path]:
    """A picture's place, at which there is none, nor an earlier one, without the package that draws it."""
    try:
        yield path
    except MissingExtraError:
        path.unlink(missing_ok=True)


def drawn(folder: Path) -> tuple[list[str], str]:
    """The pictures of a suite's folder, and a sentence on what draws those that it lacks."""
    extras = {"suite.svg": "", "suite.png": "pages", "suite.pdf": "pages", QUERIES_PICTURE: "plot"}
    lacking = [name for name in extras if not (folder / name).is_file()]
    needed = ",".join(dict.fromkeys(extras[name] for name in lacking))
    said = f"{', '.join(lacking)}: not drawn without pip install 'sparse-adapt[{needed}]'" if lacking else ""
    return [name for name in extras if name not in lacking], said


def plot_suite(outcome: MeasuredSuite) -> Picture:
    """Every row as a bar in every collection, with the interval of its mean over the queries."""
    suite = outcome.suite
    rows: list[Row] = []
    for name, place in suite.collections.items():
        for row in suite.rows:
            mean = interval(outcome.at(row, name).measured.values[suite.top.measure])
            group = f"{name} (control)" if place.control else name
            rows.append({"group": group, "name": row, **asdict(mean)})
    return intervals("", rows, description="", unit=suite.top.measure)


def plot_queries(outcome: MeasuredSuite, path: Path) -> None:
    """A panel for each collection, a box a row over its queries, with a line at the median.

    Each row's name stands beside its share of queries at zero. Raises MissingExtraError without matplotlib.
    """
    rows, names = list(outcome.suite.rows), list(outcome.suite.collections)
    held = {row: dict(_by_collection(outcome, row)) for row in rows}
    figure = empty_figure((1.5 + 0.9 * len(rows)) * len(names), 4)
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
