"""Hard negatives: documents that the incoming model ranks high for a query without being its own.

What scores nearly as high as the query's own document may well be relevant, and is left out (Moreira et al. 2024,
arXiv:2407.15831: a share of the positive's score).
Dimensions: Q queries, N documents.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.model.idf import Factors, scaled
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.stages.pairs import Contrast
from sparse_adapt.stages.parts.masked import unmasked
from sparse_adapt.stages.parts.texts import vectors as sparse_vectors

QUERIES_A_PART = 64


class QueryToMine(NamedTuple):
    """A query as token ids, the row of its own document, and rows that it is known to find."""

    token_ids: list[int]
    own: int
    relevant: frozenset[int]


def hard_negatives(
    encoder: EitherEncoder,
    asked: Sequence[QueryToMine],
    documents: Sequence[TokenIds],
    among: Sequence[int],
    settings: Contrast,
    factors: Factors | None = None,
) -> list[list[int]]:
    """For each query at most `depth` rows of documents, best first: see `settings.below`.

    among: rows to look at; factors (V): what a sparse encoder's weights are multiplied with.
    """
    held = _vectors(encoder, documents, factors)
    looked_at = np.zeros(len(documents), dtype=bool)
    looked_at[list(among)] = True
    found = []
    for start in range(0, len(asked), QUERIES_A_PART):
        part = asked[start : start + QUERIES_A_PART]
        products = _vectors(encoder, [query.token_ids for query in part], factors) @ held.T
        scores = np.asarray(products.todense() if isinstance(products, csr_matrix) else products)
        for query, row in zip(part, scores, strict=True):
            allowed = looked_at & (row < settings.below * row[query.own])
            allowed[list(query.relevant)] = False
            rows = np.flatnonzero(allowed)
            best = rows[np.argsort(-row[rows], kind="stable")][: settings.depth]
            found.append(best.tolist())
    return found


@torch.no_grad()
def _vectors(
    encoder: EitherEncoder, token_ids: Sequence[TokenIds], factors: Factors | None
) -> csr_matrix | NDArray[np.float32]:
    """The vector of each text, a row each."""
    if isinstance(encoder, SparseEncoder):
        weights = sparse_vectors(encoder, token_ids)
        return weights if factors is None else scaled(weights, factors)
    vectors: NDArray[np.float32] = unmasked(encoder, token_ids).cpu().numpy()
    return vectors
