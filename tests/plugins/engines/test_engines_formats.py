"""The table of engines, and what a row of it promises."""

import inspect

import pytest

from sparse_adapt.errors import ConfigError, MissingExtraError
from sparse_adapt.plugins.engines.engine import EngineModule
from sparse_adapt.plugins.engines.formats import (
    check_takes,
    engines,
    find_engine,
    module_of,
    open_engine,
    require,
)


def test_an_unknown_engine_names_the_nearest(tmp_path):
    with pytest.raises(
        ConfigError, match="unknown export format 'elastic-search'; did you mean 'elasticsearch'"
    ):
        find_engine("elastic-search")
    with pytest.raises(ConfigError, match="unknown export format 'xyz'; there are anserini, ciff, "):
        open_engine("xyz", tmp_path)


def test_a_missing_package_names_its_extra(monkeypatch, tmp_path):
    monkeypatch.setattr("sparse_adapt.plugins.engines.formats.find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r"ciff_toolkit is not installed: pip install 'sparse-adapt\[ciff\]'"
    ):
        require(find_engine("ciff").to_write)
    with pytest.raises(MissingExtraError, match=r"pip install 'sparse-adapt\[seismic\]'"):
        open_engine("seismic", tmp_path)
    require(find_engine("anserini").to_write)  # its files need nothing more


@pytest.mark.parametrize("row", engines(), ids=lambda row: row.name)
def test_the_module_of_every_engine_has_what_one_must_have(row):
    module = module_of(row)
    for name in ("layout", "how_to_load", "open_export"):
        expected = [
            each for each in inspect.signature(getattr(EngineModule, name)).parameters if each != "self"
        ]
        assert list(inspect.signature(getattr(module, name)).parameters) == expected


@pytest.mark.parametrize(
    "row", [row for row in engines() if not row.address and row.opens], ids=lambda row: row.name
)
def test_a_library_takes_no_url(row, tmp_path):
    with pytest.raises(ConfigError, match=f"--url http://x: {row.title} runs in this process"):
        open_engine(row.name, tmp_path, url="http://x")


@pytest.mark.parametrize("row", [row for row in engines() if not row.in_process], ids=lambda row: row.name)
def test_a_server_wants_a_url(row, tmp_path):
    with pytest.raises(ConfigError, match=f"{row.title} is a server; say where with --url {row.address}"):
        open_engine(row.name, tmp_path)


def test_an_encoder_for_opensearch_is_opened_there_alone(tmp_path):
    with pytest.raises(ConfigError, match="opensearch-model: only OpenSearch itself can open it"):
        open_engine("opensearch-model", tmp_path)


@pytest.mark.parametrize(
    ("name", "given", "problem"),
    [
        ("onnx", "queries", "onnx holds an encoder and no vectors; leave out --queries"),
        ("opensearch-model", "queries", "opensearch-model holds an encoder and no vectors"),
        ("qdrant", "texts", "qdrant stores no texts, as opensearch, .* do"),
        ("qdrant", "scaled", "qdrant keeps weights as they are; leave out --scale"),
    ],
)
def test_what_an_engine_does_not_take_is_refused(name, given, problem):
    with pytest.raises(ConfigError, match=problem):
        check_takes(
            find_engine(name), **({"queries": False, "texts": False, "scaled": False} | {given: True})
        )
