"""Tables, each row under the names of its columns: CSV with commas or semicolons, TSV, XLSX and Parquet."""

import csv
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from sparse_adapt.collection.columns import plain
from sparse_adapt.collection.lines import JsonLine, read_lines, say_taken
from sparse_adapt.collection.opening import bare, open_bytes, place_of
from sparse_adapt.errors import InputError, MissingExtraError, SparseAdaptError, first_line

CSV, TSV = ".csv", ".tsv"
WORKBOOKS, FRAMES = (".xlsx", ".xlsm"), ".parquet"
LARGEST = 1 << 29  # unpacked bytes of a workbook: a few bytes of one may stand for gigabytes
ROWS_AT_ONCE = 1 << 10

Rows = Iterator[tuple[int, list[Any]]]
"""The cells of each row and its number, the first row being the headings of a data frame. An empty cell is None."""


def is_sheet(path: str | Path) -> bool:
    """Whether a file is a table by its name, compressed or not."""
    return is_table(path) or _is_tsv(path)


def is_table(path: str | Path) -> bool:
    """Whether a file is a table of another kind than TSV by its name, a CSV compressed or not."""
    name = place_of(path).name.lower()
    return name.endswith((*WORKBOOKS, FRAMES)) or bare(name).endswith(CSV)


def read_sheet(path: str | Path, columns: Mapping[str, Sequence[str]]) -> Iterator[JsonLine]:
    """Each row that isn't empty, under our names of the columns; a cell without words is left out.

    Cells are texts, but for those of a data frame, which are what they are.

    columns: our names, each with the headings that stand for it in small letters. Without any known heading the
    first line is a row too, and the columns come in the order of `columns`. Raises InputError for a row that has
    more cells than there are columns, and for quotes that don't close.
    """
    names: list[str] = []
    for line, cells in _rows(path):
        if not names:
            if not any(cells):
                continue
            names = _headings(list(map(str, cells)), columns)
            if names:
                continue
            names = list(columns)
        while len(cells) > len(names) and cells[-1] is None:
            cells.pop()  # a workbook fills its rows up
        if len(cells) > len(names):
            problem = f"has {len(cells)} cells for {len(names)} columns; put a cell with commas in quotes"
            raise InputError(path, problem, line=line)
        given = ((name, _stripped(cell)) for name, cell in zip(names, cells, strict=False))
        fields = {name: cell for name, cell in given if cell not in ("", None)}
        if fields:
            yield JsonLine(path, line, fields)


def _headings(cells: Sequence[str], columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Our names of the columns where a row is the headings, unknown ones as they are; nothing where it isn't."""
    ours = {heading: name for name, headings in columns.items() for heading in (name, *headings)}
    found = [ours.get(plain(cell), cell.strip()) for cell in cells]
    return found if any(name in columns for name in found) else []


def _stripped(cell: object) -> object:
    return cell.strip() if isinstance(cell, str) else cell


def _is_tsv(path: str | Path) -> bool:
    return bare(place_of(path).name).lower().endswith(TSV)


def _rows(path: str | Path) -> Rows:
    """Every row of a table: of a workbook those of the first sheet.

    Raises InputError for a file that is broken, MissingExtraError without the package that reads it.
    """
    name = place_of(path).name.lower()
    if not name.endswith((*WORKBOOKS, FRAMES)):
        yield from _of_text(path)
        return
    rows, kind = (_of_frame, "Parquet file") if name.endswith(FRAMES) else (_of_workbook, "workbook")
    try:
        with open_bytes(path) as file:
            yield from rows(path, file)
    except SparseAdaptError:
        raise
    except Exception as error:  # both libraries raise errors of all kinds for a file that isn't one
        raise InputError(path, f"broken {kind} ({first_line(error)}); save or copy it again") from error


def _of_text(path: str | Path) -> Rows:
    """Of a CSV or a TSV, each row with the line that it begins on.

    Tabs part the cells of a TSV, else whichever of comma and semicolon the first line has more of.
    """
    lines = [text for _, text in read_lines(path)]
    first = next((text for text in lines if text.strip()), "")
    delimiter = "\t" if _is_tsv(path) else max(",;", key=first.count)
    rows = csv.reader((f"{text}\n" for text in lines), delimiter=delimiter, strict=True)
    line = 1
    try:
        for cells in rows:
            yield line, cells
            line = rows.line_num + 1
    except csv.Error as error:
        raise InputError(path, f"a broken table ({error}); check the quotes", line=line) from error


def _of_workbook(path: str | Path, file: IO[bytes]) -> Rows:
    try:
        import openpyxl
    except ImportError as error:
        raise MissingExtraError("openpyxl", "files") from error
    with zipfile.ZipFile(file) as packed:
        unpacked = sum(part.file_size for part in packed.infolist())
    if unpacked > LARGEST:
        raise InputError(path, f"is {unpacked:,} bytes when unpacked, of at most {LARGEST:,}; save it as CSV")
    book = openpyxl.load_workbook(file, read_only=True, data_only=True)
    if not book.worksheets:
        raise InputError(path, "holds no sheet of cells; save it again")
    sheet = book.worksheets[0]
    if len(book.worksheets) > 1:
        say_taken(str(path), f"of {len(book.worksheets)} sheets the first is read ({sheet.title})")
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        yield number, [None if cell is None else _text(cell) for cell in row]


def _of_frame(path: str | Path, file: IO[bytes]) -> Rows:
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise MissingExtraError("pyarrow", "files") from error
    frame = ParquetFile(file)
    yield 0, list(frame.schema_arrow.names)
    rows = (row for batch in frame.iter_batches(batch_size=ROWS_AT_ONCE) for row in batch.to_pylist())
    for number, row in enumerate(rows, start=1):
        yield number, list(row.values())


def _text(cell: object) -> str:
    """A cell as the spreadsheet shows it, whole numbers without a point."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
