"""Milvus: exact files, and the real Milvus Lite ranks them as exact search does."""

import json

import numpy as np
import pytest
from milvus_lite.db import MilvusLite
from odd import (
    BLOCK,
    EMPTY_ROWS,
    ODD_IDS,
    QUERIES,
    TOKENS,
    check_exact,
    check_ranking,
    export,
)
from scipy.sparse import csr_matrix

from sparse_adapt.errors import ConfigError, InputError, OutputError
from sparse_adapt.plugins.engines.formats import open_engine
from sparse_adapt.plugins.engines.milvus import FIELD, SETTINGS_FILE, load, open_milvus
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

NOTHING = EncodedBatch(["d4"], csr_matrix((1, 3), dtype=np.float32))


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with open_milvus(str(tmp_path_factory.mktemp("milvus") / "server.db")) as client:
        yield client


def test_every_file_is_as_it_was(tmp_path, golden_folder):
    manifest = export("milvus", tmp_path / "out", TOKENS, BLOCK, NOTHING, queries=QUERIES)
    golden_folder(tmp_path / "out", "milvus")
    assert (manifest.documents, manifest.empty_documents, manifest.entries) == (4, 2, 3)
    parts = [json.loads(path.read_text()) for path in sorted((tmp_path / "out/documents").iterdir())]
    assert [[row["document_id"] for row in part] for part in parts] == [["d1", "d3"], []]


def test_milvus_ranks_as_exact_search(exported):
    with open_engine("milvus", exported) as engine:
        check_exact(engine)
        check_ranking(engine)
    assert engine.name.startswith("milvus-lite-")


def test_documents_without_an_entry_are_left_out(exported, client):
    load(exported, client, "all")
    found = client.query("all", filter="", limit=20, output_fields=["document_id"])
    assert {row["document_id"] for row in found} == {
        document_id for row, document_id in enumerate(ODD_IDS) if row not in EMPTY_ROWS
    }


def test_the_settings_of_the_export_are_those_of_the_collection(exported, client):
    load(exported, client, "settings")
    settings = json.loads((exported / SETTINGS_FILE).read_text())
    described = client.describe_collection("settings")
    assert [field["name"] for field in described["fields"]] == [
        field["fieldName"] for field in settings["schema"]["fields"]
    ]
    assert client.describe_index("settings", FIELD)["metric_type"] == settings["indexParams"][0]["metricType"]


# -- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("document_id", ["", "é" * 32_768])
def test_an_id_that_is_no_key_for_milvus_is_refused(document_id, tmp_path):
    block = EncodedBatch([document_id], BLOCK.vectors[:1])
    with pytest.raises(InputError, match=r"this document id has [\d,]+ bytes, Milvus takes 1 to 65,535"):
        export("milvus", tmp_path / "out", TOKENS, block)
    assert list(tmp_path.iterdir()) == []


def test_a_collection_of_something_else_is_left_alone(exported, client):
    client.create_collection("mine", dimension=3)
    with pytest.raises(OutputError, match="mine: has other fields than document_id and weights"):
        load(exported, client, "mine")


def test_a_file_takes_one_process_at_a_time(tmp_path, capfd):
    other = MilvusLite(str(tmp_path / "kept.db"))
    with pytest.raises(
        OutputError, match=r"kept\.db: Milvus gives an error \(.*Open local milvus failed\)"
    ) as caught:
        open_milvus(str(tmp_path / "kept.db")).__enter__()
    other.close()
    assert "\n" not in str(caught.value)
    assert capfd.readouterr().err == ""


def test_a_place_that_is_no_server_and_no_file_is_refused():
    with pytest.raises(ConfigError, match=r"kept: Milvus takes a server's URL or a file that ends in \.db"):
        open_milvus("kept").__enter__()
