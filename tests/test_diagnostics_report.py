"""What a terminal shows: all sections, every token as it is, commands that can be copied."""

import io
import shlex

import pytest
from rich.console import Console

import sparse_adapt as sa
from diagnostics.advice import Places
from diagnostics.matches import Contribution, Match, QueryReport, QueryToken, explain
from diagnostics.token import diagnose
from diagnostics.token_report import STATES
from sparse_adapt.collection.readers import Document, write_documents
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.results import Shown
from sparse_adapt.report.sections import CommandText, untitled
from sparse_adapt.report.terminal import rendered

SECTIONS = ["1  Vocabulary", "2  Logits", "3  Weight", "4  Ranking", "5  What to do next"]


def shown(report: Shown, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(report.renderable())
    return console.file.getvalue()


@pytest.fixture(scope="module")
def bundled() -> SparseEncoder:
    return SparseEncoder.load("splade-tiny")


def test_five_sections_at_one_hundred_columns(tiny_model, twelve_documents):
    places = Places("my-model", "my-corpus")
    report = diagnose("zorvex", SparseEncoder.load(tiny_model), twelve_documents, places=places)
    text = shown(report)
    assert [text.index(section) for section in SECTIONS] == sorted(
        text.index(section) for section in SECTIONS
    )
    assert max(map(len, text.splitlines())) <= 100
    for section in report.logits:
        for range_of in (section["everywhere"], section["where_it_stands"]):
            for logit in (range_of["least"]["logit"], range_of["average"], range_of["largest"]["logit"]):
                assert f"{logit:+.4f} " in text
    assert text.count("positive: expected") + text.count("negative: not expected") == len(report.logits)
    for weight in report.weights:
        assert f"{weight['maximum_logit']:.4f}" in text and f"{weight['encoder_weight']:.4f}" in text
    for ranked in report.ranking["heaviest"]:
        assert f"{ranked['weight']:.4f} " in text
    for row in report.rows():
        assert f"{row['average_logit']:+.4f} " in text and f"{row['weight']:.4f} " in text
        assert row["document_id"] in text
    assert "sparse-adapt extend" in text


@pytest.mark.parametrize("term", ["[unused12]", "[pad]", "[/b]", "##ing", "[CLS]"])
def test_tokens_are_never_markup(bundled, term):
    documents = [Document("[link=x]", f"A text with {term} and linking in it", "[bold]")]
    text = shown(diagnose(term, bundled, documents))
    assert text.splitlines()[0].startswith(f"{term}  ")
    found = shown(explain(f"linking {term}", bundled, documents))
    assert found.splitlines()[0] == f"linking {term}"
    assert "1  [link=x]  [bold]" in found


def test_a_shared_token_reads_as_an_equation():
    part = Contribution(13, "[unused12]", 1.5, 2.0, 3.0, expansion=True, new=True)
    rest = [Contribution(number, f"w{number}", 0.1, 1.0, 0.1, False, False) for number in range(20)]
    match = Match(1, "d1", "", 5.0, (part, *rest))
    tokens = (QueryToken(13, "[unused12]", 1.5, True, True), QueryToken(14, "[pad]", 0.5, False, False))
    text = shown(QueryReport("q", 2, tokens, ("[sep]",), (match,)))
    assert "3.000 = '[unused12]' (1.500 x 2.000)" in text
    assert "new term, expansion" in text
    assert "1.100 = 11 more" in text  # ten are shown: 3.0 and nine of 0.1
    assert "5.000 = score" in text
    assert "[pad]" in text and "without weight: [sep]" in text


LONG = "a-very-long-token-such-as-a-part-number-00000000"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_nothing_is_cut(tiny_model, twelve_documents, width):
    """At 80 columns "new term, expansion" once read "new te"."""
    part = Contribution(13, LONG, 1.5, 2.0, 3.0, expansion=True, new=True)
    other = Contribution(14, "short", 1.5, 2.0, 3.0, expansion=True, new=False)
    tokens = (QueryToken(13, LONG, 1.5, True, True), QueryToken(14, "short", 0.5, False, False))
    for parts in ((part, other), (other,)):
        match = Match(1, "d1", "", 5.0, parts)
        text = shown(QueryReport("q", 2, tokens, (), (match,)), width)
        whole = "".join(text.split())
        assert "…" not in text and max(map(len, text.splitlines())) <= width
        assert ("newterm,expansion" in whole and LONG in whole) or width < 80
        assert "'short'(1.500x2.000)" in whole
    report = diagnose(
        "zorvex", SparseEncoder.load(tiny_model), [*twelve_documents, Document("x", f"zorvex {LONG}")]
    )
    text = shown(report, width)
    assert "…" not in text and max(map(len, text.splitlines())) <= width


def test_a_query_without_a_match_says_so():
    assert "No document shares a token" in shown(QueryReport("q", 0, (), (), ()))


def rendered_line(line: str) -> str:
    console = Console(file=io.StringIO(), width=80)
    console.print(rendered(untitled(CommandText(line))), crop=False)
    return console.file.getvalue()


def test_a_long_command_goes_on_after_a_backslash():
    words = ["sparse-adapt", "distill", "--model", "a folder/with  [pad] in it's " * 2, "-o", "x" * 60]
    line = shlex.join(words)
    text = rendered_line(line)
    assert len(text.splitlines()) > 1
    assert shlex.split(text.replace("\\\n", " ")) == words
    assert rendered_line("sparse-adapt demo") == "  sparse-adapt demo\n"


@pytest.mark.plugins("engines")
def test_a_printed_result_breaks_no_word_of_a_command(tiny_model, tmp_path):
    folder = tmp_path / f"a folder {'x' * 100}"
    made = sa.export("opensearch", tiny_model, ["a bird sings"], folder, device="cpu")
    for line in made.loading.split("\n"):
        assert f"  {line}".rstrip() in str(made).split("\n")
    assert "y" * 150 in rendered_line(f"sparse-adapt explain {'y' * 150}"), "of a word wider than the screen"


def test_places_reach_the_commands(tiny_model, twelve_documents):
    model = SparseEncoder.load(tiny_model)
    places = Places(model="runs/[pad]/extended", corpus="my corpus.jsonl", terms="my.json")
    text = shown(diagnose("zorvex", model, twelve_documents, places=places))
    assert "'runs/[pad]/extended'" in text
    assert "my.json" in text


def test_every_state_has_words():
    from typing import get_args

    from diagnostics.advice import State

    assert set(STATES) == set(get_args(State))


def test_the_term_is_marked_without_colour(tiny_model, twelve_documents):
    report = diagnose("zorvex", SparseEncoder.load(tiny_model), twelve_documents, listed=True)
    text = shown(report, 160)
    first = report.logits[0]
    assert f"{first['token']} stands at position" in text
    spots = [str(each["position"]) for each in first["positions"] if each["occurrence"]]
    assert f"positions {', '.join(spots)} " in text
    rows = [line.split() for line in text.splitlines() if line.split()[:1] == [first["token"]]]
    ranges = {"all": first["everywhere"], "the term's": first["where_it_stands"]}
    for row, (over, found) in zip(rows, ranges.items(), strict=False):
        figures = (found["least"]["logit"], found["average"], found["largest"]["logit"])
        assert " ".join(row).startswith(
            f"{first['token']} {over} " + " ".join(f"{each:+.4f}" for each in figures)
        )
    assert "in the terms file  yes" in text
    assert " ".join(report.text.split()) in " ".join(text.split())
    marked = [piece for piece in first["positions"] if piece["occurrence"]]
    for piece in marked:
        assert any(
            f"{piece['position']} {piece['token']} " in line and "<- here" in line
            for line in text.splitlines()
        )
    weighed = [weight for weight in report.weights if weight["encoder_weight"] > 0]
    ranking = text[text.index("its heaviest tokens") : text.index("all documents that hold")]
    assert ranking.count("<- here") == len(weighed)


def test_a_term_below_the_heaviest_has_a_row_of_its_own(tiny_model, twelve_documents):
    model = SparseEncoder.load(tiny_model)
    report = next(
        found
        for found in (diagnose(word, model, twelve_documents) for word in ("server", "log", "team", "agent"))
        if (found.ranking["ranks"][0] or 0) > 10
    )
    rank, weight = report.ranking["ranks"][0], report.weights[0]["encoder_weight"]
    line = next(line for line in shown(report).splitlines() if line.strip().startswith(f"{rank} "))
    assert f"  {weight:.4f}  " in line and line.rstrip().endswith("<- here")


def test_a_query_tells_its_sparsity_and_a_document_its_heaviest_tokens(tiny_model, twelve_documents):
    report = explain("server log", SparseEncoder.load(tiny_model), twelve_documents, top=1)
    text = shown(report, 160)
    assert f"sparsity {report.sparsity:.2f} %, largest {report.heaviest.token} " in text
    assert report.matches[0].snippet in text
    assert "heaviest tokens (* shared): " in text


def test_a_known_token_has_the_category_of_the_terms_file(tiny_model, twelve_documents, tmp_path):
    write_documents(tmp_path / "corpus.jsonl", twelve_documents)
    (tmp_path / "terms.json").write_text('{"machines": ["Server"]}')
    report = sa.diagnose(str(tiny_model), "server", tmp_path, device="cpu")
    assert report.vocabulary["single"] and not report.vocabulary["new"]
    assert "category           machines" in shown(report)
    assert sa.diagnose(str(tiny_model), "team", tmp_path, device="cpu").vocabulary["category"] == ""


def test_a_long_document_is_shown_by_its_beginning(tiny_model):
    long = Document("long", "zorvex " + "compares the plan of a team " * 30)
    text = " ".join(shown(diagnose("zorvex", SparseEncoder.load(tiny_model), [long])).split())
    assert "zorvex compares the plan of a team" in text
    assert len(text.split(" ...")[0].split("zorvex compares")[1]) < 300
