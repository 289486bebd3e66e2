r"""An application and a feed for Vespa: a mapped tensor of float32 for each document, ranked by dot product.

    FOLDER/application/services.xml, application/schemas/passage.sd    what `vespa deploy` takes
    FOLDER/documents/part-00000.jsonl    what `vespa feed` takes: {"put": "id:NAMESPACE:passage::ID", "fields": ...}
    FOLDER/queries.jsonl                 {"query_id": ..., "search": what `/search/` takes}
    FOLDER/tokens.json, manifest.json

A cell's label is the token, in which `%` and six hexadecimal digits stand for each character that Vespa or
the literal form of its tensors could trip over; `unescape_label` goes back, and no two tokens share a label.
A document without an entry has no tensor: it is stored, and no search finds it. The rank profile scores
every document and drops those that share no token with the query.

Weights stay float32. Vespa gives no order to documents of equal score. Dimensions: V vocabulary.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sparse_adapt.collection.readers import Run
from sparse_adapt.engines.http import Server
from sparse_adapt.engines.layout import ExportLayout, ExportSource
from sparse_adapt.engines.lines import LineSize, json_object, json_string, rows
from sparse_adapt.engines.loading import Refused, json_lines, refuse
from sparse_adapt.engines.manifest import ExportFolder, read_export
from sparse_adapt.engines.opened import FloatEngine
from sparse_adapt.engines.quantise import Entries
from sparse_adapt.engines.writing import in_parts
from sparse_adapt.errors import InputError, OutputError
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

NAMESPACE, SCHEMA, FIELD, KEY, PROFILE = "sparse-adapt", "passage", "weights", "document_id", "dot_product"
RESULTS = 10
MOST_HITS = 400  # that Vespa gives unless told otherwise

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
_FRAME = 120  # bytes of a line beside id and entries


# -- the files ------------------------------------------------------------------------------------


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: an application and a feed."""
    labels = [escape_label(token) for token in source.vectors.tokens]
    keys = [json_string(label) for label in labels]
    return ExportLayout(
        documents=in_parts(partial(_feed_lines, keys), requests=LineSize(keys, _FRAME), check_id=_check_id),
        query_lines=partial(_query_lines, labels),
        settings=APPLICATION,
    )


def how_to_load(export: ExportFolder) -> str:
    """Shell commands that load an export."""
    folder = export.path
    return f"vespa deploy --wait 300 '{folder}/application'\ncat '{folder}'/documents/*.jsonl | vespa feed -"


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


def _feed_lines(keys: Sequence[str], entries: Entries) -> Iterator[str]:
    for document_id, columns, weights in rows(entries):
        cells = f'"cells": {json_object(keys, columns, weights)}'
        tensor = f', "{FIELD}": {{{cells}}}' if columns else ""
        fields = f'"{KEY}": {json_string(document_id)}{tensor}'
        put = json_string(f"id:{NAMESPACE}:{SCHEMA}::{document_id}")
        yield f'{{"put": {put}, "fields": {{{fields}}}}}\n'


def _query_lines(labels: Sequence[str], entries: Entries) -> Iterator[str]:
    for query_id, columns, weights in rows(entries):
        if columns:
            search = search_body(tensor_literal(labels, columns, weights), RESULTS)
            yield json.dumps({"query_id": query_id, "search": search}, ensure_ascii=False) + "\n"


def _check_id(document_id: str) -> None:
    if not document_id or re.search(f"[{_NO_TEXT}]", document_id):
        raise InputError(
            repr(document_id[:40]),
            "this document id has characters that Vespa can't hold, or none; give it another",
        )


# -- the engine -----------------------------------------------------------------------------------


class Vespa(FloatEngine):
    """A server that holds one export."""

    name = "vespa"

    def __init__(self, server: Server, export: ExportFolder) -> None:
        super().__init__(export.manifest)
        self.server = server
        self._labels = [escape_label(token) for token in export.tokens]

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first; at most 400."""
        run: Run = {query_id: {} for query_id in queries.ids}
        for query_id, columns, weights in self.manifest.take(queries).rows():
            if columns:
                tensor = tensor_literal(self._labels, columns, weights)
                root = _search(self.server, search_body(tensor, min(k, MOST_HITS)))
                hits = root.get("children", [])
                run[query_id] = {hit["fields"][KEY]: hit["relevance"] for hit in hits}
        return run


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> Iterator[Vespa]:
    """An export in the application that runs at `url`, which must hold nothing else and is emptied afterwards."""
    server = Server(url)
    try:
        there = documents_there(server)
        if there:
            raise OutputError(
                f"{server.place}: holds {there:,} documents; check against an empty application"
            )
        try:
            feed(export, server)
            yield Vespa(server, export)
        finally:
            for operation in _operations(export):
                server.ask("DELETE", _path(operation))
    finally:
        server.close()


def load(folder: Path, url: str) -> int:
    """Feed an export to the application that runs at a URL; how many documents it holds then.

    Raises InputError for a folder that its manifest doesn't vouch for, OutputError for documents that Vespa
    refuses; those before and after them are in. `vespa feed` does the same faster.
    """
    server = Server(url)
    try:
        feed(read_export(folder, "vespa"), server)
        return documents_there(server)
    finally:
        server.close()


def feed(export: ExportFolder, server: Server) -> None:
    """Put every document of an export, as `load` does."""
    refused = []
    for operation in _operations(export):
        answer = server.ask("POST", _path(operation), {"fields": operation["fields"]})
        if not answer.good:
            refused.append(Refused(operation["fields"][KEY], answer.reason))
    if refused:
        refuse(server.place, refused, export.manifest.documents)


def documents_there(server: Server) -> int:
    """How many documents of the export's schema a server holds. Raises OutputError where it has no such schema."""
    root = _search(server, {"yql": f"select * from {SCHEMA} where true", "hits": 0})
    return int(root["fields"]["totalCount"])


def _search(server: Server, body: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    answer = server.ask("POST", "/search/", body)
    root = answer.content.get("root", {}) if isinstance(answer.content, dict) else {}
    errors = root.get("errors")
    if errors or not answer.good or "fields" not in root:
        said = json.dumps(errors[0].get("message", errors[0])) if errors else answer.reason
        raise OutputError(
            f"{server.place}: Vespa doesn't search ({said}); deploy the export's application there"
        )
    return dict(root)


def _operations(export: ExportFolder) -> Iterator[dict[str, Any]]:
    """What each line of the feed asks for."""
    for part in export.manifest.document_files:
        yield from json_lines(export.path / part.path)


def _path(operation: dict[str, Any]) -> str:
    """Where the document API has a document; its id stands in `put` after two colons."""
    document_id = operation["put"].split("::", 1)[1]
    return f"/document/v1/{NAMESPACE}/{SCHEMA}/docid/{quote(document_id, safe='')}"
