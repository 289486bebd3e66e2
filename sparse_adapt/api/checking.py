"""A corpus and all files beside it, read to the end: how much of what there is, and what doesn't fit together."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.glossary import DICTIONARY_FILES, read_dictionary
from sparse_adapt.collection.pairs import PAIR_FILES, read_pairs
from sparse_adapt.collection.readers import (
    CANDIDATE_FILES,
    QUERY_FILES,
    Judgements,
    read_candidates,
    read_documents,
    read_judgements,
    read_queries,
)
from sparse_adapt.collection.sources import beside, bundled
from sparse_adapt.collection.triplets import read_triplets
from sparse_adapt.terms.mining import read_terms


class Checked(NamedTuple):
    """How many of each there are, and what the owner should know."""

    counts: dict[str, int]
    remarks: list[str]


def check_collection(corpus: str) -> Checked:
    """Read a corpus, and every file of a known name in its folder or beside its file, judgements of every split too.

    Raises InputError for the first line that is wrong.
    """
    texts = {document.document_id: document.full_text for document in read_documents(corpus)}
    counts, remarks = {"documents": len(texts)}, list[str]()
    if wordless := sum(not text.strip() for text in texts.values()):
        remarks.append(f"{wordless:,} of {len(texts):,} documents hold no text, and so nothing finds them")
    queries: set[str] | None = None
    if (path := _first(corpus, QUERY_FILES)) is not None:
        queries = {query.query_id for query in read_queries(path)}
        counts["queries"] = len(queries)
    for path in _splits(corpus):
        judgements = read_judgements(path)
        counts[f"judgements of {path.name.split('.')[0]}"] = sum(map(len, judgements.values()))
        remarks += _strangers(path, judgements, set(texts), queries)
    others: dict[str, tuple[Sequence[str], Callable[[Path], Sequence[object]]]] = {
        "candidates": (CANDIDATE_FILES, lambda file: list(read_candidates(file, document_ids=texts))),
        "pairs": (PAIR_FILES, lambda file: list(read_pairs(file, document_ids=texts))),
        "triplets": (("triplets.jsonl",), lambda file: list(read_triplets(file))),
        "labelled": (("labelled.jsonl",), lambda file: list(read_triplets(file))),
        "terms": (("terms.json",), read_terms),
        "dictionary": (DICTIONARY_FILES, read_dictionary),
    }
    for name, (files, read) in others.items():
        if (path := _first(corpus, files)) is not None:
            counts[name] = len(read(path))
    return Checked(counts, remarks)


def _first(corpus: str, names: Sequence[str]) -> Path | None:
    """The first of some files that lies in a corpus's folder, or beside its file."""
    return next((path for name in names if (path := beside(corpus, name)) is not None), None)


def _splits(corpus: str) -> list[Path]:
    """The judgements in the folder `qrels`, every split of them."""
    place = bundled(corpus)
    folder = place if place.is_dir() else place.parent
    return (
        sorted(path for path in (folder / "qrels").glob("*.tsv*") if path.is_file()) if place.exists() else []
    )


def _strangers(
    path: Path, judgements: Judgements, documents: set[str], queries: set[str] | None
) -> list[str]:
    """What is judged and isn't there: documents that count as not found, queries that nobody can ask."""
    judged = list(dict.fromkeys(each for of_query in judgements.values() for each in of_query))
    remarks = []
    if unknown := [each for each in judged if each not in documents]:
        share = f"{len(unknown):,} of {len(judged):,} judged documents"
        remarks.append(f"{path.name}: {share} aren't in the corpus ({unknown[0]!r}), and count as not found")
    if unasked := [each for each in judgements if queries is not None and each not in queries]:
        share = f"{len(unasked):,} of {len(judgements):,} judged queries"
        remarks.append(f"{path.name}: {share} aren't among the queries ({unasked[0]!r}), and are left out")
    return remarks
