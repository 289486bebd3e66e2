"""What commands say to run next: every line can be run as it stands, in the order in which it is said."""

import json
import re
import shlex
import shutil

import pytest
import typer

from sparse_adapt.api.following import lines_to_measure
from sparse_adapt.cli.app import every_command

QUICK = ("--epochs", "1", "--device", "cpu", "--labeller", "none")
RUN = ("diagnose", "explain", "search", "evaluate", "extend")  # which take no second here
FLOW = {  # a command, and what the lines after it name
    "check {corpus}": ["adapt"],
    "terms {corpus} --model {tiny} --top 3": ["terms"],
    "terms {corpus} --model {tiny} --top 3 -o terms.json": ["extend"],
    "queries {corpus} -o synthetic": ["candidates", "evaluate"],
    "candidates synthetic --model {tiny} --teacher bm25 -o scored.jsonl": ["distill"],
    "extend --model {tiny} --terms {corpus}/terms.json -o 1": ["warmup"],
    "warmup --model 1 --corpus {corpus} -o 2 {quick}": ["dictionary"],
    "dictionary --model 2 --glossary {corpus}/dictionary.jsonl -o 3 {quick}": ["distill"],
    "distill --model 3 --candidates {corpus} --corpus {corpus} -o 4 {quick}": ["evaluate", "export"],
    "encode --model 4 --corpus {corpus} -o vectors": ["index", "export"],
    "export anserini --model 4 --corpus {corpus} -o impacts": ["index"],
    "search zorvex --model 4 --corpus {corpus}": ["explain"],
    "explain zorvex --model 4 --corpus {corpus}": ["export"],
    "diagnose --model 4 --corpus {corpus}": ["diagnose"],
    "evaluate --model 4 --collection {corpus} --baseline {tiny}": ["explain"],
}


def lines_after(said: str) -> list[list[str]]:
    """The words of each command after "next:"."""
    _, _, after = f"\n{said}".partition("\nnext:\n")
    return [shlex.split(line)[1:] for line in re.findall(r"^  (sparse-adapt .*)$", after, re.MULTILINE)]


def check(words: list[str]) -> None:
    """Raise for a command that there isn't, an option that it doesn't have, or a file that isn't there."""
    commands = {name: each for found in every_command().values() for name, each in found.items()}
    if words[1:] != ["--help"]:
        with typer.Context(commands[words[0]]):
            commands[words[0]].make_context(words[0], words[1:])


def test_where_nothing_is_judged_nothing_is_evaluated(places, tmp_path, tiny_model):
    shutil.copy(f"{places['corpus']}/corpus.jsonl", tmp_path)
    alone = lines_to_measure("splade-tiny", tiny_model, str(tmp_path))
    assert [words.split()[1] for words in alone] == ["export"]
    beside = lines_to_measure("splade-tiny", tiny_model, places["corpus"])
    assert [words.split()[1] for words in beside] == ["evaluate", "export"]


@pytest.fixture
def places(tiny_model, zorvex_collection, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return {"corpus": str(zorvex_collection), "tiny": str(tiny_model), "quick": shlex.join(QUICK)}


@pytest.mark.slow
def test_every_line_can_be_run(sparse_adapt, places):
    for line, following in FLOW.items():
        done = sparse_adapt(*shlex.split(line.format(**places)))
        assert done.status == 0, (line, done.err)
        after = lines_after(done.err)
        assert [words[0] for words in after] == following, line
        for words in after:
            check(words)
            if words[0] in RUN:
                ran = sparse_adapt(*words)
                assert ran.status == 0, (words, ran.err)


@pytest.mark.parametrize("state", ["pieces", "inactive"])
def test_what_diagnose_advises_can_be_run_in_turn(sparse_adapt, places, tmp_path, state):
    """Each command in the shell, the trained ones with two steps; a file that is there isn't written over."""
    (tmp_path / "terms.json").write_text("edited for hours")
    model, corpus = places["tiny"], tmp_path / "alone" / "corpus.jsonl"
    corpus.parent.mkdir()
    shutil.copy(f"{places['corpus']}/corpus.jsonl", corpus)
    if state == "inactive":
        model, corpus = "1", places["corpus"]
        files = ["--model", places["tiny"], "--terms", f"{corpus}/terms.json"]
        assert sparse_adapt("extend", *files, "-o", model).status == 0
    done = sparse_adapt("diagnose", "zorvex", "--model", model, "--corpus", corpus, "--json")
    steps = [step["command"] for step in json.loads(done.out)["next_steps"]]
    assert len(steps) == 3 and all(steps)
    for command in steps:
        if command.startswith("echo "):
            content, path = re.fullmatch(r"echo (.*) > (\S+)", command).groups()
            (tmp_path / path).write_text(shlex.split(content)[0])
            continue
        words = shlex.split(command)[1:]
        check(words)
        ran = sparse_adapt(*words, *(QUICK if words[0] in ("warmup", "dictionary", "distill") else ()))
        assert ran.status == 0, (command, ran.err)
    assert (tmp_path / "terms.json").read_text() == "edited for hours"
