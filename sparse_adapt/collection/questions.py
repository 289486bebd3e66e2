"""Queries that somebody wrote down: a line each in a text file, or JSON of any of the usual shapes."""

import json
from pathlib import Path
from typing import Any

from sparse_adapt.collection.lines import read_lines, readable
from sparse_adapt.collection.names import OF_QUERIES, key_of
from sparse_adapt.collection.readers import QUERY_FILES, Query, read_queries
from sparse_adapt.errors import InputError


def read_questions(source: str | Path) -> list[Query]:
    """The queries of a file in their order; those of a folder are its `queries.jsonl`.

    A file of lines has a query each; a JSON list holds strings or objects with a `text`. Raises InputError with file
    and line for what is neither, and for a file without queries.
    """
    path = Path(source)
    if path.is_dir() or any(path.name.endswith(name.partition(".")[2]) for name in QUERY_FILES):
        return list(read_queries(source))
    lines = list(read_lines(readable(source)))
    begins = next((text.lstrip()[0] for _, text in lines if text.strip()), "")
    if begins == "{":
        return list(read_queries(source))
    if begins == "[":
        found = _listed(path, "\n".join(text for _, text in lines))
    else:
        found = [Query(str(number), text.strip()) for number, text in lines if text.strip()]
    if not found:
        raise InputError(path, "holds no queries; write one a line")
    return found


def _listed(path: Path, text: str) -> list[Query]:
    """Queries of a JSON list, an entry that has no id under its number."""
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(path, f"broken JSON ({error}); mend it", line=line) from error
    return [_query(path, number, entry) for number, entry in enumerate(entries, start=1)]


def _query(path: Path, number: int, entry: Any) -> Query:  # noqa: ANN401 - whatever the JSON holds
    fields = entry if isinstance(entry, dict) else {"text": entry}
    query_id = fields.get(key_of(fields, OF_QUERIES["_id"]), number)
    text = fields.get(key_of(fields, OF_QUERIES["text"]))
    if not isinstance(text, str) or not text.strip():
        raise InputError(
            path, f"entry {number} of the list has no text; write a string or an object with one"
        )
    return Query(str(query_id), text.strip())
