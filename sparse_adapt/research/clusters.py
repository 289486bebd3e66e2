"""Clusters of vectors, held against the groups that people made of their texts.

Dimensions: T texts, V width of the vectors.
"""

import warnings

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.errors import MissingExtraError


def of_length_one(vectors: csr_matrix) -> csr_matrix:
    """The same vectors (T, V) divided by their lengths; an empty one stays empty."""
    rows = csr_matrix(vectors, dtype=np.float64)
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    scale = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return csr_matrix(rows.multiply(scale[:, None]))


def v_measure(units: csr_matrix, of: NDArray[np.int64]) -> float:
    """How well k-means finds the groups: 1 where its clusters are the groups, 0 where they say nothing of them.

    units: (T, V) vectors of length 1; of: (T) the number of each text's group. There are as many clusters as groups.
    The harmonic mean of homogeneity and completeness: Rosenberg and Hirschberg 2007.

    Raises MissingExtraError, with its pip line, without scikit-learn.
    """
    try:
        from sklearn.cluster import KMeans  # which takes a second to load
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.metrics import v_measure_score
    except ModuleNotFoundError as error:
        raise MissingExtraError("scikit-learn", "research") from error

    means = KMeans(n_clusters=int(of.max()) + 1, n_init=10, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):  # where texts are the same
        clusters = means.fit_predict(units)
    return float(v_measure_score(of, clusters))
