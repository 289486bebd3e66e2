"""Rows for Milvus: a SPARSE_FLOAT_VECTOR each, ids of tokens and exact words as dimensions, weights as float32.

    FOLDER/documents/part-00000.json    [{"document_id": ..., "weights": {"1012": 0.5, ...}}, one a line, ...]
    FOLDER/queries.jsonl                {"query_id": ..., "search": what `entities/search` takes}
    FOLDER/collection.json              what creates the collection: the id as its key, inner products
    FOLDER/tokens.json, manifest.json

A part is JSON as Milvus's bulk import reads it. Milvus refuses vectors without an entry: such documents are
counted in the manifest (`empty_documents`) and left out, since no search could find them. It has ids of 1 to
65,535 bytes.

Weights stay float32. Milvus gives no order to documents of equal score. Dimensions: V vocabulary.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import uuid4

from sparse_adapt.collection.readers import Run
from sparse_adapt.errors import ConfigError, InputError, MissingExtraError, OutputError
from sparse_adapt.files.records import JsonObject
from sparse_adapt.plugins.engines.engine import (
    FloatEngine,
    check_taken,
    engine_errors,
    insert_all,
    quiet_logs,
)
from sparse_adapt.plugins.engines.layout import (
    ExportLayout,
    ExportSource,
    StoredText,
    id_of_bytes,
    in_parts,
    json_object,
    json_string,
)
from sparse_adapt.plugins.engines.manifest import ExportFolder, read_export
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

if TYPE_CHECKING:  # an export can be written without Milvus's client
    from pymilvus import MilvusClient

SETTINGS_FILE = "collection.json"
KEY, FIELD = "document_id", "weights"
LONGEST_KEY = 65_535  # bytes
ROWS_A_REQUEST = 512
QUERIES_A_BATCH = 64
CONNECTING_SECONDS = 10
MOST_HITS = 16_384  # for a query

COLLECTION: dict[str, object] = {
    "schema": {
        "autoId": False,
        "enabledDynamicField": False,
        "fields": [
            {
                "fieldName": KEY,
                "dataType": "VarChar",
                "isPrimary": True,
                "elementTypeParams": {"max_length": LONGEST_KEY},
            },
            {"fieldName": FIELD, "dataType": "SparseFloatVector"},
        ],
    },
    "indexParams": [
        {
            "fieldName": FIELD,
            "indexName": FIELD,
            "metricType": "IP",
            "indexType": "SPARSE_INVERTED_INDEX",
            "params": {"inverted_index_algo": "DAAT_MAXSCORE"},
        }
    ],
}


# -- the files ------------------------------------------------------------------------------------


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: rows, and the settings of their collection."""
    numbers = source.vectors.numbers or range(len(source.vectors.tokens))
    keys = [f'"{number}"' for number in numbers]

    def row_line(text: StoredText) -> str:
        fields = f'"{KEY}": {json_string(text.text_id)}, "{FIELD}": {json_object(keys, text)}'
        return f"{{{fields}}}" if text.columns else ""

    def query_line(text: StoredText) -> str:
        search = f'{{"data": [{json_object(keys, text)}], "annsField": "{FIELD}", "limit": 10}}'
        return f'{{"query_id": {json_string(text.text_id)}, "search": {search}}}\n'

    return ExportLayout(
        documents=in_parts(
            row_line, suffix="json", join=_as_list, check_id=id_of_bytes("Milvus", LONGEST_KEY)
        ),
        query_line=query_line,
        settings={SETTINGS_FILE: COLLECTION},
    )


def how_to_load(export: ExportFolder) -> str:
    """Lines of Python that load an export."""
    return (
        "from pathlib import Path\n"
        "from pymilvus import MilvusClient\n"
        "from sparse_adapt.plugins.engines.milvus import load\n"
        f'load(Path({json.dumps(str(export.path))}), MilvusClient("http://localhost:19530"), "documents")'
    )


def _as_list(rows: list[bytes]) -> bytes:
    """A list in JSON, one row a line, of the documents that have an entry."""
    return b"[%b]\n" % b",\n ".join(filter(None, rows))


# -- the engine -----------------------------------------------------------------------------------


class Milvus(FloatEngine):
    """A collection that holds one export."""

    def __init__(self, client: "MilvusClient", collection: str, export: ExportFolder, name: str) -> None:
        super().__init__(export.manifest, export.numbers)
        self.client, self.collection, self.name = client, collection, name

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first; at most 16,384."""
        return self.in_batches(queries, QUERIES_A_BATCH, partial(self._search, min(k, MOST_HITS)))

    def _search(self, k: int, queries: list[dict[int, float]]) -> Iterator[dict[str, float]]:
        with _error_of_library(self.name):
            answers = self.client.search(
                self.collection,
                data=queries,
                anns_field=FIELD,
                limit=k,
                search_params={"metric_type": "IP"},
                output_fields=[KEY],
            )
        for answer in answers:
            yield {hit["entity"][KEY]: hit["distance"] for hit in answer}


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> Iterator[Milvus]:
    """An export in a collection of its own, which is gone afterwards.

    `url` is a server's, or a file ending in .db for Milvus Lite; without one that is a temporary file.
    """
    collection = f"sparse_adapt_{uuid4().hex}"
    with TemporaryDirectory() as scratch, open_milvus(url or f"{scratch}/check.db") as client:
        try:
            load(export.path, client, collection)
            yield Milvus(client, collection, export, _name(client, url))
        finally:
            with _error_of_library(url or "Milvus"):
                client.drop_collection(collection)


@contextmanager
def open_milvus(url: str) -> "Iterator[MilvusClient]":
    """A client of the server at `url`, or of the Milvus Lite file there.

    Raises OutputError where there is no server, or another process has the file.
    """
    from pymilvus import MilvusClient

    remote = url.startswith(("http://", "https://", "tcp://", "unix:"))
    if not remote and not url.endswith(".db"):
        raise ConfigError(f"{url}: Milvus takes a server's URL or a file that ends in .db")
    if not remote:
        _lite_release()
    with _error_of_library(url):
        client = MilvusClient(url, timeout=CONNECTING_SECONDS)
        try:
            yield client
        finally:
            client.close()
            if not remote:
                _lite_release()(url)


def load(folder: Path, client: "MilvusClient", collection: str) -> int:
    """Put an export into a collection, which is made if there is none; how many documents it holds then.

    Raises InputError for a folder that its manifest doesn't vouch for, OutputError for a collection of other
    fields and for documents that Milvus refuses; those before and after them are in.
    """
    from pymilvus import MilvusException

    export = read_export(folder, "milvus")
    with _error_of_library(collection):
        _create(client, collection)
        refused = insert_all(
            (row for file in export.manifest.document_files for row in read_part(folder / file.path)),
            lambda rows: client.upsert(collection, rows),
            batch=ROWS_A_REQUEST,
            document_id=lambda row: row[KEY],
            refusal=MilvusException,
        )
        check_taken(collection, refused, export.manifest.documents)
        client.flush(collection)
        counted = client.query(collection, filter="", output_fields=["count(*)"])
        return int(counted[0]["count(*)"])


def read_part(path: Path) -> list[JsonObject]:
    """One part: rows whose weights have whole numbers as keys."""
    try:
        content = json.loads(path.read_bytes())
        return [
            row | {FIELD: {int(column): weight for column, weight in row[FIELD].items()}} for row in content
        ]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise InputError(path, f"isn't a part of an export ({error!r}); export again") from error


def _create(client: "MilvusClient", collection: str) -> None:
    """The collection that `collection.json` of an export describes."""
    from pymilvus import DataType

    if client.has_collection(collection):
        fields = {field["name"]: field["type"] for field in client.describe_collection(collection)["fields"]}
        if fields != {KEY: DataType.VARCHAR, FIELD: DataType.SPARSE_FLOAT_VECTOR}:
            raise OutputError(f"{collection}: has other fields than {KEY} and {FIELD}; choose another name")
        return
    schema = client.create_schema(auto_id=False, enable_dynamic_field=False)
    schema.add_field(KEY, DataType.VARCHAR, is_primary=True, max_length=LONGEST_KEY)
    schema.add_field(FIELD, DataType.SPARSE_FLOAT_VECTOR)
    index = client.prepare_index_params()
    index.add_index(
        FIELD,
        index_type="SPARSE_INVERTED_INDEX",
        metric_type="IP",
        params={"inverted_index_algo": "DAAT_MAXSCORE"},
    )
    client.create_collection(collection, schema=schema, index_params=index, consistency_level="Strong")


def _name(client: "MilvusClient", url: str) -> str:
    if url.startswith("http"):
        return f"milvus-{client.get_server_version()}"
    return f"milvus-lite-{version('milvus-lite')}"


def _lite_release() -> Callable[[str], object]:
    """What lets go of a file that Milvus Lite has open in this process."""
    try:
        from milvus_lite.server_manager import server_manager_instance
    except ImportError as error:
        raise MissingExtraError("milvus-lite", "milvus") from error
    release: Callable[[str], object] = server_manager_instance.release_server
    return release


@contextmanager
def _error_of_library(place: str) -> Iterator[None]:
    """Raise what Milvus gives as errors in one line, without the lines that it logs of each."""
    from pymilvus import MilvusException

    with quiet_logs("pymilvus", "milvus_lite"), engine_errors(place, "Milvus", MilvusException, OSError):
        yield
