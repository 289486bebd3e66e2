"""ONNX Runtime over an export: it encodes the queries; documents are searched exactly, in this process.

Dimensions: V vocabulary.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix, vstack
from tokenizers import Tokenizer

from sparse_adapt.collection.readers import Run
from sparse_adapt.errors import ConfigError
from sparse_adapt.export.onnx import INPUTS, MODEL_FILE, OUTPUT
from sparse_adapt.export.parts import read_manifest
from sparse_adapt.retrieve.search import search
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

TEXTS_AT_ONCE = 16


class OnnxEncoder:
    """An export's graph and tokenizer."""

    tolerance = 1e-6

    def __init__(self, folder: Path, vocabulary_size: int) -> None:
        import onnxruntime

        self.name = f"ONNX Runtime {version('onnxruntime')}, documents searched exactly"
        self.vocabulary_size = vocabulary_size
        self._session = onnxruntime.InferenceSession(
            str(folder / MODEL_FILE), providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_padding()  # behind the mask, where any token will do
        self._documents = EncodedBatch([], csr_matrix((0, vocabulary_size)))

    def encode(self, texts: Sequence[str]) -> csr_matrix:
        """Texts as ONNX Runtime turns them into weights (rows, V)."""
        rows = [csr_matrix((0, self.vocabulary_size), dtype=np.float32)]
        for first in range(0, len(texts), TEXTS_AT_ONCE):
            encoded = self._tokenizer.encode_batch(list(texts[first : first + TEXTS_AT_ONCE]))
            arrays = (
                np.array([text.ids for text in encoded], np.int64),
                np.array([text.attention_mask for text in encoded], np.int64),
            )
            rows.append(csr_matrix(self._session.run([OUTPUT], dict(zip(INPUTS, arrays, strict=True)))[0]))
        return vstack(rows, format="csr")

    def take(self, documents: EncodedBatch) -> None:
        """The documents to search in: the export holds none."""
        self._documents = documents

    def stored(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as they are."""
        return documents.vectors

    def asked(self, queries: EncodedBatch) -> csr_matrix:
        """The queries as they are."""
        return queries.vectors

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents with their scores."""
        return search(queries.vectors, queries.ids, self._documents.vectors, self._documents.ids, k)


@contextmanager
def open_engine(folder: Path, *, url: str = "") -> Iterator[OnnxEncoder]:
    """An export's encoder in memory. Raises ConfigError for a `url`."""
    if url:
        raise ConfigError(f"--url {url}: ONNX Runtime runs in this process; leave it out")
    yield OnnxEncoder(folder, read_manifest(folder, "onnx").model.vocabulary_size)
