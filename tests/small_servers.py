"""Small servers that answer over HTTP as engines are documented to, refusals included, and really search."""

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np

SMALLEST_NORMAL = float(np.finfo(np.float32).tiny)


class Refusal(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, kind: str, reason: str) -> None:
        self.status, self.kind, self.reason = status, kind, reason
        super().__init__(reason)


class BulkServer:
    """OpenSearch or Elasticsearch as far as bulk loading and searching one sparse field goes.

    `largest_request`: bytes of a body above which it answers 413. `busy`: how often yet a request, or, below
    `busy_items`, a document, is turned away with 429. `refuse`: ids it refuses whatever they hold.
    """

    def __init__(self, kind: str, version: str = "3.1.0") -> None:
        self.kind, self.version = kind, version
        self.indices: dict[str, dict[str, Any]] = {}
        self.requests: list[tuple[str, str, int]] = []
        self.largest_request, self.busy, self.busy_items = 10**7, 0, 0
        self.refuse: set[str] = set()
        self.field_type = "rank_features" if kind == "opensearch" else "sparse_vector"

    def answer(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Any:
        self.requests.append((method, path, len(body)))
        if len(body) > self.largest_request:
            raise Refusal(413, "content_too_long_exception", "entity content is too long")
        if self.busy:
            self.busy -= 1
            raise Refusal(429, "circuit_breaking_exception", "too many requests")
        index, _, action = unquote(urlsplit(path).path).strip("/").partition("/")
        if not index:
            distribution = {"distribution": "opensearch"} if self.kind == "opensearch" else {}
            return {"version": {"number": self.version, **distribution}}
        if not action:
            return self._index(method, index, body)
        if index not in self.indices:
            raise Refusal(404, "index_not_found_exception", f"no such index [{index}]")
        return {
            "_bulk": self._bulk,
            "_msearch": self._msearch,
            "_search": lambda name, content: self._search(name, json.loads(content)),
            "_mapping": lambda name, _: {name: {"mappings": self.indices[name]["mappings"]}},
            "_refresh": lambda name, _: {},
            "_count": lambda name, _: {"count": len(self.indices[name]["documents"])},
        }[action](index, body)

    def _index(self, method: str, index: str, body: bytes) -> Any:
        if method == "DELETE":
            self.indices.pop(index)
        elif method == "HEAD":
            if index not in self.indices:
                raise Refusal(404, "index_not_found_exception", f"no such index [{index}]")
        elif index in self.indices:
            raise Refusal(400, "resource_already_exists_exception", f"index [{index}] already exists")
        elif index != index.lower():
            raise Refusal(
                400, "invalid_index_name_exception", f"Invalid index name [{index}], must be lowercase"
            )
        else:
            self.indices[index] = {"mappings": json.loads(body)["mappings"], "documents": {}, "sources": {}}
        return {"acknowledged": True}

    def _bulk(self, index: str, body: bytes) -> Any:
        if not body.endswith(b"\n"):
            raise Refusal(
                400, "illegal_argument_exception", "The bulk request must be terminated by a newline [\\n]"
            )
        lines = body.decode().split("\n")[:-1]
        items = []
        for action, source in zip(lines[::2], lines[1::2], strict=True):
            document_id = json.loads(action)["index"]["_id"]
            item: dict[str, Any] = {"_index": index, "_id": document_id, "status": 201}
            try:
                self._store(index, document_id, source)
            except Refusal as refusal:
                cause = {"type": refusal.kind, "reason": refusal.reason}
                error = {"type": "mapper_parsing_exception", "reason": "failed to parse", "caused_by": cause}
                item |= {"status": refusal.status, "error": error}
            items.append({"index": item})
        return {"took": 1, "errors": any("error" in item["index"] for item in items), "items": items}

    def _store(self, index: str, document_id: str, source: str) -> None:
        if self.busy_items:
            self.busy_items -= 1
            raise Refusal(429, "rejected_execution_exception", "rejected execution of coordinating operation")
        if document_id in self.refuse:
            raise Refusal(400, "illegal_argument_exception", f"[{document_id}] can't be stored")
        if not 0 < len(document_id.encode()) <= 512:
            raise Refusal(
                400, "illegal_argument_exception", "id is too long, must be no longer than 512 bytes"
            )
        weights, mapping = {}, self.indices[index]["mappings"]["properties"]["weights"]
        content = json.loads(source, object_pairs_hook=_no_twins)
        self.indices[index]["sources"][document_id] = content
        for name, value in content.get("weights", {}).items():
            if self.kind == "elasticsearch" and "." in name:
                raise Refusal(
                    400,
                    "illegal_argument_exception",
                    f"[sparse_vector] fields do not support dots in feature names but found [{name}]",
                )
            if (
                mapping["type"] == "sparse_vector"
                and self.kind == "opensearch"
                and not 0 <= int(name) < 2**15
            ):
                raise Refusal(400, "illegal_argument_exception", f"{name} is no unsigned short of 15 bits")
            if len(name.encode()) > 32_766:
                raise Refusal(400, "illegal_argument_exception", "immense term")
            if not np.float32(value) >= SMALLEST_NORMAL or not np.isfinite(np.float32(value)):
                raise Refusal(
                    400,
                    "illegal_argument_exception",
                    f"featureValue must be a positive normal float, got: {value}",
                )
            weights[name] = float((np.float32(value).view(np.int32) >> 15 << 15).view(np.float32))
        self.indices[index]["documents"][document_id] = weights

    def _msearch(self, index: str, body: bytes) -> Any:
        answers = []
        for line in body.decode().split("\n")[:-1][1::2]:
            try:
                answers.append(self._search(index, json.loads(line)) | {"status": 200})
            except Refusal as refusal:
                answers.append(_error(refusal))
        return {"responses": answers}

    def _search(self, index: str, body: dict[str, Any]) -> dict[str, Any]:
        if self.kind == "opensearch":
            query = body["query"]["neural_sparse"]["weights"]
            wanted, method = query["query_tokens"], query.get("method_parameters", {})
            assert method.get("top_n", len(wanted)) == len(wanted)
            assert method.get("k", body["size"]) == body["size"]
            heavy = [weight for weight in wanted.values() if not 0 < weight <= 64]
            if heavy:
                raise Refusal(
                    400, "illegal_argument_exception", f"weight must be in (0, 64], got: {heavy[0]}"
                )
        else:
            query = body["query"]["sparse_vector"]
            assert (query["field"], query["prune"]) == ("weights", False)
            wanted = query["query_vector"]
        scores = {
            document_id: sum(
                np.float32(wanted[name]) * np.float32(weights[name]) for name in wanted.keys() & weights
            )
            for document_id, weights in self.indices[index]["documents"].items()
        }
        best = sorted((-score, document_id) for document_id, score in scores.items() if score > 0)
        hits = [{"_id": document_id, "_score": -float(score)} for score, document_id in best[: body["size"]]]
        for hit in hits:
            source = self.indices[index]["sources"].get(hit["_id"], {})
            if body["_source"]:
                hit["_source"] = {name: source[name] for name in body["_source"] if name in source}
        return {"hits": {"hits": hits}}


@contextmanager
def served(server: Any) -> Iterator[str]:
    """A server's URL for as long as the block lasts."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = 1 << 16  # one packet an answer: no waiting for acknowledgements

        def log_message(self, *_: Any) -> None:
            """Nothing is written."""

        def do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            try:
                content, status = server.answer(self.command, self.path, body, dict(self.headers)), 200
            except Refusal as refusal:
                content, status = _error(refusal), refusal.status
            text = json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            if getattr(server, "kind", "") == "elasticsearch":
                self.send_header(
                    "X-Elastic-Product", "Elasticsearch"
                )  # without which its client goes no further
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else text)

        do_GET: Callable[..., None] = do
        do_HEAD: Callable[..., None] = do
        do_PUT: Callable[..., None] = do
        do_POST: Callable[..., None] = do
        do_DELETE: Callable[..., None] = do

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()


def _error(refusal: Refusal) -> dict[str, Any]:
    cause = {"type": refusal.kind, "reason": refusal.reason}
    return {"error": {"root_cause": [cause], **cause}, "status": refusal.status}


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) != len(dict(pairs)):
        raise Refusal(
            400, "illegal_argument_exception", "do not support indexing multiple values for the same feature"
        )
    return dict(pairs)


class VespaServer:
    """Vespa with the application of an export, as far as its document API and searching go."""

    def __init__(self) -> None:
        self.documents: dict[str, dict[str, Any]] = {}
        self.refuse: set[str] = set()
        self.busy = 0
        self.deployed = True

    def answer(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Any:
        if self.busy:
            self.busy -= 1
            raise Refusal(429, "too_many_requests", "Rejecting execution due to overload")
        if path == "/search/":
            return {"root": self._search(json.loads(body))}
        assert path.startswith("/document/v1/sparse-adapt/passage/docid/")
        document_id = unquote(path.rsplit("/", 1)[1])
        if method == "DELETE":
            self.documents.pop(document_id, None)
            return {}
        fields = json.loads(body)["fields"]
        if document_id in self.refuse:
            raise Refusal(400, "bad_request", f"could not parse {document_id}")
        assert fields.keys() <= {"document_id", "weights"}
        assert fields["document_id"] == document_id
        cells = fields.get("weights", {"cells": {}})["cells"]
        self.documents[document_id] = {label: np.float32(value) for label, value in cells.items()}
        return {"id": f"id:sparse-adapt:passage::{document_id}"}

    def _search(self, body: dict[str, Any]) -> dict[str, Any]:
        if not self.deployed:
            return {
                "fields": {"totalCount": 0},
                "errors": [{"code": 4, "message": "Unknown source 'passage'"}],
            }
        if body["hits"] == 0:
            return {"fields": {"totalCount": len(self.documents)}}
        if body["hits"] > 400:
            return {
                "errors": [{"code": 3, "message": f"{body['hits']} hits requested, configured limit: 400."}]
            }
        assert body["ranking"] == "dot_product"
        literal = body["input.query(weights)"]
        wanted = dict(re.findall(r'\{token:"([^"\\{}:,\s]*)"\}:([0-9.e+-]+)', literal))
        assert literal.count(":") == 2 * len(wanted)
        scores = {
            document_id: sum(np.float32(wanted[label]) * weights[label] for label in wanted.keys() & weights)
            for document_id, weights in self.documents.items()
        }
        best = sorted((-score, document_id) for document_id, score in scores.items() if score > 0)[
            : body["hits"]
        ]
        children = [{"relevance": -float(score), "fields": {"document_id": name}} for score, name in best]
        return {"fields": {"totalCount": len(children)}, "children": children}
