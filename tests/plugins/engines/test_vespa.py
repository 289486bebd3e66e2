"""Vespa: exact files in the documented form, fed and searched over HTTP."""

import json
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from odd import (
    BLOCK,
    EMPTY_ROWS,
    ODD_IDS,
    TOKENS,
    check_exact,
    check_ranking,
    export,
    odd_queries,
)
from small_servers import VespaServer, served

from sparse_adapt.errors import InputError, OutputError
from sparse_adapt.plugins.engines import vespa
from sparse_adapt.plugins.engines.formats import open_engine
from sparse_adapt.plugins.engines.vespa import escape_label, unescape_label
from sparse_adapt.retrieve.vectors.folder import EncodedBatch


@pytest.fixture(autouse=True)
def no_long_pauses(monkeypatch):
    monkeypatch.setattr(vespa, "PAUSES", (0.001,) * 4)


def test_the_application_is_of_one_piece(exported):
    services = ElementTree.parse(exported / "application/services.xml").getroot()
    (document,) = services.findall("content/documents/document")
    assert services.find("container/document-api") is not None
    assert services.find("container/search") is not None
    schema = (exported / "application/schemas/passage.sd").read_text()
    assert schema.count("{") == schema.count("}")
    assert re.match(rf"schema {document.get('type')} \{{\s+document {document.get('type')} \{{", schema)
    types = re.findall(
        r"(?:field|query\()(?: ?)(\w+)\)? (?:type )?(tensor<float>\(token\{\}\)|string)", schema
    )
    assert types == [
        ("document_id", "string"),
        ("weights", "tensor<float>(token{})"),
        ("weights", "tensor<float>(token{})"),
    ]
    for line in (exported / "documents/part-00000.jsonl").read_bytes().splitlines():
        operation = json.loads(line)
        assert operation["put"] == f"id:sparse-adapt:passage::{operation['fields']['document_id']}"
        assert operation["fields"].keys() <= {name for name, _ in types}


def test_an_export_ranks_as_exact_search(exported):
    server = VespaServer()
    with served(server) as url, open_engine("vespa", exported, url=url) as engine:
        assert list(server.documents) == ODD_IDS
        assert [not weights for weights in server.documents.values()] == [
            row in EMPTY_ROWS for row in range(10)
        ]
        check_exact(engine)
        check_ranking(engine)
        assert engine.search_all(odd_queries(), 1000) == engine.search_all(odd_queries(), 10)
    assert server.documents == {}  # emptied afterwards


@given(st.lists(st.text(st.sampled_from("%0123ab\"'\\{}:, \x00\ufffeé日#.")), unique=True))
def test_labels_go_back_never_meet_and_need_no_quoting(tokens):
    labels = [escape_label(token) for token in tokens]
    assert [unescape_label(label) for label in labels] == tokens
    assert len(set(labels)) == len(tokens)
    assert not any(set(label) & set("\"'\\{}:, \x00\ufffe") for label in labels)


def test_labels_by_hand():
    assert [escape_label(token) for token in ("##ing", "node.js", "supply chain", "100%", "a:b")] == [
        "##ing",
        "node.js",
        "supply%000020chain",
        "100%000025",
        "a%00003ab",
    ]


# -- what goes wrong ------------------------------------------------------------------------------


def test_an_application_that_holds_documents_is_left_alone(exported):
    server = VespaServer()
    server.documents["mine"] = {}
    with served(server) as url, pytest.raises(OutputError, match="holds 1 documents; check against an empty"):
        open_engine("vespa", exported, url=url).__enter__()
    assert list(server.documents) == ["mine"]


def test_a_server_with_another_application_is_told(exported):
    server = VespaServer()
    server.deployed = False
    with (
        served(server) as url,
        pytest.raises(OutputError, match=r"Unknown source 'passage'.*; deploy the export"),
    ):
        open_engine("vespa", exported, url=url).__enter__()


@pytest.mark.parametrize("document_id", ["", "a\x00", "a\x0b", "a\ufffe", "a\U0001ffff"])
def test_an_id_that_vespa_can_not_hold_is_refused(document_id, tmp_path):
    with pytest.raises(InputError, match="this document id has characters that Vespa can't hold, or none"):
        export("vespa", tmp_path / "out", TOKENS, EncodedBatch([document_id], BLOCK.vectors[:1]))
    assert list(tmp_path.iterdir()) == []
