"""Qdrant: an export's points in a collection, on a server or in this process, searched by inner product.

Weights stay float32. Qdrant gives no order to documents of equal score. Dimensions: V vocabulary.
"""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
from qdrant_client import QdrantClient, models
from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

from sparse_adapt.collection.readers import Run
from sparse_adapt.engines.float32 import Float32Engine
from sparse_adapt.engines.loading import document_parts, insert_all, json_lines, one_line, refuse
from sparse_adapt.errors import OutputError
from sparse_adapt.export.parts import Manifest, read_manifest
from sparse_adapt.export.qdrant import COLLECTION_FILE, VECTOR
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.retrieve.vectors.manifest import read_tokens

POINTS_A_REQUEST = 256
QUERIES_A_REQUEST = 64
SECONDS = 60

_FAILURES = (ApiException, httpx.HTTPError, OSError)
_REFUSALS = (UnexpectedResponse, ValueError)


class Qdrant(Float32Engine):
    """A collection that holds one export."""

    def __init__(self, client: QdrantClient, collection: str, manifest: Manifest, name: str) -> None:
        self.client, self.collection, self.manifest, self.name = client, collection, manifest, name

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first."""
        run: Run = {query_id: {} for query_id in queries.ids}
        for some in self.batches(queries, QUERIES_A_REQUEST):
            requests = [
                models.QueryRequest(
                    query=models.SparseVector(indices=columns, values=weights),
                    using=VECTOR,
                    limit=k,
                    with_payload=True,
                )
                for _, columns, weights in some
            ]
            with _told(self.name):
                answers = self.client.query_batch_points(self.collection, requests)
            for (query_id, _, _), answer in zip(some, answers, strict=True):
                run[query_id] = {(point.payload or {})["document_id"]: point.score for point in answer.points}
        return run


@contextmanager
def open_engine(folder: Path, *, url: str = "") -> Iterator[Qdrant]:
    """An export in a collection of its own, which is gone afterwards.

    `url` is a server's, or a folder to keep the collection in; without one it is held in memory.
    """
    manifest = read_manifest(folder, "qdrant")
    read_tokens(folder, manifest.model)
    collection = f"sparse-adapt-{uuid4().hex}"
    with open_client(url) as client, _told(url or "Qdrant"):
        try:
            load(folder, client, collection)
            yield Qdrant(client, collection, manifest, _name(client, url))
        finally:
            client.delete_collection(collection)


@contextmanager
def open_client(url: str) -> Iterator[QdrantClient]:
    """A client of the server at `url`, of the folder there, or of nothing but memory.

    Raises OutputError where there is no server, or another process has the folder.
    """
    with warnings.catch_warnings(), _told(url or "Qdrant"):
        warnings.simplefilter("ignore")  # that the local mode is slow above 20,000 points
        try:
            if url.startswith(("http://", "https://")):
                client = QdrantClient(url=url, timeout=SECONDS, check_compatibility=False)
                client.get_collections()
            else:
                client = QdrantClient(path=url) if url else QdrantClient(location=":memory:")
        except RuntimeError as error:
            raise OutputError(f"{url}: another process has this folder open; wait until it ends") from error
        try:
            yield client
        finally:
            client.close()


def load(folder: Path, client: QdrantClient, collection: str) -> int:
    """Put an export into a collection, which is made if there is none; how many documents it holds then.

    Raises InputError for a folder that its manifest doesn't vouch for, OutputError for a collection of other
    settings and for documents that Qdrant refuses; those before and after them are in.
    """
    manifest = read_manifest(folder, "qdrant")
    with _told(collection):
        _create(folder, client, collection)
        refused = [
            row
            for part in document_parts(manifest)
            for row in insert_all(
                json_lines(folder / part.path),
                lambda points: _upsert(client, collection, points),
                batch=POINTS_A_REQUEST,
                document_id=lambda point: point["payload"]["document_id"],
                refusal=_REFUSALS,
            )
        ]
        if refused:
            refuse(collection, refused, manifest.documents)
        return client.count(collection, exact=True).count


def _upsert(client: QdrantClient, collection: str, points: list[Any]) -> None:
    client.upsert(collection, [models.PointStruct(**point) for point in points])


def _create(folder: Path, client: QdrantClient, collection: str) -> None:
    settings = json.loads((folder / COLLECTION_FILE).read_text(encoding="utf-8"))
    if client.collection_exists(collection):
        vectors = client.get_collection(collection).config.params.sparse_vectors or {}
        if VECTOR not in vectors or vectors[VECTOR].modifier not in (None, models.Modifier.NONE):
            raise OutputError(f"{collection}: has no plain sparse vector {VECTOR!r}; choose another name")
        return
    sparse = {
        name: models.SparseVectorParams(**settings) for name, settings in settings["sparse_vectors"].items()
    }
    client.create_collection(collection, vectors_config=settings["vectors"], sparse_vectors_config=sparse)


def _name(client: QdrantClient, url: str) -> str:
    if url.startswith(("http://", "https://")):
        return f"qdrant-{client.info().version}"
    return f"qdrant-client-{version('qdrant-client')}"


@contextmanager
def _told(place: str) -> Iterator[Any]:
    """What goes wrong between here and a server, as an error in one line."""
    try:
        yield
    except _FAILURES as error:
        raise OutputError(
            f"{place}: Qdrant gives an error ({one_line(error)}); see that it runs and can be written"
        ) from error
