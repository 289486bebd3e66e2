"""No command, whatever it is told to write where, removes what somebody else put there or what the command reads."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import refused

from sparse_adapt.model.sparse import SparseEncoder

# {model}: a model of ours; {corpus}: a collection; {mine}: a folder of somebody else; {run}: a run file.
# Each with how it is refused: a run file of `search` is replaced unasked.
READ, NOT_OURS = "is what this command reads", "holds no sparse-adapt.json"
EITHER = "holds (what this command reads|no sparse-)"
REFUSED = {
    "extend --model {model} --terms {corpus}/terms.json -o {model} --overwrite": READ,
    "extend --model {model} --terms {corpus}/terms.json -o {corpus} --overwrite": EITHER,
    "extend --model {model} --terms {corpus}/terms.json -o {mine} --overwrite": NOT_OURS,
    "extend --model {model} --terms {corpus}/terms.json -o {model}/in --overwrite": "lies in what this command reads",
    "warmup --model {model} --corpus {corpus} -o {model} --epochs 1 --overwrite": READ,
    "encode --model {model} --corpus {corpus} -o {model} --overwrite": READ,
    "encode --model {model} --corpus {corpus} -o {corpus} --overwrite": NOT_OURS,
    "encode --model {model} --corpus {corpus} -o {mine} --overwrite": NOT_OURS,
    "export opensearch --model {model} --corpus {corpus} -o {model} --overwrite": READ,
    "export opensearch --model {model} --corpus {corpus} -o {mine} --overwrite": NOT_OURS,
    "queries {corpus} -o {corpus} --overwrite": EITHER,
    "run {run} -o {corpus} --overwrite": EITHER,
    "run {run} -o {model} --overwrite": READ,
    "run {run} -o {mine} --overwrite": NOT_OURS,
    "adapt --corpus {corpus} --model {model} -o {corpus} --overwrite": EITHER,
    "adapt --corpus {corpus} --model {model} -o {mine} --overwrite": NOT_OURS,
    "demo --corpus {corpus} --model {model} -o {mine} --overwrite": NOT_OURS,
    "terms {corpus} --model {model} -o {corpus}/corpus.jsonl --overwrite": "holds no list of terms",
    "terms {corpus} --model {model} -o {corpus}/candidates.jsonl --overwrite": "holds no list of terms",
    "candidates {corpus} --model {model} --teacher bm25 -o {corpus}/corpus.jsonl --overwrite": "no scored candidates",
    "groups --model {model} --groups {groups} -o {model} --overwrite": READ,
    "relevant-words --model {model} --pairs {groups} -o {model} --overwrite": READ,
    "pack {model} --base {model} -o {corpus}/corpus.jsonl --overwrite": "holds no term pack",
    "unpack --remove x --model {model} -o {model} --overwrite": READ,
    "unpack --remove x --model {model} -o {mine} --overwrite": NOT_OURS,
    "pairs {corpus} --reference {model} -o {corpus}/corpus.jsonl --overwrite": "holds no pairs of queries",
    "search zorvex --model {model} --corpus {corpus} --run {corpus}/corpus.jsonl": "holds no TREC run",
}


@pytest.fixture
def places(tiny_model, zorvex_collection, tmp_path) -> dict[str, Path]:
    SparseEncoder.load(tiny_model).save(tmp_path / "model")
    shutil.copytree(zorvex_collection, tmp_path / "corpus")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("the only copy")
    (tmp_path / "run.toml").write_text(
        f'model = "{tmp_path}/model"\ncorpus = "{tmp_path}/corpus"\nstages = ["extend"]\n'
    )
    (tmp_path / "groups.jsonl").write_text('{"group": "a", "text": "b"}\n')
    folders = {name: tmp_path / name for name in ("model", "corpus", "mine")}
    return {**folders, "run": tmp_path / "run.toml", "groups": tmp_path / "groups.jsonl"}


@pytest.mark.parametrize("line", REFUSED)
def test_nothing_of_somebody_else_is_replaced(sparse_adapt, places, line):
    over = re.search(r"(?:-o|--run) (\{\w+\})", line)[1]
    folder = Path(over.format(**places))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    said = refused(sparse_adapt(*line.format(**places).split()))
    assert re.search(REFUSED[line], said), said
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_the_corpus_of_the_current_folder_is_encoded_beside_itself(sparse_adapt, places, monkeypatch):
    """A BEIR folder isn't read whole: results may go into it, and replace results of ours there."""
    monkeypatch.chdir(places["corpus"])
    for _ in range(2):
        ran = sparse_adapt(
            "encode", "--model", places["model"], "--corpus", ".", "-o", "vectors", "--overwrite"
        )
        assert ran.status == 0, ran.err
    assert (places["corpus"] / "corpus.jsonl").is_file()
