"""Exact search over sparse vectors in memory: what every engine is compared with.

Dimensions: N documents, V vocabulary, Q queries, E entries of tokens in blocks.
Documents that resemble each other stand side by side in blocks. For each token and block the index holds the
largest weight, so a query first adds up what the best document of each block could reach, then scores blocks
in falling order until none is left that could hold a better document than the k it has (after Mallia, Suel
and Tonellotto 2024, arXiv:2405.01117, whose weights are of 8 bits; here they are exact).
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.model.head.threads import compiled, share_out
from sparse_adapt.retrieve.columns import only, used_columns

Integers = NDArray[np.int64] | NDArray[np.int32]
Weights = NDArray[np.float32] | NDArray[np.float64] | NDArray[np.int32]  # whole ones are impacts
Number = float | np.float32
TopDocuments = tuple[NDArray[np.int64], NDArray[np.float32]]

BLOCK = 8  # documents
BUCKETS = 1024  # of block bounds
QUERIES_A_PART = 16
POSTINGS_A_QUERY = 1 << 20  # a guess, to decide on threads


def search(
    queries: csr_matrix, query_ids: Sequence[str], documents: csr_matrix, document_ids: Sequence[str], k: int
) -> Run:
    """The k best documents of each query with their scores, best first; none with a score of zero.

    queries: (Q, V); documents: (N, V).
    """
    best = top_k(queries, documents, k)
    return {
        query_id: {document_ids[row]: float(score) for row, score in zip(*each, strict=True)}
        for query_id, each in zip(query_ids, best, strict=True)
    }


def top_k(queries: csr_matrix, documents: csr_matrix, k: int) -> list[TopDocuments]:
    """For each query (Q, V) the rows and scores of its k best documents (N, V), as `Searcher` finds them."""
    return Searcher(documents).top_k(queries, k)


def best_of_blocks(
    queries: csr_matrix, blocks: Iterable[tuple[Sequence[str], csr_matrix]], k: int
) -> list[list[tuple[str, float]]]:
    """The k best documents of each query (Q, V) with their scores, as `Searcher` finds them in all blocks at once.

    blocks: ids and vectors (rows, V), taken in turn: memory for one of them.
    """
    best: list[list[tuple[float, int, str]]] = [[] for _ in range(queries.shape[0])]
    before = 0
    for ids, vectors in blocks:
        for query, (rows, scores) in enumerate(top_k(queries, vectors, k)):
            hits = [
                (-float(score), before + int(row), ids[row]) for row, score in zip(rows, scores, strict=True)
            ]
            best[query] = sorted([*best[query], *hits])[:k]
        before += len(ids)
    return [[(document_id, -score) for score, _, document_id in of_query] for of_query in best]


def expected_products(queries: csr_matrix, document_shares: NDArray[np.float64]) -> float:
    """Tokens that an average query and an average document share: sum over tokens of the product of shares.

    document_shares: (V) share of documents in which each token has weight. Paria et al. 2020, arXiv:2004.05665,
    as Formal et al. 2021 report it for SPLADE.
    """
    query_shares = np.bincount(queries.indices, minlength=queries.shape[1]) / max(1, queries.shape[0])
    return float(query_shares @ document_shares)


class Postings(NamedTuple):
    """Documents by token, in an order of ours, and their blocks by token.

    order: (N) the document at each place; places, weights: those of one token's documents after another's.
    A token's entries are those from `entry_starts[token]` to `entry_starts[token + 1]`: one for each block
    that has it, in block order, with its largest weight and where its postings start.
    """

    order: Integers
    places: Integers
    weights: Weights
    entry_starts: Integers
    entry_blocks: Integers
    entry_largest: Weights
    entry_postings: Integers


class Searcher:
    """Documents (N, V) prepared once for many queries."""

    def __init__(self, documents: csr_matrix) -> None:
        if not documents.has_canonical_format:
            documents = documents.copy()
            documents.sum_duplicates()
        self.columns = used_columns([documents])
        documents = only(documents, self.columns)
        self.documents = documents.shape[0]
        self.bounded = documents.nnz == 0 or float(documents.data.min()) >= 0.0
        order = _likeness_order(documents)
        columns = documents[order].tocsc()
        counts = _count_entries(columns.indptr, columns.indices)
        starts = np.concatenate([[0], counts.cumsum()])
        entries = _fill_entries(columns.indptr, columns.indices, columns.data, starts)
        self.postings = Postings(order, columns.indices, columns.data, starts, *entries)

    def top_k(self, queries: csr_matrix, k: int) -> list[TopDocuments]:
        """The rows and scores of the k best documents of each query (Q, V), best first.

        Scores are sums of products in float64, rounded to float32; equal ones stand in the order of the
        documents, and only those above zero are found.
        """
        queries, rows = only(queries, self.columns), queries.shape[0]
        rows_of_best = np.zeros((rows, min(k, self.documents)), np.int64)
        scores = np.zeros(rows_of_best.shape, np.float32)
        counts = np.zeros(rows, np.int64)
        arrays = queries.indptr, queries.indices, queries.data, rows_of_best, scores, counts
        bounded = self.bounded and (queries.nnz == 0 or float(queries.data.min()) >= 0.0)

        def search_part(first: int) -> None:
            _search(self.postings, *arrays, first, min(first + QUERIES_A_PART, rows), bounded)

        share_out(lambda: search_part, range(0, rows, QUERIES_A_PART), rows * POSTINGS_A_QUERY)
        return [(rows_of_best[row, :count], scores[row, :count]) for row, count in enumerate(counts)]


def _likeness_order(documents: csr_matrix) -> NDArray[np.int64]:
    """Documents (N, V) by their most telling token, then by the next ones, so that alike ones are neighbours: (N,)."""
    present = np.bincount(documents.indices, minlength=documents.shape[1])
    rarity = np.log((documents.shape[0] + 1) / (present + 1))
    tokens = _telling_tokens(documents.indptr, documents.indices, documents.data * rarity[documents.indices])
    return np.lexsort(tokens.T[::-1])


@compiled
def _telling_tokens(starts: Integers, tokens: Integers, weights: Weights) -> NDArray[np.int32]:
    """The three heaviest tokens of each row, heaviest first (N, 3); -1 where there are fewer. CSR: starts (N + 1)."""
    heaviest = np.full((len(starts) - 1, 3), -1, np.int32)
    for row in range(len(starts) - 1):
        best = np.zeros(3, np.float64)
        for posting in range(starts[row], starts[row + 1]):
            token, weight = tokens[posting], weights[posting]
            for rank in range(3):
                if weight > best[rank]:
                    weight, best[rank] = best[rank], weight
                    token, heaviest[row, rank] = heaviest[row, rank], token
    return heaviest


@compiled
def _count_entries(starts: Integers, places: Integers) -> NDArray[np.int64]:
    """In how many blocks each token occurs (V,). CSC: starts (V + 1), places of the postings."""
    counts = np.zeros(len(starts) - 1, np.int64)
    for token in range(len(counts)):
        last = -1
        for posting in range(starts[token], starts[token + 1]):
            block = places[posting] // BLOCK
            counts[token] += block != last
            last = block
    return counts


@compiled
def _fill_entries(
    starts: Integers, places: Integers, weights: Weights, entry_starts: Integers
) -> tuple[NDArray[np.int32], NDArray[np.float32], NDArray[np.int64]]:
    """Block (E,), largest weight (E,) and first posting (E + 1) of every entry; the postings end with their number.

    CSC: starts (V + 1), places and weights of the postings; entry_starts: (V + 1), the last of them E.
    """
    blocks = np.empty(entry_starts[-1], np.int32)
    largest = np.empty(entry_starts[-1], np.float32)
    postings = np.empty(entry_starts[-1] + 1, np.int64)
    entry = -1
    for token in range(len(starts) - 1):
        last = -1
        for posting in range(starts[token], starts[token + 1]):
            block = places[posting] // BLOCK
            if block != last:
                entry += 1
                blocks[entry], largest[entry], postings[entry] = block, weights[posting], posting
                last = block
            largest[entry] = max(largest[entry], weights[posting])
    postings[entry + 1] = len(places)
    return blocks, largest, postings


@compiled
def _search(
    index: Postings,
    starts: Integers,
    tokens: Integers,
    weights: Weights,
    best: Integers,
    scores: Weights,
    counts: Integers,
    first: int,
    last: int,
    bounded: bool,
) -> None:
    """Write the best documents of the queries from `first` to `last`.

    CSR: starts (Q + 1), tokens and weights of the queries; best, scores: (Q, k) to be written, counts: (Q,).
    """
    bounds = np.zeros((len(index.order) + BLOCK - 1) // BLOCK)
    sums = np.zeros(BLOCK)
    for query in range(first, last):
        part = slice(starts[query], starts[query + 1])
        terms, token_scales = tokens[part], weights[part]
        _add_bounds(index, terms, token_scales, bounds, bounded)
        count = 0
        for block in _falling(bounds):
            bound = np.float32(bounds[block] * (1 + 1e-9))
            if count == best.shape[1] and (count == 0 or bound < scores[query, 0]):
                continue
            _score_block(index, terms, token_scales, block, sums)
            for place in range(block * BLOCK, min((block + 1) * BLOCK, len(index.order))):
                score = np.float32(sums[place - block * BLOCK])
                if score > 0:
                    count = _keep(best[query], scores[query], count, index.order[place], score)
        counts[query] = count
        _sort_kept(best[query], scores[query], count)


@compiled
def _add_bounds(
    index: Postings, terms: Integers, token_scales: Weights, bounds: Weights, bounded: bool
) -> None:
    """What no document of a block can exceed: the sum of its largest weights; infinity if signs are mixed."""
    bounds[:] = 0.0 if bounded else np.inf
    if bounded:
        for term, factor in zip(terms, token_scales):  # noqa: B905 (numba knows no strict)
            for entry in range(index.entry_starts[term], index.entry_starts[term + 1]):
                bounds[index.entry_blocks[entry]] += np.float64(factor) * index.entry_largest[entry]


@compiled
def _falling(bounds: Weights) -> NDArray[np.int64]:
    """Blocks with a bound (blocks,) above zero, from high to low in `BUCKETS` steps."""
    highest = bounds.max() if len(bounds) else 0.0
    if highest == 0.0 or highest == np.inf:
        return np.arange(len(bounds) if highest else 0)
    scale = (BUCKETS - 1) / highest
    ends = np.zeros(BUCKETS + 1, np.int64)
    for bound in bounds:
        if bound > 0:
            ends[BUCKETS - int(bound * scale)] += 1
    ends = ends.cumsum()
    blocks = np.empty(ends[-1], np.int64)
    for block in range(len(bounds)):
        if bounds[block] > 0:
            bucket = BUCKETS - 1 - int(bounds[block] * scale)
            blocks[ends[bucket]] = block
            ends[bucket] += 1
    return blocks


@compiled
def _score_block(index: Postings, terms: Integers, token_scales: Weights, block: int, sums: Weights) -> None:
    """Write the scores of a block's documents (BLOCK,), float64; terms, token_scales: a query's (n,)."""
    sums[:] = 0.0
    for term, factor in zip(terms, token_scales):  # noqa: B905
        low, high = index.entry_starts[term], index.entry_starts[term + 1]
        while low < high:
            middle = (low + high) // 2
            if index.entry_blocks[middle] < block:
                low = middle + 1
            else:
                high = middle
        if low < index.entry_starts[term + 1] and index.entry_blocks[low] == block:
            for posting in range(index.entry_postings[low], index.entry_postings[low + 1]):
                sums[index.places[posting] - block * BLOCK] += np.float64(factor) * index.weights[posting]


@compiled
def _worse(score: Number, document: int, other_score: Number, other_document: int) -> bool:
    return bool(score < other_score or (score == other_score and document > other_document))


@compiled
def _keep(documents: Integers, scores: Weights, count: int, document: int, score: Number) -> int:
    """Add a document to a heap (k,), worst first, or instead of that one where it is full; the new count."""
    if count < len(documents):
        child = count
        while child > 0:
            parent = (child - 1) // 2
            if not _worse(score, document, scores[parent], documents[parent]):
                break
            documents[child], scores[child] = documents[parent], scores[parent]
            child = parent
        documents[child], scores[child] = document, score
        return count + 1
    if count > 0 and _worse(scores[0], documents[0], score, document):
        _sink(documents, scores, count, document, score)
    return count


@compiled
def _sink(documents: Integers, scores: Weights, count: int, document: int, score: Number) -> None:
    """Replace the first of a heap (k,)."""
    parent = 0
    while 2 * parent + 1 < count:
        child = 2 * parent + 1
        other = child + 1
        if other < count and _worse(scores[other], documents[other], scores[child], documents[child]):
            child = other
        if not _worse(scores[child], documents[child], score, document):
            break
        documents[parent], scores[parent] = documents[child], scores[child]
        parent = child
    documents[parent], scores[parent] = document, score


@compiled
def _sort_kept(documents: Integers, scores: Weights, count: int) -> None:
    """Turn the heap (k,) into a list, best first: the worst goes to the end, again and again."""
    for last in range(count - 1, 0, -1):
        document, score = documents[last], scores[last]
        worst_document, worst_score = documents[0], scores[0]
        _sink(documents, scores, last, document, score)
        documents[last], scores[last] = worst_document, worst_score
