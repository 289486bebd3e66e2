"""Points for Qdrant: a named sparse vector each, token ids as indices, weights as float32.

    FOLDER/documents/part-00000.jsonl    {"id": UUID, "vector": {"weights": {"indices": [...], "values": [...]}},
                                          "payload": {"document_id": ...}}
    FOLDER/queries.jsonl                 {"query_id": ..., "search": what `points/query` takes}
    FOLDER/collection.json               what creates the collection
    FOLDER/tokens.json, manifest.json

Qdrant takes numbers and UUIDs as ids: a document's is the UUID (version 5) of its own id, so that loading a
document again replaces it, from whatever export it comes. The id itself stands in the payload. A document
without an entry is a point without a vector: it is stored, and no search finds it.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID, uuid5

from sparse_adapt.export.parts import Manifest, begin, file_part, finish, write_documents, write_queries
from sparse_adapt.export.quantise import Entries, Quantisation
from sparse_adapt.export.rows import json_string, rows, small_blocks
from sparse_adapt.files.folders import output_folder, write_json
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors

QUERIES_FILE = "queries.jsonl"
COLLECTION_FILE = "collection.json"
VECTOR = "weights"
COLLECTION = {"vectors": {}, "sparse_vectors": {VECTOR: {"index": {"datatype": "float32"}}}}

_NAMESPACE = UUID("6f0d7a52-92d8-5c0e-9d0c-6d1f3a1f5b11")  # any fixed one will do
_LINE = 180  # bytes beside id and entries


def write(
    vectors: Vectors,
    folder: Path,
    *,
    queries: EncodedBatch | None = None,
    quantisation: Quantisation | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Write points, block by block, into a new folder; nothing stays there if it fails."""
    manifest = begin("qdrant", vectors, quantisation)
    with output_folder(folder, overwrite=overwrite, resumable=False) as work:
        if queries is not None:
            manifest = write_queries(work, manifest, queries, QUERIES_FILE, _query_lines)
        indices = [str(column) for column in range(len(vectors.tokens))]
        blocks = small_blocks(vectors.blocks, indices, _LINE)
        manifest = write_documents(work, manifest, blocks, _point_lines)
        write_json(work / COLLECTION_FILE, COLLECTION)
        settings = file_part(work, COLLECTION_FILE, 0)
        return finish(
            work, manifest.model_copy(update={"parts": (*manifest.parts, settings)}), vectors.tokens
        )


def point_id(document_id: str) -> str:
    """The UUID that a document's point has."""
    return str(uuid5(_NAMESPACE, document_id))


def loading(folder: Path, manifest: Manifest) -> str:
    """Lines of Python that load it."""
    name = json.dumps("documents")
    return "\n".join(
        [
            "from pathlib import Path",
            "from qdrant_client import QdrantClient",
            "from sparse_adapt.engines.qdrant import load",
            f"load(Path({json.dumps(str(folder))}), QdrantClient('http://localhost:6333'), {name})",
        ]
    )


def _point_lines(entries: Entries) -> Iterator[str]:
    for document_id, columns, weights in rows(entries):
        vector = f'"{VECTOR}": {_sparse(columns, weights)}' if columns else ""
        yield (
            f'{{"id": "{point_id(document_id)}", "vector": {{{vector}}}, '
            f'"payload": {{"document_id": {json_string(document_id)}}}}}\n'
        )


def _query_lines(entries: Entries) -> Iterator[str]:
    for query_id, columns, weights in rows(entries):
        if columns:
            yield (
                f'{{"query_id": {json_string(query_id)}, "search": {{"query": {_sparse(columns, weights)}, '
                f'"using": "{VECTOR}", "limit": 10, "with_payload": true}}}}\n'
            )


def _sparse(columns: list[int], weights: list[str]) -> str:
    return f'{{"indices": [{", ".join(map(str, columns))}], "values": [{", ".join(weights)}]}}'
