"""What engines have in common that keep weights as float32."""

from collections.abc import Iterator

from scipy.sparse import csr_matrix

from sparse_adapt.export.parts import Manifest
from sparse_adapt.retrieve.vectors.folder import EncodedBatch


class Float32Engine:
    """A collection that holds one export, its weights as they were."""

    manifest: Manifest
    tolerance = 1e-5  # sums of some hundred products in float32

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
