"""Model and vectors for sentence-transformers: a SparseEncoder's folder, and documents as it would encode them.

    FOLDER/model/                              what SparseEncoder and transformers load
    FOLDER/documents/part-00000.safetensors    indices (2, entries) int64, values (entries) float32, shape (2)
    FOLDER/documents/part-00000.jsonl          the documents' ids, one JSON string a line
    FOLDER/queries.jsonl                       {"id": ..., "vector": {"token": weight, ...}}
    FOLDER/tokens.json, manifest.json

The tensors are those of `torch.sparse_coo_tensor`, which `sentence_transformers.util.semantic_search` takes.
Its SparseEncoder knows no factors (`factors.json`): where the model has some, documents hold the queries' as well as
their own, and queries none, which gives the same scores.

It is opened as a user would: its SparseEncoder encodes the queries, its semantic search ranks. Scores are sums in
float32. Dimensions: V vocabulary.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from safetensors.numpy import save_file
from safetensors.torch import load_file
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.engines.layout import ExportLayout, ExportSource
from sparse_adapt.engines.lines import json_string, vector_lines
from sparse_adapt.engines.loading import json_lines
from sparse_adapt.engines.manifest import DOCUMENTS_FOLDER, ExportFolder, ExportManifest, file_there
from sparse_adapt.engines.quantise import Entries
from sparse_adapt.files.marker import vouching
from sparse_adapt.model.idf import of_all, reciprocal, scaled
from sparse_adapt.model.parts import read_factors
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.stages.card import making_of, write_card

MODEL_FOLDER = "model"


# -- the files ------------------------------------------------------------------------------------


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: the encoder's folder, and tensors of documents, which hold the queries' factors too."""
    assert source.encoder is not None, "the engine holds the encoder"
    keys = [json_string(token) for token in source.vectors.tokens]
    without = reciprocal(source.encoder.factors_of())
    return ExportLayout(
        documents=partial(_write_model_and_documents, source.encoder),
        query_lines=partial(vector_lines, keys),
        reweigh=lambda queries: EncodedBatch(queries.ids, scaled(queries.vectors, without)),
    )


def how_to_load(export: ExportFolder) -> str:
    """Python that loads both and searches."""
    return f"""\
import json
from pathlib import Path
import torch
from safetensors.torch import load_file
from sentence_transformers import SparseEncoder
from sentence_transformers.util import semantic_search
folder = Path({str(export.path)!r})
model = SparseEncoder(str(folder / {MODEL_FOLDER!r}))
parts = [load_file(path) for path in sorted(folder.glob("documents/*.safetensors"))]
tensors = (torch.sparse_coo_tensor(p["indices"], p["values"], p["shape"].tolist()) for p in parts)
documents = torch.cat(list(tensors))
ids = [json.loads(line) for path in sorted(folder.glob("documents/*.jsonl")) for line in path.open()]
for hit in semantic_search(model.encode_query(["QUERY"]), documents, score_function=model.similarity)[0]:
    print(ids[hit["corpus_id"]], hit["score"])"""


def _write_model_and_documents(
    encoder: SparseEncoder, work: Path, manifest: ExportManifest, blocks: Iterable[EncodedBatch]
) -> ExportManifest:
    encoder.save(work / MODEL_FOLDER)
    with vouching(work / MODEL_FOLDER):
        write_card(work / MODEL_FOLDER, making_of(manifest.model.name))
    files = sorted(path for path in (work / MODEL_FOLDER).rglob("*") if path.is_file())
    manifest = manifest.holding(*(file_there(work, str(path.relative_to(work))) for path in files))
    factors = encoder.factors_of()
    (work / DOCUMENTS_FOLDER).mkdir()
    for number, block in enumerate(blocks):
        entries = manifest.take(EncodedBatch(block.ids, scaled(block.vectors, factors)))
        name = f"{DOCUMENTS_FOLDER}/part-{number:05d}"
        _write_part(work / name, entries)
        both = (file_there(work, f"{name}.{kind}", len(entries.ids)) for kind in ("safetensors", "jsonl"))
        manifest = manifest.counting(entries).holding(*both)
    return manifest


def _write_part(stem: Path, entries: Entries) -> None:
    coordinates = entries.vectors.tocoo()
    save_file(
        {
            "indices": np.stack([coordinates.row, coordinates.col]).astype(np.int64),
            "values": coordinates.data.astype(np.float32),
            "shape": np.array(coordinates.shape, np.int64),
        },
        stem.with_suffix(".safetensors"),
    )
    lines = "".join(f"{json_string(each)}\n" for each in entries.ids)
    stem.with_suffix(".jsonl").write_text(lines, encoding="utf-8", newline="\n")


# -- the engine -----------------------------------------------------------------------------------


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> "Iterator[SemanticSearch]":
    """An export's model and documents in memory."""
    yield SemanticSearch(export.path)


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
            document_id
            for path in sorted((folder / DOCUMENTS_FOLDER).glob("*.jsonl"))
            for document_id in json_lines(path)
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
