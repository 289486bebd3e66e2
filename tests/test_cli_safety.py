"""What a corpus, a model's vocabulary or a command line holds can't steer the terminal that it is shown on."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import refused
from rich.text import Text

import sparse_adapt as sa
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.report.messages import SafeConsole

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4K\x07"
CLEAR = "\x1b[2J\x9b2J"
TURNED = "\u202egnp.exe\u2066"
BAD = CLIPBOARD + CLEAR + TURNED
SIGNS = set("\x07\x1b\x9b\u202e\u2066")


@pytest.fixture
def corpus(tmp_path):
    """Three documents whose ids, titles and texts hold what a terminal would act on."""
    rows = [
        {
            "_id": f"d{number}{BAD}",
            "title": f"The database{BAD}",
            "text": f"A backup {BAD} of the server {number}",
        }
        for number in range(3)
    ]
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": f"q{BAD}", "text": f"backup {BAD}"}) + "\n")
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n")
    return path


def is_safe(ran) -> bool:
    return not SIGNS & set(ran.out + ran.err)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_documents_and_queries_are_shown_with_their_control_signs_spelt_out(
    sparse_adapt, tiny_model, corpus, form
):
    files = ["--model", tiny_model, "--corpus", corpus, *form]
    for words in (
        ["explain", f"backup {BAD} server"],
        ["search", f"backup {BAD}"],
        ["diagnose", f"backup{BAD}"],
    ):
        shown = sparse_adapt(*words, *files)
        assert shown.status == 0, shown.err
        assert is_safe(shown), words
        assert ("\\u001b]52" if form else "\\x1b]52") in shown.out, words
    found = json.loads(sparse_adapt("search", "backup", *files, "--json").out)["results"]
    assert {row["document_id"] for row in found} == {f"d{number}{BAD}" for number in range(3)}


def test_mistakes_are_too(sparse_adapt, tiny_model, corpus, tmp_path):
    wrong = [
        ["check", f"{tmp_path}/no{BAD}.jsonl"],
        ["explain", "x", "--model", f"./no{BAD}", "--corpus", corpus],
        ["evaluate", "--model", tiny_model, "--collection", tmp_path, "--split", f"dev{BAD}"],
        ["adapt", corpus, "--until", BAD],
        ["terms", corpus, f"--{BAD}"],
        [BAD],
    ]
    corpus.write_text(corpus.read_text() + corpus.read_text())  # every id twice
    wrong.append(["check", corpus])
    for words in wrong:
        shown = sparse_adapt(*words)
        assert "\\x1b]52" in refused(shown), words
        assert is_safe(shown), words


def test_a_term_with_control_signs_is_shown_safely(sparse_adapt, tiny_model, tmp_path):
    terms = tmp_path / "terms.json"
    terms.write_text(json.dumps({"a": [f"zor{TURNED}vex", "kubectl"]}))
    shown = sparse_adapt("extend", "--model", tiny_model, "--terms", terms, "-o", tmp_path / f"out{TURNED}")
    assert is_safe(shown)


def test_styles_stay_where_a_sign_is_spelt_out():
    console = SafeConsole(width=40, color_system="standard", force_terminal=True)
    with console.capture() as caught:
        console.print(Text.assemble(("a\x1bb", "red"), ("c\u202e", "green")))
    shown = caught.get()
    assert re.sub(r"\x1b\[\d+m", "", shown) == "a\\x1bbc\\u202e\n"
    assert "\x1b[31m\\x1b\x1b[0m" in shown
    assert "\x1b[32m\\u202e\x1b[0m" in shown


def test_a_spelt_sign_is_laid_out_as_wide_as_it_is_shown():
    console = SafeConsole(width=20)
    with console.capture() as caught:
        console.print(Text("one \x1b\x1b\x1b\x1b two three"))
    assert max(map(len, caught.get().splitlines())) <= 20
    assert "".join(caught.get().split()) == "one\\x1b\\x1b\\x1b\\x1btwothree"


def test_words_that_are_no_unicode_are_refused(sparse_adapt, tiny_model, corpus, tmp_path):
    files = ["--model", tiny_model, "--corpus", corpus]
    for command in ("search", "explain", "diagnose"):
        assert "isn't utf-8" in refused(sparse_adapt(command, "a\ud800b", *files))
    with pytest.raises(InputError, match="isn't Unicode"):
        sa.search(str(tiny_model), ["a backup"], ["a\ud800b"], device="cpu")
    for call in (sa.explain, sa.diagnose):
        with pytest.raises(ConfigError, match="isn't Unicode"):
            call(str(tiny_model), "a\ud800b", ["a backup"], device="cpu")
    (tmp_path / "terms.json").write_text('{"x": ["a\\ud800b"]}')
    said = refused(
        sparse_adapt(
            "extend", "--model", tiny_model, "--terms", tmp_path / "terms.json", "-o", tmp_path / "x"
        )
    )
    assert "half of a surrogate pair" in said
    assert "no such model folder" in refused(sparse_adapt("search", "backup", "--model", "a" * 5000))
    assert "less than or equal to 1000000" in refused(
        sparse_adapt("encode", *files, "-o", tmp_path / "v", "--shard", 10**30)
    )
    assert "epochs should be less" in refused(
        sparse_adapt("warmup", *files, "-o", tmp_path / "w", "--epochs", "1e308")
    )


def test_consoles_that_lack_a_sign_show_its_number(corpus):
    words = [sys.executable, "-c", "from sparse_adapt.cli import main; main()", "check", "王者.jsonl"]
    env = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    ran = subprocess.run(words, capture_output=True, env=env, check=False)
    assert ran.returncode == 2 and ran.stderr.startswith(b"error: \\u738b\\u8005.jsonl: no such file")
    shutil.rmtree(corpus.parent / "qrels")  # a file without judgements is a mistake of its own
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(
            [*words[:-1], str(corpus.parent)], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ran.returncode == 2 and b"standard output can't be written" in ran.stderr
    assert b"Traceback" not in ran.stderr
