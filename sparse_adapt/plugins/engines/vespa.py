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
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sparse_adapt.collection.readers import Run
from sparse_adapt.errors import InputError, OutputError
from sparse_adapt.files.records import JsonObject
from sparse_adapt.plugins.engines.engine import (
    FloatEngine,
    RefusedDocument,
    address_of,
    check_taken,
    engine_errors,
    one_line,
)
from sparse_adapt.plugins.engines.layout import (
    ExportLayout,
    ExportSource,
    StoredText,
    in_parts,
    json_object,
    json_string,
)
from sparse_adapt.plugins.engines.manifest import ExportFolder, read_export
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

if TYPE_CHECKING:  # an export can be written without a client
    from httpx import Client, Response

NAMESPACE, SCHEMA, FIELD, KEY, PROFILE = "sparse-adapt", "passage", "weights", "document_id", "dot_product"
RESULTS = 10
MOST_HITS = 400  # that Vespa gives unless told otherwise
SECONDS = 60  # for a request
BUSY = (429, 502, 503, 504)  # the status of a request that may be sent again after a pause
PAUSES = (0.5, 1.0, 2.0, 4.0)  # seconds

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


# -- the files ------------------------------------------------------------------------------------


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: an application and a feed."""
    labels = [escape_label(token) for token in source.vectors.tokens]
    keys = [json_string(label) for label in labels]

    def feed_line(text: StoredText) -> str:
        tensor = f', "{FIELD}": {{"cells": {json_object(keys, text)}}}' if text.columns else ""
        fields = f'"{KEY}": {json_string(text.text_id)}{tensor}'
        put = json_string(f"id:{NAMESPACE}:{SCHEMA}::{text.text_id}")
        return f'{{"put": {put}, "fields": {{{fields}}}}}\n'

    def query_line(text: StoredText) -> str:
        search = search_body(tensor_literal(labels, text.columns, text.weights), RESULTS)
        return json.dumps({"query_id": text.text_id, "search": search}, ensure_ascii=False) + "\n"

    return ExportLayout(
        documents=in_parts(feed_line, check_id=_check_id), query_line=query_line, settings=APPLICATION
    )


def how_to_load(export: ExportFolder) -> str:
    """Shell commands that load an export."""
    folder = export.path
    return f"vespa deploy --wait 300 '{folder}/application'\ncat '{folder}'/documents/*.jsonl | vespa feed -"


def search_body(tensor: str, k: int) -> dict[str, object]:
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

    def __init__(self, client: "Client", export: ExportFolder) -> None:
        super().__init__(export.manifest)
        self.client = client
        self._labels = [escape_label(token) for token in export.tokens]

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first; at most 400."""
        return self.in_batches(queries, 1, partial(self._search, min(k, MOST_HITS)))

    def _search(self, k: int, queries: list[dict[int, float]]) -> Iterator[dict[str, float]]:
        for query in queries:
            tensor = tensor_literal(self._labels, list(query), list(query.values()))
            hits = _search(self.client, search_body(tensor, k))["children"]
            yield {hit["fields"][KEY]: hit["relevance"] for hit in hits}


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> Iterator[Vespa]:
    """An export in the application that runs at `url`, which must hold nothing else and is emptied afterwards."""
    with _application(url) as client:
        there = _documents_there(client)
        if there:
            place = address_of(url).place
            raise OutputError(f"{place}: holds {there:,} documents; check against an empty application")
        try:
            load(export.path, url)
            yield Vespa(client, export)
        finally:
            for operation in export.document_lines():
                _ask(client, "DELETE", _path(operation))


def load(folder: Path, url: str) -> int:
    """Feed an export to the application that runs at a URL; how many documents it holds then.

    Raises InputError for a folder that its manifest doesn't vouch for, OutputError for documents that Vespa
    refuses; those before and after them are in. `vespa feed` does the same faster.
    """
    export = read_export(folder, "vespa")
    refused = []
    with _application(url) as client:
        for operation in export.document_lines():
            answer = _ask(client, "POST", _path(operation), {"fields": operation["fields"]})
            if not answer.is_success:
                refused.append(RefusedDocument(operation["fields"][KEY], _reason(answer)))
        check_taken(address_of(url).place, refused, export.manifest.documents)
        return _documents_there(client)


@contextmanager
def _application(url: str) -> "Iterator[Client]":
    """A client of the server at `url`. Raises OutputError where there is none."""
    from httpx import Client, HTTPError

    address = address_of(url)
    with (
        engine_errors(address.place, "Vespa", HTTPError),
        Client(base_url=address.url, timeout=SECONDS) as client,
    ):
        yield client


def _ask(client: "Client", method: str, path: str, body: object = None) -> "Response":
    """The answer to a request; one that finds the server busy is sent again after a pause, some times."""
    for seconds in PAUSES:
        answer = client.request(method, path, json=body)
        if answer.status_code not in BUSY:
            return answer
        time.sleep(seconds)
    return client.request(method, path, json=body)


def _reason(answer: "Response") -> str:
    return f"status {answer.status_code}: {one_line(answer.text)}"


def _documents_there(client: "Client") -> int:
    """How many documents of the export's schema a server holds. Raises OutputError where it has no such schema."""
    root = _search(client, {"yql": f"select * from {SCHEMA} where true", "hits": 0})
    return int(root["fields"]["totalCount"])


def _search(client: "Client", body: object) -> JsonObject:
    answer = _ask(client, "POST", "/search/", body)
    try:
        root = answer.json()["root"]
        if "errors" not in root and answer.is_success:
            return {"fields": root["fields"], "children": root.get("children", [])}
    except (ValueError, LookupError, TypeError):
        pass  # this is no answer of Vespa's search
    place = address_of(str(client.base_url)).place
    raise OutputError(
        f"{place}: Vespa doesn't search ({_reason(answer)}); deploy the export's application there"
    )


def _path(operation: JsonObject) -> str:
    """Where the document API has a document; its id stands in `put` after two colons."""
    document_id = operation["put"].split("::", 1)[1]
    return f"/document/v1/{NAMESPACE}/{SCHEMA}/docid/{quote(document_id, safe='')}"
