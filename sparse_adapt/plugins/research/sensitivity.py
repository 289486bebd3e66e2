"""A run carried out for each value of a setting, and what each value brings: `run --vary`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sparse_adapt.api.results import After, CommandResult
from sparse_adapt.files.place import Place
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.plugins.research.vary import Varied, expected_seconds, read_variation, vary
from sparse_adapt.report.messages import say
from sparse_adapt.report.progress import duration, progress_bars
from sparse_adapt.report.sections import Picture, Section, untitled
from sparse_adapt.report.tables import Column, Row, Table

CHANGES = "Change against the plan's own value"


def varied(plan: Plan, values: str, place: Place, progress: bool | None) -> "Sensitivity":
    """A plan carried out for each value of a setting. What it may take is said first."""
    variation = read_variation(values, plan)
    shared = plan.stages[: plan.stages.index(variation.stage)]
    message = f"{variation.setting} with {len(variation.values)} values, the first the plan's own"
    message += f"; {', '.join(shared)} once" if shared else ""
    say(f"{message}; in all about {duration(expected_seconds(plan, variation))}")
    with progress_bars(progress) as bars:
        return Sensitivity(place.folder, vary(plan, variation, place, bars))


@dataclass(frozen=True, repr=False)
class Sensitivity(CommandResult):
    """What each value of a setting brings, and its change against the plan's own value, which comes first."""

    folder: Path
    record: Varied

    @property
    def headline(self) -> str:
        """The setting and its values."""
        return f"{self.record['setting']} = {', '.join(self.record['values'])}"

    def to_dict(self) -> dict[str, object]:
        """The setting, its values and the measures of each."""
        return dict(self.record)

    def rows(self) -> Sequence[Row]:
        """A row for each value and measure."""
        return [
            {"value": row["value"], "measure": name, "figure": figure, "change": row["change"].get(name)}
            for row in self.record["rows"]
            for name, figure in row["measures"].items()
        ]

    def sections(self) -> Sequence[Section]:
        """A table of figures, one of changes, and a picture of these."""
        return untitled(
            self._table("measures", "", 3), self._table("change", CHANGES, 3, signed=True), self._lines()
        )

    def _table(
        self, key: Literal["measures", "change"], title: str, decimals: int, *, signed: bool = False
    ) -> Table:
        """A row for each measure, a column for each value."""
        rows = self.record["rows"]
        names = list(dict.fromkeys(name for row in rows for name in row[key]))
        columns = [
            Column(
                str(place),
                row["value"] if place else f"{row['value']} (own)",
                decimals=decimals,
                signed=signed,
            )
            for place, row in enumerate(rows)
        ]
        cells: list[Row] = [
            {"measure": name, **{str(place): row[key].get(name) for place, row in enumerate(rows)}}
            for name in names
        ]
        return Table(title, (Column("measure", self.record["setting"], "text"), *columns), cells)

    def _lines(self) -> Picture:
        """The change of each measure over the values."""
        from sparse_adapt.report.charts import lines

        order = [row["value"] for row in self.record["rows"]]
        title = f"{CHANGES}, over the values of {self.record['setting']}"
        return lines(CHANGES, self.rows(), "value", "change", "measure", order=order, description=title)

    def after(self) -> After:
        """What was written."""
        contents = f"a folder for each of {len(self.record['rows'])} values, and vary.json"
        return After(wrote=[(self.folder, contents)], title=self.headline)
