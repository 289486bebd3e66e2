"""Seismic over an export, set so that it searches exactly: no list is pruned and no block is skipped.

Seismic is made to be approximate (Bruch et al. 2024, arXiv:2404.18812); these settings leave its storage alone,
weights of documents in float16, as what can differ from exact search. Those of production are faster and find
less: they are Seismic's to choose, and its manual's to explain. Dimensions: V vocabulary.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.engines.quiet import quiet
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.export.parts import Manifest, read_manifest
from sparse_adapt.export.seismic import DOCUMENTS_FILE, index_class
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.retrieve.vectors.manifest import read_tokens

SKIP_NOTHING = 0.0  # heap_factor: a block is skipped if its bound times this is below the worst score kept


class SeismicIndex:
    """An export for Seismic in an index of its own."""

    tolerance = 1e-6

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        import seismic

        self.manifest = manifest
        self.name = f"Seismic {version('pyseismic-lsr')}"
        self._tokens = np.array(read_tokens(folder, manifest.model), dtype=seismic.get_seismic_string())
        kind = getattr(seismic, index_class(len(self._tokens)))
        with quiet():
            self._index = kind.build(
                str(folder / DOCUMENTS_FILE),
                n_postings=max(manifest.documents, 1),
                max_fraction=float(len(self._tokens)),
                load_content=False,
            )

    def stored(self, documents: EncodedBatch) -> csr_matrix:
        """The documents in float16 (rows, V)."""
        kept = self.manifest.take(documents).vectors
        kept.data = kept.data.astype(np.float16).astype(np.float32)
        return kept

    def asked(self, queries: EncodedBatch) -> csr_matrix:
        """The queries as they are: float32."""
        return self.manifest.take(queries).vectors

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents with their scores."""
        vectors = self.asked(queries)
        run: Run = {}
        for row, query_id in enumerate(queries.ids):
            inside = slice(vectors.indptr[row], vectors.indptr[row + 1])
            run[query_id] = dict(self._found(vectors.indices[inside], vectors.data[inside], k))
        return run

    def _found(self, columns: Any, weights: Any, k: int) -> Iterator[tuple[str, float]]:  # noqa: ANN401 - arrays
        if len(columns) == 0:
            return
        found = self._index.search(
            query_id="",
            query_components=self._tokens[columns],
            query_values=weights,
            k=k,
            query_cut=len(columns),
            heap_factor=SKIP_NOTHING,
        )
        for _, score, document_id in found:
            if score > 0:
                yield document_id, score


@contextmanager
def open_engine(folder: Path, *, url: str = "") -> Iterator[SeismicIndex]:
    """An export for Seismic, indexed in memory. Raises ConfigError for a `url`: Seismic is a library."""
    if url:
        raise ConfigError(f"--url {url}: Seismic runs in this process; leave it out")
    manifest = read_manifest(folder, "seismic")
    if manifest.entries == 0:
        raise InputError(folder, "holds no weights, of which Seismic makes no index; export other documents")
    yield SeismicIndex(folder, manifest)
