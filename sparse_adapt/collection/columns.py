"""Files of columns: TSV, judgements as BEIR and TREC write them, TREC runs. Rows carry their line number."""

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

from sparse_adapt.collection.lines import read_lines
from sparse_adapt.errors import InputError, OutputError
from sparse_adapt.files.folders import open_output

QUERY_HEADERS = ("query-id", "queryid", "qid", "query", "topic")
SHORT = 40


def read_tsv(path: str | Path, widths: tuple[int, ...], layout: str) -> Iterator[tuple[int, list[str]]]:
    """Each line's columns, parted by tabs: one of `widths`, and as many as in the first line."""
    width = 0
    for line, text in _filled(path):
        columns = text.split("\t")
        width = width or len(columns)
        if len(columns) not in widths:
            problem = f"needs columns with tabs between: {layout} (found: {len(columns)})"
            raise InputError(path, problem, line=line)
        if len(columns) != width:
            problem = f"has {len(columns)} columns, the lines before it {width}; make them alike"
            raise InputError(path, problem, line=line)
        if not columns[0].strip():
            raise InputError(path, "holds an empty id; give every line an id", line=line)
        yield line, columns


def read_qrels(path: str | Path) -> Iterator[tuple[int, str, str, int]]:
    """Query id, document id and grade, from three columns (BEIR, with or without a header) or four (TREC)."""
    for line, text in _filled(path):
        columns = [column.strip() for column in (text.split("\t") if "\t" in text else text.split())]
        if _is_header(columns):
            continue
        if len(columns) not in (3, 4):
            wanted = "query, document, grade or, as TREC has it, query, 0, document, grade"
            raise InputError(path, f"needs 3 or 4 columns: {wanted} (found: {len(columns)})", line=line)
        query_id, document_id, grade = columns[0], columns[-2], columns[-1]
        if not query_id or not document_id:
            problem = "holds an empty id; give every judgement a query and a document"
            raise InputError(path, problem, line=line)
        number = _finite(grade, "grade", path, line)
        if not number.is_integer():
            raise InputError(path, f"needs a whole number as grade (found: {grade[:SHORT]})", line=line)
        yield line, query_id, document_id, int(number)


def read_results(path: str | Path) -> Iterator[tuple[int, str, str, float]]:
    """Query id, document id and score, from the six columns of a TREC run."""
    for line, text in _filled(path):
        columns = text.split()
        if len(columns) != 6:
            wanted = "query, Q0, document, rank, score, name"
            raise InputError(path, f"needs 6 columns: {wanted} (found: {len(columns)})", line=line)
        yield line, columns[0], columns[2], _finite(columns[4], "score", path, line)


def write_columns(path: str | Path, rows: Iterable[Iterable[str]], separator: str) -> int:
    """Write rows with a tab or a space between their columns; says how many rows.

    Raises OutputError for a value that holds the separator or a line break: nobody could read it back.
    """
    count = 0
    with open_output(path) as file:
        for row in rows:
            columns = list(row)
            for value in columns:
                if not _fits(value, separator):
                    reason = "empty" if not value else "parted by white space"
                    raise OutputError(f"{path}: can't hold the id {value!r}, which is {reason}; rename it")
            file.write(separator.join(columns) + "\n")
            count += 1
    return count


def _fits(value: str, separator: str) -> bool:
    if separator == " ":
        return value.split() == [value]
    return value == value.strip() != "" and not any(sign in value for sign in "\t\n\r")


def _filled(path: str | Path) -> Iterator[tuple[int, str]]:
    return ((line, text) for line, text in read_lines(path) if text and not text.isspace())


def _is_header(columns: list[str]) -> bool:
    return columns[0].lower().replace("_", "-") in QUERY_HEADERS and not columns[-1].lstrip("+-").isdigit()


def _finite(text: str, kind: str, path: str | Path, line: int) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise InputError(path, f"needs a number as {kind} (found: {text[:SHORT]})", line=line) from error
    if not math.isfinite(number):
        raise InputError(path, f"{kind} {text[:SHORT]} is not finite; remove the line", line=line)
    return number
