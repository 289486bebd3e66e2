"""No command, whatever it is told to write where, removes what somebody else put there or what the command reads."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import refused

from sparse_adapt.model.sparse import SparseEncoder

# {model}: a model of ours; {corpus}: a collection; {mine}: a folder of somebody else; {run}: a run file.
# Each with what is written over, and how that is refused.
REFUSED = [
    (
        "extend --model {model} --terms {corpus}/terms.json -o {model}",
        "{model}",
        "is what this command reads",
    ),
    (
        "extend --model {model} --terms {corpus}/terms.json -o {corpus}",
        "{corpus}",
        "holds (what this command reads|no sparse-)",
    ),
    ("extend --model {model} --terms {corpus}/terms.json -o {mine}", "{mine}", "holds no sparse-adapt.json"),
    (
        "extend --model {model} --terms {corpus}/terms.json -o {model}/in",
        "{model}",
        "lies in what this command reads",
    ),
    (
        "warmup --model {model} --corpus {corpus} -o {model} --epochs 1",
        "{model}",
        "is what this command reads",
    ),
    ("encode --model {model} --corpus {corpus} -o {model}", "{model}", "is what this command reads"),
    ("encode --model {model} --corpus {corpus} -o {corpus}", "{corpus}", "holds no sparse-adapt.json"),
    ("encode --model {model} --corpus {corpus} -o {mine}", "{mine}", "holds no sparse-adapt.json"),
    (
        "export opensearch --model {model} --corpus {corpus} -o {model}",
        "{model}",
        "is what this command reads",
    ),
    ("export opensearch --model {model} --corpus {corpus} -o {mine}", "{mine}", "holds no sparse-adapt.json"),
    ("queries {corpus} -o {corpus}", "{corpus}", "holds (what this command reads|no sparse-)"),
    ("run {run} -o {corpus}", "{corpus}", "holds (what this command reads|no sparse-)"),
    ("run {run} -o {model}", "{model}", "is what this command reads"),
    ("run {run} -o {mine}", "{mine}", "holds no sparse-adapt.json"),
    (
        "adapt --corpus {corpus} --model {model} -o {corpus}",
        "{corpus}",
        "holds (what this command reads|no sparse-)",
    ),
    ("adapt --corpus {corpus} --model {model} -o {mine}", "{mine}", "holds no sparse-adapt.json"),
    ("demo --corpus {corpus} --model {model} -o {mine}", "{mine}", "holds no sparse-adapt.json"),
    ("terms {corpus} --model {model} -o {corpus}/corpus.jsonl", "{corpus}", "holds no list of terms"),
    ("terms {corpus} --model {model} -o {corpus}/candidates.jsonl", "{corpus}", "holds no list of terms"),
    (
        "candidates {corpus} --model {model} --teacher bm25 -o {corpus}/corpus.jsonl",
        "{corpus}",
        "no scored candidates",
    ),
    ("groups --model {model} --groups {groups} -o {model}", "{model}", "is what this command reads"),
    (
        "relevant-words --model {model} --pairs {groups} -o {model}",
        "{model}",
        "is what this command reads",
    ),
    ("pack {model} --base {model} -o {corpus}/corpus.jsonl", "{corpus}", "holds no term pack"),
    ("unpack --remove x --model {model} -o {model}", "{model}", "is what this command reads"),
    ("unpack --remove x --model {model} -o {mine}", "{mine}", "holds no sparse-adapt.json"),
    ("pairs {corpus} --reference {model} -o {corpus}/corpus.jsonl", "{corpus}", "holds no pairs of queries"),
]
WITHOUT_FLAG = [  # of commands that replace a file of their own kind unasked
    (
        "search zorvex --model {model} --corpus {corpus} --run {corpus}/corpus.jsonl",
        "{corpus}",
        "holds no TREC run",
    ),
]


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


@pytest.mark.parametrize(("line", "over", "problem"), [*REFUSED, *WITHOUT_FLAG])
def test_nothing_of_somebody_else_is_replaced(sparse_adapt, places, line, over, problem):
    folder = Path(over.format(**places))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    flag = ["--overwrite"] if (line, over, problem) in REFUSED else []
    said = refused(sparse_adapt(*line.format(**places).split(), *flag))
    assert re.search(problem, said), said
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
