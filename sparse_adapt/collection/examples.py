"""Training examples in files: queries with scored documents, pairs, and texts with what contradicts them.

| what | file | a line |
|---|---|---|
| candidates | `candidates.jsonl` | `query_id`, `query`, `doc_ids`, `teacher_scores`, optional `doc_texts` |
| pairs | `pairs.jsonl` | `query`, `doc_id`, optional `query_id`, for the stages `joint` and `contrast` |
| triplets | `triplets.jsonl` | `anchor`, `contradictions`, optional `replaced`: what `contradict` writes |
|  |  | `anchor`, `entailment`, `contradiction`: an inference pair that somebody labelled |

A query may occur in more than one pair, each time with another document: the documents of a query, like texts that
occur twice, are never taken for its negatives. `replaced` names the words that each contradiction gave others for.
Either form of a triplet may hold the fields of the other. Whatever is wrong raises InputError with the line.
"""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.columns import Keys, Names
from sparse_adapt.collection.lines import JsonLine, read_json, write_objects
from sparse_adapt.collection.opening import Location, reachable, variants
from sparse_adapt.collection.readers import outside
from sparse_adapt.collection.sources import file_of
from sparse_adapt.collection.streams import Unique, at_least_one

CANDIDATE_FILES = variants("candidates.jsonl")
OF_CANDIDATES: Names = {
    "query_id": ("query_id", "qid", "query-id", "_id", "id"),
    "query": ("query", "text"),
}
PAIR_FILES = variants("pairs.jsonl")


@dataclass(frozen=True, slots=True)
class Candidates:
    """A query, documents for it, and how relevant a teacher finds each: any real number, higher is better."""

    query_id: str
    query: str
    document_ids: tuple[str, ...]
    teacher_scores: tuple[float, ...]
    texts: tuple[str, ...] = ()


class Pair(NamedTuple):
    """What somebody might ask, and the id of a document that answers it."""

    query: str
    document_id: str
    query_id: str = ""


class Triplet(NamedTuple):
    """An anchor and its contradictions; without an entailment the anchor itself is what says the same."""

    anchor: str
    contradictions: tuple[str, ...]
    entailment: str = ""
    replaced: tuple[str, ...] = ()


# -- candidates ----------------------------------------------------------------------------------


def read_candidates(
    source: str | Path, *, document_ids: Container[str] | None = None
) -> Iterator[Candidates]:
    """Every query with its scored documents, from `candidates.jsonl`.

    Where the ids of the corpus are given, any other id is an error unless the file holds the texts itself.
    """
    return _read_candidates(file_of(source, CANDIDATE_FILES), document_ids)


def write_candidates(path: str | Path, candidates: Iterable[Candidates]) -> int:
    """Write `candidates.jsonl`; says how many queries."""
    return write_objects(
        path,
        (
            {
                "query_id": each.query_id,
                "query": each.query,
                "doc_ids": each.document_ids,
                "teacher_scores": each.teacher_scores,
            }
            | ({"doc_texts": each.texts} if each.texts else {})
            for each in candidates
        ),
    )


def _read_candidates(path: Location, document_ids: Container[str] | None) -> Iterator[Candidates]:
    unique, keys = Unique(path, "query id"), Keys(OF_CANDIDATES)
    for record in at_least_one(read_json(path, "candidates"), path, "candidates"):
        candidates = _candidates(record, keys.of(record))
        unique.add(candidates.query_id, record.line)
        for document_id in candidates.document_ids:
            if document_ids is not None and not candidates.texts and document_id not in document_ids:
                raise outside(path, document_id, record.line)
        yield candidates


def _candidates(record: JsonLine, keys: Mapping[str, str]) -> Candidates:
    query_id, query = record.identifier(keys["query_id"]), record.words(keys["query"])
    documents, scores = record.identifiers("doc_ids"), record.numbers("teacher_scores")
    texts = record.strings("doc_texts")
    if not documents:
        raise record.error('"doc_ids" is empty; give the query a document or remove the line')
    for key, values in (("teacher_scores", scores), ("doc_texts", texts or documents)):
        if len(values) != len(documents):
            counts = f'{len(documents)} "doc_ids" but {len(values)} "{key}"'
            raise record.error(f"{counts}; give every document one")
    if len(set(documents)) < len(documents):
        double = next(document for document in documents if documents.count(document) > 1)
        raise record.error(f'"doc_ids" holds "{double}" twice; remove one of them')
    return Candidates(query_id, query, documents, scores, texts)


# -- pairs ---------------------------------------------------------------------------------------


def read_pairs(source: str | Path, *, document_ids: Container[str] | None = None) -> Iterator[Pair]:
    """Every pair of a file, or of `pairs.jsonl` in a folder.

    Where the ids of the corpus are given, any other is an error, as is a pair that occurs twice.
    """
    path = file_of(source, PAIR_FILES)
    seen: dict[tuple[str, str], int] = {}
    for record in at_least_one(read_json(path, "pairs"), path, "pairs"):
        query, document_id = record.words("query"), record.identifier("doc_id")
        first = seen.setdefault((query, document_id), record.line)
        if first != record.line:
            raise record.error(f"the pair on line {first} again; remove one of them")
        if document_ids is not None and document_id not in document_ids:
            raise record.error(f'no document "{document_id}" in the corpus; remove the pair')
        query_id = record.fields.get("query_id")
        yield Pair(query, document_id, "" if query_id is None else record.identifier("query_id"))


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


# -- triplets ------------------------------------------------------------------------------------


def read_triplets(path: str | Path) -> Iterator[Triplet]:
    """Every triplet of a file. Raises InputError where an anchor or its contradictions are missing."""
    place = reachable(path)
    for record in at_least_one(read_json(place, "triplets"), place, "triplets"):
        anchor, contradictions = record.words("anchor"), _contradictions(record)
        for text in contradictions:
            if not text.strip():
                raise record.error("a contradiction is empty; fill it in or remove it")
            if _key(text) == _key(anchor):
                raise record.error("a contradiction is the anchor itself; remove it")
        entailment = record.words("entailment") if record.fields.get("entailment") is not None else ""
        yield Triplet(anchor, contradictions, entailment, record.strings("replaced"))


def write_triplets(path: str | Path, triplets: Iterable[Triplet]) -> int:
    """Write `triplets.jsonl`; says how many."""
    return write_objects(
        path,
        (
            {"anchor": each.anchor}
            | ({"entailment": each.entailment} if each.entailment else {})
            | {"contradictions": list(each.contradictions)}
            | ({"replaced": list(each.replaced)} if each.replaced else {})
            for each in triplets
        ),
    )


def _contradictions(record: JsonLine) -> tuple[str, ...]:
    if record.fields.get("contradiction") is not None:
        return (record.words("contradiction"), *record.strings("contradictions"))
    if "contradictions" not in record.fields:
        raise record.needs("a list of strings", "contradictions")
    texts = record.strings("contradictions")
    if not texts:
        raise record.error('"contradictions" is empty; fill it in or remove the line')
    return texts


def _key(text: str) -> str:
    return " ".join(text.split()).casefold()
