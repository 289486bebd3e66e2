"""What a glossary could add to queries that say an entry of it, before anything learns.

    python -m benchmarks.glossary CORPUS GLOSSARY

Titles and telling sentences are cut out of documents and asked; each has to find its document. To the base model's
scores is added what an expansion by the glossary, or a dimension for each entry, would bring if it were perfect.
Dimensions: Q queries that say an entry, N documents, E entries.
"""

import sys
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.collection.streams import sample
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.selection.evidence import evidence_of
from sparse_adapt.synthetic.queries import Collected, QuerySettings, make_queries
from sparse_adapt.terms.entries import EntryKeys, read_entries
from sparse_adapt.terms.uses import Finder

DOCUMENTS, QUERIES, HELD_OUT = 1_500, 1_400, 100
TOKENS, FIRST = 256, 10
LONGEST = 400  # signs of a definition
EXPANDED, MATCHED = (0.05, 0.1, 0.2), (0.25, 0.5, 1.0)  # weights that are tried


def mentions(finder: Finder, texts: list[str]) -> NDArray[np.bool_]:
    """Which entries each text says: (texts, E)."""
    marks = np.zeros((len(texts), len(finder.entries)), dtype=np.bool_)
    for row, text in enumerate(texts):
        marks[row, [number for number, _ in finder.in_text(text)]] = True
    return marks


def beginning(model: SparseEncoder, text: str) -> str:
    """As much of a text as the model reads."""
    spans = model.tokenizer(text, truncation=True, max_length=TOKENS, return_offsets_mapping=True)[
        "offset_mapping"
    ]
    return text[: max(end for _, end in spans)]


def reciprocal_ranks(scores: NDArray[np.floating], sources: NDArray[np.int64]) -> NDArray[np.float64]:
    """One over the rank of each query's source by scores (Q, N), 0 beyond the first ten."""
    ranks = 1 + (scores > np.take_along_axis(scores, sources[:, None], axis=1)).sum(axis=1)
    return np.where(ranks <= FIRST, 1.0 / ranks, 0.0)


class Queries(NamedTuple):
    """Queries that say an entry: which (Q, E), their scores (Q, N), and the row of the document each was cut from."""

    says: NDArray[np.float64]
    scores: NDArray[np.float64]
    sources: NDArray[np.int64]

    def gain(self, name: str, weight: float, more: NDArray[np.floating]) -> str:
        """What so much of other scores (Q, N) adds, in words."""
        before = reciprocal_ranks(self.scores, self.sources)
        after = reciprocal_ranks(self.scores + weight * more, self.sources)
        return str(evidence_of(f"{name}, weight {weight}", after, before))


def measure(corpus: str, glossary: str) -> Iterator[str]:
    """MRR@10 of the queries that say an entry, then a line for the gain of each way and weight."""
    model = SparseEncoder.load("splade-tiny")
    model.read_up_to(TOKENS)
    settings = QuerySettings(count=QUERIES, held=HELD_OUT, phrases=0, cut=True)
    made = make_queries(sample(read_documents(corpus), DOCUMENTS, 0), settings)
    keys = EntryKeys(model.tokenizer)
    entries = read_entries(read_dictionary(glossary), keys).entries
    finder, texts = Finder(entries, keys), [each.full_text for each in made.documents]
    documents = encode(model, texts, "document").T.tocsr()
    queries = _encode(model, made, mentions(finder, [query.text for query in made.queries]), documents)
    mean = reciprocal_ranks(queries.scores, queries.sources).mean()
    yield f"{len(entries):,} entries, {len(queries.says):,} queries that say one, MRR@10 {mean:.3f}"
    definitions = [each.definition[:LONGEST] for each in entries]
    for way, ways in (("definition", definitions), ("forms", [" ".join(each.forms) for each in entries])):
        more = (csr_matrix(queries.says) @ encode(model, ways, "query") @ documents).toarray()
        yield from (queries.gain(f"expanded by {way}", weight, more) for weight in EXPANDED)
    holds = mentions(finder, [beginning(model, text) for text in texts]).astype(np.float64)
    rarity = np.log((len(texts) + 1) / (holds.sum(axis=0) + 1))
    phrases = np.array([each.is_phrase for each in entries])
    for kind, chosen in (("entries", np.ones_like(phrases)), ("phrases", phrases), ("words", ~phrases)):
        more = (queries.says * rarity * chosen) @ holds.T
        yield from (queries.gain(f"{kind} matched", weight, more) for weight in MATCHED)


def _encode(model: SparseEncoder, made: Collected, says: NDArray[np.bool_], documents: csr_matrix) -> Queries:
    """The queries that say an entry, of all (queries, E); documents: (V, N)."""
    rows = np.flatnonzero(says.any(axis=1))
    place = {each.document_id: row for row, each in enumerate(made.documents)}
    queries = [made.queries[row] for row in rows]
    scores = (encode(model, [query.text for query in queries], "query") @ documents).toarray()
    return Queries(
        says[rows].astype(np.float64), scores, np.array([place[query.document_id] for query in queries])
    )


if __name__ == "__main__":
    for line in measure(*sys.argv[1:3]):
        print(line, flush=True)
