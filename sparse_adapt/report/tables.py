"""A result as a table for people (Rich), for programs (JSON) or for a page (Markdown).

Tokens, terms and paths are data, never markup: Rich would delete `[unused12]` from a plain string, so every
cell becomes a `Text` and every Markdown cell is escaped. Control signs are spelt out.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Literal

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table as RichTable
from rich.text import Text

from sparse_adapt.report.printable import printable_line

Cell = str | int | float | bool | None
Row = Mapping[str, Cell]
Kind = Literal["text", "token", "number", "share"]

NOTHING = "-"
WORDS = ("text", "token")  # kinds whose cells may be broken
WORD = 12  # signs of a word that stay together where a table is too wide
BETWEEN = 2  # spaces between columns
WIDEST = 1_000
EIGHTHS = " ▏▎▍▌▋▊▉"
GOOD, BAD, QUIET, LOUD, TOKEN = "green", "red", "bright_black", "bold", "cyan"
P_VALUE_NOTE = "p: paired randomisation test, two-sided, with Holm's correction over the tests of this table"
MARKDOWN_SIGNS = str.maketrans({sign: f"\\{sign}" for sign in "\\|*_<>[]#~$"} | {"`": "&#96;", "\n": " "})


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


# -- three ways to read a table ---------------------------------------------------------------


def to_rich(table: Table, bar_width: int = 16) -> "Fitted":
    """For a terminal of any width: numbers to the right, colours for signs and tokens, nothing cut."""
    return Fitted(table, bar_width)


class Fitted:
    """A table as wide as the terminal allows.

    Where it is too wide, bars are left out and headings broken; where that isn't enough, each row is a list.
    """

    def __init__(self, table: Table, bar_width: int) -> None:
        self.table, self.bar_width = table, bar_width
        self.cells = [[styled(row.get(column.key), column) for column in table.columns] for row in table.rows]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The widest of the ways that fits."""
        width = options.max_width
        whole = self._rich(bars=True)
        if Measurement.get(console, options.update(width=WIDEST), whole).maximum <= width:
            yield whole
        elif self._least() <= width:
            yield self._rich(bars=False)
        else:
            yield from self._lists()

    def _least(self) -> int:
        """The narrowest that columns may become: numbers whole, words broken where they are long."""
        widths = [self._width(number, column) for number, column in enumerate(self.table.columns)]
        return sum(widths) + BETWEEN * (len(widths) - 1)

    def _width(self, number: int, column: Column) -> int:
        cells = [row[number].cell_len for row in self.cells]
        words = [cell_len(word) for word in printable_line(column.heading).split()]
        if column.kind in WORDS:
            return max([*(min(cell, WORD) for cell in cells), *words], default=0)
        return max([*cells, *words], default=0)

    def _rich(self, *, bars: bool) -> RichTable:
        """As a table; without bars its headings are as narrow as its numbers."""
        rich = RichTable(
            title=_line(self.table.title, LOUD),
            caption=_line(self.table.note, QUIET),
            title_justify="left",
            caption_justify="left",
            box=box.SIMPLE_HEAD,
            pad_edge=False,
            show_edge=False,
        )
        for number, column in enumerate(self.table.columns):
            words, width = column.kind in WORDS, self._width(number, column)
            heading = printable_line(column.heading)
            rich.add_column(
                Text(heading if bars else fill(heading, width, break_long_words=False)),
                justify="left" if words else "right",
                overflow="fold",
                no_wrap=column.kind == "token" if bars else not words,
                min_width=None if bars else width,
            )
            if column.bar and bars:
                rich.add_column(Text(""), no_wrap=True)
        for row, cells in zip(self.table.rows, self.cells, strict=True):
            rich.add_row(*(self._with_bars(row, cells) if bars else cells))
        return rich

    def _with_bars(self, row: Row, cells: Sequence[Text]) -> Iterator[Text]:
        for column, cell in zip(self.table.columns, cells, strict=True):
            yield cell
            if column.bar:
                largest = _largest(self.table, column)
                yield bar(_number(row.get(column.key)), largest, self.bar_width)

    def _lists(self) -> Iterator[RenderableType]:
        """Each row as lines of heading and cell."""
        if self.table.title:
            yield Text(printable_line(self.table.title), style=LOUD)
        for cells in self.cells:
            grid = RichTable.grid(padding=(0, BETWEEN))
            grid.add_column(overflow="fold")
            grid.add_column(overflow="fold")
            for column, cell in zip(self.table.columns, cells, strict=True):
                grid.add_row(Text(printable_line(column.heading), style=QUIET), cell)
            yield grid
            yield Text("")
        if self.table.note:
            yield Text(printable_line(self.table.note), style=QUIET)


def _line(text: str, style: str) -> Text | None:
    return Text(printable_line(text), style=style) if text else None


def to_json(table: Table) -> list[dict[str, Any]]:
    """For a program: every field of every row, numbers in full."""
    return [dict(row) for row in table.rows]


def to_markdown(table: Table) -> str:
    """For a page: a pipe table that ends with a newline."""
    lines = [[column.heading.translate(MARKDOWN_SIGNS) for column in table.columns]]
    lines.append(["---" if column.kind in WORDS else "---:" for column in table.columns])
    lines += [[_markdown_cell(row.get(column.key), column) for column in table.columns] for row in table.rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


# -- cells ------------------------------------------------------------------------------------


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


def styled(value: Cell, column: Column) -> Text:
    """The same as a `Text`: never markup, coloured by what it says."""
    return Text(printable_line(formatted(value, column)), style=_style(value, column))


def bar(value: float, largest: float, width: int = 16, style: str = TOKEN) -> Text:
    """A horizontal bar, `width` characters long for `largest`, drawn in eighths; none for 0 and below."""
    if largest <= 0 or value <= 0:
        return Text("")
    eighths = max(1, round(8 * width * min(1.0, value / largest)))
    return Text("█" * (eighths // 8) + EIGHTHS[eighths % 8].strip(), style=style)


def _style(value: Cell, column: Column) -> str:
    if value is None:
        return QUIET
    if column.kind == "token":
        return TOKEN
    if isinstance(value, float) and column.signed and value:
        return GOOD if value > 0 else BAD
    return ""


def _number(value: Cell) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _largest(table: Table, column: Column) -> float:
    return max((_number(row.get(column.key)) for row in table.rows), default=0.0)


def _markdown_cell(value: Cell, column: Column) -> str:
    text = formatted(value, column)
    if column.kind != "token" or value is None:
        return text.translate(MARKDOWN_SIGNS)
    return f"<code>{text.translate(MARKDOWN_SIGNS)}</code>"


# -- the table of an evaluation ---------------------------------------------------------------


def tabulate_evaluation(evaluation: Mapping[str, Any], title: str = "") -> Table:
    """Rows of measures from `evaluate.evaluation`: over all queries, then of each kind, then what a model keeps."""
    groups = {"": evaluation, **evaluation.get("kinds", {}), **evaluation.get("keeps", {})}
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


def _measure_row(group: Mapping[str, Any], measure: str) -> dict[str, Cell]:
    names = ("model", "baseline", "difference", "p_value", "adjusted")
    return {name: group[name][measure] for name in names if name in group}
