"""Points for Qdrant: a named sparse vector each, ids of tokens and exact words as indices, weights as float32.

    FOLDER/documents/part-00000.jsonl    {"id": UUID, "vector": {"weights": {"indices": [...], "values": [...]}},
                                          "payload": {"document_id": ...}}
    FOLDER/queries.jsonl                 {"query_id": ..., "search": what `points/query` takes}
    FOLDER/collection.json               what creates the collection
    FOLDER/tokens.json, manifest.json

Qdrant takes numbers and UUIDs as ids: a document's is the UUID (version 5) of its own id, so that loading a
document again replaces it, from whatever export it comes. The id itself stands in the payload. A document
without an entry is a point without a vector: it is stored, and no search finds it.

Weights stay float32. Qdrant gives no order to documents of equal score. A server at a URL is loaded and searched by its
client; without a URL, Qdrant Edge is the same engine in this process. Dimensions: V vocabulary.
"""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import UUID, uuid4, uuid5

from sparse_adapt.collection.readers import Run
from sparse_adapt.errors import OutputError
from sparse_adapt.files.records import JsonObject
from sparse_adapt.plugins.engines.engine import (
    FloatEngine,
    address_of,
    check_taken,
    engine_errors,
    insert_all,
)
from sparse_adapt.plugins.engines.layout import ExportLayout, ExportSource, StoredText, in_parts, json_string
from sparse_adapt.plugins.engines.manifest import ExportFolder, read_export
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

if TYPE_CHECKING:  # an export can be written without Qdrant's client
    from qdrant_client import QdrantClient
    from qdrant_edge import Point

SETTINGS_FILE = "collection.json"
VECTOR = "weights"
COLLECTION = {"vectors": {}, "sparse_vectors": {VECTOR: {"index": {"datatype": "float32"}}}}
POINTS_A_REQUEST = 256
QUERIES_A_BATCH = 64
SECONDS = 60  # for a request

_NAMESPACE = UUID("6f0d7a52-92d8-5c0e-9d0c-6d1f3a1f5b11")  # any fixed one will do


# -- the files ------------------------------------------------------------------------------------


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: points, and the settings of their collection."""
    numbers = source.vectors.numbers
    return ExportLayout(
        documents=in_parts(_point_line, numbers=numbers),
        query_line=_query_line,
        settings={SETTINGS_FILE: COLLECTION},
        numbers=numbers,
    )


def how_to_load(export: ExportFolder) -> str:
    """Lines of Python that load an export."""
    return (
        "from pathlib import Path\n"
        "from qdrant_client import QdrantClient\n"
        "from sparse_adapt.plugins.engines.qdrant import load\n"
        f"load(Path({json.dumps(str(export.path))}), QdrantClient('http://localhost:6333'), \"documents\")"
    )


def point_id(document_id: str) -> str:
    """The UUID that a document's point has."""
    return str(uuid5(_NAMESPACE, document_id))


def _point_line(text: StoredText) -> str:
    vector = f'"{VECTOR}": {_sparse(text)}' if text.columns else ""
    payload = f'{{"document_id": {json_string(text.text_id)}}}'
    return f'{{"id": "{point_id(text.text_id)}", "vector": {{{vector}}}, "payload": {payload}}}\n'


def _query_line(text: StoredText) -> str:
    search = f'{{"query": {_sparse(text)}, "using": "{VECTOR}", "limit": 10, "with_payload": true}}'
    return f'{{"query_id": {json_string(text.text_id)}, "search": {search}}}\n'


def _sparse(text: StoredText) -> str:
    return f'{{"indices": [{", ".join(map(str, text.columns))}], "values": [{", ".join(text.weights)}]}}'


# -- the engine -----------------------------------------------------------------------------------


class Qdrant(FloatEngine):
    """A collection of a server that holds one export."""

    def __init__(self, client: "QdrantClient", collection: str, export: ExportFolder, name: str) -> None:
        super().__init__(export.manifest, export.numbers)
        self.client, self.collection, self.name = client, collection, name

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first."""
        return self.in_batches(queries, QUERIES_A_BATCH, partial(self._search, k))

    def _search(self, k: int, queries: list[dict[int, float]]) -> Iterator[dict[str, float]]:
        from qdrant_client import models

        requests = [
            models.QueryRequest(
                query=models.SparseVector(indices=list(query), values=list(query.values())),
                using=VECTOR,
                limit=k,
                with_payload=True,
            )
            for query in queries
        ]
        with _error_of_library(self.name):
            answers = self.client.query_batch_points(self.collection, requests)
        for answer in answers:
            yield {(point.payload or {})["document_id"]: point.score for point in answer.points}


class QdrantEdge(FloatEngine):
    """Qdrant in this process, with one export in a folder."""

    def __init__(self, export: ExportFolder, folder: Path) -> None:
        import qdrant_edge as edge

        super().__init__(export.manifest, export.numbers)
        self.name, self._edge = f"qdrant-edge-{version('qdrant-edge-py')}", edge
        sparse = edge.EdgeSparseVectorParams(datatype=edge.VectorStorageDatatype.Float32)
        self._shard = edge.EdgeShard.create(str(folder), edge.EdgeConfig(sparse_vectors={VECTOR: sparse}))
        points = export.document_lines()
        while some := list(islice(points, POINTS_A_REQUEST)):
            self._shard.update(edge.UpdateOperation.upsert_points(list(map(self._point, some))))
        self._shard.optimize()

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first."""
        return self.in_batches(queries, QUERIES_A_BATCH, partial(self._search, k))

    def close(self) -> None:
        """Let go of the folder."""
        self._shard.close()

    def _point(self, point: JsonObject) -> "Point":
        vectors = point["vector"].items()
        return self._edge.Point(
            point["id"],
            {name: self._edge.SparseVector(**each) for name, each in vectors},
            point["payload"],
        )

    def _search(self, k: int, queries: list[dict[int, float]]) -> Iterator[dict[str, float]]:
        edge = self._edge
        vectors = [edge.SparseVector(list(query), list(query.values())) for query in queries]
        requests = [
            edge.QueryRequest(limit=k, query=edge.Query.Nearest(vector, using=VECTOR), with_payload=True)
            for vector in vectors
        ]
        for result in self._shard.query_batch(edge.QueryBatchRequest(requests)):
            yield {(point.payload or {})["document_id"]: point.score for point in result}


@contextmanager
def open_export(
    export: ExportFolder, url: str, documents: EncodedBatch | None
) -> "Iterator[Qdrant | QdrantEdge]":
    """An export in a collection of its own on the server at `url`, or in this process; both are gone afterwards."""
    if not url:
        with TemporaryDirectory() as scratch, closing(QdrantEdge(export, Path(scratch))) as engine:
            yield engine
        return
    collection = f"sparse-adapt-{uuid4().hex}"
    with _connected(url) as client:
        try:
            load(export.path, client, collection)
            yield Qdrant(client, collection, export, f"qdrant-{client.info().version}")
        finally:
            client.delete_collection(collection)


@contextmanager
def _connected(url: str) -> "Iterator[QdrantClient]":
    """A client of the server at `url`. Raises OutputError where there is none."""
    from qdrant_client import QdrantClient

    address = address_of(url)
    with _error_of_library(address.place):
        client = QdrantClient(url=address.url, timeout=SECONDS, check_compatibility=False)
        try:
            client.get_collections()
            yield client
        finally:
            client.close()


def load(folder: Path, client: "QdrantClient", collection: str) -> int:
    """Put an export into a collection, which is made if there is none; how many documents it holds then.

    Raises InputError for a folder that its manifest doesn't vouch for, OutputError for a collection of other
    settings and for documents that Qdrant refuses; those before and after them are in.
    """
    from qdrant_client.http.exceptions import UnexpectedResponse

    export = read_export(folder, "qdrant")
    with _error_of_library(collection):
        _create(export.path, client, collection)
        refused = insert_all(
            export.document_lines(),
            lambda points: _upsert(client, collection, points),
            batch=POINTS_A_REQUEST,
            document_id=lambda point: point["payload"]["document_id"],
            refusal=(UnexpectedResponse, ValueError),
        )
        check_taken(collection, refused, export.manifest.documents)
        return client.count(collection, exact=True).count


def _upsert(client: "QdrantClient", collection: str, points: list[JsonObject]) -> None:
    from qdrant_client import models

    client.upsert(collection, [models.PointStruct(**point) for point in points])


def _create(folder: Path, client: "QdrantClient", collection: str) -> None:
    from qdrant_client import models

    settings = json.loads((folder / SETTINGS_FILE).read_text(encoding="utf-8"))
    if client.collection_exists(collection):
        vectors = client.get_collection(collection).config.params.sparse_vectors or {}
        if VECTOR not in vectors or vectors[VECTOR].modifier not in (None, models.Modifier.NONE):
            raise OutputError(f"{collection}: has no plain sparse vector {VECTOR!r}; choose another name")
        return
    sparse = {
        name: models.SparseVectorParams(**settings) for name, settings in settings["sparse_vectors"].items()
    }
    client.create_collection(collection, vectors_config=settings["vectors"], sparse_vectors_config=sparse)


def _error_of_library(place: str) -> AbstractContextManager[None]:
    import httpx
    from qdrant_client.http.exceptions import ApiException

    return engine_errors(place, "Qdrant", ApiException, httpx.HTTPError, OSError)
