"""Pairs of a query and its document: hard negatives, and a projection that a contrastive loss may see.

A hard negative is a document that the incoming model ranks high for a query without being its own. One that scores
nearly as high as the query's own document may well be relevant, and is left out (Moreira et al. 2024, arXiv:2407.15831:
a share of the positive's score).
Dimensions: Q queries, N documents, B texts, H width of the vectors, P of the projection.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor, nn
from torch.nn import functional

from sparse_adapt.collection.examples import Pair
from sparse_adapt.model.idf import TokenScales, scaled
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.objectives.texts import vectors as sparse_vectors
from sparse_adapt.plugins.research.stages.masked import unmasked

WIDTH = 128  # P, or H where that is less


class Projection(nn.Module):
    """Two layers with a rectifier between them, made by a seed."""

    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, min(WIDTH, width), bias=False)
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight, generator=random)
        nn.init.zeros_(self.first.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors (B, H) as (B, P) of length 1, float32."""
        return functional.normalize(self.second(self.first(vectors).relu()).float(), dim=1)


QUERIES_A_PART = 64
DOT_PRODUCT = 3.0  # temperature; at 1 a sparse model tells the documents of a batch apart from the start


class QueryToMine(NamedTuple):
    """A query as token ids, the row of its own document, and rows that it is known to find."""

    token_ids: list[int]
    own: int
    relevant: frozenset[int]


def hard_negatives(
    encoder: EitherEncoder,
    queries: Sequence[QueryToMine],
    documents: Sequence[TokenIds],
    among: Sequence[int],
    depth: int,
    below: float,
    token_scales: TokenScales | None = None,
) -> list[list[int]]:
    """For each query at most `depth` rows of documents, best first, that score under `below` of its own document's.

    among: rows to look at; token scales (V): what a sparse encoder's weights are multiplied with.
    """
    vectors = _vectors(encoder, documents, token_scales)
    looked_at = np.zeros(len(documents), dtype=bool)
    looked_at[list(among)] = True
    negatives = []
    for start in range(0, len(queries), QUERIES_A_PART):
        part = queries[start : start + QUERIES_A_PART]
        products = _vectors(encoder, [query.token_ids for query in part], token_scales) @ vectors.T
        scores = np.asarray(products.todense() if isinstance(products, csr_matrix) else products)
        for query, row in zip(part, scores, strict=True):
            allowed = looked_at & (row < below * row[query.own])
            allowed[list(query.relevant)] = False
            rows = np.flatnonzero(allowed)
            best = rows[np.argsort(-row[rows], kind="stable")][:depth]
            negatives.append(best.tolist())
    return negatives


@torch.no_grad()
def _vectors(
    encoder: EitherEncoder, token_ids: Sequence[TokenIds], token_scales: TokenScales | None
) -> csr_matrix | NDArray[np.float32]:
    """The vector of each text, a row each: (B, H)."""
    if isinstance(encoder, SparseEncoder):
        weights = sparse_vectors(encoder, token_ids)
        return weights if token_scales is None else scaled(weights, token_scales)
    vectors: NDArray[np.float32] = unmasked(encoder, token_ids).cpu().numpy()
    return vectors


def related(relevant: Tensor) -> Tensor:
    """Which texts of a batch aren't negatives of one another: (Q + B, Q + B), queries before documents.

    A query and a document that it is known to find, queries that find the same, documents that the same finds.
    """
    marks = relevant.float()
    above = torch.cat([marks @ marks.T > 0, relevant], dim=1)
    below = torch.cat([relevant.T, marks.T @ marks > 0], dim=1)
    return torch.cat([above, below])


def first_places(documents: Mapping[str, str]) -> dict[str, int]:
    """The row of each document, that of the first where several have the same text."""
    first: dict[str, int] = {}
    return {
        document_id: first.setdefault(key_of(text), row)
        for row, (document_id, text) in enumerate(documents.items())
    }


def known_relevant(pairs: Sequence[Pair], own: Sequence[int]) -> list[frozenset[int]]:
    """Rows of the documents that each pair's query is known to find, by any of the pairs."""
    rows: dict[str, set[int]] = {}
    for pair, row in zip(pairs, own, strict=True):
        rows.setdefault(key_of(pair.query), set()).add(row)
    return [frozenset(rows[key_of(pair.query)]) for pair in pairs]


def key_of(text: str) -> str:
    """What texts have in common that differ in nothing but spaces and case."""
    return " ".join(text.split()).casefold()
