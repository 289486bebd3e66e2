"""Tables as spreadsheets save them (CSV with commas or semicolons, TSV): each row under the names of its columns."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from sparse_adapt.collection.compression import bare
from sparse_adapt.collection.lines import JsonLine, read_lines
from sparse_adapt.collection.names import plain
from sparse_adapt.errors import InputError

ENDINGS = (".csv", ".tsv")


def is_sheet(path: str | Path) -> bool:
    """Whether a file is a table by its name, compressed or not."""
    return bare(Path(path).name).lower().endswith(ENDINGS)


def is_csv(path: str | Path) -> bool:
    """Whether a file is a table with commas or semicolons by its name, compressed or not."""
    return bare(Path(path).name).lower().endswith(".csv")


def read_sheet(path: str | Path, columns: Mapping[str, Sequence[str]]) -> Iterator[JsonLine]:
    """Each row that isn't empty, as texts under our names of the columns; a cell without words is left out.

    columns: our names, each with the headings that stand for it in small letters. Without any known heading the
    first line is a row too, and the columns come in the order of `columns`. Raises InputError for a row that has
    more cells than there are columns, and for quotes that don't close.
    """
    names: list[str] = []
    for line, cells in _rows(path):
        if not names:
            names = _headings(cells, columns)
            if names:
                continue
            names = list(columns)
        if len(cells) > len(names):
            problem = f"has {len(cells)} cells for {len(names)} columns; put a cell with commas in quotes"
            raise InputError(path, problem, line=line)
        fields = {name: cell.strip() for name, cell in zip(names, cells, strict=False) if cell.strip()}
        if fields:
            yield JsonLine(path, line, fields)


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
    if bare(Path(path).name).lower().endswith(".tsv"):
        return "\t"
    return max(",;", key=first.count)


def _headings(cells: Sequence[str], columns: Mapping[str, Sequence[str]]) -> list[str]:
    """Our names of the columns where a row is the headings, unknown ones as they are; nothing where it isn't."""
    ours = {heading: name for name, headings in columns.items() for heading in (name, *headings)}
    found = [ours.get(plain(cell), cell.strip()) for cell in cells]
    return found if any(name in columns for name in found) else []
