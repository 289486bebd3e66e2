"""Milvus: an export's rows in a collection, on a server or in Milvus Lite, searched by inner product.

Weights stay float32. Milvus gives no order to documents of equal score. Dimensions: V vocabulary.
"""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from pymilvus import DataType, MilvusClient, MilvusException

from sparse_adapt.collection.readers import Run
from sparse_adapt.engines.float32 import Float32Engine
from sparse_adapt.engines.loading import document_parts, insert_all, one_line, refuse
from sparse_adapt.errors import ConfigError, InputError, MissingExtraError, OutputError
from sparse_adapt.export.milvus import FIELD, KEY, LONGEST_ID
from sparse_adapt.export.parts import Manifest, read_manifest
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.retrieve.vectors.manifest import read_tokens

ROWS_A_REQUEST = 512
QUERIES_A_REQUEST = 64
SECONDS = 10  # to connect
MOST_RESULTS = 16_384


class Milvus(Float32Engine):
    """A collection that holds one export."""

    def __init__(self, client: MilvusClient, collection: str, manifest: Manifest, name: str) -> None:
        self.client, self.collection, self.manifest, self.name = client, collection, manifest, name

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first; at most 16,384."""
        run: Run = {query_id: {} for query_id in queries.ids}
        for some in self.batches(queries, QUERIES_A_REQUEST):
            with _told(self.name):
                answers = self.client.search(
                    self.collection,
                    data=[dict(zip(columns, weights, strict=True)) for _, columns, weights in some],
                    anns_field=FIELD,
                    limit=min(k, MOST_RESULTS),
                    search_params={"metric_type": "IP"},
                    output_fields=[KEY],
                )
            for (query_id, _, _), answer in zip(some, answers, strict=True):
                run[query_id] = {hit["entity"][KEY]: hit["distance"] for hit in answer}
        return run


@contextmanager
def open_engine(folder: Path, *, url: str = "") -> Iterator[Milvus]:
    """An export in a collection of its own, which is gone afterwards.

    `url` is a server's, or a file ending in .db for Milvus Lite; without one that is a temporary file.
    """
    manifest = read_manifest(folder, "milvus")
    read_tokens(folder, manifest.model)
    collection = f"sparse_adapt_{uuid4().hex}"
    with TemporaryDirectory() as scratch, open_client(url or f"{scratch}/check.db") as client:
        try:
            load(folder, client, collection)
            yield Milvus(client, collection, manifest, _name(client, url))
        finally:
            with _told(url or "Milvus"):
                client.drop_collection(collection)


@contextmanager
def open_client(url: str) -> Iterator[MilvusClient]:
    """A client of the server at `url`, or of the Milvus Lite file there.

    Raises OutputError where there is no server, or another process has the file.
    """
    remote = url.startswith(("http://", "https://", "tcp://", "unix:"))
    if not remote and not url.endswith(".db"):
        raise ConfigError(f"{url}: Milvus takes a server's URL or a file that ends in .db")
    if not remote:
        _lite()
    with _quiet(), _told(url):
        client = MilvusClient(url, timeout=SECONDS)
        try:
            yield client
        finally:
            client.close()
            if not remote:
                _lite().release_server(url)


def load(folder: Path, client: MilvusClient, collection: str) -> int:
    """Put an export into a collection, which is made if there is none; how many documents it holds then.

    Raises InputError for a folder that its manifest doesn't vouch for, OutputError for a collection of other
    fields and for documents that Milvus refuses; those before and after them are in.
    """
    manifest = read_manifest(folder, "milvus")
    with _quiet(), _told(collection):
        _create(client, collection)
        refused = [
            row
            for part in document_parts(manifest)
            for row in insert_all(
                _rows(folder / part.path),
                lambda rows: client.upsert(collection, rows),
                batch=ROWS_A_REQUEST,
                document_id=lambda row: row[KEY],
                refusal=MilvusException,
            )
        ]
        if refused:
            refuse(collection, refused, manifest.documents)
        client.flush(collection)
        counted = client.query(collection, filter="", output_fields=["count(*)"])
        return int(counted[0]["count(*)"])


def _rows(path: Path) -> list[dict[str, Any]]:
    """One part: rows whose weights have whole numbers as keys."""
    try:
        content = json.loads(path.read_bytes())
    except ValueError as error:
        raise InputError(path, f"isn't JSON ({error}); export again") from error
    return [row | {FIELD: {int(column): weight for column, weight in row[FIELD].items()}} for row in content]


def _create(client: MilvusClient, collection: str) -> None:
    """The collection that `collection.json` of an export describes."""
    if client.has_collection(collection):
        fields = {field["name"]: field["type"] for field in client.describe_collection(collection)["fields"]}
        if fields != {KEY: DataType.VARCHAR, FIELD: DataType.SPARSE_FLOAT_VECTOR}:
            raise OutputError(f"{collection}: has other fields than {KEY} and {FIELD}; choose another name")
        return
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field(KEY, DataType.VARCHAR, is_primary=True, max_length=LONGEST_ID)
    schema.add_field(FIELD, DataType.SPARSE_FLOAT_VECTOR)
    index = client.prepare_index_params()
    index.add_index(
        FIELD,
        index_type="SPARSE_INVERTED_INDEX",
        metric_type="IP",
        params={"inverted_index_algo": "DAAT_MAXSCORE"},
    )
    client.create_collection(collection, schema=schema, index_params=index, consistency_level="Strong")


def _name(client: MilvusClient, url: str) -> str:
    if url.startswith("http"):
        return f"milvus-{client.get_server_version()}"
    return f"milvus-lite-{version('milvus-lite')}"


def _lite() -> Any:  # noqa: ANN401 - Milvus Lite has no types
    """What holds the files that Milvus Lite has open in this process."""
    try:
        from milvus_lite.server_manager import server_manager_instance
    except ImportError as error:
        raise MissingExtraError("milvus-lite", "milvus") from error
    return server_manager_instance


@contextmanager
def _quiet() -> Iterator[None]:
    """Without the log lines that go with every exception."""
    names = [name for name in logging.root.manager.loggerDict if name.startswith(("pymilvus", "milvus_lite"))]
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


@contextmanager
def _told(place: str) -> Iterator[None]:
    """What goes wrong between here and a server, as an error in one line."""
    try:
        yield
    except (MilvusException, OSError) as error:
        raise OutputError(
            f"{place}: Milvus gives an error ({one_line(error)}); see that it runs and no other process has it"
        ) from error
