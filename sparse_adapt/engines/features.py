"""OpenSearch and Elasticsearch: an export loaded into an index over plain HTTP, and searched there.

Both keep weights in Lucene's feature fields, 9 significant bits of each. Dimensions: V vocabulary.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.engines.float32 import Float32Engine
from sparse_adapt.engines.http import BUSY, TRIES, Server
from sparse_adapt.engines.loading import Refused, document_parts, refuse
from sparse_adapt.errors import ConfigError, InputError, OutputError
from sparse_adapt.export.features import FIELD, INDEX_FILE, Target, rounded, token_names
from sparse_adapt.export.opensearch import share
from sparse_adapt.export.parts import Manifest, read_manifest
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.retrieve.vectors.manifest import read_tokens

QUERIES_A_REQUEST = 32
MOST_RESULTS = 10_000
TOO_LARGE = 413
NDJSON = "x-ndjson"


class FeatureIndex(Float32Engine):
    """An index that holds one export."""

    def __init__(
        self, target: Target, server: Server, index: str, manifest: Manifest, tokens: list[str]
    ) -> None:
        self.target, self.server, self.index, self.manifest = target, server, index, manifest
        self.name = f"{target.format}-{_version(target, server)}"
        self._names = token_names(target, tokens)

    def stored(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as Lucene keeps them (rows, V): rounded to 9 significant bits."""
        return rounded(self.manifest.take(documents).vectors)

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first; at most 10,000."""
        run: Run = {query_id: {} for query_id in queries.ids}
        for some in self.batches(queries, QUERIES_A_REQUEST):
            wanted = [
                {self._names[column]: weight for column, weight in zip(columns, weights, strict=True)}
                for _, columns, weights in some
            ]
            bodies = [self.target.search(weights, min(k, MOST_RESULTS)) for weights in wanted]
            for (query_id, _, _), weights, hits in zip(some, wanted, self._search(bodies), strict=True):
                factor = share(weights) if self.target.format == "opensearch" else 1.0
                run[query_id] = {hit["_id"]: hit["_score"] / factor for hit in hits}
        return run

    def _search(self, bodies: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
        lines = "".join(f"{{}}\n{json.dumps(body, ensure_ascii=False)}\n" for body in bodies)
        answer = self.server.ask("POST", f"/{quote(self.index)}/_msearch", lines.encode(), NDJSON)
        if not answer.good:
            raise OutputError(
                f"{self.server.place}: doesn't search ({answer.reason}); mend that and try again"
            )
        for response in answer.content["responses"]:
            if "error" in response:
                reason = response["error"].get("reason", response["error"])
                raise OutputError(f"{self.server.place}: refuses a query ({reason}); see its settings")
            yield response["hits"]["hits"]


@contextmanager
def open_engine(target: Target, folder: Path, url: str) -> Iterator[FeatureIndex]:
    """An export in an index of its own on the server at `url`, which is gone afterwards."""
    if not url:
        raise ConfigError(f"{target.title} is a server; say where with --url http://localhost:9200")
    manifest = read_manifest(folder, target.format)
    tokens = read_tokens(folder, manifest.model)
    server, index = Server(url), f"sparse-adapt-{uuid4().hex}"
    try:
        opened = FeatureIndex(target, server, index, manifest, tokens)
        try:
            load(target, folder, server, index)
            yield opened
        finally:
            server.ask("DELETE", f"/{index}")
    finally:
        server.close()


def load(target: Target, folder: Path, server: Server, index: str) -> int:
    """Put an export into an index, which is made if there is none; how many documents it holds then.

    Raises InputError for a folder that its manifest doesn't vouch for, OutputError for an index of another
    mapping and for documents that the server refuses; those before and after them are in.
    """
    manifest = read_manifest(folder, target.format)
    _create(target, folder, server, index)
    refused = [
        row for part in document_parts(manifest) for row in _send(server, index, _pairs(folder / part.path))
    ]
    if refused:
        refuse(f"{server.place}/{index}", refused, manifest.documents)
    for method, path in (("POST", "_refresh"), ("GET", "_count")):
        answer = server.ask(method, f"/{quote(index)}/{path}")
        if not answer.good:
            raise OutputError(f"{server.place}/{index}: loaded, but {path} fails ({answer.reason})")
    return int(answer.content["count"])


def _create(target: Target, folder: Path, server: Server, index: str) -> None:
    made = server.ask("PUT", f"/{quote(index)}", (folder / INDEX_FILE).read_bytes())
    if made.good:
        return
    there = server.ask("GET", f"/{quote(index)}/_mapping")
    if not there.good:
        raise OutputError(f"{server.place}/{index}: can't be made ({made.reason}); choose another name")
    mapped = [each["mappings"].get("properties", {}).get(FIELD, {}) for each in there.content.values()]
    if any(each.get("type") != target.mapping["type"] for each in mapped):
        raise OutputError(
            f"{server.place}/{index}: has no {target.mapping['type']} field {FIELD!r}; choose another name"
        )


def _pairs(path: Path) -> list[bytes]:
    """The documents of a part, two lines each."""
    lines = path.read_bytes().splitlines(keepends=True)
    if len(lines) % 2 or not all(line.endswith(b"\n") for line in lines):
        raise InputError(path, "isn't made of pairs of lines; export again")
    return [action + source for action, source in zip(lines[::2], lines[1::2], strict=True)]


def _send(server: Server, index: str, pairs: list[bytes], tries: int = TRIES) -> list[Refused]:
    """One bulk request, or two of half the size where the server finds it too large."""
    answer = server.ask("POST", f"/{quote(index)}/_bulk", b"".join(pairs), NDJSON)
    if answer.status == TOO_LARGE and len(pairs) > 1:
        half = len(pairs) // 2
        return _send(server, index, pairs[:half]) + _send(server, index, pairs[half:])
    if answer.status == TOO_LARGE:
        return [Refused(_document_id(pairs[0]), f"{len(pairs[0]):,} bytes are too many for the server")]
    if not answer.good:
        raise OutputError(
            f"{server.place}/{index}: refuses a request ({answer.reason}); mend that and load again"
        )
    items = [next(iter(item.values())) for item in answer.content["items"]]
    busy = [pair for pair, item in zip(pairs, items, strict=True) if item["status"] == BUSY[0]]
    if busy and tries > 1:
        server.pause(TRIES - tries)
        items = [item for item in items if item["status"] != BUSY[0]]
        return _refused(items) + _send(server, index, busy, tries - 1)
    return _refused(items)


def _refused(items: list[Any]) -> list[Refused]:
    """The documents that a bulk answer names with an error."""
    return [Refused(item["_id"], _cause(item["error"])) for item in items if "error" in item]


def _cause(error: Any) -> str:  # noqa: ANN401 - the server's JSON
    """The innermost reason, which is the one that names the feature."""
    while isinstance(error, dict) and isinstance(error.get("caused_by"), dict):
        error = error["caused_by"]
    reason = error.get("reason", error) if isinstance(error, dict) else error
    return " ".join(str(reason).split())[:300]


def _document_id(pair: bytes) -> str:
    return str(json.loads(pair.split(b"\n", 1)[0])["index"]["_id"])


def _version(target: Target, server: Server) -> str:
    """The server's version. Raises OutputError where the other engine, or none of both, answers."""
    answer = server.ask("GET", "/")
    version = answer.content.get("version", {}) if isinstance(answer.content, dict) else {}
    if not answer.good or "number" not in version:
        raise OutputError(f"{server.place}: isn't {target.title} ({answer.reason}); give another --url")
    found = version.get("distribution", "elasticsearch")
    if found != target.format:
        raise OutputError(
            f"{server.place}: is {found} {version['number']}, not {target.title}; export for {found}"
        )
    return str(version["number"])
