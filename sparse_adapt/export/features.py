"""Bulk requests for OpenSearch and Elasticsearch, which both keep weights in Lucene's feature fields.

    FOLDER/documents/part-00000.ndjson    what `_bulk` takes: {"index": {"_id": ...}} and {"weights": {name: weight}}
    FOLDER/queries.jsonl                  {"query_id": ..., "search": what `_search` takes}
    FOLDER/index.json                     what creates the index
    FOLDER/tokens.json, manifest.json

Lucene cuts a document's weight off after 9 significant bits, up to .4 % below. The files hold the nearest
weight of 9 bits instead (`rounded`), which it keeps as it is: at most .2 % off, and as often above as below.
A document without an entry is stored without the field, and no search finds it. Dimensions: V vocabulary.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.errors import InputError
from sparse_adapt.export.parts import Manifest, begin, file_part, finish, write_documents, write_queries
from sparse_adapt.export.quantise import Entries, Quantisation
from sparse_adapt.export.rows import json_object, json_string, rows, small_blocks
from sparse_adapt.files.folders import output_folder, write_json
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors

QUERIES_FILE = "queries.jsonl"
INDEX_FILE = "index.json"
FIELD = "weights"
RESULTS = 10
LONGEST_ID = 512  # bytes of a document's _id
LONGEST_NAME = 32_766  # bytes of a term in Lucene
DROPPED_BITS = 15  # of a float32's 23 in the fraction
LARGEST = np.float32((2 - 2**-8) * 2.0**127)

_LINE = 60  # bytes beside id and entries


class Target(NamedTuple):
    """One of the two: its name in `FORMATS`, the mapping, the search for a dot product, how it names a token."""

    format: str
    title: str
    mapping: Mapping[str, Any]
    search: Callable[[Mapping[str, float], int], dict[str, Any]]
    token_name: Callable[[str], str]


def write(
    target: Target,
    vectors: Vectors,
    folder: Path,
    *,
    queries: EncodedBatch | None = None,
    quantisation: Quantisation | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Write bulk requests, block by block, into a new folder; nothing stays there if it fails.

    Raises InputError for a token or a document id that is longer than the engine takes.
    """
    names = token_names(target, vectors.tokens)
    keys = [json_string(name) for name in names]
    manifest = begin(target.format, vectors, quantisation)

    def query_lines(entries: Entries) -> Iterator[str]:
        for query_id, columns, weights in rows(entries):
            if columns:
                wanted = {
                    names[column]: float(weight) for column, weight in zip(columns, weights, strict=True)
                }
                yield (
                    json.dumps(
                        {"query_id": query_id, "search": target.search(wanted, RESULTS)}, ensure_ascii=False
                    )
                    + "\n"
                )

    def bulk_lines(entries: Entries) -> Iterator[str]:
        for document_id, columns, weights in rows(entries._replace(vectors=rounded(entries.vectors))):
            fields = f'"{FIELD}": {json_object(keys, columns, weights)}' if columns else ""
            yield f'{{"index": {{"_id": {json_string(document_id)}}}}}\n{{{fields}}}\n'

    with output_folder(folder, overwrite=overwrite, resumable=False) as work:
        if queries is not None:
            manifest = write_queries(work, manifest, queries, QUERIES_FILE, query_lines)
        blocks = small_blocks(_checked(target, vectors.blocks), keys, _LINE)
        manifest = write_documents(work, manifest, blocks, bulk_lines, suffix="ndjson")
        write_json(work / INDEX_FILE, {"mappings": {"properties": {FIELD: target.mapping}}})
        settings = file_part(work, INDEX_FILE, 0)
        return finish(
            work, manifest.model_copy(update={"parts": (*manifest.parts, settings)}), vectors.tokens
        )


def token_names(target: Target, tokens: Sequence[str]) -> list[str]:
    """The V tokens as the engine names them. Raises InputError for one that Lucene can't hold."""
    names = [target.token_name(token) for token in tokens]
    for token, name in zip(tokens, names, strict=True):
        if not 0 < len(name.encode()) <= LONGEST_NAME:
            raise InputError(
                repr(token[:40]),
                f"this token has {len(name.encode()):,} bytes, {target.title} takes 1 to {LONGEST_NAME:,}",
            )
    return names


def rounded(weights: csr_matrix) -> csr_matrix:
    """Weights (rows, V), none negative, as the nearest float32 of 9 significant bits; half ways go up.

    Lucene's `FeatureField` stores a weight as a term frequency, which is the upper bits of its float32.
    """
    bits = weights.data.astype(np.float32).view(np.int32) + (1 << (DROPPED_BITS - 1))
    kept = (bits >> DROPPED_BITS << DROPPED_BITS).view(np.float32)
    return csr_matrix(
        (np.minimum(kept, LARGEST), weights.indices.copy(), weights.indptr.copy()), shape=weights.shape
    )


def curl_lines(folder: Path, index: str) -> str:
    """Shell commands that load it, part by part."""
    return "\n".join(
        [
            "URL=http://localhost:9200",
            f"curl -fsS -X PUT $URL/{index} -H 'Content-Type: application/json' --data-binary @'{folder}/{INDEX_FILE}'",
            f"for part in '{folder}'/documents/*.ndjson; do",
            f'  curl -fsS "$URL/{index}/_bulk?filter_path=errors,items.*.error" '
            "-H 'Content-Type: application/x-ndjson' --data-binary @\"$part\"",
            "done",
        ]
    )


def _checked(target: Target, blocks: Iterable[EncodedBatch]) -> Iterator[EncodedBatch]:
    for block in blocks:
        for document_id in block.ids:
            if not 0 < len(document_id.encode()) <= LONGEST_ID:
                raise InputError(
                    repr(document_id[:40]),
                    f"this document id has {len(document_id.encode()):,} bytes, "
                    f"{target.title} takes 1 to {LONGEST_ID}",
                )
        yield block
