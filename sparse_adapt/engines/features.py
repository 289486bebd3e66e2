"""OpenSearch and Elasticsearch, which both keep weights in Lucene's feature fields: what the two have in common.

    FOLDER/documents/part-00000.ndjson    what `_bulk` takes: {"index": {"_id": ...}} and {"weights": {name: weight}},
                                          with "title" and "text" beside the weights where they are asked for
    FOLDER/queries.jsonl                  {"query_id": ..., "search": what `_search` takes}
    FOLDER/index.json                     what creates the index
    FOLDER/tokens.json, manifest.json

Lucene cuts a document's weight off after 9 significant bits, up to .4 % below. The files hold the nearest
weight of 9 bits instead (`rounded`), which it keeps as it is: at most .2 % off, and as often above as below.
A document without an entry is stored without the field, and no search finds it. Dimensions: V vocabulary.
"""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.engines.bulk import NDJSON, bulk_documents, load_documents
from sparse_adapt.engines.http import Server
from sparse_adapt.engines.layout import ExportLayout, ExportSource
from sparse_adapt.engines.lines import LineSize, json_object, json_string, rows
from sparse_adapt.engines.manifest import ExportFolder, read_export
from sparse_adapt.engines.opened import FloatEngine
from sparse_adapt.engines.quantise import Entries
from sparse_adapt.engines.writing import id_of_bytes, in_parts
from sparse_adapt.errors import InputError, OutputError
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

INDEX_FILE = "index.json"
FIELD = "weights"
TEXT_FIELDS = ("title", "text")
RESULTS = 10
LONGEST_ID = 512  # bytes of a document's _id
LONGEST_TERM = 32_766  # bytes, in Lucene
DROPPED_BITS = 15  # of a float32's 23 in the fraction
LARGEST = np.float32((2 - 2**-8) * 2.0**127)
QUERIES_A_REQUEST = 32
MOST_RESULTS = 10_000
SAMPLE_TOKENS, SAMPLE_RESULTS = 5, 3

_FRAME = 60  # bytes of a line beside id and entries


@dataclass(frozen=True)
class FeatureFields:
    """One of the two engines, and all in which it differs from the other.

    `name`: its row in `formats.ENGINES`. `mapping`: of the field of weights. `search_body`: the search for a dot
    product, with the power of two by which scores are to be divided. `token_name`: what it calls a token.
    """

    name: str
    title: str
    mapping: Mapping[str, Any]
    search_body: Callable[[Mapping[str, float], int], tuple[dict[str, Any], float]]
    token_name: Callable[[str], str]

    def layout(self, source: ExportSource) -> ExportLayout:
        """The files of an export: bulk requests. Raises InputError for a token that is longer than the engine takes."""
        names = self.names(source.vectors.tokens)
        keys = [json_string(name) for name in names]
        texts = {} if source.texts is None else {name: {"type": "text"} for name in TEXT_FIELDS}
        return ExportLayout(
            documents=in_parts(
                partial(_bulk_lines, keys),
                suffix="ndjson",
                requests=LineSize(keys, _FRAME),
                check_id=id_of_bytes(self.title, LONGEST_ID),
                texts=source.texts,
            ),
            query_lines=partial(self._query_lines, names),
            settings={INDEX_FILE: {"mappings": {"properties": {FIELD: self.mapping, **texts}}}},
        )

    def how_to_load(self, export: ExportFolder) -> str:
        """Shell commands that load an export and search it, and lines of Python that name what the server refuses."""
        python = (
            "from pathlib import Path\n"
            f"from sparse_adapt.engines.{self.name} import load\n"
            f'load(Path({json.dumps(str(export.path))}), "http://localhost:9200", "documents")'
        )
        return f"{curl_lines(export.path, 'documents')}{self._sample_lines(export, 'documents')}\n\n{python}"

    def sample(self, export: ExportFolder) -> tuple[str, dict[str, Any]] | None:
        """A document of an export and a search for its heaviest tokens, or None where no document has a weight."""
        for document_id, source in bulk_documents(export):
            weights = source.get(FIELD, {})
            if weights:
                heaviest = sorted(weights, key=weights.__getitem__, reverse=True)[:SAMPLE_TOKENS]
                wanted = {name: weights[name] for name in heaviest}
                shown = [name for name in TEXT_FIELDS if name in source]
                body = self.search_body(wanted, SAMPLE_RESULTS)[0]
                return document_id, body | ({"_source": shown} if shown else {})
        return None

    def _sample_lines(self, export: ExportFolder, index: str) -> str:
        found = self.sample(export)
        if found is None:
            return ""
        document_id, body = found
        plain = json.dumps(body, ensure_ascii=False)
        content = shlex.quote(plain if plain.isprintable() else json.dumps(body))
        return (
            f"\n# a search for the heaviest tokens of the document {json.dumps(document_id)}\n"
            f"curl -fsS -X POST $URL/{index}/_refresh\n"
            f"curl -fsS \"$URL/{index}/_search?pretty\" -H 'Content-Type: application/json' -d {content}"
        )

    @contextmanager
    def open_export(
        self, export: ExportFolder, url: str, documents: EncodedBatch | None
    ) -> "Iterator[FeatureIndex]":
        """An export in an index of its own on the server at `url`, which is gone afterwards."""
        server, index = Server(url), f"sparse-adapt-{uuid4().hex}"
        try:
            opened = FeatureIndex(self, server, index, export)
            try:
                self.load_into(export, server, index)
                yield opened
            finally:
                server.ask("DELETE", f"/{index}")
        finally:
            server.close()

    def load(self, folder: Path, url: str, index: str) -> int:
        """Put an export into an index, which is made if there is none; how many documents it holds then.

        Raises InputError for a folder that its manifest doesn't vouch for, OutputError for an index of another
        mapping and for documents that the server refuses; those before and after them are in.
        """
        server = Server(url)
        try:
            return self.load_into(read_export(folder, self.name), server, index)
        finally:
            server.close()

    def load_into(self, export: ExportFolder, server: Server, index: str) -> int:
        """Put an export into an index of a server, as `load` does."""
        self._create(export.path, server, index)
        return load_documents(export, server, index)

    def names(self, tokens: Sequence[str]) -> list[str]:
        """The V tokens as the engine names them. Raises InputError for one that Lucene can't hold."""
        names = [self.token_name(token) for token in tokens]
        for token, name in zip(tokens, names, strict=True):
            if not 0 < len(name.encode()) <= LONGEST_TERM:
                raise InputError(
                    repr(token[:40]),
                    f"this token has {len(name.encode()):,} bytes, {self.title} takes 1 to {LONGEST_TERM:,}",
                )
        return names

    def _query_lines(self, names: Sequence[str], entries: Entries) -> Iterator[str]:
        for query_id, columns, weights in rows(entries):
            if columns:
                wanted = {
                    names[column]: float(weight) for column, weight in zip(columns, weights, strict=True)
                }
                line = {"query_id": query_id, "search": self.search_body(wanted, RESULTS)[0]}
                yield json.dumps(line, ensure_ascii=False) + "\n"

    def _create(self, folder: Path, server: Server, index: str) -> None:
        made = server.ask("PUT", f"/{quote(index)}", (folder / INDEX_FILE).read_bytes())
        if made.good:
            return
        there = server.ask("GET", f"/{quote(index)}/_mapping")
        if not there.good:
            raise OutputError(f"{server.place}/{index}: can't be made ({made.reason}); choose another name")
        mapped = [each["mappings"].get("properties", {}).get(FIELD, {}) for each in there.content.values()]
        if any(each.get("type") != self.mapping["type"] for each in mapped):
            raise OutputError(
                f"{server.place}/{index}: has no {self.mapping['type']} field {FIELD!r}; choose another name"
            )


class FeatureIndex(FloatEngine):
    """An index that holds one export."""

    def __init__(self, fields: FeatureFields, server: Server, index: str, export: ExportFolder) -> None:
        super().__init__(export.manifest)
        self.fields, self.server, self.index = fields, server, index
        self.name = f"{fields.name}-{_version(fields, server)}"
        self._names = fields.names(export.tokens)

    def stored(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as Lucene keeps them (rows, V): rounded to 9 significant bits."""
        return rounded(self.manifest.take(documents).vectors)

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first; at most 10,000."""
        run: Run = {query_id: {} for query_id in queries.ids}
        for some in self.batches(queries, QUERIES_A_REQUEST):
            searches = [
                self.fields.search_body(
                    {self._names[column]: weight for column, weight in zip(columns, weights, strict=True)},
                    min(k, MOST_RESULTS),
                )
                for _, columns, weights in some
            ]
            answers = self._search([body for body, _ in searches])
            for (query_id, _, _), (_, factor), hits in zip(some, searches, answers, strict=True):
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
    """Shell commands that load an export, part by part."""
    return "\n".join(
        [
            "URL=http://localhost:9200",
            f"curl -fsS -X PUT $URL/{index} -H 'Content-Type: application/json' "
            f"--data-binary @{shlex.quote(str(folder / INDEX_FILE))}",
            f"for part in {shlex.quote(str(folder))}/documents/*.ndjson; do",
            f'  curl -fsS "$URL/{index}/_bulk?filter_path=errors,items.*.error" '
            "-H 'Content-Type: application/x-ndjson' --data-binary @\"$part\"",
            "done",
        ]
    )


def _bulk_lines(keys: Sequence[str], entries: Entries) -> Iterator[str]:
    stored = rows(entries._replace(vectors=rounded(entries.vectors)))
    for (document_id, columns, weights), more in zip(
        stored, entries.fields or [""] * len(entries.ids), strict=True
    ):
        field = f'"{FIELD}": {json_object(keys, columns, weights)}' if columns else ""
        fields = ", ".join(filter(None, (field, more)))
        yield f'{{"index": {{"_id": {json_string(document_id)}}}}}\n{{{fields}}}\n'


def _version(fields: FeatureFields, server: Server) -> str:
    """The server's version. Raises OutputError where the other engine, or none of both, answers."""
    answer = server.ask("GET", "/")
    version = answer.content.get("version", {}) if isinstance(answer.content, dict) else {}
    if not answer.good or "number" not in version:
        raise OutputError(f"{server.place}: isn't {fields.title} ({answer.reason}); give another --url")
    found = version.get("distribution", "elasticsearch")
    if found != fields.name:
        raise OutputError(
            f"{server.place}: is {found} {version['number']}, not {fields.title}; export for {found}"
        )
    return str(version["number"])
