"""A new engine is one module and one row: it is written, opened, searched and compared like every other."""

import json

import pytest
from odd import ODD_TOKENS, check_exact, check_ranking, export, odd_documents, odd_queries

from sparse_adapt.plugins.engines.formats import EngineRow, open_engine
from sparse_adapt.registry import Plugin, registry


@pytest.fixture(autouse=True)
def pocket(monkeypatch):
    row = EngineRow("pocket", "Pocket", "lines of JSON", module="tests.plugins.engines.pocket_engine")
    monkeypatch.setitem(registry().plugins, "pocket", Plugin(engines={"pocket": row}))


def test_an_engine_that_was_added_ranks_as_exact_search(tmp_path):
    manifest = export("pocket", tmp_path / "out", ODD_TOKENS, odd_documents(), queries=odd_queries())
    assert (manifest.format, manifest.documents, manifest.empty_documents) == ("pocket", 10, 2)
    with open_engine("pocket", tmp_path / "out") as engine:
        check_exact(engine)
        check_ranking(engine)


def test_the_commands_know_an_engine_that_was_added(sparse_adapt, tiny_model, zorvex_collection, tmp_path):
    given = ("--model", tiny_model, "--corpus", zorvex_collection)
    ran = sparse_adapt("export", "pocket", *given, "-o", tmp_path / "out")
    assert (ran.status, ran.messages[-2:]) == (0, ["next:", f"  pocket load {tmp_path / 'out'}"])
    ran = sparse_adapt("check-export", tmp_path / "out", *given, "--queries", zorvex_collection, "--json")
    content = json.loads(ran.out)
    assert (ran.status, content["engine"], content["kinds"]["fault"]) == (0, "pocket 1.0", 0)
