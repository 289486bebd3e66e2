"""Vespa: a server that runs an export's application, fed over its document API and searched.

Weights stay float32. Vespa gives no order to documents of equal score. Dimensions: V vocabulary.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sparse_adapt.collection.readers import Run
from sparse_adapt.engines.float32 import Float32Engine
from sparse_adapt.engines.http import Server
from sparse_adapt.engines.loading import Refused, document_parts, json_lines, refuse
from sparse_adapt.errors import ConfigError, OutputError
from sparse_adapt.export.parts import Manifest, read_manifest
from sparse_adapt.export.vespa import (
    KEY,
    NAMESPACE,
    SCHEMA,
    escape_label,
    search_body,
    tensor_literal,
)
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.retrieve.vectors.manifest import read_tokens

MOST_RESULTS = 400  # that Vespa gives unless told otherwise


class Vespa(Float32Engine):
    """A server that holds one export."""

    name = "vespa"

    def __init__(self, server: Server, manifest: Manifest, tokens: list[str]) -> None:
        self.server, self.manifest = server, manifest
        self._labels = [escape_label(token) for token in tokens]

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first; at most 400."""
        run: Run = {query_id: {} for query_id in queries.ids}
        for query_id, columns, weights in self.manifest.take(queries).rows():
            if columns:
                tensor = tensor_literal(self._labels, columns, weights)
                root = _search(self.server, search_body(tensor, min(k, MOST_RESULTS)))
                hits = root.get("children", [])
                run[query_id] = {hit["fields"][KEY]: hit["relevance"] for hit in hits}
        return run


@contextmanager
def open_engine(folder: Path, *, url: str = "") -> Iterator[Vespa]:
    """An export in the application that runs at `url`, which must hold nothing else and is emptied afterwards."""
    if not url:
        raise ConfigError("Vespa is a server; say where with --url http://localhost:8080")
    manifest = read_manifest(folder, "vespa")
    tokens = read_tokens(folder, manifest.model)
    server = Server(url)
    try:
        there = documents_there(server)
        if there:
            raise OutputError(
                f"{server.place}: holds {there:,} documents; check against an empty application"
            )
        try:
            feed(folder, server)
            yield Vespa(server, manifest, tokens)
        finally:
            for part in document_parts(manifest):
                for operation in json_lines(folder / part.path):
                    server.ask("DELETE", _path(operation))
    finally:
        server.close()


def load(folder: Path, url: str) -> int:
    """Feed an export to the application that runs at a URL; how many documents it holds then.

    See `feed` for what it raises. `vespa feed` does the same faster.
    """
    server = Server(url)
    try:
        feed(folder, server)
        return documents_there(server)
    finally:
        server.close()


def feed(folder: Path, server: Server) -> None:
    """Put every document of an export.

    Raises InputError for a folder that its manifest doesn't vouch for, OutputError for documents that Vespa
    refuses; those before and after them are in.
    """
    manifest = read_manifest(folder, "vespa")
    refused = []
    for part in document_parts(manifest):
        for operation in json_lines(folder / part.path):
            answer = server.ask("POST", _path(operation), {"fields": operation["fields"]})
            if not answer.good:
                refused.append(Refused(operation["fields"][KEY], answer.reason))
    if refused:
        refuse(server.place, refused, manifest.documents)


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


def _path(operation: dict[str, Any]) -> str:
    """Where the document API has a document; its id stands in `put` after two colons."""
    document_id = operation["put"].split("::", 1)[1]
    return f"/document/v1/{NAMESPACE}/{SCHEMA}/docid/{quote(document_id, safe='')}"
