"""Rows for Milvus: a SPARSE_FLOAT_VECTOR each, token ids as dimensions, weights as float32.

    FOLDER/documents/part-00000.json    [{"document_id": ..., "weights": {"1012": 0.5, ...}}, one a line, ...]
    FOLDER/queries.jsonl                {"query_id": ..., "search": what `entities/search` takes}
    FOLDER/collection.json              what creates the collection: the id as its key, inner products
    FOLDER/tokens.json, manifest.json

A part is JSON as Milvus's bulk import reads it. Milvus refuses vectors without an entry: such documents are
counted in the manifest (`empty_documents`) and left out, since no search could find them. It has ids of 1 to
65,535 bytes.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sparse_adapt.errors import InputError
from sparse_adapt.export.parts import Manifest, begin, file_part, finish, write_documents, write_queries
from sparse_adapt.export.quantise import Entries, Quantisation
from sparse_adapt.export.rows import json_object, json_string, rows, small_blocks
from sparse_adapt.files.folders import output_folder, write_json
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors

QUERIES_FILE = "queries.jsonl"
COLLECTION_FILE = "collection.json"
KEY, FIELD = "document_id", "weights"
LONGEST_ID = 65_535  # bytes

COLLECTION: dict[str, Any] = {
    "schema": {
        "autoId": False,
        "enabledDynamicField": False,
        "fields": [
            {
                "fieldName": KEY,
                "dataType": "VarChar",
                "isPrimary": True,
                "elementTypeParams": {"max_length": LONGEST_ID},
            },
            {"fieldName": FIELD, "dataType": "SparseFloatVector"},
        ],
    },
    "indexParams": [
        {
            "fieldName": FIELD,
            "indexName": FIELD,
            "metricType": "IP",
            "indexType": "SPARSE_INVERTED_INDEX",
            "params": {"inverted_index_algo": "DAAT_MAXSCORE"},
        }
    ],
}

_LINE = 40  # bytes beside id and entries


def write(
    vectors: Vectors,
    folder: Path,
    *,
    queries: EncodedBatch | None = None,
    quantisation: Quantisation | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Write rows, block by block, into a new folder; nothing stays there if it fails.

    Raises InputError for a document id that Milvus can't have as a key.
    """
    manifest = begin("milvus", vectors, quantisation)
    keys = [f'"{column}"' for column in range(len(vectors.tokens))]

    def row_lines(entries: Entries) -> Iterator[str]:
        stored = [row for row in rows(entries) if row[1]]
        for number, (document_id, columns, weights) in enumerate(stored, start=1):
            fields = f'"{KEY}": {json_string(document_id)}, "{FIELD}": {json_object(keys, columns, weights)}'
            yield f"{'[' if number == 1 else ' '}{{{fields}}}{']' if number == len(stored) else ','}\n"
        if not stored:
            yield "[]\n"

    def query_lines(entries: Entries) -> Iterator[str]:
        for query_id, columns, weights in rows(entries):
            if columns:
                search = f'{{"data": [{json_object(keys, columns, weights)}], "annsField": "{FIELD}", "limit": 10}}'
                yield f'{{"query_id": {json_string(query_id)}, "search": {search}}}\n'

    with output_folder(folder, overwrite=overwrite, resumable=False) as work:
        if queries is not None:
            manifest = write_queries(work, manifest, queries, QUERIES_FILE, query_lines)
        blocks = small_blocks(_checked(vectors.blocks), keys, _LINE)
        manifest = write_documents(work, manifest, blocks, row_lines, suffix="json")
        write_json(work / COLLECTION_FILE, COLLECTION)
        settings = file_part(work, COLLECTION_FILE, 0)
        return finish(
            work, manifest.model_copy(update={"parts": (*manifest.parts, settings)}), vectors.tokens
        )


def loading(folder: Path, manifest: Manifest) -> str:
    """Lines of Python that load it."""
    return "\n".join(
        [
            "from pathlib import Path",
            "from pymilvus import MilvusClient",
            "from sparse_adapt.engines.milvus import load",
            f'load(Path({json.dumps(str(folder))}), MilvusClient("http://localhost:19530"), "documents")',
        ]
    )


def _checked(blocks: Iterable[EncodedBatch]) -> Iterator[EncodedBatch]:
    for block in blocks:
        for document_id in block.ids:
            if not 0 < len(document_id.encode()) <= LONGEST_ID:
                raise InputError(
                    repr(document_id[:40]),
                    f"this document id has {len(document_id.encode()):,} bytes, Milvus takes 1 to {LONGEST_ID:,}",
                )
        yield block
