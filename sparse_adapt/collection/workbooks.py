"""Tables that aren't text: workbooks of a spreadsheet (XLSX) and data frames (Parquet), row by row."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from sparse_adapt.collection.addresses import open_bytes, place_of
from sparse_adapt.collection.names import say_taken
from sparse_adapt.errors import InputError, MissingExtraError, SparseAdaptError, first_line

WORKBOOKS, FRAMES = (".xlsx", ".xlsm"), (".parquet",)
LARGEST = 1 << 29  # unpacked bytes of a workbook: a few bytes of one may stand for gigabytes
ROWS_AT_ONCE = 1 << 10

Rows = Iterator[tuple[int, list[Any]]]
"""The cells of each row and its number, the first row being the headings of a data frame."""


def is_workbook(path: str | Path) -> bool:
    """Whether a file is one of them by its name."""
    return place_of(path).name.lower().endswith((*WORKBOOKS, *FRAMES))


def read_rows(path: str | Path) -> Rows:
    """Every row of the first sheet, or of a data frame under its names. An empty cell is None.

    Raises InputError for a file that is broken, MissingExtraError without the package that reads it.
    """
    rows = _of_frame if place_of(path).name.lower().endswith(FRAMES) else _of_workbook
    kind = "Parquet file" if rows is _of_frame else "workbook"
    try:
        with open_bytes(path) as file:
            yield from rows(path, file)
    except SparseAdaptError:
        raise
    except Exception as error:  # both libraries raise errors of all kinds for a file that isn't one
        raise InputError(path, f"broken {kind} ({first_line(error)}); save or copy it again") from error


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
    number = 0
    for batch in frame.iter_batches(batch_size=ROWS_AT_ONCE):
        for row in batch.to_pylist():
            number += 1
            yield number, list(row.values())


def _text(cell: object) -> str:
    """A cell as the spreadsheet shows it, whole numbers without a point."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
