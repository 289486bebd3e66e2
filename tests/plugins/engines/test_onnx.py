"""ONNX Runtime encodes as torch does, or the export is refused."""

import subprocess
import sys
from pathlib import Path

import pytest
from scaled import with_scales

from sparse_adapt.collection.readers import Query
from sparse_adapt.errors import MissingExtraError, ModelError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines import onnx
from sparse_adapt.plugins.engines.formats import open_engine
from sparse_adapt.plugins.engines.layout import ExportSource
from sparse_adapt.plugins.engines.manifest import read_export
from sparse_adapt.plugins.engines.parity import check_engine
from sparse_adapt.plugins.engines.writing import write_export
from sparse_adapt.retrieve.vectors.folder import Vectors
from sparse_adapt.retrieve.vectors.manifest import stamp_of_model, token_names
from sparse_adapt.retrieve.vectors.shards import encode_queries


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> SparseEncoder:
    return with_scales(tiny_model)


ASKED = [Query("q1", "a backup of the database"), Query("q2", "zorvex reports"), Query("q3", "the server")]


def source_of(model):
    return ExportSource(Vectors(stamp_of_model(model), token_names(model), ()), encoder=model)


@pytest.fixture(scope="module")
def graph(model, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("onnx") / "out"
    manifest = write_export("onnx", source_of(model), Place(folder)).manifest
    assert isinstance(manifest.facts["largest_difference"], float)
    assert manifest.facts["largest_difference"] < 1e-5
    return folder


@pytest.mark.slow
def test_onnx_encodes_as_torch_does_in_batches_of_any_shape(model, graph, twelve_documents):
    texts = [document.full_text for document in twelve_documents]
    documents = encode_queries(model, [Query(str(row), text) for row, text in enumerate(texts)])
    with open_engine("onnx", graph, documents=documents) as engine:
        assert abs(engine.encode(texts) - documents.vectors).max() < 1e-5
        assert abs(engine.encode(texts[:1]) - documents.vectors[:1]).max() < 1e-5
        parity = check_engine(
            engine, documents, encode_queries(model, ASKED), texts=[query.text for query in ASKED]
        )
    assert parity.faults == ()
    snippet = onnx.how_to_load(read_export(graph)).replace("QUERY", texts[0])
    done = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, check=True)
    best = eval(done.stdout)
    heaviest = sorted(documents.vectors[0].data, reverse=True)[:10]
    assert [weight for weight, _ in best] == pytest.approx(heaviest, abs=1e-5)


@pytest.mark.slow
def test_onnx_is_refused_where_its_weights_are_not_those_of_torch(model, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "BOUND", -1.0)
    with pytest.raises(ModelError, match=r"ONNX Runtime's weights differ from torch's by .*more than"):
        write_export("onnx", source_of(model), Place(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []


def test_onnx_names_its_extra(model, tmp_path, monkeypatch):
    monkeypatch.setattr("sparse_adapt.plugins.engines.formats.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"onnx is not installed: pip install 'sparse-adapt\[onnx\]'"):
        write_export("onnx", source_of(model), Place(tmp_path / "out"))
    assert list(tmp_path.iterdir()) == []
