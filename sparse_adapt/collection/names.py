"""What fields and columns are called elsewhere: the names of each field of ours, the usual one first."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

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


def plain(heading: str) -> str:
    """A heading as the names here are spelt: in small letters, with `_` for a hyphen or a space."""
    return re.sub(r"[\s-]+", "_", heading.strip().lstrip("# ").lower())


def columns_of(cells: Iterable[str], names: Names, needed: Sequence[str]) -> dict[str, int]:
    """Where each field stands in a row of headings; nothing where the row isn't one, lacking a needed name."""
    headings = [plain(cell) for cell in cells]
    found = {field: heading for field in names if (heading := _first(names[field], headings)) is not None}
    if not all(field in found for field in needed) or len(set(found.values())) < len(needed):
        return {}
    return {field: headings.index(heading) for field, heading in found.items()}


def key_of(fields: Mapping[str, Any], names: Sequence[str]) -> str:
    """The first of some names that an object has a value under; the usual one where it has none."""
    return next((name for name in names if fields.get(name) is not None), names[0])


@cache
def say_taken(path: str, said: str) -> None:
    """Say once what was taken for what in a file."""
    from sparse_adapt.report.messages import say  # which loads Rich

    say(f"{path}: {said}")


def _first(names: Sequence[str], headings: Sequence[str]) -> str | None:
    return next((name for name in names if name in headings), None)
