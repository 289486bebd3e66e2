"""Engines that load documents: what they refuse is named, the others get in, and a load can be run again."""

import json
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pytest
from odd import EMPTY_ROWS, ODD_IDS, export_odd, vouch_anew
from qdrant_client import QdrantClient
from small_servers import BulkServer, VespaServer, served

from sparse_adapt.errors import InputError, OutputError
from sparse_adapt.plugins.engines import elasticsearch, features, milvus, opensearch, qdrant, vespa
from sparse_adapt.plugins.engines.formats import open_engine

BULK = {"opensearch": opensearch.load, "elasticsearch": elasticsearch.load}
NAMES = (*BULK, "vespa", "qdrant", "milvus")
REASONS = {
    **dict.fromkeys(BULK, r"'d\.2': \[d\.2\] can't be stored; 'd\"3': \[d\"3\] can't be stored"),
    "vespa": r"'d\.2': status 400: .*could not parse d\.2.*; 'd\"3': status 400",
    "qdrant": r"'d\.2': Indices must be unique; 'd\"3': Indices must be unique",
    "milvus": r"'d\.2': .*sparse vector field 'weights'.*'d\"3': .*at least one nonzero",
}
STORED = {"milvus": len(ODD_IDS) - len(EMPTY_ROWS)}  # the others store documents without an entry, too


class Loading(NamedTuple):
    """An engine that is empty: its name, how an export is loaded, how many documents it holds, its small server."""

    name: str
    load: Callable[[Path], int]
    count: Callable[[], int]
    server: BulkServer | VespaServer | None = None


@pytest.fixture(scope="module", params=NAMES)
def written(request, tmp_path_factory):
    return request.param, export_odd(request.param, tmp_path_factory.mktemp(request.param) / "out")


@pytest.fixture
def exported(written, tmp_path):
    return shutil.copytree(written[1], tmp_path / "out")


@pytest.fixture
def loading(written, tmp_path, monkeypatch):
    monkeypatch.setattr(features, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(vespa, "PAUSES", (0.001,) * 4)
    with ExitStack() as stack:
        yield engine_of(written[0], tmp_path, stack)


def engine_of(name: str, folder: Path, stack: ExitStack) -> Loading:
    if name == "qdrant":
        client = QdrantClient(":memory:")  # which takes the place of a server
        stack.callback(client.close)
        return Loading(name, partial(qdrant.load, client=client, collection="c"), partial(points_in, client))
    if name == "milvus":
        lite = stack.enter_context(milvus.open_milvus(str(folder / "server.db")))
        return Loading(name, partial(milvus.load, client=lite, collection="c"), partial(rows_in, lite))
    server = VespaServer() if name == "vespa" else BulkServer(name)
    url = stack.enter_context(served(server))
    server.busy = 3
    if name == "vespa":
        return Loading(name, partial(vespa.load, url=url), lambda: len(server.documents), server)
    load = partial(BULK[name], url=url, index="c")
    return Loading(
        name, load, lambda: sum(len(each["documents"]) for each in server.indices.values()), server
    )


def points_in(client):
    return client.count("c").count if client.collection_exists("c") else 0


def rows_in(client):
    there = client.has_collection("c")
    return client.query("c", filter="", output_fields=["count(*)"])[0]["count(*)"] if there else 0


def spoil(loading: Loading, export: Path) -> None:
    """Have an engine refuse two documents, or spoil them in the export of one that no small server stands for."""
    if loading.server is not None:
        loading.server.refuse = {"d.2", 'd"3'}
        return
    part = min((export / "documents").iterdir())
    if loading.name == "milvus":
        rows = json.loads(part.read_text(encoding="utf-8"))
        rows[1]["weights"], rows[2]["weights"] = {"5": -1.0}, {}
        part.write_text(json.dumps(rows), encoding="utf-8")
    else:
        points = [json.loads(line) for line in part.read_text(encoding="utf-8").splitlines()]
        for point in points[1:3]:
            indices = point["vector"]["weights"]["indices"]
            indices[0] = indices[1]
        part.write_text("".join(json.dumps(point) + "\n" for point in points), encoding="utf-8")
    vouch_anew(export)


def test_loading_again_changes_nothing(loading, exported):
    stored = STORED.get(loading.name, len(ODD_IDS))
    assert [loading.load(exported), loading.load(exported), loading.count()] == [stored] * 3


def test_documents_that_are_refused_are_named_and_the_others_get_in(loading, exported):
    stored = STORED.get(loading.name, len(ODD_IDS))
    spoil(loading, exported)
    with pytest.raises(OutputError, match=f"refused 2 of 10 documents .*{REASONS[loading.name]}") as caught:
        loading.load(exported)
    assert "\n" not in str(caught.value)
    assert loading.count() == stored - 2


def test_a_part_that_has_changed_is_refused_before_anything_is_loaded(loading, exported):
    part = min((exported / "documents").iterdir())
    part.write_bytes(part.read_bytes()[:-20])
    with pytest.raises(InputError, match=f"{part.name}: has changed"):
        loading.load(exported)
    assert loading.count() == 0
    vouch_anew(exported)
    with pytest.raises(InputError, match=rf"{part.name}(:\d+: isn't JSON|: isn't a part of an export)"):
        loading.load(exported)


@pytest.mark.parametrize("name", [*NAMES[:-1], pytest.param("milvus", marks=pytest.mark.slow)])
def test_a_server_that_is_not_there_is_one_line(name, tmp_path, capfd):
    export_odd(name, tmp_path / "out")
    with (
        pytest.raises(OutputError, match=r"^http://\S*127\.0\.0\.1:9: \w+ gives an error") as caught,
        open_engine(name, tmp_path / "out", url="http://127.0.0.1:9"),
    ):
        pass
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""
