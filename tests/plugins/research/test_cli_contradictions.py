"""Contradictions, the stages that learn from them, similarity and relevant words, as commands."""

import json
import sys
from pathlib import Path

import pytest
from conftest import refused
from dense_models import tiny_dense

from sparse_adapt.collection.examples import read_triplets

GRADED = [
    (5, "The server sends a log.", "A log comes from the server."),
    (4, "A nightly backup copies the database.", "The backup copies a database every night."),
    (2, "A team spends.", "The office signs for spending."),
    (0, "A saw is a good tool.", "The client refuses the server."),
]


@pytest.fixture(params=["sparse", "dense"])
def model(request: pytest.FixtureRequest, tiny_model: Path, tmp_path: Path) -> Path:
    return tiny_model if request.param == "sparse" else tiny_dense(tiny_model, tmp_path / "dense")


@pytest.fixture
def graded(tmp_path: Path) -> Path:
    path = tmp_path / "graded.tsv"
    path.write_text("".join(f"{score}\t{first}\t{second}\n" for score, first, second in GRADED))
    return path


def test_from_a_corpus_to_a_measured_model(
    sparse_adapt,
    model,
    zorvex_collection,
    graded,
    tmp_path,
):
    made, taught = tmp_path / "triplets.jsonl", tmp_path / "taught"
    words = ["--model", model, "--each", 3, "--tune", 2, "--device", "cpu", "-o", made, "--json"]
    status, out, said = sparse_adapt("contradict", zorvex_collection, *words, "--tuned", tmp_path / "tuned")
    assert status == 0
    assert f"wrote {tmp_path / 'tuned'} (the tuned generator" in said
    again = ["--generator", tmp_path / "tuned", "--each", 3, "--detect", "-o", tmp_path / "again.jsonl"]
    assert sparse_adapt("contradict", zorvex_collection, *again)[0] == 0
    assert (tmp_path / "again.jsonl").read_text() == made.read_text()
    assert "already there" in refused(sparse_adapt("contradict", zorvex_collection, *words))
    triplets, counts = list(read_triplets(made)), json.loads(out)
    assert counts["anchors"] == len(triplets) > 8
    assert counts["contradictions"] == sum(len(each.contradictions) for each in triplets)
    assert f"triplets --model {model}" in said
    quick = ["--epochs", 0.3, "--device", "cpu", "--batch-size", 4]
    status, _, said = sparse_adapt("triplets", "--model", model, "--triplets", made, "-o", taught, *quick)
    assert status == 0
    assert "contradict" in said
    assert "distill --help" in said
    pairs = tmp_path / "labelled.jsonl"
    pairs.write_text('{"anchor": "a saw", "entailment": "a tool", "contradiction": "a server"}\n')
    again = ["--model", taught, "--labelled", pairs, "-o", tmp_path / "last", *quick]
    assert sparse_adapt("labelled", *again)[0] == 0
    status, out, _ = sparse_adapt(
        "similarity", "--model", tmp_path / "last", "--pairs", graded, "--baseline", model, "--json"
    )
    assert status == 0
    content = json.loads(out)
    assert content["pairs"] == 4
    assert -1 <= content["model"]["value"] <= 1
    gain = content["model"]["value"] - content["baseline"]["value"]
    assert content["difference"]["value"] == pytest.approx(gain)


def test_similarity_and_relevant_words_show_tables(sparse_adapt, tiny_model, graded, tmp_path):
    status, out, said = sparse_adapt("similarity", "--model", tiny_model, "--pairs", graded)
    assert status == 0
    assert "rank correlation" in out
    assert "relevant-words --model" in said
    assert "several candidates" not in out
    several = tmp_path / "several.tsv"
    several.write_text("1\ta log\ta server\n2\ta log\tthe log\n0\ta log\ta saw\n")
    _, out, _ = sparse_adapt("similarity", "--model", tiny_model, "--pairs", several)
    assert "Queries with several candidates" in out
    assert out.index("the log") < out.index("a server") < out.index("a saw")
    seen = tmp_path / "seen"
    words = ["relevant-words", "--model", tiny_model, "--pairs", graded, "--least", 2, "-o", seen]
    status, out, said = sparse_adapt(*words)
    assert status == 0
    assert "noun" in out
    assert "relevance.png" in said
    assert len(json.loads((seen / "relevance.json").read_text())["words"]) == 6
    assert "already there" in refused(sparse_adapt(*words))
    status, out, _ = sparse_adapt(*words[:7], "--json")
    assert {row["speech"] for row in json.loads(out)["distribution"]} >= {"noun", "verb"}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("It rains.\nWho was it?\n", "(sentences 2, without nouns 2)"),
        ("12 + 30\n---\n", "(sentences 2, without words 2)"),
        ("The server sends a log and " * 20 + "\n", "(sentences 1, too long 1)"),
        ("\n\n", "(none at all)"),
        ("The server.\n", "put back what was there (sentences 1, without contradictions 1, unchanged"),
    ],
)
def test_nothing_to_contradict(sparse_adapt, tiny_model, tmp_path, text, problem):
    lines, out = tmp_path / "lines.txt", tmp_path / "out.jsonl"
    lines.write_text(text)
    said = refused(sparse_adapt("contradict", lines, "--model", tiny_model, "--shortest", "1", "-o", out))
    assert "lines.txt: " in said
    assert problem in said
    assert [path.name for path in tmp_path.iterdir()] == ["lines.txt"]


def test_mistakes_are_one_line_and_leave_nothing(
    sparse_adapt,
    tiny_model,
    graded,
    tmp_path,
    monkeypatch,
):
    lines, out = tmp_path / "lines.txt", tmp_path / "out"
    lines.write_text("The server sends a log.\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    contradict = ["contradict", lines, "--model", tiny_model, "-o", out]
    said = refused(sparse_adapt(*contradict, "--language", "fr"))
    assert "unknown language 'fr'; there are en, ja" in said
    assert "no such model folder" in refused(sparse_adapt(*contradict, "--generator", tmp_path / "nowhere"))
    assert "config.json" in refused(sparse_adapt(*contradict, "--generator", tmp_path))
    assert "nothing is tuned; pass --tune" in refused(
        sparse_adapt(*contradict, "--tuned", tmp_path / "tuned")
    )
    assert "nowhere.txt: " in refused(
        sparse_adapt("contradict", tmp_path / "nowhere.txt", "--model", tiny_model, "-o", out)
    )
    relevant = ["relevant-words", "--model", tiny_model, "--pairs", graded, "-o", out]
    assert "no pair has a similarity of 9 or more" in refused(sparse_adapt(*relevant, "--least", 9))
    assert "unknown language" in refused(sparse_adapt(*relevant, "--language", "de"))
    assert "an overlap is of windows" in refused(sparse_adapt(*relevant, "--least", 0, "--overlap", 3))
    assert "nowhere" in refused(
        sparse_adapt("similarity", "--model", tiny_model, "--pairs", tmp_path / "nowhere.tsv")
    )
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "spacy", None)
        for command in (contradict, relevant):
            assert "pip install 'sparse-adapt[spacy]'" in refused(sparse_adapt(*command))
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_bad_file_of_triplets_is_named(sparse_adapt, tiny_model, tmp_path):
    path, out = tmp_path / "t.jsonl", tmp_path / "out"
    for stage in ("triplets", "labelled"):
        command = [stage, "--model", tiny_model, f"--{stage}", path, "-o", out, "--device", "cpu"]
        path.write_text('{"anchor": "a saw", "contradictions": ["a log"]}\n{"anchor": "a saw"}\n')
        assert 't.jsonl:2: needs a list of strings "contradictions"' in refused(sparse_adapt(*command))
        path.write_text('{"anchor": "a saw", "contradictions": []}\n')
        assert 't.jsonl:1: "contradictions" is empty' in refused(sparse_adapt(*command))
    assert [each.name for each in tmp_path.iterdir()] == ["t.jsonl"]
    path.write_text('{"anchor": "a saw", "contradictions": ["a log"]}\n')
    one = [
        "triplets",
        "--model",
        tiny_model,
        "--triplets",
        path,
        "-o",
        out,
        "--epochs",
        9,
        "--device",
        "cpu",
    ]
    assert sparse_adapt(*one)[0] == 0
