"""Tables, each row under the names of its columns: CSV with commas or semicolons, TSV, XLSX and Parquet."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sparse_adapt.collection.compression import bare
from sparse_adapt.collection.lines import JsonLine, read_lines
from sparse_adapt.collection.names import plain
from sparse_adapt.collection.workbooks import is_workbook, read_rows
from sparse_adapt.errors import InputError

CSV, TSV = ".csv", ".tsv"


def is_sheet(path: str | Path) -> bool:
    """Whether a file is a table by its name, compressed or not."""
    return is_table(path) or bare(Path(path).name).lower().endswith(TSV)


def is_table(path: str | Path) -> bool:
    """Whether a file is a table of another kind than TSV by its name, a CSV compressed or not."""
    return is_workbook(path) or bare(Path(path).name).lower().endswith(CSV)


def read_sheet(path: str | Path, columns: Mapping[str, Sequence[str]]) -> Iterator[JsonLine]:
    """Each row that isn't empty, under our names of the columns; a cell without words is left out.

    Cells are texts, but for those of a data frame, which are what they are.

    columns: our names, each with the headings that stand for it in small letters. Without any known heading the
    first line is a row too, and the columns come in the order of `columns`. Raises InputError for a row that has
    more cells than there are columns, and for quotes that don't close.
    """
    names: list[str] = []
    for line, cells in read_rows(path) if is_workbook(path) else _rows(path):
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


def _stripped(cell: object) -> object:
    return cell.strip() if isinstance(cell, str) else cell


def _rows(path: str | Path) -> Iterator[tuple[int, list[str]]]:
    """The cells of each row, and the line it begins on."""
    lines = [text for _, text in read_lines(path)]
    first = next((text for text in lines if text.strip()), "")
    rows = csv.reader((f"{text}\n" for text in lines), delimiter=_delimiter(path, first), strict=True)
    line = 1
    try:
        for cells in rows:
            yield line, cells
            line = rows.line_num + 1
    except csv.Error as error:
        raise InputError(path, f"a broken table ({error}); check the quotes", line=line) from error


def _delimiter(path: str | Path, first: str) -> str:
    """What parts the cells: tabs in a TSV, else whichever of comma and semicolon the first line has more of."""
    if bare(Path(path).name).lower().endswith(TSV):
        return "\t"
    return max(",;", key=first.count)


def _headings(cells: Sequence[str], columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Our names of the columns where a row is the headings, unknown ones as they are; nothing where it isn't."""
    ours = {heading: name for name, headings in columns.items() for heading in (name, *headings)}
    found = [ours.get(plain(cell), cell.strip()) for cell in cells]
    return found if any(name in columns for name in found) else []
