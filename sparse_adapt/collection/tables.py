"""Tables, each row under our names of its columns, wherever in a file the table begins.

A row of headings is known by the names in it, in several languages; a first row that is unlike the others, but has
none of these names, is refused, so that headings never become data. One column stands for a field in all rows. What
was taken for what is said, and what was left out; `--columns` says it otherwise.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.columns import Layout, bare_name, columns_of, is_number, taken_for
from sparse_adapt.collection.lines import JsonLine, say_taken
from sparse_adapt.collection.sheets import SAMPLE, Rows, Sheet, sheets_of
from sparse_adapt.errors import InputError

EMPTY = ("", None)
DEEPEST = 20  # rows among which the headings are looked for
FEWEST = 3  # rows below a first one that is judged by them
WORDS = 4  # of a heading, at most
MOST = 0.9
NONE: Mapping[str, str] = {}

Row = tuple[int, Sequence[object]]


class _Table(NamedTuple):
    """A table that was found: its rows, where each field stands in them, and the row of its headings if it has one."""

    sheet: Sheet
    rows: Rows
    columns: Mapping[str, int]
    width: int


def read_sheet(path: str | Path, layout: Layout, chosen: Mapping[str, str] = NONE) -> Iterator[JsonLine]:
    """Each row that isn't empty, under our names of the columns.

    Cells are texts, but for those of a data frame, which are what they are. A cell that isn't there gives no field.

    chosen: the heading of a field's column, or its number from 1 on. Raises InputError for headings that aren't
    known, for a row that has more cells than there are columns, and for quotes that don't close; ConfigError for a
    chosen column that isn't there.
    """
    sheets = sheets_of(path)  # whose file is open as long as this is held
    table = _found(path, sheets, layout, chosen)
    is_numbered = bool(layout.numbered) and layout.numbered not in table.columns
    for line, cells in table.rows:
        _check_width(path, line, cells, table.width)
        fields: dict[str, object] = {layout.numbered: line} if is_numbered else {}
        for name, place in table.columns.items():
            cell = cells[place] if place < len(cells) else None
            if cell is not None:
                fields[name] = cell.strip() if isinstance(cell, str) else cell
        yield JsonLine(path, line, fields)


def _check_width(path: str | Path, line: int, cells: Sequence[object], width: int) -> None:
    filled = max((place for place, cell in enumerate(cells, start=1) if cell not in EMPTY), default=0)
    if filled > width:
        problem = f"has {filled} cells for {width} columns; make them alike, or put a cell with separators in quotes"
        raise InputError(path, problem, line=line)


def _found(path: str | Path, sheets: Iterator[Sheet], layout: Layout, chosen: Mapping[str, str]) -> _Table:
    """The first table of a file that has the headings, or else the first that has rows, without any."""
    first: tuple[Sheet, list[Row], Rows] | None = None
    for sheet in sheets:
        rows = (row for row in sheet.rows if any(cell not in EMPTY for cell in row[1]))
        head = list(islice(rows, SAMPLE))
        table = None if _numbers(chosen, layout) else _headed(path, sheet, head, rows, layout, chosen)
        if table is not None:
            return table
        first = first or ((sheet, head, rows) if head else None)
    return _Table(Sheet(""), iter(()), {}, 0) if first is None else _plain(path, *first, layout, chosen)


def _headed(
    path: str | Path, sheet: Sheet, head: Sequence[Row], rows: Rows, layout: Layout, chosen: Mapping[str, str]
) -> _Table | None:
    """The table below the first row that has the headings needed; None where there is none."""
    for place, (line, cells) in enumerate(head[: 1 if sheet.is_headed else DEEPEST]):
        headings = _texts(cells)
        columns = columns_of(headings, layout.names, layout.needed, chosen)
        title = all(_filled(above) < _filled(cells) for _, above in head[:place])
        if not columns or not title or any(map(is_number, headings)):
            continue
        if (
            layout.numbered
            and layout.numbered not in columns
            and len(columns) < _filled(cells)
            and not chosen
        ):
            raise _unknown_headings(path, line, headings, layout)
        _say(path, sheet, line, headings, columns, place)
        return _Table(sheet, chain(head[place + 1 :], rows), columns, len(headings))
    return None


def _plain(
    path: str | Path, sheet: Sheet, head: Sequence[Row], rows: Rows, layout: Layout, chosen: Mapping[str, str]
) -> _Table:
    """A table without headings. Raises InputError for one whose first row is unlike the others, or of other widths."""
    line, cells = head[0]
    width = len(cells) if sheet.is_text else max(len(_texts(row)) for _, row in head)
    first, numbers = _texts(cells), _numbers(chosen, layout)
    if not numbers and (sheet.is_headed or any(field in layout.names for field in chosen) or is_unlike(head)):
        raise _unknown_headings(path, line, first, layout)
    columns = numbers or {field: place for place, field in enumerate(layout.orders.get(width, ()))}
    if not columns or max(columns.values()) >= width:
        orders = " or ".join(", ".join(map(bare_name, order)) for order in layout.orders.values())
        problem = f"needs columns: {orders} (found: {width}); name them in a first row, or by --columns"
        raise InputError(path, problem, line=line)
    taken = ", ".join(f"column {place + 1} as {bare_name(field)}" for field, place in columns.items())
    say_taken(str(path), f"{sheet.called}no headings ({taken}); --columns names others")
    return _Table(sheet, chain(head, rows), columns, width)


def _numbers(chosen: Mapping[str, str], layout: Layout) -> dict[str, int]:
    """Where fields of a table without headings stand, of which somebody gave the numbers."""
    own = {field: column for field, column in chosen.items() if field in layout.names}
    return {field: int(column) - 1 for field, column in own.items() if column.isdecimal()}


def is_unlike(head: Sequence[Row]) -> bool:
    """Whether the first of some rows has the look of headings, and of some column all below look otherwise.

    Headings are a few words each, without numbers.
    """
    (_, first), *others = head
    texts = _texts(first)
    if len(others) < FEWEST or len({*texts}) < len(texts) or "" in texts:
        return False
    if any(len(text.split()) > WORDS or any(map(str.isdigit, text)) for text in texts):
        return False
    below = [[str(cells[place]) for _, cells in others if place < len(cells)] for place in range(len(texts))]
    return any(_differ(text, column) for text, column in zip(texts, below, strict=True))


def _differ(heading: str, cells: Sequence[str]) -> bool:
    """Whether all cells have digits, or nearly all are sentences where the heading is a word or two."""
    long = sum(len(cell.split()) > WORDS for cell in cells)
    all_numbered = all(any(map(str.isdigit, cell)) for cell in cells)
    return bool(cells) and (all_numbered or (len(heading.split()) <= WORDS // 2 and long > MOST * len(cells)))


def _texts(cells: Sequence[object]) -> list[str]:
    """Cells as texts, up to the last that is filled."""
    texts = ["" if cell is None else str(cell).strip() for cell in cells]
    while texts and not texts[-1]:
        texts.pop()
    return texts


def _filled(cells: Sequence[object]) -> int:
    return sum(cell not in EMPTY for cell in cells)


def _unknown_headings(path: str | Path, line: int, headings: Sequence[str], layout: Layout) -> InputError:
    fields = ",".join(f"{bare_name(field)}=..." for field in layout.unnamed)
    problem = (
        f"the row {', '.join(map(repr, headings))} looks like headings, and doesn't say which columns are needed; "
        f"name them: --columns {fields}, each by its heading, or by its number where the row is no headings"
    )
    return InputError(path, problem, line=line)


def _say(
    path: str | Path, sheet: Sheet, line: int, headings: Sequence[str], columns: Mapping[str, int], above: int
) -> None:
    """Say what was taken for headings, which columns stand for what, and what is left out."""
    others = [repr(text) for place, text in enumerate(headings) if text and place not in columns.values()]
    left = [f"the columns {', '.join(others)}"] if others else []
    left += [f"{above} rows above"] if above else []
    place = "columns" if sheet.is_headed else f"line {line} taken for headings"
    taken = f"{sheet.called}{place} ({taken_for(headings, columns)})"
    say_taken(str(path), f"{taken}; left out: {' and '.join(left)}" if left else taken)
