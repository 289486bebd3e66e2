"""Exact top ten over 200,000 vectors, query by query: this project and a scipy product with argpartition.

    python -m benchmarks.searching --data DIR

The documents are medquad, encoded once and repeated with seeded noise: every weight times a log-normal factor
of spread 0.2, one entry in ten dropped. The scipy contestant has its transposed matrix ready.
"""

from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch
from scipy.sparse import csr_matrix, vstack

from benchmarks.measure import CLOCKS, options
from sparse_adapt.collection.readers import read_documents, read_queries
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.search import Searcher

MODEL = "splade-tiny"
DOCUMENTS, K = 200_000, 10
NOISE, DROPPED = 0.2, 0.1
OURS, SCIPY = "sparse-adapt", "scipy"


def repeated(vectors: csr_matrix, count: int) -> csr_matrix:
    """The vectors again and again with seeded noise, `count` rows."""
    generator = np.random.default_rng(0)
    parts: list[csr_matrix] = []
    while sum(part.shape[0] for part in parts) < count:
        part = vectors.copy()
        part.data = (part.data * generator.lognormal(0.0, NOISE, part.nnz)).astype(np.float32)
        part.data[generator.random(part.nnz) < DROPPED] = 0.0
        part.eliminate_zeros()
        parts.append(part)
    return vstack(parts, format="csr")[:count]


def scipy_search(columns: csr_matrix) -> Callable[[csr_matrix], np.ndarray]:
    """Rows of the ten best of one query by a product with the transposed matrix, in no order among ties."""

    def search(query: csr_matrix) -> np.ndarray:
        scores = (query @ columns).toarray().ravel()
        best = np.argpartition(-scores, K)[:K]
        return best[np.argsort(-scores[best], kind="stable")]

    return search


def agree(searcher: Searcher, documents: csr_matrix, queries: csr_matrix) -> bool:
    """Whether all rankings are those of a whole sort of float64 scores, ties in document order."""
    for row, (ranking, _) in enumerate(searcher.top_k(queries, K)):
        scores = (documents.astype(np.float64) @ queries[row].T.astype(np.float64)).toarray().ravel()
        expected = np.argsort(-scores.astype(np.float32), kind="stable")[:K]
        if not np.array_equal(ranking, expected[scores[expected] > 0]):
            return False
    return True


def measure(data: Path, turns: int, clock: str) -> dict[str, object]:
    """The row of the table: milliseconds a query on one thread."""
    model = SparseEncoder.load(MODEL)
    vectors = encode(model, [each.full_text for each in read_documents(data / "medquad")], "document")
    queries = encode(model, [each.text for each in read_queries(data / "medquad")], "query")
    documents = repeated(vectors, DOCUMENTS)
    torch.set_num_threads(1)
    start = CLOCKS[clock]()
    searcher = Searcher(documents)
    build_seconds = CLOCKS[clock]() - start
    contestants: dict[str, Callable[[csr_matrix], object]] = {
        OURS: lambda query: searcher.top_k(query, K),
        SCIPY: scipy_search(documents.T.tocsr()),
    }
    each_query: dict[str, list[float]] = {name: [] for name in contestants}
    for row in range(queries.shape[0]):
        query = queries[row]
        for name, search in contestants.items():
            each_query[name].append(median(_seconds(search, query, clock) for _ in range(turns)))
    pairs = zip(each_query[OURS], each_query[SCIPY], strict=True)
    return {
        "work": f"top {K} of {DOCUMENTS:,} texts, {queries.shape[0]} queries, one thread",
        "seconds": {name: median(times) for name, times in each_query.items()},
        "mean_seconds": {name: float(np.mean(times)) for name, times in each_query.items()},
        "slowest_twentieth": {name: float(np.quantile(times, 0.95)) for name, times in each_query.items()},
        "ratio": {SCIPY: median(theirs / ours for ours, theirs in pairs)},
        "build_seconds": build_seconds,
        "same_results": agree(searcher, documents, queries),
    }


def _seconds(search: Callable[[csr_matrix], object], query: csr_matrix, clock: str) -> float:
    now = CLOCKS[clock]
    start = now()
    search(query)
    return now() - start


def main() -> None:
    """Print the row."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    print(measure(arguments.data, arguments.turns, arguments.clock))


if __name__ == "__main__":
    main()
