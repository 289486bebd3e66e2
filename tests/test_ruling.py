"""The ruling on an adapted model: by hand-made evidence, and in the same words wherever a run is shown."""

import json
from html import unescape

import pytest

from sparse_adapt.pipeline.report import ruling_of
from sparse_adapt.plugins.pages.run import write_run_page
from sparse_adapt.report.tables import MARKDOWN_SIGNS
from sparse_adapt.selection.evidence import Evidence
from sparse_adapt.selection.general import GeneralRow
from sparse_adapt.selection.ruling import Case, Ruling, rule

JUDGED = "the judged queries of the split 'test'"


def gain(kind, low, high, queries=40):
    return Evidence(kind, queries, 0.5, 0.5 + (low + high) / 2, low, high)


def kept(low=-0.004, high=0.002, activated=0.0, **others):
    """What is left of the base model's knowledge: general questions whose change lies between two bounds."""
    change = (low + high) / 2
    row = GeneralRow("all", "all", 900, 0.82 + change, 0.82, low, high, 0.7, 0.7, -0.01, 0.01)
    figures = {
        "baseline": {"ndcg@10": 0.82, "recall@100": 0.9, "false_activations": 0.0},
        "model": {"ndcg@10": 0.82 + change, "recall@100": 0.9, "false_activations": activated},
        "difference": {"ndcg@10": change, "recall@100": 0.0},
        "low": {"ndcg@10": low, "recall@100": 0.0},
        "high": {"ndcg@10": high, "recall@100": 0.0},
        "queries": 900,
        "rows": [row._asdict()],
    }
    return {"general": figures, **others}


def known_items(change, high):
    return {
        "known items": {
            "baseline": {"mrr@10": 0.9},
            "model": {"mrr@10": 0.9 + change},
            "difference": {"mrr@10": change},
            "low": {"mrr@10": 2 * change - high},
            "high": {"mrr@10": high},
            "queries": 300,
        }
    }


GAIN = [gain("all queries", 0.1, 0.2), gain("control", -0.02, 0.02)]


@pytest.mark.parametrize(
    ("gains", "retention", "verdict"),
    [
        ([], kept(), "judge first"),
        ([gain("all queries", 0.3, 0.5, queries=19)], kept(), "judge first"),
        ([gain("all queries", -0.05, 0.15)], kept(), "judge first"),  # wide, and on the right side
        ([gain("all queries", -0.15, 0.05)], kept(), "keep the base model"),
        ([gain("all queries", -0.004, 0.004)], kept(), "keep the base model"),
        (GAIN, kept(), "use"),
        (GAIN, {}, "use"),  # nobody asked general questions
        (GAIN, kept(activated=0.05), "use"),
        (GAIN, kept(activated=0.051), "use in its domain"),
        ([GAIN[0], gain("control", -0.2, -0.1)], kept(), "use with care"),
        (
            [GAIN[0], gain("control", -0.008, -0.001)],
            kept(),
            "use",
        ),  # beyond chance, and less than half a point
        ([GAIN[0], gain("control", -0.3, 0.2)], kept(), "use"),  # wide
        (GAIN, kept(low=-0.02, high=-0.001), "use with care"),
        (GAIN, kept(low=-0.02, high=0.001), "use"),  # at most two points, which chance explains
        (GAIN, kept(low=-0.006, high=-0.001), "use"),
    ],
)
def test_a_verdict(gains, retention, verdict):
    assert rule(Case(gains, JUDGED, retention)).verdict == verdict


def said(case, about):
    return next((line for line in rule(case).lines if line.about == about), None)


def test_a_ruling_is_five_lines_at_the_most_by_hand():
    retention = kept(low=-0.006, high=0.006, activated=0.107, **known_items(-0.03, -0.01))
    gains = [gain("all queries", 0.06, 0.18), gain("semantic", 0.2, 0.6)]
    ruling = rule(Case(gains, JUDGED, retention, weights=(198.2, 193.4)))
    assert [str(line) for line in ruling.lines] == [
        "Use it for searches of its domain: it ranks better there, and no kind of judged query loses by more than "
        "chance.",
        "gained: +12.0 points of nDCG@10 on 40 judged queries, between +6.0 and +18.0 at 95 % (0.500 to 0.620); "
        "semantic 0.500 to 0.900",
        "lost: at most 0.6 points of nDCG@10 on 900 general questions, at 95 % (0.820 to 0.820); "
        "MRR@10 of two words of a document 0.900 to 0.870",
        "beware: 10.7 % of general questions activate a new term, though none means it "
        "(sparse-adapt calibrate lowers a term)",
        "costs: 198 to 193 weights a document; encode every document again",
    ]
    assert [line.tone for line in ruling.lines] == ["good", "good", "bad", "bad", ""]


@pytest.mark.parametrize(("change", "high"), [(-0.004, -0.001), (-0.03, 0.01), (0.03, 0.04)])
def test_what_chance_or_half_a_point_explains_is_not_lost(change, high):
    line = said(Case(GAIN, JUDGED, kept(**known_items(change, high))), "lost")
    assert "two words" not in line.text and line.tone == ""


def test_a_kind_that_falls_is_lost():
    line = said(Case([GAIN[0], gain("control", -0.2, -0.1)], JUDGED, kept()), "lost")
    assert line.text.endswith("; nDCG@10 of control queries 0.500 to 0.350") and line.tone == "bad"


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (Case(GAIN, "synthetic queries that were set aside", kept()), "synthetic queries promise more"),
        (Case([], "", kept()), "there are no judged queries; fifty of your own would tell"),
        (Case([gain("all queries", 0.1, 0.2, queries=3)], JUDGED, kept()), "3 judged queries are too few"),
        (Case(GAIN, JUDGED), "nobody asked it general questions"),
    ],
)
def test_what_to_beware_of(case, words):
    assert words in said(case, "beware").text


def test_nothing_to_beware_of_is_no_line():
    assert said(Case(GAIN, JUDGED, kept()), "beware") is None


def test_a_base_model_that_is_kept_says_why():
    ruling = rule(Case(GAIN, JUDGED, kept=("no gain beyond chance: synthetic queries +1.0 ± 3.0 points")))
    assert ruling.verdict == "keep the base model"
    (line,) = ruling.lines
    assert str(line).startswith("The base model is kept, as it was: no gain beyond chance: synthetic")


@pytest.mark.parametrize(
    ("kept", "frozen", "last"),
    [
        (1, False, "costs: 150 to 128 weights a document; encode every document again"),
        (
            1,
            True,
            "costs: 150 to 128 weights a document; encode again the 7 documents that hold a new term: their ids",
        ),
        (0, True, "The base model is kept, as it was: rank shows no gain beyond chance: synthetic queries"),
    ],
)
def test_an_adaptation_says_what_to_encode_again_or_why_the_base_model_is_kept(kept, frozen, last):
    refused = "no gain beyond chance: synthetic queries +0.1 ± 1.0 points"
    tried = [{"name": "base", "nonzero_document": 150.2}, {"name": "rank", "nonzero_document": 127.6}]
    choice = {"kept": kept, "best": 1, "tried": tried, "refused": None if kept else refused}
    adapted = {"choice": choice, "retention": {}, "frozen": frozen, "documents_with_a_new_term": 7}
    rows = [each._asdict() for each in GAIN]
    ruling = ruling_of({"adapt": adapted, "evidence": {"judged by": JUDGED, "rows": rows}})
    assert str(ruling.lines[-1]).startswith(last)


def test_a_ruling_survives_json():
    ruling = rule(Case(GAIN, JUDGED, kept(activated=0.2)))
    assert Ruling.of(json.loads(json.dumps(ruling.plain()))) == ruling


def test_report_page_card_and_terminal_say_the_same(sparse_adapt, tmp_path, tiny_run, monkeypatch):
    report = json.loads((tiny_run / "report.json").read_text())
    ruling = ruling_of(report)
    assert ruling.plain() == report["ruling"]
    card = (tiny_run / report["final"] / "README.md").read_text()
    page = unescape(write_run_page(tiny_run, tmp_path / "page.html").read_text())
    monkeypatch.setenv("COLUMNS", "400")
    shown = sparse_adapt("run", tiny_run / "run.toml", "-o", tiny_run, "--resume").out
    assert len(ruling.lines) >= 3
    for line in ruling.lines:
        assert line.text in page, line
        assert str(line).translate(MARKDOWN_SIGNS) in card, line
        assert line.text in shown, line
