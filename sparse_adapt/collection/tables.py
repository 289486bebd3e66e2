"""Tables, each row under our names of its columns, wherever in a file the table begins.

A row of headings is known by the names in it, in several languages. A first row that has some of them but lacks a
needed one, or that is unlike the others, is refused, so that headings never become data. A column without a heading,
as data frames write the numbers of their rows, holds the ids. One column stands for a field in all rows. What was
taken for what is said, and what was left out; `--columns` says it otherwise.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.columns import (
    JUDGEMENTS,
    LAYOUTS,
    NONE,
    SHORT,
    Layout,
    bare_name,
    columns_of,
    is_number,
    places_of,
    plain,
    taken_for,
)
from sparse_adapt.collection.lines import JsonLine, say_taken
from sparse_adapt.collection.sheets import SAMPLE, Rows, Sheet, sheets_of
from sparse_adapt.errors import InputError

EMPTY = ("", None)
DEEPEST = 20  # rows among which the headings are looked for
FEWEST = 3  # rows below a first one that is judged by how they are written
WORDS = 4  # of a heading, at most
MOST = 0.9
LOCALE = re.compile(r"[A-Za-z]{2}(?:[-_][A-Za-z]{2,4})?")  # a language's code: `en`, `zh-Hans`, `pt_BR`
LANGUAGES = frozenset(
    (
        *(
            "chinese",
            "dutch",
            "english",
            "french",
            "german",
            "italian",
            "japanese",
            "korean",
            "polish",
            "portuguese",
        ),
        *(
            "russian",
            "spanish",
            "deutsch",
            "englisch",
            "français",
            "anglais",
            "español",
            "inglés",
            "italiano",
        ),
    )
)

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
    """The table below the first row that has the headings needed; None where there is none.

    Raises InputError for headings none of which is that of the ids, where columns would be left out.
    """
    for place, (line, cells) in enumerate(head[: 1 if sheet.is_headed else DEEPEST]):
        headings = _texts(cells)
        columns = columns_of(headings, layout.names, layout.needed, chosen)
        if not columns or not _may_be_headings(head, place):
            continue
        below = [row[: len(headings)] for _, row in head[place + 1 :]]
        if layout.numbered and layout.numbered not in columns:
            if (number := _of_rows(headings, below)) is not None:
                columns[layout.numbered] = number
            elif not chosen and len(columns) < max(map(_filled, [cells, *below])):
                raise _unknown_headings(path, line, headings, layout)
        _say(path, sheet, line, headings, columns, place, layout)
        return _Table(sheet, chain(head[place + 1 :], rows), columns, len(headings))
    return None


def _may_be_headings(head: Sequence[Row], place: int) -> bool:
    """Whether a row has no number, and more cells than each row above."""
    cells = head[place][1]
    wider = all(_filled(above) < _filled(cells) for _, above in head[:place])
    return wider and not any(map(is_number, _texts(cells)))


def _half_known(head: Sequence[Row], layout: Layout) -> Row | None:
    """The first row that holds a known name, and so is never data; a sentence is no name.

    A row without digits is no data either where the name is one of another kind of table: `id, text` of a glossary.
    """
    for place, row in enumerate(head[:DEEPEST]):
        texts = [text for text in _texts(row[1]) if len(text.split()) <= WORDS]
        others = () if any(map(str.isdigit, "".join(texts))) else (*LAYOUTS, JUDGEMENTS)
        known = any(any(places_of(texts, each.names).values()) for each in (layout, *others))
        if known and _may_be_headings(head, place):
            return row
    return None


def _of_rows(headings: Sequence[str], below: Sequence[Sequence[object]]) -> int | None:
    """The column without a heading whose cells name each row; None where there is no such column, or no row."""
    for place in (place for place, heading in enumerate(headings) if not plain(heading)):
        cells = [row[place] if place < len(row) else None for row in below]
        if cells and not any(cell in EMPTY for cell in cells) and len({*map(str, cells)}) == len(cells):
            return place
    return None


def _plain(
    path: str | Path, sheet: Sheet, head: Sequence[Row], rows: Rows, layout: Layout, chosen: Mapping[str, str]
) -> _Table:
    """A table without headings. Raises InputError for one whose first row is unlike the others, or of other widths."""
    line, cells = head[0]
    width = len(cells) if sheet.is_text else max(len(_texts(row)) for _, row in head)
    numbers = _numbers(chosen, layout)
    if not numbers:
        headed = sheet.is_headed or any(field in layout.names for field in chosen) or is_unlike(head)
        headings = head[0] if headed else _half_known(head, layout)
        if headings is not None:
            raise _unknown_headings(path, headings[0], _texts(headings[1]), layout)
    columns = numbers or {field: place for place, field in enumerate(layout.orders.get(width, ()))}
    if not columns or max(columns.values()) >= width:
        orders = " or ".join(", ".join(map(bare_name, order)) for order in layout.orders.values())
        problem = f"needs columns: {orders} (found: {width}); name them in a first row, or by --columns"
        raise InputError(path, problem, line=line)
    taken = ", ".join(f"column {place + 1} as {bare_name(field)}" for field, place in columns.items())
    taken += _numbering(columns, layout)
    say_taken(str(path), f"{sheet.called}no headings ({taken}); --columns names others")
    return _Table(sheet, chain(head, rows), columns, width)


def _numbers(chosen: Mapping[str, str], layout: Layout) -> dict[str, int]:
    """Where fields of a table without headings stand: all columns that somebody named were named by numbers."""
    own = {field: column for field, column in chosen.items() if field in layout.names}
    if not all(column.isdecimal() for column in own.values()):
        return {}
    return {field: int(column) - 1 for field, column in own.items()}


def is_unlike(head: Sequence[Row]) -> bool:
    """Whether the first of some rows has the look of headings, and the rows below look otherwise.

    Headings are a few words each, without numbers. Columns of numbers, of sentences or of another script tell them, and
    so do capitals where each column has them otherwise than its heading. Codes of languages are headings by
    themselves, and so are cells beside an empty one at the row's beginning.
    """
    (_, first), *others = head
    texts = _texts(first)
    if not others or any(len(text.split()) > WORDS or any(map(str.isdigit, text)) for text in texts):
        return False
    rows = [_texts(cells) for _, cells in others]
    columns = [[row[place] for row in rows if place < len(row)] for place in range(len(texts))]
    pairs = [pair for pair in zip(texts, columns, strict=True) if pair[1]]
    if not texts[0]:
        return all(columns[0])
    if _are_languages(texts) and not any(map(_are_languages, rows)):
        return True
    if len({*texts}) < len(texts) or "" in texts:
        return False
    judged = len(others) >= FEWEST and len(pairs) > 1
    otherwise = judged and all(_is_written_otherwise(*pair) for pair in pairs)
    return otherwise or any(_differ(*pair) for pair in pairs)


def _are_languages(texts: Sequence[str]) -> bool:
    """Whether all of two or more cells are languages, by their codes or names."""
    return len(texts) > 1 and all(
        LOCALE.fullmatch(text) or text.casefold() in LANGUAGES for text in map(str.strip, texts)
    )


def _differ(heading: str, cells: Sequence[str]) -> bool:
    """Whether all cells have digits, none has a letter of the heading's script, or nearly all are sentences.

    Only a heading of a word or two is told by sentences.
    """
    long = sum(len(cell.split()) > WORDS for cell in cells)
    all_numbered = all(any(map(str.isdigit, cell)) for cell in cells)
    is_short = len(heading.split()) <= WORDS // 2
    return all_numbered or (is_short and long > MOST * len(cells)) or _is_of_another_script(heading, cells)


def _is_of_another_script(heading: str, cells: Sequence[str]) -> bool:
    """Whether a heading is in Latin letters, and every cell has letters, none of them Latin."""
    return _is_latin(heading) and all(any(map(str.isalpha, cell)) and not _has_latin(cell) for cell in cells)


def _is_latin(text: str) -> bool:
    letters = [sign for sign in text if sign.isalpha()]
    return bool(letters) and all(map(_has_latin, letters))


def _has_latin(text: str) -> bool:
    return any(unicodedata.name(sign, "").startswith("LATIN") for sign in text if sign.isalpha())


def _is_written_otherwise(heading: str, cells: Sequence[str]) -> bool:
    """Whether the capitals of a heading are unlike those of every cell: none, at the beginning, or everywhere."""
    kinds: tuple[Callable[[str], bool], ...] = (
        str.islower,
        lambda text: text[:1].isupper() and not text.isupper(),
        lambda text: text.isupper() and len(text) > 1,
    )
    return any(kind(heading) and not any(map(kind, cells)) for kind in kinds) or _is_of_another_script(
        heading, cells
    )


def _texts(cells: Sequence[object]) -> list[str]:
    """Cells as texts, up to the last that is filled."""
    texts = ["" if cell is None else str(cell).strip() for cell in cells]
    while texts and not texts[-1]:
        texts.pop()
    return texts


def _filled(cells: Sequence[object]) -> int:
    return sum(cell not in EMPTY for cell in cells)


def _unknown_headings(path: str | Path, line: int, headings: Sequence[str], layout: Layout) -> InputError:
    cells = ", ".join(repr(each[:SHORT]) for each in headings)
    row = f"the row {cells} looks like headings, and doesn't say which columns are needed"
    return InputError(path, f"{row}; {layout.advice}", line=line)


def _numbering(columns: Mapping[str, int], layout: Layout) -> str:
    """That ids are numbers of lines, where no column holds any."""
    return "; each id is the line's number" if layout.numbered and layout.numbered not in columns else ""


def _say(
    path: str | Path,
    sheet: Sheet,
    line: int,
    headings: Sequence[str],
    columns: Mapping[str, int],
    above: int,
    layout: Layout,
) -> None:
    """Say what was taken for headings, which columns stand for what, and what is left out."""
    others = [repr(text) for place, text in enumerate(headings) if text and place not in columns.values()]
    left = [f"the columns {', '.join(others)}"] if others else []
    left += [f"{above} rows above"] if above else []
    place = "columns" if sheet.is_headed else f"line {line} taken for headings"
    taken = f"{sheet.called}{place} ({taken_for(headings, columns)}){_numbering(columns, layout)}"
    say_taken(str(path), f"{taken}; left out: {' and '.join(left)}" if left else taken)
