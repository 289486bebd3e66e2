"""`adapt` stopped after a step, and gone on with by the line that it prints."""

import json
import re
import shlex

import pytest
from conftest import refused

from sparse_adapt.pipeline.request import Request, begun
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.synthetic.queries import QuerySettings

TEXTS = {
    "steel": "The steel pump of the plant is quiet. A steel pump runs for years without a new seal.",
    "brass": "The brass valve of the plant is loud. Whoever opens a brass valve hears it in the hall.",
    "copper": "The copper gate of the plant is heavy. Two people lift the copper gate every morning.",
    "iron": "The iron crane of the plant is tall. An iron crane lifts what nobody else can carry.",
    "bronze": "The bronze lathe of the plant is old. The bronze lathe turned the first zorvex ever made.",
    "nickel": "The nickel drill of the plant is fast. No nickel drill may run without a cover on it.",
    "zinc": "The zinc hoist of the plant is slow. A zinc hoist is checked by the team every week.",
    "lead": "The lead lock of the plant is safe. The lead lock opens only for the team of the plant.",
}


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A corpus, a glossary and queries of users, in the folder that the command runs in."""
    monkeypatch.chdir(tmp_path)
    rows = [
        {"_id": key, "title": f"The {key} thing", "text": f"{text} It has a zorvex."}
        for key, text in TEXTS.items()
    ]
    (tmp_path / "my corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "glossary.jsonl").write_text('{"term": "zorvex", "definition": "a part of every machine"}\n')
    (tmp_path / "asked.tsv").write_text("u1\twhich pump is quiet\n")
    return [
        "adapt",
        "my corpus.jsonl",
        "--glossary",
        "glossary.jsonl",
        "--queries",
        "asked.tsv",
        "--stages",
        "words,extend,dictionary,rank",
        "--teacher",
        "bm25",
    ]


def printed(said: str) -> list[str]:
    """The line after "next:", as words."""
    (line,) = re.findall(r"^next:\n  sparse-adapt (.*)$", said, re.MULTILINE)
    return shlex.split(line)


def test_the_printed_line_goes_on_with_all_that_was_asked(sparse_adapt, tiny_model, asked, tmp_path):
    options = [
        "--model",
        tiny_model,
        "--stages",
        "extend,dictionary,rank",
        "--seed",
        "5",
        "--documents",
        "100",
    ]
    first = sparse_adapt(*asked, *options, "-o", "my run", "--until", "terms", "--learning-rate", "1e-4")
    assert first.status == 0, first.err
    words = printed(first.err)
    assert words == ["adapt", "my corpus.jsonl", "-o", "my run", "--resume"]
    terms = tmp_path / "my run.partial" / "terms.json"
    terms.write_text('{"mine": ["zorvex", "hoist"]}')
    before = json.loads((tmp_path / "my run.partial" / "request.json").read_text())
    second = sparse_adapt(*words, "--until", "dictionary")
    assert second.status == 0, second.err
    assert printed(second.err) == words
    assert json.loads((tmp_path / "my run.partial" / "request.json").read_text()) == before
    assert json.loads(terms.read_text()) == {"mine": ["zorvex", "hoist"]}
    assert (before["overrides"], before["settings"]["seed"]) == ({"learning_rate": 1e-4}, 5)
    assert before["settings"]["stages"] == [
        "extend",
        "dictionary",
        "rank",
    ]
    assert "a part of every machine" in (tmp_path / "my run.partial" / "dictionary.jsonl").read_text()


def test_what_is_asked_otherwise_is_refused_and_loses_nothing(sparse_adapt, tiny_model, asked, tmp_path):
    first = sparse_adapt(*asked, "--model", tiny_model, "-o", "run", "--until", "terms")
    assert first.status == 0, first.err
    words = printed(first.err)
    (tmp_path / "other.jsonl").write_text('{"term": "pump", "definition": "what moves water"}\n')
    for other in (["--glossary", "other.jsonl"], ["--seed", "9"], ["--teacher", "ensemble"]):
        said = refused(sparse_adapt(*words, *other))
        assert "made with" in said
        assert "start again, which loses what is there: pass --overwrite without --resume" in said
    assert (tmp_path / "run.partial" / "terms.json").is_file()


def test_a_request_is_read_back_as_it_was(tmp_path, tiny_model):
    settings = AdaptSettings(stages=("extend", "rank"), interpolations=(0.25, 0.5))
    request = Request(
        corpus="gatrocraptic",
        model=str(tiny_model),
        teacher="bm25",
        settings=settings,
        overrides={"seed": 3},
        of_stages={"rank": {"steps": 4}},
    )
    assert begun(tmp_path / "run") is None
    (tmp_path / "run.partial").mkdir()
    (tmp_path / "run.partial" / "request.json").write_text(json.dumps(request.plain()))
    assert begun(tmp_path / "run") == request


def test_help_shows_the_defaults_that_settings_have(sparse_adapt, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    shown = " ".join(sparse_adapt("adapt", "--help").out.split())
    assert f"[default: {AdaptSettings().documents}]" in shown
    usual = ",".join(AdaptSettings().stages)
    assert f"[default: ({usual}; with --glossary also extend,dictionary)]" in shown
    shown = " ".join(sparse_adapt("queries", "--help").out.split())
    assert f"[default: {QuerySettings().count}]" in shown and f"[default: {QuerySettings().held}]" in shown
