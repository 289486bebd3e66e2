"""What engines that hold an export have in common, whether they keep its weights as floats or as impacts.

Dimensions: V vocabulary.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from scipy.sparse import csr_matrix

from sparse_adapt.engines.manifest import ExportManifest
from sparse_adapt.engines.quantise import Quantisation
from sparse_adapt.retrieve.vectors.folder import EncodedBatch


class FloatEngine:
    """An engine that keeps an export's weights as float32, as the manifest says."""

    encode = None  # the export holds no encoder
    tolerance = 1e-5  # sums of some hundred products in float32

    def __init__(self, manifest: ExportManifest) -> None:
        self.manifest = manifest

    def stored(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as float32 (rows, V), which is how they are kept."""
        return self.manifest.take(documents).vectors

    def asked(self, queries: EncodedBatch) -> csr_matrix:
        """The queries as float32 (rows, V)."""
        return self.manifest.take(queries).vectors

    def batches(self, queries: EncodedBatch, size: int) -> Iterator[list[tuple[str, list[int], list[float]]]]:
        """So many queries at a time that have a weight: id, columns and weights of each."""
        rows = [row for row in self.manifest.take(queries).rows() if row[1]]
        for first in range(0, len(rows), size):
            yield rows[first : first + size]


class ImpactEngine:
    """An engine that keeps whole impacts, of documents and of queries alike."""

    encode = None  # the export holds no encoder

    def __init__(self, quantisation: Quantisation) -> None:
        self.quantisation = quantisation

    def stored(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as impacts (rows, V), in terms of weights."""
        return self.quantisation.impacts(documents).vectors / self.quantisation.scale

    def asked(self, queries: EncodedBatch) -> csr_matrix:
        """The queries as they are put to the engine: quantised like the documents."""
        return self.stored(queries)


@contextmanager
def quiet() -> Iterator[None]:
    """Send what the process writes to standard output and error nowhere, for the while.

    Some libraries print from machine code, past Python's own standard output.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number, _ in kept:
            os.dup2(nowhere, number)
        yield
    finally:
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
