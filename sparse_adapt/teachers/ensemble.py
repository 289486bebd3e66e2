"""Several rankers as one: each one's scores in units of their own spread, then added.

Scores of different rankers can't be added as they are: BM25's reach 40 where a cosine stays below 1. Counted
in standard deviations from the query's mean, every ranker has the same say (z-scores; Fox and Shaw 1994 for
the sum). Dimensions: Q queries, N documents.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]


def z_scores(scores: NDArray[np.floating]) -> Scores:
    """Each row in standard deviations from its mean: (Q, N). A row without spread, which says nothing, is 0."""
    values = scores.astype(np.float64)
    centred = values - values.mean(axis=1, keepdims=True) if values.shape[1] else values
    spread = centred.std(axis=1, keepdims=True) if values.shape[1] else np.ones((len(values), 1))
    flat = spread <= 1e-9 * np.abs(values).max(axis=1, keepdims=True, initial=0.0)
    return np.where(flat, 0.0, centred / np.where(flat, 1.0, spread)).astype(np.float32)


def add_z_scores(members: Sequence[NDArray[np.floating]]) -> Scores:
    """The sum of every member's z-scores (Q, N): the scores of the ensemble."""
    assert members, "an ensemble needs a member"
    total = np.zeros(members[0].shape, np.float32)
    for scores in members:
        total += z_scores(scores)
    return total


def best(scores: Scores, k: int) -> list[tuple[NDArray[np.int64], Scores]]:
    """For each query the k documents with the highest scores, best first, ties in document order."""
    found = []
    for row in scores:
        order = np.argsort(-row, kind="stable")[:k]
        found.append((order, row[order]))
    return found
