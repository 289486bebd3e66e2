"""A run carried out for each value of a setting, and what each value brings: `run --vary`."""

from pathlib import Path
from typing import Literal

from sparse_adapt.files.place import Place
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.plugins.research.vary import Varied, expected_seconds, read_variation, vary
from sparse_adapt.report.messages import say
from sparse_adapt.report.progress import duration, progress_bars
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Column, Row, Table

CHANGES = "Change against the plan's own value"


def varied(plan: Plan, values: str, place: Place, progress: bool | None) -> Result:
    """A plan carried out for each value of a setting. What it may take is said first."""
    variation = read_variation(values, plan)
    shared = plan.stages[: plan.stages.index(variation.stage)]
    message = f"{variation.setting} with {len(variation.values)} values, the first the plan's own"
    message += f"; {', '.join(shared)} once" if shared else ""
    say(f"{message}; in all about {duration(expected_seconds(plan, variation))}")
    with progress_bars(progress) as bars:
        return shown(place.folder, vary(plan, variation, place, bars))


def shown(folder: Path, record: Varied) -> Result:
    """The figures of each value and their changes against the plan's own value, which comes first, as tables."""
    from sparse_adapt.report.charts import lines

    headline = f"{record['setting']} = {', '.join(record['values'])}"
    rows: list[Row] = [
        {"value": row["value"], "measure": name, "figure": figure, "change": row["change"].get(name)}
        for row in record["rows"]
        for name, figure in row["measures"].items()
    ]
    title = f"{CHANGES}, over the values of {record['setting']}"
    order = [row["value"] for row in record["rows"]]
    picture = lines(CHANGES, rows, "value", "change", "measure", order=order, description=title)
    return Result(
        headline,
        dict(record),
        [_table(record, "measures", ""), _table(record, "change", CHANGES, signed=True), picture],
        [(folder, f"a folder for each of {len(record['rows'])} values, and vary.json")],
        rows=rows,
    )


def _table(record: Varied, key: Literal["measures", "change"], title: str, *, signed: bool = False) -> Table:
    """A row for each measure, a column for each value."""
    rows = record["rows"]
    names = list(dict.fromkeys(name for row in rows for name in row[key]))
    columns = [
        Column(str(place), row["value"] if place else f"{row['value']} (own)", decimals=3, signed=signed)
        for place, row in enumerate(rows)
    ]
    cells: list[Row] = [
        {"measure": name, **{str(place): row[key].get(name) for place, row in enumerate(rows)}}
        for name in names
    ]
    return Table(title, (Column("measure", record["setting"], "text"), *columns), cells)
