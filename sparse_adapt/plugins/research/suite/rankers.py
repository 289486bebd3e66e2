"""Each row of a suite on each collection: what it finds, and what it costs.

Vectors and indexes are kept by the checksum of model and texts, part by part, so a suite that was killed goes
on where it stopped. Dimensions: Q queries, N documents, V tokens, H width of a dense model.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack

from sparse_adapt.files.cache import cached_vectors, keep_vectors
from sparse_adapt.files.marker import checksum_of_bytes, checksum_of_texts
from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.model.forms import Side
from sparse_adapt.model.idf import scaled, sqrt_idf
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.research.suite.settings import SuiteRanker
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import DEPTH, Collection
from sparse_adapt.retrieve.search import Searcher, TopDocuments, expected_products
from sparse_adapt.retrieve.vectors.manifest import stamp_of_model, token_names
from sparse_adapt.teachers.bm25 import Bm25
from sparse_adapt.teachers.teacher import Scores, add_z_scores

TEXTS_A_PART = 4096
QUERIES_AT_ONCE = 64  # whose scores of all documents are held: 64 million numbers for a million documents


class Costs(NamedTuple):
    """What a sparse ranker's vectors cost. `flops`: `search.expected_products`."""

    nonzero_document: float
    nonzero_query: float
    flops: float
    longest_list: int


@dataclass(frozen=True, slots=True)
class Sparse:
    """Queries (Q, V), documents (N, V), and the names of V tokens."""

    queries: csr_matrix
    documents: csr_matrix
    names: Sequence[str]

    def scores(self, first: int, last: int) -> NDArray[np.float32]:
        """Of some queries against every document: (queries, N)."""
        scores: NDArray[np.float32] = (self.queries[first:last] @ self.documents.T).toarray()
        return scores

    def find(self) -> list[TopDocuments]:
        """The best documents of each query."""
        return Searcher(self.documents).top_k(self.queries, DEPTH)


@dataclass(frozen=True, slots=True)
class Dense:
    """Queries (Q, H) and documents (N, H), of length 1."""

    queries: NDArray[np.float32]
    documents: NDArray[np.float32]

    def scores(self, first: int, last: int) -> NDArray[np.float32]:
        """Of some queries against every document: (queries, N)."""
        return self.queries[first:last] @ self.documents.T

    def find(self) -> list[TopDocuments]:
        """The best documents of each query."""
        return _find(len(self.queries), self.scores)


Ranker = Sparse | Dense


@dataclass(slots=True)
class Workshop:
    """Makes rankers, each once a collection. `cache` is where vectors stay; `old` where they may be already."""

    rows: dict[str, SuiteRanker]
    cache: Path | None = None
    old: Path | None = None
    device: str = "cpu"
    loaded: dict[str, tuple[SparseEncoder, str]] = field(default_factory=dict)
    wanted_files: set[str] = field(default_factory=set)  # names of files of sparse vectors

    def check(self) -> None:
        """Load every model once: a mistake in the last is better known before the first is put to work."""
        if any(row.bm25 for row in self.rows.values()):
            Bm25.fit(["a word"])  # first: what isn't installed is known at once
        for row in self.rows.values():
            for model in row.models:
                self.model(model)
            if row.dense is not None:
                DenseEncoder(row.dense)

    def model(self, source: str) -> tuple[SparseEncoder, str]:
        """A model and the checksum of its weights, vocabulary and length of texts."""
        if source not in self.loaded:
            encoder = SparseEncoder.load(source, self.device)
            made = stamp_of_model(encoder)
            parts = [made.weights_sha256, made.vocabulary_sha256, str(made.max_tokens)]
            if made.windows is not None:
                parts.append(made.windows)
            if encoder.query_side is not None:
                parts.append(checksum_of_bytes(encoder.query_side.weights.tobytes()))
            mark = checksum_of_texts(parts)
            self.loaded[source] = encoder, mark
        return self.loaded[source]

    def rankers(self, collection: Collection, progress: Progress) -> dict[str, Ranker]:
        """Every row that isn't a sum. `progress` hears of encoded documents."""
        documents = [document.full_text for document in collection.documents]
        queries = [query.text for query in collection.queries]
        made: dict[str, Ranker] = {}
        for name, row in self.rows.items():
            if row.model is not None:
                assert isinstance(row.model, str), row.model
                made[name] = self._sparse(row.model, row.scale, queries, documents, progress)
            elif row.dense is not None:
                dense = self._dense(row.dense)
                made[name] = Dense(
                    dense.encode(queries, "query"), dense.encode(documents, "document", progress=progress)
                )
            elif row.bm25:
                bm25 = Bm25.fit(documents)
                made[name] = Sparse(bm25.queries(queries), bm25.documents, bm25.stems)
                progress(len(documents))
        return made

    def vectors(self, name: str, texts: list[str], progress: Progress) -> csr_matrix:
        """The vectors of some texts as documents, by one row that isn't a sum: (N, V) or (N, H)."""
        row = self.rows[name]
        if isinstance(row.model, str):
            return self._encode(*self.model(row.model), texts, "document", progress)
        if row.dense is not None:
            return csr_matrix(self._dense(row.dense).encode(texts, "document", progress=progress))
        assert row.bm25, row
        progress(len(texts))
        return Bm25.fit(texts).documents

    def find(self, name: str, rankers: dict[str, Ranker]) -> list[TopDocuments]:
        """The best documents of each query, by one row."""
        members = self.rows[name].sum
        if members is None:
            return rankers[name].find()
        parts = [rankers[member] for member in members]
        queries = parts[0].queries.shape[0]
        return _find(queries, lambda first, last: add_z_scores([part.scores(first, last) for part in parts]))

    def _dense(self, source: str) -> DenseEncoder:
        return DenseEncoder(source, device=self.device, cache=self.cache, old=self.old)

    def _sparse(
        self, model: str, scale: str, queries: list[str], documents: list[str], progress: Progress
    ) -> Sparse:
        encoder, mark = self.model(model)
        vectors = self._encode(encoder, mark, documents, "document", progress)
        query_vectors = self._encode(encoder, mark, queries, "query", no_progress)
        if scale == "sqrt-idf":
            query_vectors = scaled(query_vectors, sqrt_idf(vectors))
        return Sparse(query_vectors, vectors, token_names(encoder))

    def _encode(
        self, encoder: SparseEncoder, mark: str, texts: list[str], side: Side, progress: Progress
    ) -> csr_matrix:
        """Vectors (texts, V), those in the cache from there."""
        parts = []
        for start in range(0, len(texts), TEXTS_A_PART):
            part = texts[start : start + TEXTS_A_PART]
            name = f"sparse-{checksum_of_texts([mark, side, *part])[:32]}.safetensors"
            vectors = self._cached(name)
            if vectors is None:
                vectors = encode(encoder, part, side)
                if self.cache is not None:
                    keep_vectors(self.cache / name, vectors)
            parts.append(vectors)
            progress(len(part))
        return csr_matrix(vstack(parts, format="csr")) if parts else encode(encoder, [], side)

    def forget_others(self) -> None:
        """Remove sparse vectors of texts or models that were others when an unfinished suite kept them."""
        for path in self.cache.glob("sparse-*.safetensors") if self.cache is not None else ():
            if path.name not in self.wanted_files:
                path.unlink()

    def _cached(self, name: str) -> csr_matrix | None:
        """Vectors (texts, V) that were encoded before."""
        self.wanted_files.add(name)
        return None if self.cache is None else cached_vectors(self.cache / name, self.old)


def costs(ranker: object) -> Costs | None:
    """What a row's vectors cost; None for rows that aren't sparse."""
    if not isinstance(ranker, Sparse):
        return None
    lists = np.bincount(ranker.documents.indices, minlength=ranker.documents.shape[1])
    documents, queries = max(1, ranker.documents.shape[0]), max(1, ranker.queries.shape[0])
    return Costs(
        nonzero_document=ranker.documents.nnz / documents,
        nonzero_query=ranker.queries.nnz / queries,
        flops=expected_products(ranker.queries, lists / documents),
        longest_list=int(lists.max(initial=0)),
    )


def mean_costs(several: Sequence[Costs]) -> Costs:
    """The mean cost of several rankers; the longest list is that of the ranker with the longest."""
    document, query, flops = np.mean([each[:3] for each in several], axis=0)
    longest = max(each.longest_list for each in several)
    return Costs(float(document), float(query), float(flops), longest)


def _find(queries: int, scores: Callable[[int, int], NDArray[np.float32]]) -> list[TopDocuments]:
    """The best documents by scores of all (some queries, N), some queries at a time."""
    return [pair for first, last in _parts(queries) for pair in best(scores(first, last), DEPTH)]


def best(scores: Scores, k: int) -> list[tuple[NDArray[np.int64], Scores]]:
    """For each query of scores (Q, N) the k documents with the highest, best first, ties in document order."""
    rankings = []
    for row in scores:
        order = np.argsort(-row, kind="stable")[:k]
        rankings.append((order, row[order]))
    return rankings


def _parts(queries: int) -> Iterator[tuple[int, int]]:
    for first in range(0, queries, QUERIES_AT_ONCE):
        yield first, min(first + QUERIES_AT_ONCE, queries)
