"""Every file of every kind of result is vouched for, and a change of any of them is said in one line."""

import json
import shutil
from pathlib import Path

import pytest
from conftest import refused

from sparse_adapt.api.checking import verify
from sparse_adapt.errors import InputError, ModelError, SparseAdaptError
from sparse_adapt.files.marker import vouch
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import make_plan
from sparse_adapt.pipeline.run import run
from sparse_adapt.retrieve.vectors.shards import encode_corpus


@pytest.fixture(scope="module")
def results(tiny_model, zorvex_collection, twelve_documents, tmp_path_factory) -> Path:
    """A run of two stages, vectors and an export. Read only."""
    folder = tmp_path_factory.mktemp("results")
    short = {"steps": 1, "batch_size": 2, "device": "cpu"}
    stages = ["extend", "warmup"]
    run(
        make_plan(str(zorvex_collection), model=str(tiny_model), stages=stages, overrides=short),
        Place(folder / "run"),
    )
    encode_corpus(
        SparseEncoder.load(tiny_model),
        twelve_documents,
        Place(folder / "vectors", resume=True),
        documents_a_shard=5,
    )
    import sparse_adapt as sa

    sa.export("opensearch", tiny_model, zorvex_collection, folder / "export", device="cpu")
    return folder


@pytest.fixture
def copy(results, tmp_path) -> Path:
    shutil.copytree(results, tmp_path / "results")
    return tmp_path / "results"


@pytest.mark.parametrize(
    ("name", "kinds"),
    [("run", (2, 0, 0)), ("run/1-extend", (1, 0, 0)), ("vectors", (0, 1, 0)), ("export", (0, 0, 1))],
)
def test_what_is_as_it_was_written_is_counted(results, name, kinds):
    found = verify(results / name)
    files = [path for path in (results / name).rglob("*") if path.is_file()]
    own = [path for path in files if path != results / name / "sparse-adapt.json"]
    counts = dict(zip(("models", "vectors", "exports"), kinds, strict=True))
    assert found.folder == str(results / name) and found.to_dict() == {"files": len(own), **counts}


def test_the_command_says_once_what_is_as_it_was(results, sparse_adapt):
    ran = sparse_adapt("verify", results / "vectors")
    assert (ran.status, ran.out.count("as they were written"), ran.err) == (0, 1, "")


@pytest.mark.parametrize("name", ["run", "vectors", "export"])
def test_a_flipped_bit_in_any_file_is_named(copy, name):
    for path in sorted(path for path in (copy / name).rglob("*") if path.is_file()):
        content = path.read_bytes()
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        with pytest.raises(SparseAdaptError, match=r"isn't what was written|bears no sparse-adapt\.json"):
            verify(copy / name)
        path.unlink()
        with pytest.raises(SparseAdaptError, match=r"is gone|bears no sparse-adapt\.json"):
            verify(copy / name)
        path.write_bytes(content)
    verify(copy / name)


def test_sums_alone_do_not_make_a_result_sound(copy):
    manifest = json.loads((copy / "vectors" / "manifest.json").read_text())
    (copy / "vectors" / "manifest.json").write_text(json.dumps({**manifest, "rows": 3}))
    vouch(copy / "vectors")
    with pytest.raises(InputError, match="counts other vectors"):
        verify(copy / "vectors")
    path = copy / "run" / "1-extend" / "vocabulary.json"
    path.write_text("{}")
    vouch(copy / "run" / "1-extend")
    vouch(copy / "run")
    with pytest.raises(ModelError, match=r"vocabulary\.json: damaged"):
        verify(copy / "run")


def test_the_command_says_it_in_one_line(sparse_adapt, copy, tiny_model):
    ran = sparse_adapt("verify", copy / "run", "--json")
    assert (ran.status, json.loads(ran.out)["models"], ran.err) == (0, 2, "")
    assert json.loads(ran.out)["models"] == 2
    (copy / "run" / "report.json").write_text("{}")
    assert "report.json: isn't what was written" in refused(sparse_adapt("verify", copy / "run"))
    assert "bears no sparse-adapt.json that lists its files" in refused(sparse_adapt("verify", tiny_model))
    assert "no such folder" in refused(sparse_adapt("verify", copy / "nowhere"))
