"""Model and vectors for sentence-transformers: a SparseEncoder's folder, and documents as it would encode them.

    FOLDER/model/                              what SparseEncoder and transformers load
    FOLDER/documents/part-00000.safetensors    indices (2, entries) int64, values (entries) float32, shape (2)
    FOLDER/documents/part-00000.jsonl          the documents' ids, one JSON string a line
    FOLDER/queries.jsonl                       {"id": ..., "vector": {"token": weight, ...}}
    FOLDER/tokens.json, manifest.json

The tensors are those of `torch.sparse_coo_tensor`, which `sentence_transformers.util.semantic_search` takes.
Its SparseEncoder knows no factors (`idf.json`): where the model has some, documents hold the queries' as well as
their own, and queries none, which gives the same scores.
Dimensions: V vocabulary.
"""

from functools import partial
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from sparse_adapt.export.parts import (
    DOCUMENTS_FOLDER,
    Manifest,
    begin,
    counted,
    file_part,
    finish,
    vector_lines,
    write_queries,
)
from sparse_adapt.export.quantise import Entries, Quantisation
from sparse_adapt.export.rows import json_string
from sparse_adapt.files.folders import output_folder
from sparse_adapt.model.idf import reciprocal, scaled
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors

MODEL_FOLDER = "model"
QUERIES_FILE = "queries.jsonl"


def write(
    vectors: Vectors,
    folder: Path,
    *,
    encoder: SparseEncoder,
    queries: EncodedBatch | None = None,
    quantisation: Quantisation | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Write model and vectors into a new folder; nothing stays there if it fails."""
    with output_folder(folder, overwrite=overwrite, resumable=False) as work:
        manifest = begin("sentence-transformers", vectors, quantisation)
        encoder.save(work / MODEL_FOLDER)
        files = sorted(path for path in (work / MODEL_FOLDER).rglob("*") if path.is_file())
        parts = [file_part(work, str(path.relative_to(work)), rows=0) for path in files]
        factors = encoder.factors_of()
        if queries is not None:
            queries = EncodedBatch(queries.ids, scaled(queries.vectors, reciprocal(factors)))
            keys = [json_string(token) for token in vectors.tokens]
            manifest = write_queries(work, manifest, queries, QUERIES_FILE, partial(vector_lines, keys))
        (work / DOCUMENTS_FOLDER).mkdir()
        for number, block in enumerate(vectors.blocks):
            entries = manifest.take(EncodedBatch(block.ids, scaled(block.vectors, factors)))
            name = f"{DOCUMENTS_FOLDER}/part-{number:05d}"
            _write_part(work / name, entries)
            parts += [
                file_part(work, f"{name}.{kind}", len(entries.ids)) for kind in ("safetensors", "jsonl")
            ]
            manifest = counted(manifest, entries)
        return finish(work, manifest.model_copy(update={"parts": tuple(parts)}), vectors.tokens)


def loading(folder: Path, manifest: Manifest) -> str:
    """Python that loads both and searches."""
    return f"""\
import json
from pathlib import Path
import torch
from safetensors.torch import load_file
from sentence_transformers import SparseEncoder
from sentence_transformers.util import semantic_search
folder = Path({str(folder)!r})
model = SparseEncoder(str(folder / {MODEL_FOLDER!r}))
parts = [load_file(path) for path in sorted(folder.glob("documents/*.safetensors"))]
tensors = (torch.sparse_coo_tensor(p["indices"], p["values"], p["shape"].tolist()) for p in parts)
documents = torch.cat(list(tensors))
ids = [json.loads(line) for path in sorted(folder.glob("documents/*.jsonl")) for line in path.open()]
for hit in semantic_search(model.encode_query(["QUERY"]), documents, score_function=model.similarity)[0]:
    print(ids[hit["corpus_id"]], hit["score"])"""


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
