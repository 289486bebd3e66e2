r"""An application and a feed for Vespa: a mapped tensor of float32 for each document, ranked by dot product.

    FOLDER/application/services.xml, application/schemas/passage.sd    what `vespa deploy` takes
    FOLDER/documents/part-00000.jsonl    what `vespa feed` takes: {"put": "id:NAMESPACE:passage::ID", "fields": ...}
    FOLDER/queries.jsonl                 {"query_id": ..., "search": what `/search/` takes}
    FOLDER/tokens.json, manifest.json

A cell's label is the token, in which `%` and six hexadecimal digits stand for each character that Vespa or
the literal form of its tensors could trip over; `unescape_label` goes back, and no two tokens share a label.
A document without an entry has no tensor: it is stored, and no search finds it. The rank profile scores
every document and drops those that share no token with the query. Dimensions: V vocabulary.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from sparse_adapt.errors import InputError
from sparse_adapt.export.parts import Manifest, begin, file_part, finish, write_documents, write_queries
from sparse_adapt.export.quantise import Entries, Quantisation
from sparse_adapt.export.rows import json_object, json_string, rows, small_blocks
from sparse_adapt.files.folders import output_folder, write_text
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors

QUERIES_FILE = "queries.jsonl"
NAMESPACE, SCHEMA, FIELD, KEY, PROFILE = "sparse-adapt", "passage", "weights", "document_id", "dot_product"
RESULTS = 10

SERVICES_XML = f"""<?xml version="1.0" encoding="utf-8" ?>
<services version="1.0">
    <container id="default" version="1.0">
        <document-api/>
        <search/>
    </container>
    <content id="texts" version="1.0">
        <min-redundancy>1</min-redundancy>
        <documents>
            <document type="{SCHEMA}" mode="index"/>
        </documents>
    </content>
</services>
"""
SCHEMA_SD = f"""schema {SCHEMA} {{
    document {SCHEMA} {{
        field {KEY} type string {{
            indexing: attribute | summary
        }}
        field {FIELD} type tensor<float>(token{{}}) {{
            indexing: attribute
        }}
    }}
    rank-profile {PROFILE} {{
        inputs {{
            query({FIELD}) tensor<float>(token{{}})
        }}
        first-phase {{
            expression: sum(query({FIELD}) * attribute({FIELD}))
            rank-score-drop-limit: 0.0
        }}
    }}
}}
"""
APPLICATION = {"application/services.xml": SERVICES_XML, f"application/schemas/{SCHEMA}.sd": SCHEMA_SD}

_NO_TEXT = "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff" + "".join(
    chr(plane + last) for plane in range(0x10000, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF)
)  # characters that no string of Vespa's holds
_OFFENDING = re.compile(f"[{_NO_TEXT}\\s%\"'\\\\{{}}:,]")
_ESCAPED = re.compile(r"%([0-9a-f]{6})")
_LINE = 120  # bytes beside id and entries


def write(
    vectors: Vectors,
    folder: Path,
    *,
    queries: EncodedBatch | None = None,
    quantisation: Quantisation | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Write an application and a feed, block by block, into a new folder; nothing stays there if it fails.

    Raises InputError for a document id with characters that Vespa's strings can't hold.
    """
    labels = [escape_label(token) for token in vectors.tokens]
    keys = [json_string(label) for label in labels]
    manifest = begin("vespa", vectors, quantisation)

    def feed_lines(entries: Entries) -> Iterator[str]:
        for document_id, columns, weights in rows(entries):
            cells = f'"cells": {json_object(keys, columns, weights)}'
            tensor = f', "{FIELD}": {{{cells}}}' if columns else ""
            fields = f'"{KEY}": {json_string(document_id)}{tensor}'
            put = json_string(f"id:{NAMESPACE}:{SCHEMA}::{document_id}")
            yield f'{{"put": {put}, "fields": {{{fields}}}}}\n'

    def query_lines(entries: Entries) -> Iterator[str]:
        for query_id, columns, weights in rows(entries):
            if columns:
                search = search_body(tensor_literal(labels, columns, weights), RESULTS)
                yield json.dumps({"query_id": query_id, "search": search}, ensure_ascii=False) + "\n"

    with output_folder(folder, overwrite=overwrite, resumable=False) as work:
        if queries is not None:
            manifest = write_queries(work, manifest, queries, QUERIES_FILE, query_lines)
        manifest = write_documents(
            work, manifest, small_blocks(_checked(vectors.blocks), keys, _LINE), feed_lines
        )
        for path, text in APPLICATION.items():
            write_text(work / path, text)
        files = tuple(file_part(work, path, 0) for path in APPLICATION)
        return finish(work, manifest.model_copy(update={"parts": (*manifest.parts, *files)}), vectors.tokens)


def search_body(tensor: str, k: int) -> Mapping[str, Any]:
    """What `/search/` takes: the k documents with the largest dot products, exactly, however long it takes."""
    return {
        "yql": f"select {KEY} from {SCHEMA} where true",
        "ranking": PROFILE,
        f"input.query({FIELD})": tensor,
        "hits": k,
        "timeout": "20s",
        "ranking.softtimeout.enable": False,
    }


def tensor_literal(labels: Sequence[str], columns: Sequence[int], weights: Sequence[object]) -> str:
    """A query's weights in the literal form of tensors. labels: (V)."""
    cells = (
        f'{{token:"{labels[column]}"}}:{weight}' for column, weight in zip(columns, weights, strict=True)
    )
    return f"{{{','.join(cells)}}}"


def escape_label(token: str) -> str:
    """A token as the label of a cell, with nothing in it that needs quoting."""
    return _OFFENDING.sub(lambda match: f"%{ord(match[0]):06x}", token)


def unescape_label(label: str) -> str:
    """The token that `escape_label` made a label of."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), label)


def loading(folder: Path, manifest: Manifest) -> str:
    """Shell commands that load it."""
    return f"vespa deploy --wait 300 '{folder}/application'\ncat '{folder}'/documents/*.jsonl | vespa feed -"


def _checked(blocks: Iterable[EncodedBatch]) -> Iterator[EncodedBatch]:
    for block in blocks:
        for document_id in block.ids:
            if not document_id or re.search(f"[{_NO_TEXT}]", document_id):
                raise InputError(
                    repr(document_id[:40]),
                    "this document id has characters that Vespa can't hold, or none; give it another",
                )
        yield block
