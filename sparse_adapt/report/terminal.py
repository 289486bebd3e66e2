"""Sections on a terminal of any width: numbers to the right, colours for signs and tokens, nothing cut.

Every token, term and path becomes a `Text`: Rich would take a plain string for markup, and delete `[unused12]`.
Control signs are spelt out. Pictures and forms are left out, and so are sections of detail.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import fill

from rich import box
from rich.cells import cell_len
from rich.columns import Columns
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from sparse_adapt.report.printable import printable_line
from sparse_adapt.report.sections import (
    HERE,
    Bar,
    BarList,
    Beside,
    CommandText,
    Facts,
    Fold,
    Heat,
    Listing,
    Part,
    Prose,
    Ranking,
    Rankings,
    Section,
    TableRows,
    Tone,
    Warm,
)
from sparse_adapt.report.tables import WORDS, Cell, Column, Row, Table, cell, formatted

WORD = 12  # signs of a word that stay together where a table is too wide
BETWEEN = 2  # spaces between columns
WIDEST = 1_000
INDENT = 3  # of a section below its heading
BAR_WIDTH = 24
EIGHTHS = " ▏▎▍▌▋▊▉"
EQUATION_WIDTH = 36
GOOD, BAD, QUIET, LOUD, TOKEN, NEW, WARM = "green", "red", "bright_black", "bold", "cyan", "magenta", "yellow"
STYLES: dict[Tone, str] = {"": "", "good": GOOD, "bad": BAD, "quiet": QUIET, "title": LOUD}
SHELL_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|\S)+""")


def rendered(sections: Sequence[Section]) -> RenderableType:
    """The sections, each below its heading, where it has one; empty lines between them."""
    lines: list[RenderableType] = []
    for section in sections:
        if section.detail:
            continue
        lines += [Text("")] if lines else []
        body = Group(*_below(([Prose(section.lead, "quiet")] if section.lead else []), section.parts))
        if section.title:
            heading = Text(printable_line(section.title), style=LOUD)
            lines += [
                Rule(heading, align="left", style=QUIET),
                Padding(body, (0, 0, 0, INDENT), expand=False),
            ]
        else:
            lines.append(body)
    return Group(*lines)


def _below(*several: Sequence[Part]) -> Iterator[RenderableType]:
    """Parts one below the other, with an empty line before each that is a block of its own."""
    for number, part in enumerate(part for parts in several for part in parts):
        if number and (
            isinstance(part, Heat | BarList) or (isinstance(part, TableRows) and part.table.title)
        ):
            yield Text("")
        yield from _shown(part)


def _shown(part: Part) -> Iterator[RenderableType]:
    match part:
        case Prose(text, tone):
            yield Text(text, style=STYLES[tone])
        case Listing(lines):
            yield from (Text(f"- {line.text}", style=STYLES[line.tone]) for line in lines)
        case Facts():
            yield Grid(
                [(Text(name, STYLES[tone] or QUIET), Text(value)) for name, value, tone in part.toned()]
            )
        case TableRows(table):
            yield to_rich(table)
        case CommandText(text):
            yield CommandLine(text)
        case Heat() | BarList():
            yield from _drawn(part)
        case _:
            yield from _nested(part)


def _drawn(part: Heat | BarList) -> Iterator[RenderableType]:
    """Tokens or bars between a title and a note."""
    yield from _quiet(part.title)
    if isinstance(part, Heat):
        yield Columns([_position(token) for token in part.tokens], padding=(0, BETWEEN), equal=True)
    else:
        yield _sum(part.bars, part.total) if part.total else _bars(part.bars)
    yield from _quiet(part.note)


def _nested(part: Part) -> Iterator[RenderableType]:
    """Parts within a part; nothing of a picture or a form."""
    match part:
        case Rankings(each):
            for ranking in each:
                yield from _ranking(ranking)
        case Beside(parts):
            yield from _below(parts)
        case Fold(summary, parts):
            yield Text(summary, style=LOUD)
            yield Padding(Group(*_below(parts)), (0, 0, 0, INDENT), expand=False)


def _quiet(text: str) -> Iterator[RenderableType]:
    if text:
        yield Text(text, style=QUIET)


def _ranking(ranking: Ranking) -> Iterator[RenderableType]:
    """The documents of a ranking, each with the tokens that it shares with the query."""
    if ranking.name:
        yield Text(ranking.name, style=LOUD)
    yield from _quiet(ranking.note)
    for document in ranking.documents:
        yield Text(f"{document.name}  {document.title}  {document.score}")
        yield from _shown(document.shared)


def _position(token: Warm) -> Text:
    """One token of a text with its figure, marked where it counts."""
    heat = QUIET if token.warmth <= 0 else WARM if token.warmth < 0.5 else GOOD
    place = "" if token.place is None else f"{token.place} "
    shown = (token.text, f"{heat} bold underline" if token.marked else heat)
    mark = f" {HERE}" if token.marked else ""
    return Text.assemble((place, QUIET), shown, (f" {token.figure}".rstrip(), heat), (mark, LOUD))


def _style(one: Bar) -> str:
    return NEW if one.new else TOKEN


def _bars(bars: Sequence[Bar]) -> "Grid":
    """A row for each bar: its rank where there is one, its name, figure, bar and note."""
    ranked = any(one.rank is not None for one in bars)
    rows: list[Sequence[str | Text]] = []
    for one in bars:
        rank = [Text(f"{one.rank or '':>2}", style=QUIET)] if ranked else []
        named, drawn = Text(one.name, style=_style(one)), bar(one.share, 1.0, BAR_WIDTH, _style(one))
        note = Text(one.note, style=LOUD if one.note == HERE else QUIET)
        rows.append([*rank, named, one.figure, drawn, note])
    return Grid(rows, bars=3 if ranked else 2)


def _sum(bars: Sequence[Bar], total: str) -> "Grid":
    """Bars as an equation: each figure with the product that makes it, or with its name alone; then their sum."""
    rows: list[Sequence[str | Text]] = []
    for one in bars:
        named = Text(one.name, style=QUIET)
        if one.product:
            named = Text.assemble("'", (one.name, _style(one)), f"' ({one.product})")
        drawn = bar(one.share, 1.0, BAR_WIDTH, _style(one))
        rows.append((f"{one.figure} =", named, drawn, Text(one.note, style=QUIET)))
    rows.append((Text(f"{total} =", style=LOUD), Text("score", style=LOUD)))
    return Grid(rows, bars=2, least=(8, EQUATION_WIDTH, BAR_WIDTH), between=1, numbers=True)


class CommandLine:
    """A command line that can be copied whole: one too long for the terminal goes on after a backslash.

    Several lines, such as those of a file, stay as they are.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lines broken between the shell's words only, never inside a quoted path or any other word."""
        several = self.text.split("\n")
        lines = several if several[1:] else self._broken(options.max_width)
        for line in lines:
            yield Text(f"  {line}", style=GOOD, no_wrap=True, overflow="ignore")

    def _broken(self, width: int) -> list[str]:
        """The line in parts, of which all but the last end in a backslash and all but the first are set in."""
        lines = [""]
        for word in SHELL_WORD.findall(self.text):
            if lines[-1] and len(lines[-1]) + len(word) > width - 7:
                lines.append("")
            lines[-1] += f" {word}" if lines[-1] else word
        first, *others = [f"{line} \\" for line in lines[:-1]] + lines[-1:]
        return [first, *(f"  {line}" for line in others)]


@dataclass(frozen=True)
class Grid:
    """Cells in columns, nothing cut: too wide for the terminal, bars are left out, and then words are broken.

    `bars` is the column of bars; `least` are the widths that columns have where there is room.
    """

    rows: Sequence[Sequence[str | Text]]
    bars: int | None = None
    least: Sequence[int] = ()
    between: int = BETWEEN
    numbers: bool = False  # in the first column

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """With bars where these fit."""
        whole = self._grid(bars=True)
        fits = Measurement.get(console, options.update(width=WIDEST), whole).maximum <= options.max_width
        yield whole if fits else self._grid(bars=False)

    def _grid(self, *, bars: bool) -> RichTable:
        grid = RichTable.grid(padding=(0, self.between))
        columns = [
            place for place in range(max(map(len, self.rows), default=0)) if bars or place != self.bars
        ]
        for place in columns:
            least = self.least[place] if bars and place < len(self.least) else None
            number = self.numbers and place == 0
            grid.add_column(
                overflow="fold", min_width=least, justify="right" if number else "left", no_wrap=number
            )
        for row in self.rows:
            grid.add_row(*(row[place] for place in columns if place < len(row)))
        return grid


# -- tables -----------------------------------------------------------------------------------


def to_rich(table: Table, bar_width: int = 16) -> "Fitted":
    """A table for a terminal of any width."""
    return Fitted(table, bar_width)


class Fitted:
    """A table as wide as the terminal allows.

    Where it is too wide, bars are left out and headings broken; where that isn't enough, each row is a list.
    """

    def __init__(self, table: Table, bar_width: int) -> None:
        self.table, self.bar_width = table, bar_width
        self.cells = [[_styled(cell(row, column), column) for column in table.columns] for row in table.rows]

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
        for column, text in zip(self.table.columns, cells, strict=True):
            yield text
            if column.bar:
                largest = _largest(self.table, column)
                yield bar(_number(cell(row, column)), largest, self.bar_width)

    def _lists(self) -> Iterator[RenderableType]:
        """Each row as lines of heading and cell."""
        if self.table.title:
            yield Text(printable_line(self.table.title), style=LOUD)
        for cells in self.cells:
            grid = RichTable.grid(padding=(0, BETWEEN))
            grid.add_column(overflow="fold")
            grid.add_column(overflow="fold")
            for column, text in zip(self.table.columns, cells, strict=True):
                grid.add_row(Text(printable_line(column.heading), style=QUIET), text)
            yield grid
            yield Text("")
        if self.table.note:
            yield Text(printable_line(self.table.note), style=QUIET)


def _line(text: str, style: str) -> Text | None:
    return Text(printable_line(text), style=style) if text else None


def _styled(value: Cell, column: Column) -> Text:
    """A cell as a `Text`: never markup, coloured by what it says."""
    return Text(printable_line(formatted(value, column)), style=_cell_style(value, column))


def bar(value: float, largest: float, width: int = 16, style: str = TOKEN) -> Text:
    """A horizontal bar, `width` characters long for `largest`, drawn in eighths; none for 0 and below."""
    if largest <= 0 or value <= 0:
        return Text("")
    eighths = max(1, round(8 * width * min(1.0, value / largest)))
    return Text("█" * (eighths // 8) + EIGHTHS[eighths % 8].strip(), style=style)


def _cell_style(value: Cell, column: Column) -> str:
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
    return max((_number(cell(row, column)) for row in table.rows), default=0.0)
