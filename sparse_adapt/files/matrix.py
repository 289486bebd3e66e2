"""Sparse matrices as arrays in files. What is read is checked whole: compiled code trusts a matrix to be sound."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Arrays = dict[str, NDArray[np.generic]]
KINDS = {"indptr": np.integer, "indices": np.integer, "data": np.floating}


def sound_csr(arrays: Arrays, rows: int, columns: int) -> csr_matrix:
    """The matrix (rows, columns) of `indptr`, `indices` and `data`: finite weights, none negative, columns in order.

    Raises ValueError, which says what is wrong, for any other.
    """
    for name, kind in KINDS.items():
        if name not in arrays:
            raise ValueError(f"it has no {name}")
        if arrays[name].ndim != 1 or not np.issubdtype(arrays[name].dtype, kind):
            raise ValueError(f"{name} isn't a row of {kind.__name__} values")
    starts, indices = (arrays[name].astype(np.int64) for name in ("indptr", "indices"))
    data = arrays["data"].astype(np.float64)
    if len(starts) != rows + 1 or starts[0] != 0:
        raise ValueError(f"its rows aren't {rows:,}")
    if len(data) != len(indices) or starts[-1] != len(indices) or (np.diff(starts) < 0).any():
        raise ValueError("its rows don't fit its weights")
    if len(indices) and not 0 <= int(indices.min()) <= int(indices.max()) < columns:
        raise ValueError(f"it names columns beyond the {columns:,} that there are")
    first = np.zeros(len(indices), bool)
    first[starts[:-1][np.diff(starts) > 0]] = True
    if not (first[1:] | (np.diff(indices) > 0)).all():
        raise ValueError("columns stand twice in a row, or out of order")
    if not (np.isfinite(data) & (data >= 0)).all():
        raise ValueError("it holds weights that are negative or no numbers")
    matrix = csr_matrix((arrays["data"], arrays["indices"], arrays["indptr"]), shape=(rows, columns))
    matrix.has_canonical_format = True
    return matrix
