"""How little a query's expansions have to do with the documents that they find: WackinessScore and W-AUC.

After "Understanding Wacky Weights" (2026, arXiv:2605.19628) and its public code. The use of an expansion t of a query
is idf(t) * sum over the first documents d_0, d_1, ... of tf(t, d_i) / ln(1 + |d_i|) / ln(2 + i), where tf counts the
token in the text and idf(t) = ln((N + 1) / (df + 1)) + 1. A token's use is its mean over the queries that it expands,
as a share of the most useful token's; its wackiness is 1 less that. W-AUC is the area under the tokens' wackiness from
the highest to the lowest, over a width of 1, so models of several vocabularies compare. Departures: fewer queries; a
token counts from its second query on (the code asks for four of ten thousand).
Dimensions: N documents, V vocabulary.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.search import Searcher

FIRST = 100  # documents of a query
LEAST = 2  # queries that a token has to expand
CHUNKS = 1000


class Wackiness(NamedTuple):
    """The wackiness of each token that expands enough queries, from 0 to 1, and the area under all of them."""

    tokens: dict[int, float]
    area: float


def measure_wackiness(
    model: SparseEncoder,
    searcher: Searcher,
    texts: Sequence[str],
    query_texts: Sequence[str],
    queries: csr_matrix,
) -> Wackiness:
    """Of queries (queries, V) and their texts, over the documents of a searcher whose texts are these."""
    counts, lengths = _counted(model, texts)
    counts_of = np.bincount(counts.indices, minlength=counts.shape[1])
    rarity = np.log((len(texts) + 1) / (counts_of + 1)) + 1
    scaled = counts.multiply(1 / np.log(1 + lengths)[:, None]).tocsr()
    sums, seen = np.zeros(counts.shape[1]), np.zeros(counts.shape[1], np.int64)
    special = np.array(model.tokenizer.all_special_ids)
    written = model.tokenize(query_texts, "query")
    for row, (documents, _) in enumerate(searcher.top_k(queries, FIRST)):
        expansions = np.setdiff1d(queries[row].indices, [*written[row], *special])
        decay = 1 / np.log(2 + np.arange(len(documents)))
        use = decay @ scaled[documents][:, expansions] if len(documents) else np.zeros(len(expansions))
        sums[expansions] += np.asarray(use).ravel() * rarity[expansions]
        seen[expansions] += 1
    tokens = np.flatnonzero(seen >= LEAST)
    wacky = wackiness_of(sums[tokens] / seen[tokens]) if len(tokens) else np.zeros(0)
    named = {int(token): float(each) for token, each in zip(tokens, wacky, strict=True)}
    return Wackiness(named, area_under(wacky))


def wackiness_of(use: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 less each token's use as a share of the largest: (tokens)."""
    largest = float(use.max(initial=0.0))
    return np.ones_like(use) if largest <= 0 else np.asarray(1 - use / largest)


def area_under(wacky: NDArray[np.float64]) -> float:
    """W-AUC: the area under the sorted wackiness (tokens,), averaged in chunks, over a width of 1."""
    if not len(wacky):
        return 0.0
    chunks = [each.mean() for each in np.array_split(np.sort(wacky)[::-1], CHUNKS) if len(each)]
    if len(chunks) == 1:
        return float(chunks[0])
    return float(np.trapezoid(chunks) / (len(chunks) - 1))


def _counted(model: SparseEncoder, texts: Sequence[str]) -> tuple[csr_matrix, NDArray[np.float64]]:
    """How often each text says each token (N, V), and how many tokens it has (N), special ones left out."""
    special = set(model.tokenizer.all_special_ids)
    token_ids = [[each for each in ids if each not in special] for ids in model.tokenize(texts)]
    lengths = np.array([max(1, len(ids)) for ids in token_ids], np.float64)
    starts = np.concatenate([[0], np.cumsum([len(ids) for ids in token_ids])])
    indices = np.array([each for ids in token_ids for each in ids], np.int64)
    counts = csr_matrix(
        (np.ones(len(indices)), indices, starts), shape=(len(texts), model.vocabulary_size), dtype=np.float64
    )
    counts.sum_duplicates()
    return counts, lengths
