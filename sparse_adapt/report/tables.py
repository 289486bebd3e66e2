"""A table as data: rows under columns, and its cells in characters; for programs (JSON) or a text (Markdown).

Tokens, terms and paths are data, never markup: every Markdown cell is escaped. `terminal` and `html` show tables too.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any, Literal, TypedDict, cast, get_args

Cell = str | int | float | bool | None
Row = Mapping[str, object]
Kind = Literal["text", "token", "number", "share"]
Figures = dict[str, float]
Part = Literal["model", "baseline", "difference", "p_value", "adjusted"]

NOTHING = "-"
WORDS = ("text", "token")  # kinds whose cells may be broken
P_VALUE_NOTE = "p: paired randomisation test, two-sided, with Holm's correction over the tests of this table"
MARKDOWN_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\|*_<>[]#~$"} | {"`": "&#96;", "\n": " "})
LATEX_SIGNS = str.maketrans(
    {sign: f"\\{sign}" for sign in "#$%&_{}"}
    | {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\n": " "}
)


@dataclass(frozen=True, slots=True)
class Column:
    """What one field of the rows is, and how it reads.

    A share is between 0 and 1 and reads as a percentage; JSON keeps it as it is. `decimals` are for numbers
    that have some: counts stay whole. `bar` draws each number as a part of the column's largest.
    """

    key: str
    title: str
    kind: Kind = "number"
    unit: str = ""
    decimals: int = 0
    signed: bool = False
    bar: bool = False

    @property
    def heading(self) -> str:
        """Title with its unit: `time (s)`."""
        return f"{self.title} ({self.unit})" if self.unit else self.title


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns. A field that no column names goes into JSON only."""

    title: str
    columns: tuple[Column, ...]
    rows: Sequence[Row]
    note: str = ""


def to_json(table: Table) -> list[dict[str, object]]:
    """For a program: every field of every row, numbers in full."""
    return [dict(row) for row in table.rows]


def to_markdown(table: Table) -> str:
    """For a page: a pipe table that ends with a newline."""
    lines = [[column.heading.translate(MARKDOWN_SIGNS) for column in table.columns]]
    lines.append(["---" if column.kind in WORDS else "---:" for column in table.columns])
    lines += [[_markdown_cell(cell(row, column), column) for column in table.columns] for row in table.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def to_csv(table: Table) -> str:
    """For another program: the columns with their headings, numbers in full, nothing where a cell is empty."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(column.heading for column in table.columns)
    writer.writerows([cell(row, column) for column in table.columns] for row in table.rows)
    return text.getvalue()


def to_latex(table: Table) -> str:
    """For a paper: a `tabular` with the rules of the package booktabs, its note as a comment."""
    columns = "".join("l" if column.kind in WORDS else "r" for column in table.columns)
    lines = [[column.heading.translate(LATEX_SIGNS) for column in table.columns]]
    lines += [[_latex_cell(cell(row, column), column) for column in table.columns] for row in table.rows]
    first, *others = (f"{' & '.join(line)} \\\\" for line in lines)
    rows = "\n".join(["\\toprule", first, "\\midrule", *others, "\\bottomrule"])
    notes = "".join(f"% {each}\n" for each in (table.title, table.note) if each)
    return f"{notes}\\begin{{tabular}}{{{columns}}}\n{rows}\n\\end{{tabular}}\n"


# -- cells ------------------------------------------------------------------------------------


def cell(row: Row, column: Column) -> Cell:
    """What a row has in a column: a word or a number, where fields that no column names may be anything."""
    return cast("Cell", row.get(column.key))


def formatted(value: Cell, column: Column) -> str:
    """One cell as plain characters: thousands separated, decimals and sign as the column says."""
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    sign = "+" if column.signed else ""
    if column.kind == "share":
        return percentage(value, column.decimals, sign)
    return f"{value:{sign},d}" if isinstance(value, int) else f"{value:{sign},.{column.decimals}f}"


def percentage(share: float, decimals: int = 1, sign: str = "") -> str:
    """A share from 0 to 1 as a percentage."""
    return f"{100 * share:{sign},.{decimals}f} %"


def _latex_cell(value: Cell, column: Column) -> str:
    text = formatted(value, column).translate(LATEX_SIGNS)
    return text if column.kind in WORDS or value is None else text.replace("-", "$-$").replace("+", "$+$")


def _markdown_cell(value: Cell, column: Column) -> str:
    text = formatted(value, column)
    if column.kind != "token" or value is None:
        return text.translate(MARKDOWN_SIGNS)
    return f"<code>{text.translate(MARKDOWN_SIGNS)}</code>"


# -- the table of an evaluation ---------------------------------------------------------------

PARTS: tuple[Part, ...] = get_args(Part)


class ComparedFigures(TypedDict, total=False):
    """Means of each measure; beside a baseline its means, the differences, and p-values without and with correction."""

    model: Figures
    baseline: Figures
    difference: Figures
    p_value: Figures
    adjusted: Figures


class Retained(ComparedFigures, total=False):
    """What a model keeps, by queries of one kind; of the general ones each row of `selection.general` as well.

    low, high: the 95 % interval of the difference.
    """

    queries: int
    low: Figures
    high: Figures
    rows: list[dict[str, Any]]


class Evaluated(ComparedFigures, total=False):
    """What `sparse-adapt evaluate --json` prints: means, then those of each kind of query, then each query's.

    Of a query: its id and kind, each model's measures, and what it ranks best.
    """

    kinds: dict[str, ComparedFigures]
    queries: list[dict[str, Any]]
    count: dict[str, int]
    retention: dict[str, Retained]


def tabulate_evaluation(evaluation: Evaluated, title: str = "") -> Table:
    """Rows of measures from `evaluate.evaluation`: over all queries, then of each kind, then what a model keeps."""
    groups: dict[str, ComparedFigures] = {
        "": evaluation,
        **evaluation.get("kinds", {}),
        **evaluation.get("retention", {}),
    }
    compared = "baseline" in evaluation
    columns = [Column("kind", "queries", "text")] if len(groups) > 1 else []
    columns += [Column("measure", "measure", "text"), Column("model", "model", decimals=3)]
    if compared:
        columns += [
            Column("baseline", "baseline", decimals=3),
            Column("difference", "difference", decimals=3, signed=True),
            Column("adjusted", "p", decimals=4),
        ]
    rows = [
        {"kind": kind or "all", "measure": measure, **_measure_row(group, measure)}
        for kind, group in groups.items()
        for measure in group["model"]
    ]
    return Table(title, tuple(columns), rows, P_VALUE_NOTE if compared else "")


def _measure_row(group: ComparedFigures, measure: str) -> dict[str, Cell]:
    return {name: group[name].get(measure) for name in PARTS if name in group}
