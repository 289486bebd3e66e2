"""Bulk requests to OpenSearch and Elasticsearch: the documents of an export, and those that the server refuses."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sparse_adapt.engines.http import BUSY, MOST_TRIES, Server
from sparse_adapt.engines.loading import Refused, json_lines, refuse
from sparse_adapt.engines.manifest import ExportFolder
from sparse_adapt.errors import InputError, OutputError

TOO_LARGE = 413  # the status of a request that the server finds too large
NDJSON = "x-ndjson"


def load_documents(export: ExportFolder, server: Server, index: str) -> int:
    """Put the documents of an export into an index that is there; how many it holds then.

    Raises OutputError for documents that the server refuses; those before and after them are in.
    """
    refused = [
        row
        for part in export.manifest.document_files
        for row in _send(server, index, _pairs(export.path / part.path))
    ]
    if refused:
        refuse(f"{server.place}/{index}", refused, export.manifest.documents)
    for method, path in (("POST", "_refresh"), ("GET", "_count")):
        answer = server.ask(method, f"/{quote(index)}/{path}")
        if not answer.good:
            raise OutputError(f"{server.place}/{index}: loaded, but {path} fails ({answer.reason})")
    return int(answer.content["count"])


def bulk_documents(export: ExportFolder) -> Iterator[tuple[str, dict[str, Any]]]:
    """The id and the fields of each document of an export, read as they are taken."""
    for part in export.manifest.document_files:
        lines = json_lines(export.path / part.path)
        for action in lines:
            yield action["index"]["_id"], next(lines)


def _pairs(path: Path) -> list[bytes]:
    """The documents of a part, two lines each."""
    *lines, rest = path.read_bytes().split(b"\n")
    if rest or len(lines) % 2:
        raise InputError(path, "isn't made of pairs of lines; export again")
    return [b"%b\n%b\n" % pair for pair in zip(lines[::2], lines[1::2], strict=True)]


def _send(server: Server, index: str, pairs: list[bytes], tries: int = MOST_TRIES) -> list[Refused]:
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
        server.pause(MOST_TRIES - tries)
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
