"""A weight for each token, so that queries need no model: tokenised, looked up, done.

The table is a JSON object of tokens and weights, the `idf.json` of OpenSearch's doc-only mode and of
`SparseStaticEmbedding` in sentence-transformers. A query has each of its tokens once. The weight is the inverse
document frequency over the exported vectors, ln(1 + (N - n + .5) / (n + .5)) for a token that n of N documents
have a weight for (Geng, Wang, Ru and Yang 2024, arXiv:2411.04403, take n from the texts instead), or learnt: the
one with which a query's documents score most like the model's own query would have them.
Dimensions: N documents, V vocabulary.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags, vstack
from scipy.sparse.linalg import lsqr

from sparse_adapt.engines.quantise import summed
from sparse_adapt.errors import InputError
from sparse_adapt.files.folders import write_json
from sparse_adapt.model.query_side import read_weights as read_weights
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.search import Searcher
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

FITTED_DOCUMENTS = 30  # documents of each query that the learnt weights are fitted to
CAUTION = 1.0  # how hard a learnt weight is held to the one it starts from

Weights = NDArray[np.float64]


def idf_weights(blocks: Iterable[EncodedBatch], vocabulary_size: int) -> Weights:
    """The inverse document frequency of each token (V), and 0 for those that no document has."""
    holding, documents = np.zeros(vocabulary_size, np.int64), 0
    for block in blocks:
        vectors = summed(block.vectors)
        holding += np.bincount(vectors.indices[vectors.data > 0], minlength=vocabulary_size)
        documents += len(block.ids)
    weights = np.log1p((documents - holding + 0.5) / (holding + 0.5))
    return np.asarray(np.where(holding > 0, weights, 0.0))


def token_queries(model: SparseEncoder, texts: Sequence[str]) -> csr_matrix:
    """Which tokens each text has (rows, V), once each and without the special ones, as ones."""
    special = set(model.tokenizer.all_special_ids)
    rows = [sorted(set(ids) - special) for ids in model.tokenize(texts, "query")]
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    columns = np.array([token for row in rows for token in row], np.int32)
    ones = np.ones(len(columns), np.float32)
    return csr_matrix((ones, columns, starts), shape=(len(rows), model.vocabulary_size))


def weigh(tokens: csr_matrix, weights: Weights) -> csr_matrix:
    """Queries without a model: each token (rows, V) at its weight, those without one left out."""
    weighed = csr_matrix(tokens @ diags(weights), dtype=np.float32)
    weighed.eliminate_zeros()
    return weighed


def learn_weights(
    weights: Weights, tokens: csr_matrix, queries: csr_matrix, documents: csr_matrix
) -> Weights:
    """Weights (V) with which scores differ within each query as they do with the model's own queries.

    weights: (V) to start from. tokens: (rows, V) which tokens a query has. queries: (rows, V) the model's weights.
    documents: (N, V). Least squares over each query's first `FITTED_DOCUMENTS` documents, scores less their mean, every
    token held to where it starts; nothing falls below zero, and tokens of no query are scaled like the rest.
    """
    parts, wanted = [], []
    found = Searcher(documents).top_k(queries, FITTED_DOCUMENTS)
    for row, (places, scores) in enumerate(found):
        own = tokens.indices[tokens.indptr[row] : tokens.indptr[row + 1]]
        if len(places) < 2 or len(own) == 0:
            continue
        chosen = diags(np.isin(np.arange(documents.shape[1]), own).astype(np.float64))
        held = csr_matrix(documents[places] @ chosen)
        mean = csr_matrix(held.mean(axis=0))
        parts.append(held - vstack([mean] * len(places), format="csr"))
        wanted.append(scores.astype(np.float64) - scores.mean())
    if not parts:
        return weights
    design, target = vstack(parts, format="csr"), np.concatenate(wanted)
    given = design @ weights
    start = weights * max(float(given @ target) / max(float(given @ given), 1e-12), 0.0)
    if not start.any():
        return weights
    change = lsqr(design, target - design @ start, damp=CAUTION)[0]
    return np.asarray(np.maximum(start + change, 0.0))


def write_table(path: Path, tokens: Sequence[str], weights: Weights) -> int:
    """Put tokens that have a weight at `path`, whole or not at all; how many there are."""
    table = {tokens[column]: round(float(weights[column]), 6) for column in np.flatnonzero(weights).tolist()}
    write_json(path, table)
    return len(table)


def read_table(path: Path, tokens: Sequence[str]) -> Weights:
    """The weights (V) of a table. Raises InputError for a token that the vocabulary doesn't have."""
    named = read_weights(path)
    column_of = {token: column for column, token in enumerate(tokens)}
    weights = np.zeros(len(tokens))
    for token, weight in named.items():
        if token not in column_of:
            raise InputError(path, f"has the token {token!r}, which the model doesn't; make it anew")
        weights[column_of[token]] = weight
    return weights
