"""What took long to work out, kept by a checksum of what it was worked out from.

A file is there whole or not at all, so a process that was killed goes on from what it had finished. A file
that can't be read counts as absent. Safetensors only. A sparse matrix is checked whole when it is read: compiled code
trusts it to be sound.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save
from scipy.sparse import csr_matrix

from sparse_adapt.files.writing import sweep, write_bytes

Arrays = dict[str, NDArray[np.generic]]
KINDS = {"indptr": np.integer, "indices": np.integer, "data": np.floating}


def keep_arrays(path: Path, arrays: Arrays) -> None:
    """Put arrays at `path`. Raises OutputError where it can't be written or the disk is full."""
    if path.parent.is_dir():
        sweep(path.parent, path.name)
    write_bytes(path, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def cached_arrays(path: Path, old: Path | None = None) -> Arrays | None:
    """The arrays at `path`, or None where nothing whole is there; those of a folder `old` are put there first."""
    try:
        arrays: Arrays | None = load_file(path)
    except (OSError, SafetensorError):
        arrays = None if old is None else cached_arrays(old / path.name)
        if arrays is not None:
            keep_arrays(path, arrays)
    return arrays


def keep_vectors(path: Path, vectors: csr_matrix) -> None:
    """Put sparse vectors (rows, V) at `path`."""
    shape = np.array(vectors.shape, np.int64)
    keep_arrays(
        path, {"data": vectors.data, "indices": vectors.indices, "indptr": vectors.indptr, "shape": shape}
    )


def cached_vectors(path: Path, old: Path | None = None) -> csr_matrix | None:
    """The sparse vectors (rows, V) at `path`, or None where nothing whole is there; `old` as for arrays."""
    arrays = cached_arrays(path, old)
    if arrays is None or set(arrays) != {"data", "indices", "indptr", "shape"}:
        return None
    try:
        rows, columns = map(int, arrays["shape"])
        return sound_csr(arrays, rows, columns)
    except (TypeError, ValueError):
        return None


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
