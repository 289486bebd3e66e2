"""OpenSearch and Elasticsearch, which both keep weights in Lucene's feature fields: what they have in common.

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import numpy as np
from scipy.sparse import csr_matrix

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
    quiet_logs,
)
from sparse_adapt.plugins.engines.formats import find_engine, require
from sparse_adapt.plugins.engines.layout import (
    PART_BYTES,
    ExportLayout,
    ExportSource,
    StoredText,
    id_of_bytes,
    in_parts,
    json_object,
    json_string,
)
from sparse_adapt.plugins.engines.lucene_features import FIELD, Ask, lucene_index, lucene_version
from sparse_adapt.plugins.engines.manifest import ExportFolder, ExportManifest, read_export
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

INDEX_FILE = "index.json"
TEXT_FIELDS = ("title", "text")
RESULTS = 10
LONGEST_ID = 512  # bytes of a document's _id
LONGEST_TERM = 32_766  # bytes, in Lucene
DROPPED_BITS = 15  # of a float32's 23 in the fraction
LARGEST = np.float32((2 - 2**-8) * 2.0**127)
QUERIES_A_REQUEST = 32
MOST_RESULTS = 10_000
SAMPLE_TOKENS, SAMPLE_RESULTS = 5, 3
SECONDS = 60  # for a request
BUSY = (429, 502, 503, 504)  # the status of a request that may be sent again
TRIES = 5  # of a document for which the server is busy
FIRST_PAUSE = 0.5  # seconds before it is tried again; each further pause is twice as long


class SearchServer(NamedTuple):
    """A vendor's client of one server, its bulk helper, and the errors that both raise."""

    client: Any
    bulk: Callable[..., Iterable[tuple[bool, JsonObject]]]
    failures: tuple[type[Exception], ...]


@dataclass(frozen=True)
class FeatureFields:
    """One of these engines, and all in which it differs from the others.

    `name`: its row in `formats.OWN`. `mapping`: of the field of weights. `search_body`: the search for a dot
    product, with the power of two by which scores are to be divided. `token_name`: what it calls a token. `server`: the
    server at a URL. `names_in`: what an export calls its V tokens, for an engine that doesn't go by `token_name` alone;
    tokens without a name are in no document.
    """

    name: str
    title: str
    mapping: Mapping[str, object]
    search_body: Callable[[Mapping[str, float], int], tuple[JsonObject, float]]
    token_name: Callable[[str], str]
    server: Callable[[str], SearchServer]
    names_in: Callable[[ExportFolder], list[str]] | None = None

    def layout(self, source: ExportSource) -> ExportLayout:
        """The files of an export: bulk requests. Raises InputError for a token that is longer than the engine takes."""
        return self.layout_by(self.names(source.vectors.tokens), source)

    def layout_by(self, names: Sequence[str], source: ExportSource) -> ExportLayout:
        """The files of an export that calls its V tokens so."""
        keys = [json_string(name) for name in names]
        texts = {} if source.texts is None else {name: {"type": "text"} for name in TEXT_FIELDS}

        def document_lines(text: StoredText) -> str:
            weights = f'"{FIELD}": {json_object(keys, text)}' if text.columns else ""
            fields = ", ".join(filter(None, (weights, text.fields)))
            return f'{{"index": {{"_id": {json_string(text.text_id)}}}}}\n{{{fields}}}\n'

        def query_line(text: StoredText) -> str:
            pairs = zip(text.columns, text.weights, strict=True)
            wanted = {names[column]: float(weight) for column, weight in pairs if names[column]}
            if not wanted:
                return ""
            line = {"query_id": text.text_id, "search": self.search_body(wanted, RESULTS)[0]}
            return json.dumps(line, ensure_ascii=False) + "\n"

        return ExportLayout(
            documents=in_parts(
                document_lines,
                suffix="ndjson",
                check_id=id_of_bytes(self.title, LONGEST_ID),
                rounded=rounded,
                texts=source.texts,
            ),
            query_line=query_line,
            settings={INDEX_FILE: {"mappings": {"properties": {FIELD: self.mapping, **texts}}}},
        )

    def how_to_load(self, export: ExportFolder) -> str:
        """Shell commands that load an export and search it, and lines of Python that name what the server refuses."""
        python = (
            "from pathlib import Path\n"
            f"from sparse_adapt.plugins.engines.{self.name.replace('-', '_')} import load\n"
            f'load(Path({json.dumps(str(export.path))}), "http://localhost:9200", "documents")'
        )
        joins = not export.manifest.facts.get("renumbered_tokens")
        loading = _curl_lines(export.path, "documents", joins=joins)
        return f"{loading}{self._sample_lines(export, 'documents')}\n\n{python}"

    def _sample_lines(self, export: ExportFolder, index: str) -> str:
        """A search for the heaviest tokens of a document, or nothing where no document has a weight."""
        for document_id, fields in bulk_documents(export):
            weights = fields.get(FIELD, {})
            if not weights:
                continue
            heaviest = sorted(weights, key=weights.__getitem__, reverse=True)[:SAMPLE_TOKENS]
            body = self.search_body({name: weights[name] for name in heaviest}, SAMPLE_RESULTS)[0]
            body |= {"_source": shown} if (shown := [name for name in TEXT_FIELDS if name in fields]) else {}
            plain = json.dumps(body, ensure_ascii=False)
            content = shlex.quote(plain if plain.isprintable() else json.dumps(body))
            return (
                f"\n# a search for the heaviest tokens of the document {json.dumps(document_id)}\n"
                f"curl -fsS -X POST $URL/{index}/_refresh\n"
                f"curl -fsS \"$URL/{index}/_search?pretty\" -H 'Content-Type: application/json' -d {content}"
            )
        return ""

    @contextmanager
    def open_export(
        self, export: ExportFolder, url: str, documents: EncodedBatch | None
    ) -> "Iterator[FeatureIndex]":
        """An export in an index of its own on the server at `url`, which is gone afterwards; without one, in Lucene."""
        names = self.names_in(export) if self.names_in else self.names(export.tokens)
        if not url:
            weights = ((document_id, fields.get(FIELD, {})) for document_id, fields in bulk_documents(export))
            with lucene_index(weights) as ask:
                name = f"Lucene {lucene_version()}, as {self.title} uses it"
                yield FeatureIndex(export.manifest, name, names, ask)
            return
        index, place = f"sparse-adapt-{uuid4().hex}", address_of(url).place
        with self._connected(url) as server:
            name = f"{self.name}-{_version(self, server, place)}"
            try:
                self.load(export.path, url, index)
                yield FeatureIndex(export.manifest, name, names, partial(self._ask, server, index, place))
            finally:
                server.client.indices.delete(index=index)

    def load(self, folder: Path, url: str, index: str) -> int:
        """Put an export into an index, which is made if there is none; how many documents it holds then.

        Raises InputError for a folder that its manifest doesn't vouch for, OutputError for an index of another
        mapping and for documents that the server refuses; those before and after them are in.
        """
        export, place = read_export(folder, self.name), f"{address_of(url).place}/{index}"
        with self._connected(url) as server:
            self._create(export, server, index, place)
            actions = ({"_id": name, "_source": fields} for name, fields in bulk_documents(export))
            results = server.bulk(
                server.client,
                actions,
                index=index,
                max_chunk_bytes=PART_BYTES,
                max_retries=TRIES,
                initial_backoff=FIRST_PAUSE,
                raise_on_error=False,
            )
            items = [result["index"] for good, result in results if not good]
            refused = [RefusedDocument(item["_id"], _cause(item["error"])) for item in items]
            check_taken(place, refused, export.manifest.documents)
            server.client.indices.refresh(index=index)
            return int(server.client.count(index=index)["count"])

    def _ask(
        self, server: SearchServer, index: str, place: str, queries: list[dict[str, float]], k: int
    ) -> Iterator[dict[str, float]]:
        """The k best documents of each query, by one request."""
        searches = [self.search_body(query, k) for query in queries]
        lines = [line for body, _ in searches for line in ({}, body)]
        answers = server.client.msearch(body=lines, index=index)["responses"] if lines else ()
        for answer, (_, factor) in zip(answers, searches, strict=True):
            if "error" in answer:
                raise OutputError(f"{place}: refuses a query ({_cause(answer['error'])}); see its settings")
            yield {hit["_id"]: hit["_score"] / factor for hit in answer["hits"]["hits"]}

    @contextmanager
    def _connected(self, url: str) -> Iterator[SearchServer]:
        """The server at `url`. Raises OutputError where there is none, and for what it refuses."""
        require(find_engine(self.name).to_open)
        address = address_of(url)
        server = self.server(address.url)
        with quiet_logs("opensearch", "elastic"), engine_errors(address.place, self.title, *server.failures):
            try:
                yield server
            finally:
                server.client.close()

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

    def _create(self, export: ExportFolder, server: SearchServer, index: str, place: str) -> None:
        if not server.client.indices.exists(index=index):
            settings = json.loads((export.path / INDEX_FILE).read_text(encoding="utf-8"))
            server.client.indices.create(index=index, body=settings)
            return
        there = server.client.indices.get_mapping(index=index)
        mapped = [each["mappings"].get("properties", {}).get(FIELD, {}) for each in there.values()]
        if any(each.get("type") != self.mapping["type"] for each in mapped):
            raise OutputError(f"{place}: has no {self.mapping['type']} field {FIELD!r}; choose another name")


class FeatureIndex(FloatEngine):
    """An index that holds one export, whose V tokens are called `names`, and a function that puts queries to it."""

    def __init__(self, manifest: ExportManifest, name: str, names: Sequence[str], ask: Ask) -> None:
        super().__init__(manifest)
        self.name, self._names, self._ask = name, names, ask

    def document_weights(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as Lucene keeps them (rows, V): rounded to 9 significant bits."""
        return rounded(self.manifest.take(documents).vectors)

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first; at most 10,000."""
        return self.in_batches(queries, QUERIES_A_REQUEST, partial(self._search, min(k, MOST_RESULTS)))

    def _search(self, k: int, queries: list[dict[int, float]]) -> Iterator[dict[str, float]]:
        names = self._names
        wanted = [
            {names[token]: weight for token, weight in each.items() if names[token]} for each in queries
        ]
        rankings = self._ask([each for each in wanted if each], k)
        for each in wanted:
            yield next(rankings) if each else {}


def rounded(weights: csr_matrix) -> csr_matrix:
    """Weights (rows, V), none negative, as the nearest float32 of 9 significant bits; half ways go up.

    Lucene's `FeatureField` stores a weight as a term frequency, which is the upper bits of its float32.
    """
    bits = weights.data.astype(np.float32).view(np.int32) + (1 << (DROPPED_BITS - 1))
    rounded_weights = (bits >> DROPPED_BITS << DROPPED_BITS).view(np.float32)
    return csr_matrix(
        (np.minimum(rounded_weights, LARGEST), weights.indices.copy(), weights.indptr.copy()),
        shape=weights.shape,
    )


def _curl_lines(folder: Path, index: str, *, joins: bool) -> str:
    """Shell commands that load an export, part by part, into an index that is made where it isn't there.

    `joins`: whether its documents may join others; those whose tokens have numbers of their own may not.
    """
    unless = f"curl -fs -o /dev/null -I $URL/{index} || " if joins else ""
    return "\n".join(
        [
            "URL=http://localhost:9200",
            f"{unless}curl -fsS -X PUT $URL/{index} "
            f"-H 'Content-Type: application/json' --data-binary @{shlex.quote(str(folder / INDEX_FILE))}",
            f"for part in {shlex.quote(str(folder))}/documents/*.ndjson; do",
            f'  curl -fsS "$URL/{index}/_bulk?filter_path=errors,items.*.error" '
            "-H 'Content-Type: application/x-ndjson' --data-binary @\"$part\"",
            "done",
        ]
    )


def bulk_documents(export: ExportFolder) -> Iterator[tuple[str, JsonObject]]:
    """The id and the fields of each document of an export, read as they are taken."""
    lines = export.document_lines()
    try:
        for action, fields in zip(lines, lines, strict=True):
            yield action["index"]["_id"], fields
    except (ValueError, LookupError, TypeError) as error:
        raise InputError(export.path, f"isn't made of pairs of lines ({error!r}); export again") from error


def _version(fields: FeatureFields, server: SearchServer, place: str) -> str:
    """The server's version. Raises OutputError where the other engine answers."""
    version = server.client.info()["version"]
    distribution = version.get("distribution", "elasticsearch")
    if distribution != fields.title.lower():
        raise OutputError(
            f"{place}: is {distribution} {version['number']}, not {fields.title}; export for {distribution}"
        )
    return str(version["number"])


def _cause(error: object) -> str:
    """The innermost reason, which is the one that names the feature."""
    while isinstance(error, dict) and isinstance(error.get("caused_by"), dict):
        error = error["caused_by"]
    return one_line(error.get("reason", error) if isinstance(error, dict) else error)
