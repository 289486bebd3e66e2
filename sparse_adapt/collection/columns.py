"""Files of columns: TSV, judgements as BEIR and TREC write them, TREC runs. Rows carry their line number.

Fields and columns have other names elsewhere: those of each field of ours are listed here, the usual one first.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from sparse_adapt.collection.lines import JsonLine, read_lines, say_taken
from sparse_adapt.errors import InputError, OutputError
from sparse_adapt.files.folders import open_output

Names = Mapping[str, Sequence[str]]

OF_DOCUMENTS: Names = {
    "_id": ("_id", "id", "doc_id", "docid", "docno", "document_id", "corpus_id", "pid", "passage_id"),
    "title": ("title", "doc_title", "headline"),
    "text": ("text", "doc_text", "contents", "content", "body", "passage", "passage_text", "document"),
    "keywords": ("keywords", "author_keywords", "index_terms"),
    "journal": ("journal", "journal_title", "venue"),
}
OF_QUERIES: Names = {
    "_id": ("_id", "id", "query_id", "qid", "queryid", "topic_id", "topic", "number"),
    "text": ("text", "query", "query_text", "question", "title"),
}
OF_JUDGEMENTS: Names = {
    "query_id": ("query_id", "qid", "queryid", "query", "topic", "topic_id"),
    "doc_id": ("doc_id", "corpus_id", "docid", "docno", "document_id", "document", "pid", "passage_id"),
    "grade": ("grade", "score", "relevance", "rel", "label", "judgement", "judgment", "relevance_grade"),
}
SHORT = 40
OF_BEIR = ("query-id", "corpus-id", "score")


def plain(heading: str) -> str:
    """A heading as the names here are spelt: in small letters, with `_` for a hyphen or a space."""
    return re.sub(r"[\s-]+", "_", heading.strip().lstrip("# ").lower())


def columns_of(cells: Iterable[str], names: Names, needed: Sequence[str]) -> dict[str, int]:
    """Where each field stands in a row of headings; nothing where the row isn't one, lacking a needed name."""
    headings = [plain(cell) for cell in cells]
    firsts = {field: [name for name in names[field] if name in headings] for field in names}
    found = {field: known[0] for field, known in firsts.items() if known}
    if not all(field in found for field in needed) or len(set(found.values())) < len(needed):
        return {}
    return {field: headings.index(heading) for field, heading in found.items()}


def usual_key(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first of some names that an object has a value under; the usual one where it has none."""
    return next((name for name in names if fields.get(name) is not None), names[0])


def read_tsv(path: str | Path, widths: tuple[int, ...], layout: str) -> Iterator[tuple[int, list[str]]]:
    """Each line's columns, parted by tabs: one of `widths`, and as many as in the first line."""
    return _alike(path, _filled(path), widths, layout)


def _alike(
    path: str | Path, rows: Iterable[tuple[int, str]], widths: tuple[int, ...], layout: str, *, place: int = 0
) -> Iterator[tuple[int, list[str]]]:
    """The columns of lines that have all as many, with an id in the column of that place."""
    width = 0
    for line, text in rows:
        columns = text.split("\t")
        width = width or len(columns)
        if len(columns) not in widths:
            problem = f"needs columns with tabs between: {layout} (found: {len(columns)})"
            raise InputError(path, problem, line=line)
        if len(columns) != width:
            problem = f"has {len(columns)} columns, the lines before it {width}; make them alike"
            raise InputError(path, problem, line=line)
        if not columns[place].strip():
            raise InputError(path, "holds an empty id; give every line an id", line=line)
        yield line, columns


def read_table(path: str | Path, fields: Mapping[int, tuple[str, ...]], names: Names) -> Iterator[JsonLine]:
    """Each line's cells by field, parted by tabs; under the first line's headings where it is one.

    fields: what the columns are without headings, by their number. With headings the columns may come in any
    order, and those of other names are passed over; which were taken is said.
    """
    layout = " or ".join(", ".join(field.lstrip("_") for field in order) for order in fields.values())
    rows = _filled(path)
    for line, text in rows:
        columns = columns_of(text.split("\t"), names, ("_id", "text"))
        if not columns:
            for number, row in _alike(path, chain([(line, text)], rows), tuple(fields), layout):
                yield JsonLine(path, number, dict(zip(fields[len(row)], row, strict=True)))
            return
        cells = text.split("\t")
        _say_columns(path, line, columns, cells)
        for number, row in _alike(path, rows, (len(cells),), layout, place=columns["_id"]):
            yield JsonLine(path, number, {field: row[place] for field, place in columns.items()})


def read_qrels(path: str | Path) -> Iterator[tuple[int, str, str, int]]:
    """Query id, document id and grade, from three columns (BEIR, with or without a header) or four (TREC)."""
    headed: dict[str, int] = {}
    width = 0
    for line, text in _filled(path):
        columns = [column.strip() for column in (text.split("\t") if "\t" in text else text.split())]
        if _is_comment(columns, tabs="\t" in text):
            say_taken(str(path), f"line {line} taken for a comment")
            continue
        named = columns_of(columns, OF_JUDGEMENTS, ("query_id", "doc_id"))
        if named and not _is_number(columns[-1]):
            headed, width = (named, len(columns)) if "grade" in named else ({}, 0)
            _say_columns(path, line, named, columns)
            continue
        if len(columns) != width and len(columns) not in (3, 4):
            wanted = "query, document, grade or, as TREC has it, query, 0, document, grade"
            raise InputError(path, f"needs 3 or 4 columns: {wanted} (found: {len(columns)})", line=line)
        order = (
            (headed["query_id"], headed["doc_id"], headed["grade"])
            if headed and len(columns) == width
            else (0, -2, -1)
        )
        query_id, document_id, grade = (columns[place] for place in order)
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
        is_heading = len(columns) == 6 and columns_of(columns, OF_JUDGEMENTS, ("query_id", "doc_id"))
        is_comment = columns[0].startswith("#") and len(columns) != 6
        if is_comment or (is_heading and not _is_number(columns[4])):
            say_taken(str(path), f"line {line} taken for a heading or a comment")
            continue
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


def _is_comment(columns: list[str], *, tabs: bool) -> bool:
    """Whether a line is words behind a `#`, which is a query's id in columns that end in a number.

    Words parted by spaces may end in a number too: a `#` that stands by itself begins a comment there.
    """
    if not columns[0].startswith("#") or columns_of(columns, OF_JUDGEMENTS, ("query_id", "doc_id")):
        return False
    is_row = len(columns) in (3, 4) and _is_number(columns[-1])
    return not is_row or (columns[0] == "#" and not tabs)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _say_columns(path: str | Path, line: int, columns: Mapping[str, int], cells: list[str]) -> None:
    """Say that a line was taken for headings, and for which; those that BEIR prescribes go without saying."""
    if tuple(cell.strip() for cell in cells) == OF_BEIR:
        return
    taken = ", ".join(f"{cells[place].strip()!r} as {field.lstrip('_')}" for field, place in columns.items())
    say_taken(str(path), f"line {line} taken for headings ({taken})")


def _finite(text: str, kind: str, path: str | Path, line: int) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise InputError(path, f"needs a number as {kind} (found: {text[:SHORT]})", line=line) from error
    if not math.isfinite(number):
        raise InputError(path, f"{kind} {text[:SHORT]} is not finite; remove the line", line=line)
    return number
