"""Rows of cells from files: CSV, TSV, XLSX and Parquet, the suffix saying which.

A CSV's cells are parted by whatever gives rows of the same width; a TSV's by tabs, and its quotes are letters: one
whose quotes hold line breaks together is refused. Rows stream, those of a workbook too, and what unfolds a few bytes
into gigabytes is refused before it is read.
"""

import csv
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple, TypeVar

from sparse_adapt.collection.lines import LONGEST_LINE, read_lines
from sparse_adapt.collection.opening import bare, open_bytes, place_of
from sparse_adapt.errors import InputError, MissingExtraError, SparseAdaptError, first_line

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

CSV, TSV = ".csv", ".tsv"
WORKBOOKS, FRAMES = (".xlsx", ".xlsm"), ".parquet"
TAB, COMMA = "\t", ","
DELIMITERS = (TAB, ";", "|", COMMA)  # the first of several that part rows as well
NAMED_DELIMITER = re.compile(r"sep=(.)")  # as spreadsheets write it before the first row
SAMPLE = 100  # rows by which a table is judged
UNPACKED, UNFOLDING = 1 << 26, 100  # bytes of a workbook; of one byte of its file, where there are many
MOST_ROWS, MOST_COLUMNS = 1 << 20, 1_000  # of a sheet: as many rows as Excel has
ROWS_AT_ONCE = 1 << 10
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
    return name.endswith((*WORKBOOKS, FRAMES)) or bare(name).endswith((CSV, TSV))


def sheets_of(path: str | Path) -> Iterator[Sheet]:
    """The sheets of a workbook; the one table of any other file, which is a TSV unless its name says otherwise.

    Raises InputError for a file that is broken, MissingExtraError without the package that reads it.
    """
    name = place_of(path).name.lower()
    if name.endswith(WORKBOOKS):
        return _of_library(path, "workbook", _of_workbook)
    if name.endswith(FRAMES):
        return _of_library(path, "Parquet file", _of_frame)
    rows = _of_csv(path) if bare(name).endswith(CSV) else _of_tsv(path)
    return iter([Sheet("", rows, is_text=True)])


def _of_library(
    path: str | Path, kind: str, sheets: Callable[[str | Path, IO[bytes]], Iterator[Sheet]]
) -> Iterator[Sheet]:
    """The sheets of a binary file, whose library raises errors of all kinds for a file that isn't one."""

    def guarded(things: Iterator[T]) -> Iterator[T]:
        try:
            yield from things
        except SparseAdaptError:
            raise
        except Exception as error:
            raise InputError(path, f"broken {kind} ({first_line(error)}); save or copy it again") from error

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


def _of_workbook(path: str | Path, file: IO[bytes]) -> Iterator[Sheet]:
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError("openpyxl", "files") from error
    with zipfile.ZipFile(file) as packed:
        parts = packed.infolist()
    unpacked, size = sum(part.file_size for part in parts), sum(part.compress_size for part in parts)
    if unpacked > UNPACKED or unpacked > max(UNFOLDING * size, UNPACKED >> 2):
        problem = f"unfolds to {unpacked:,} bytes, of at most {UNPACKED:,} and {UNFOLDING} times its own size"
        raise InputError(path, f"{problem}; save it as CSV, which has no bound")
    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    if not book.worksheets:
        raise InputError(path, "holds no sheet of cells; save it again")
    for sheet in book.worksheets:
        sheet.reset_dimensions()  # which a file says of itself, and need not be true
        yield Sheet(sheet.title if len(book.worksheets) > 1 else "", _of_sheet(path, sheet))


def _of_sheet(path: str | Path, sheet: "Worksheet") -> Rows:
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        cells = [None if cell is None else _text(cell) for cell in row]
        if number > MOST_ROWS or len(cells) > MOST_COLUMNS:
            bound = f"{MOST_ROWS:,} rows or {MOST_COLUMNS:,} columns"
            problem = f"sheet {sheet.title!r} has over {bound}; delete what stands far out, or save it as CSV"
            raise InputError(path, problem, line=number)
        yield number, cells


def _of_frame(path: str | Path, file: IO[bytes]) -> Iterator[Sheet]:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError("pyarrow", "files") from error
    frame = ParquetFile(file)
    batches = frame.iter_batches(batch_size=ROWS_AT_ONCE)
    rows = (list(row.values()) for batch in batches for row in batch.to_pylist())
    names = list(frame.schema_arrow.names)
    yield Sheet("", enumerate(chain([names], rows)), is_headed=True)


def _text(cell: object) -> str:
    """A cell as the spreadsheet shows it, whole numbers without a point."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
