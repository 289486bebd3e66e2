"""Rows of cells from files: CSV, TSV, XLSX and Parquet, the suffix saying which.

A CSV's cells are parted by whatever gives rows of the same width; a TSV's by tabs, and its quotes are letters: one
whose quotes hold line breaks together is refused. Rows stream, those of a workbook too, and what unfolds a few bytes
into gigabytes is refused before it is read.
"""

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

from sparse_adapt.collection.lines import LONGEST_LINE, read_lines
from sparse_adapt.collection.opening import bare, open_bytes, place_of
from sparse_adapt.errors import InputError, SparseAdaptError, first_line
from sparse_adapt.registry import registry

CSV, TSV = ".csv", ".tsv"
TAB, COMMA = "\t", ","
DELIMITERS = (TAB, ";", "|", COMMA)  # the first of several that part rows as well
NAMED_DELIMITER = re.compile(r"sep=(.)")  # as spreadsheets write it before the first row
SAMPLE = 100  # rows by which a table is judged
LONGEST_CELL = 1_000  # lines among which the end of a quoted cell is looked for

T = TypeVar("T")
Rows = Iterator[tuple[int, Sequence[object]]]
"""The cells of each row and its line or number. An empty cell is None or empty text."""

csv.field_size_limit(LONGEST_LINE)


class Sheet(NamedTuple):
    """A table of a file, and the name of its sheet where there are several.

    `is_headed`: whether the first row is headings for sure. `is_text`: whether a row that lacks cells is cut short.
    """

    name: str
    rows: Rows = iter(())
    is_headed: bool = False
    is_text: bool = False

    @property
    def called(self) -> str:
        """How a message about it begins."""
        return f"sheet {self.name!r}: " if self.name else ""


def is_table(path: str | Path) -> bool:
    """Whether a file is a table by its name, a CSV or TSV compressed or not."""
    name = place_of(path).name.lower()
    return name.endswith((*registry().all_of("readers.tables"),)) or bare(name).endswith((CSV, TSV))


def table_endings() -> tuple[str, ...]:
    """The ends of the names of files that are tables."""
    return (TSV, CSV, *registry().all_of("readers.tables"))


def sheets_of(path: str | Path) -> Iterator[Sheet]:
    """The sheets of a workbook; the one table of any other file, which is a TSV unless its name says otherwise.

    Raises InputError for a file that is broken, MissingExtraError without the package that reads it.
    """
    name = place_of(path).name.lower()
    if binary := [ending for ending in registry().all_of("readers.tables") if name.endswith(ending)]:
        return _of_library(path, binary[0], registry().find("readers.tables", binary[0]))
    rows = _of_csv(path) if bare(name).endswith(CSV) else _of_tsv(path)
    return iter([Sheet("", rows, is_text=True)])


def _of_library(
    path: str | Path, ending: str, sheets: Callable[[str | Path, IO[bytes]], Iterator[Sheet]]
) -> Iterator[Sheet]:
    """The sheets of a binary file, whose library raises errors of all kinds for a file that isn't one."""

    def guarded(things: Iterator[T]) -> Iterator[T]:
        try:
            yield from things
        except SparseAdaptError:
            raise
        except Exception as error:
            raise InputError(
                path, f"broken {ending[1:].upper()} file ({first_line(error)}); save or copy it again"
            ) from error

    with open_bytes(path) as file:
        for sheet in guarded(sheets(path, file)):
            yield sheet._replace(rows=guarded(sheet.rows))


def _of_tsv(path: str | Path) -> Rows:
    """Each line's cells. Raises InputError for a row whose cell goes on over lines, in quotes, as data frames write it.

    A line that opens a quote waits with the lines of one cell below it, until a line closes the quote and all of them
    together are as wide as the table, or one doesn't go on.
    """
    waiting: list[tuple[int, list[str]]] = []
    width = 0
    for line, text in _lines(path):
        cells = text.split(TAB)
        width = width or (len(cells) if text.strip() else 0)
        closes = bool(waiting) and cells[0].rstrip().endswith('"') and cells[0].count('"') % 2 == 1
        if closes and sum(len(row) - 1 for _, row in waiting) + len(cells) == width:
            first = waiting[0][0]
            problem = f"a cell in quotes goes on to line {line}, and quotes are letters in a .tsv"
            raise InputError(
                path, f"{problem}; let its name end in .csv, where they hold a cell together", line=first
            )
        if waiting and (closes or len(cells) > 1 or len(waiting) >= LONGEST_CELL):
            yield from waiting
            waiting = []
        if waiting or (cells[-1].startswith('"') and cells[-1].count('"') % 2 == 1):
            waiting.append((line, cells))
        else:
            yield line, cells
    yield from waiting


def _of_csv(path: str | Path) -> Rows:
    """Each row with the line that it begins on."""
    lines = (text for _, text in _lines(path))
    first = list(islice(lines, SAMPLE))
    named = NAMED_DELIMITER.fullmatch(first[0].strip('" ')) if first else None
    delimiter = named[1] if named else delimiter_of(first)
    rows = csv.reader((f"{text}\n" for text in chain(first, lines)), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in rows:
            if line > 1 or named is None:
                yield line, cells
            line = rows.line_num + 1
    except csv.Error as error:
        raise InputError(path, f"a broken table ({error}); check the quotes", line=line) from error


def _lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """The lines of a file, which may end in a carriage return alone."""
    return enumerate((part for _, text in read_lines(path) for part in text.split("\r")), start=1)


def delimiter_of(lines: Iterable[str]) -> str:
    """What parts the cells of lines: the sign that gives most rows one width, and words no space before them.

    A comma where no sign does, so that a row is named that has more cells than another.
    """
    filled = [f"{line}\n" for line in lines if line.strip()]
    fits = {sign: _fit(filled, sign) for sign in DELIMITERS}
    best = max(DELIMITERS, key=lambda sign: fits[sign])
    return best if fits[best] > (0, 0) else COMMA


def _fit(lines: list[str], delimiter: str) -> tuple[float, float]:
    """The share of rows that have the commonest width, of two cells or more, and of cells without a space before."""
    rows = list(csv.reader(lines, delimiter=delimiter))
    widths = Counter(map(len, rows))
    cells = [cell for row in rows for cell in row[1:]]
    if not cells:
        return 0, 0
    width, often = widths.most_common(1)[0]
    tight = sum(not cell.startswith(" ") for cell in cells) / len(cells)
    return (often / len(rows) if width > 1 else 0), tight
