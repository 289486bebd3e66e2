"""Tables of workbooks (XLSX) and of data frames (Parquet)."""

import zipfile
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

from sparse_adapt.collection.sheets import Rows, Sheet
from sparse_adapt.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from openpyxl.worksheet.worksheet import Worksheet

UNPACKED, UNFOLDING = 1 << 26, 100  # bytes of a workbook; of one byte of its file, where there are many
MOST_ROWS, MOST_COLUMNS = 1 << 20, 1_000  # of a sheet: as many rows as Excel has
ROWS_AT_ONCE = 1 << 10


def read_workbook(path: str | Path, file: IO[bytes]) -> Iterator[Sheet]:
    """The sheets of a workbook. Raises InputError for one that is too large, MissingExtraError without openpyxl."""
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


def read_frame(path: str | Path, file: IO[bytes]) -> Iterator[Sheet]:
    """The one table of a Parquet file. Raises MissingExtraError without pyarrow."""
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
