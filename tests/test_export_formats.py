"""The table of formats, and what all exports share."""

import importlib.util

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from sparse_adapt.errors import ConfigError, InputError, MissingExtraError
from sparse_adapt.export import FORMATS, anserini, writer
from sparse_adapt.export.parts import Manifest, begin, escape_token, read_manifest, unescape_token
from sparse_adapt.export.quantise import Quantisation, as_floats
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors
from sparse_adapt.retrieve.vectors.manifest import ModelStamp

STAMP = ModelStamp(
    name="by hand", weights_sha256="0", vocabulary_sha256="1", vocabulary_size=3, max_tokens=256
)
BLOCK = EncodedBatch(["d1", "d2"], csr_matrix(np.array([[0.5, 0, 70_000.0], [0, 0, 0]], dtype=np.float32)))


def test_an_unknown_format_names_the_nearest():
    with pytest.raises(
        ConfigError, match="unknown export format 'elastic-search'; did you mean 'elasticsearch'"
    ):
        writer("elastic-search")
    with pytest.raises(ConfigError, match="unknown export format 'xyz'; there are anserini, ciff, "):
        writer("xyz")


def test_a_missing_package_names_its_extra(monkeypatch):
    monkeypatch.setattr("sparse_adapt.export.find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r"ciff_toolkit is not installed: pip install 'sparse-adapt\[ciff\]'"
    ):
        writer("ciff")
    assert writer("anserini") is anserini.write


@pytest.mark.parametrize("row", FORMATS, ids=lambda row: row.name)
def test_every_format_can_be_written_and_says_how_to_load_it(row):
    module = importlib.import_module(row.module)
    assert callable(module.write)
    assert callable(module.loading)


def test_floats_are_clipped_and_counted():
    manifest = begin("seismic", Vectors(STAMP, ["a", "b", "c"], []), None, largest_weight=65_504.0)
    entries = manifest.take(BLOCK)
    assert entries.vectors.toarray().tolist() == [[0.5, 0, 65_504], [0, 0, 0]]
    assert (entries.dropped, entries.clipped) == (0, 1)
    assert as_floats(BLOCK).clipped == 0


def test_a_float_format_refuses_a_scale():
    with pytest.raises(
        ConfigError, match="qdrant keeps weights as they are; leave out --scale and --largest"
    ):
        begin("qdrant", Vectors(STAMP, [], []), Quantisation())


def test_the_manifest_of_another_format_or_with_another_part_is_refused(tmp_path):
    anserini.write(Vectors(STAMP, ["a", "b", "c"], [BLOCK]), tmp_path / "out")
    assert isinstance(read_manifest(tmp_path / "out"), Manifest)
    with pytest.raises(InputError, match="holds an export for anserini, not ciff; export again for ciff"):
        read_manifest(tmp_path / "out", "ciff")
    (tmp_path / "out/documents/part-00000.jsonl").unlink()
    with pytest.raises(InputError, match=r"part-00000\.jsonl: named by its manifest, but can't be read"):
        read_manifest(tmp_path / "out")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.text(st.sampled_from('\\u0123c \t"#.é𝄞'), max_size=12), unique=True))
def test_escaped_names_go_back_and_never_meet(tokens):
    names = [escape_token(token, lambda character: character in ". ") for token in tokens]
    assert [unescape_token(name) for name in names] == tokens
    assert len(set(names)) == len(tokens)
    assert not any("." in name or " " in name for name in names)
