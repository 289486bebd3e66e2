"""Queries and a document that each should find: `pairs.jsonl`, which stages `joint` and `contrast` learn from.

    {"query": "lift of a wing in a slipstream", "doc_id": "1"}

`query_id` may stand beside them. A query may occur more than once, each time with another document: the
documents of a query, like texts that occur twice, are never taken for its negatives.
"""

from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.addresses import reachable
from sparse_adapt.collection.lines import at_least_one, read_objects, write_objects
from sparse_adapt.collection.sources import Dataset, bundled, locate
from sparse_adapt.errors import InputError

PAIR_FILES = ("pairs.jsonl", "pairs.jsonl.gz")


class Pair(NamedTuple):
    """What somebody might ask, and the id of a document that answers it."""

    query: str
    document_id: str
    query_id: str = ""


def read_pairs(source: str | Path, *, document_ids: Container[str] | None = None) -> Iterator[Pair]:
    """Every pair of a file, or of `pairs.jsonl` in a folder.

    Where the ids of the corpus are given, any other is an error, as is a pair that occurs twice. Raises
    InputError with the line.
    """
    path = locate(source, PAIR_FILES) if bundled(source).is_dir() else reachable(source)
    assert not isinstance(path, Dataset)
    seen: dict[tuple[str, str], int] = {}
    for record in at_least_one(read_objects(path), path, "pairs"):
        query, document_id = record.words("query"), record.identifier("doc_id")
        first = seen.setdefault((query, document_id), record.line)
        if first != record.line:
            raise record.error(f"the pair on line {first} again; remove one of them")
        if document_ids is not None and document_id not in document_ids:
            raise InputError(
                path, f'no document "{document_id}" in the corpus; remove the pair', line=record.line
            )
        given = record.fields.get("query_id")
        yield Pair(query, document_id, "" if given is None else record.identifier("query_id"))


def write_pairs(path: str | Path, pairs: Iterable[Pair]) -> int:
    """Write `pairs.jsonl`; says how many."""
    return write_objects(
        path,
        (
            ({"query_id": pair.query_id} if pair.query_id else {})
            | {"query": pair.query, "doc_id": pair.document_id}
            for pair in pairs
        ),
    )
