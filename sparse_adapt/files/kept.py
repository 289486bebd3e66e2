"""What took long to work out, kept by a checksum of what it was worked out from.

A file is there whole or not at all, so a process that was killed goes on from what it had finished. A file
that can't be read counts as absent. Safetensors only.
"""

from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save
from scipy.sparse import csr_matrix

from sparse_adapt.files.matrix import Arrays, sound_csr
from sparse_adapt.files.writing import sweep, write_bytes


def keep_arrays(path: Path, arrays: Arrays) -> None:
    """Put arrays at `path`. Raises OutputError where it can't be written or the disk is full."""
    if path.parent.is_dir():
        sweep(path.parent, path.name)
    write_bytes(path, save({name: np.ascontiguousarray(array) for name, array in arrays.items()}))


def kept_arrays(path: Path, old: Path | None = None) -> Arrays | None:
    """The arrays at `path`, or None where nothing whole is there; those of a folder `old` are put there first."""
    try:
        arrays: Arrays | None = load_file(path)
    except (OSError, SafetensorError):
        arrays = None if old is None else kept_arrays(old / path.name)
        if arrays is not None:
            keep_arrays(path, arrays)
    return arrays


def keep_vectors(path: Path, vectors: csr_matrix) -> None:
    """Put sparse vectors (rows, V) at `path`."""
    shape = np.array(vectors.shape, np.int64)
    keep_arrays(
        path, {"data": vectors.data, "indices": vectors.indices, "indptr": vectors.indptr, "shape": shape}
    )


def kept_vectors(path: Path, old: Path | None = None) -> csr_matrix | None:
    """The sparse vectors (rows, V) at `path`, or None where nothing whole is there; `old` as for arrays."""
    arrays = kept_arrays(path, old)
    if arrays is None or set(arrays) != {"data", "indices", "indptr", "shape"}:
        return None
    try:
        rows, columns = map(int, arrays["shape"])
        return sound_csr(arrays, rows, columns)
    except (TypeError, ValueError):
        return None
