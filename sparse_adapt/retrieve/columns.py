"""Sparse matrices whose columns are half a billion, of which few are used: exact words stand by a number of their own.

Dimensions: rows, W columns in all, C of them.
"""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack

Columns = NDArray[np.int32]  # ascending, each once


def used_columns(matrices: Iterable[csr_matrix]) -> Columns:
    """The columns in which any of some matrices has an entry: (C,)."""
    found = [np.unique(matrix.indices) for matrix in matrices]
    return np.unique(np.concatenate([np.zeros(0, np.int32), *found])).astype(np.int32)


def only(matrix: csr_matrix, columns: Columns) -> csr_matrix:
    """Those columns of a matrix (rows, W) alone, side by side: (rows, C)."""
    shape = matrix.shape[0], len(columns)
    if not len(columns) or not matrix.nnz:
        return csr_matrix(shape, dtype=matrix.dtype)
    places = np.minimum(np.searchsorted(columns, matrix.indices), len(columns) - 1)
    there = columns[places] == matrix.indices
    kept = np.concatenate([[0], np.cumsum(there)])
    return csr_matrix((matrix.data[there], places[there], kept[matrix.indptr]), shape=shape)


def beside(left: csr_matrix, right: csr_matrix, first: int) -> csr_matrix:
    """Two matrices (rows, V) and (rows, W) as one (rows, W): the right one has no entry before column `first`."""
    assert left.shape[1] <= first <= right.shape[1], (left.shape, right.shape, first)
    shifted = csr_matrix(
        (right.data, right.indices - left.shape[1], right.indptr),
        shape=(right.shape[0], right.shape[1] - left.shape[1]),
    )
    return csr_matrix(hstack([left, shifted], format="csr", dtype=np.float32))


def products(rows: csr_matrix, others: csr_matrix) -> csr_matrix:
    """The products of each row (rows, W) with each row of another matrix (others, W): (rows, others)."""
    columns = used_columns([others])
    return csr_matrix(only(rows, columns) @ only(others, columns).T)


def split(matrix: csr_matrix, first: int) -> tuple[csr_matrix, csr_matrix]:
    """The entries of a matrix (rows, W) before column `first`: (rows, first), and those from it on: (rows, W)."""
    before = matrix.indices < first
    parts = []
    for there, width in ((before, first), (~before, matrix.shape[1])):
        starts = np.concatenate([[0], np.cumsum(there)])[matrix.indptr]
        parts.append(
            csr_matrix((matrix.data[there], matrix.indices[there], starts), shape=(matrix.shape[0], width))
        )
    return parts[0], parts[1]
