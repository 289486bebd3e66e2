"""sentence-transformers over an export: its SparseEncoder encodes the queries, its semantic search ranks.

Scores are sums in float32. Dimensions: V vocabulary.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.errors import ConfigError
from sparse_adapt.export.parts import DOCUMENTS_FOLDER, read_manifest
from sparse_adapt.export.sentence_transformers import MODEL_FOLDER
from sparse_adapt.model.idf import of_all, reciprocal, scaled
from sparse_adapt.model.sparse import read_factors
from sparse_adapt.retrieve.vectors.folder import EncodedBatch


class SemanticSearch:
    """An export's model and documents, loaded by sentence-transformers."""

    tolerance = 1e-5

    def __init__(self, folder: Path) -> None:
        from sentence_transformers import SparseEncoder

        self.name = f"sentence-transformers {version('sentence-transformers')}"
        self._model = SparseEncoder(str(folder / MODEL_FOLDER), device="cpu")
        parts = [load_file(path) for path in sorted((folder / DOCUMENTS_FOLDER).glob("*.safetensors"))]
        self._documents = torch.cat(
            [_tensor(part["indices"], part["values"], part["shape"]) for part in parts]
        )
        size = self._documents.shape[1]
        self._factors = of_all(
            read_factors(folder / MODEL_FOLDER, size), size
        )  # queries', which documents hold
        self._ids = [
            json.loads(line)
            for path in sorted((folder / DOCUMENTS_FOLDER).glob("*.jsonl"))
            for line in path.read_text(encoding="utf-8").splitlines()
        ]

    def encode(self, texts: Sequence[str]) -> csr_matrix:
        """Queries in words as its own encoder turns them into weights (rows, V), times their factors."""
        encoded = self._model.encode_query(list(texts), show_progress_bar=False).coalesce()
        values, (rows, columns) = encoded.values().numpy(), encoded.indices().numpy()
        own = csr_matrix((values.astype(np.float32), (rows, columns)), shape=tuple(encoded.shape))
        return scaled(own, self._factors)

    def stored(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as they are."""
        return documents.vectors

    def asked(self, queries: EncodedBatch) -> csr_matrix:
        """The queries as they are."""
        return queries.vectors

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents with their scores; none with a score of zero."""
        from sentence_transformers.util import semantic_search

        entries = scaled(queries.vectors, reciprocal(self._factors)).tocoo()
        places = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
        put = _tensor(places, torch.from_numpy(entries.data), torch.tensor(entries.shape))
        found = semantic_search(put, self._documents, top_k=k, score_function=self._model.similarity)
        return {
            query_id: {self._ids[int(hit["corpus_id"])]: hit["score"] for hit in hits if hit["score"] > 0}
            for query_id, hits in zip(queries.ids, found, strict=True)
        }


def _tensor(indices: torch.Tensor, values: torch.Tensor, shape: torch.Tensor) -> torch.Tensor:
    return torch.sparse_coo_tensor(indices, values, shape.tolist(), check_invariants=True)


@contextmanager
def open_engine(folder: Path, *, url: str = "") -> Iterator[SemanticSearch]:
    """An export's model and documents in memory. Raises ConfigError for a `url`."""
    if url:
        raise ConfigError(f"--url {url}: sentence-transformers runs in this process; leave it out")
    read_manifest(folder, "sentence-transformers")
    yield SemanticSearch(folder)
