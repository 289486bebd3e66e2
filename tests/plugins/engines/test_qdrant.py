"""Qdrant: exact files, and the real engine in this process ranks them as exact search does."""

import json
from uuid import UUID

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd import (
    BLOCK,
    EMPTY_ROWS,
    ODD_IDS,
    ODD_TOKENS,
    TOKENS,
    check_exact,
    check_ranking,
    export,
)
from qdrant_client import QdrantClient
from scipy.sparse import csr_matrix

from sparse_adapt.errors import OutputError
from sparse_adapt.plugins.engines.formats import open_engine
from sparse_adapt.plugins.engines.qdrant import VECTOR, load, point_id
from sparse_adapt.retrieve.vectors.folder import EncodedBatch


@pytest.fixture
def server():
    """The client's imitation of a server, for what loads documents there."""
    client = QdrantClient(":memory:")
    yield client
    client.close()


def test_qdrant_ranks_as_exact_search(exported):
    with open_engine("qdrant", exported) as engine:
        check_exact(engine)
        check_ranking(engine)
    assert engine.name.startswith("qdrant-edge-0.")


def test_documents_without_an_entry_are_stored_and_never_found(exported, server):
    assert load(exported, server, "all") == len(ODD_IDS)
    for row, document_id in enumerate(ODD_IDS):
        (point,) = server.retrieve("all", [point_id(document_id)], with_vectors=True)
        assert point.payload == {"document_id": document_id}
        assert (VECTOR in point.vector) == (row not in EMPTY_ROWS)


def test_a_collection_takes_more(exported, tmp_path, server):
    export("qdrant", tmp_path / "more", TOKENS, EncodedBatch(["new"], BLOCK.vectors[:1]))
    assert [load(folder, server, "all") for folder in (exported, tmp_path / "more")] == [10, 11]


def test_the_id_of_a_point_is_that_of_its_document():
    assert point_id("d1") == point_id("d1") == str(UUID(point_id("d1")))
    assert point_id("d1") != point_id("D1")


@settings(max_examples=30, deadline=None)
@given(
    st.dictionaries(
        st.integers(0, 29), st.floats(2.0**-126, 2.0**127, width=32, allow_subnormal=False), max_size=30
    )
)
def test_the_json_reads_back_as_the_same_floats(tmp_path_factory, row):
    dense = np.zeros((1, len(ODD_TOKENS)), np.float32)
    for column, weight in row.items():
        dense[0, column] = weight
    folder = tmp_path_factory.mktemp("export") / "out"
    export("qdrant", folder, ODD_TOKENS, EncodedBatch(["d"], csr_matrix(dense)))
    vector = json.loads((folder / "documents/part-00000.jsonl").read_text(encoding="utf-8"))["vector"]
    stored = vector.get(VECTOR, {"indices": [], "values": []})
    assert dict(zip(stored["indices"], map(np.float32, stored["values"]), strict=True)) == {
        column: weight for column, weight in enumerate(dense[0]) if weight > 0
    }


# -- what goes wrong ------------------------------------------------------------------------------


def test_a_collection_of_something_else_is_left_alone(exported, server):
    server.create_collection("mine", vectors_config={}, sparse_vectors_config={})
    with pytest.raises(OutputError, match="mine: has no plain sparse vector 'weights'"):
        load(exported, server, "mine")
    assert server.count("mine").count == 0
