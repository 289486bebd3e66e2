"""The ruling on an adapted model: by hand-made evidence, and in the same words wherever a run is shown."""

import json
from html import unescape

import pytest

import sparse_adapt as sa
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.report import ruling_of
from sparse_adapt.pipeline.words import WordOptions, add_exact_words
from sparse_adapt.report.tables import MARKDOWN_SIGNS
from sparse_adapt.selection import comparison
from sparse_adapt.selection.comparison import JudgedDocuments, judged_evidence
from sparse_adapt.selection.evidence import GENERAL, KNOWN_ITEMS, Evidence
from sparse_adapt.selection.ruling import Case, Ruling, rule

JUDGED = "the judged queries of the split 'test'"


def gain(kind, low, high, queries=40):
    return Evidence(kind, queries, 0.5, 0.5 + (low + high) / 2, low, high)


def kept(low=-0.004, high=0.002, *others):
    """What is left of the base model's knowledge: general questions whose change lies between two bounds."""
    change = (low + high) / 2
    return [Evidence(GENERAL.title, 900, 0.82, 0.82 + change, low, high), *others]


def known_items(change, high):
    return Evidence(KNOWN_ITEMS.title, 300, 0.9, 0.9 + change, 2 * change - high, high)


GAIN = [gain("all queries", 0.1, 0.2), gain("control", -0.02, 0.02)]


@pytest.mark.parametrize(
    ("gains", "retained", "verdict"),
    [
        ([], kept(), "judge first"),
        ([gain("all queries", 0.3, 0.5, queries=19)], kept(), "judge first"),
        ([gain("all queries", -0.05, 0.15)], kept(), "judge first"),  # wide, and on the right side
        ([gain("all queries", -0.15, 0.05)], kept(), "keep the base model"),
        ([gain("all queries", -0.004, 0.004)], kept(), "keep the base model"),
        (GAIN, kept(), "use"),
        (GAIN, [], "use"),  # nobody asked general questions
        ([GAIN[0], gain("control", -0.2, -0.1)], kept(), "use with care"),
        (
            [GAIN[0], gain("control", -0.008, -0.001)],
            kept(),
            "use",
        ),  # beyond chance, and less than half a point
        ([GAIN[0], gain("control", -0.3, 0.2)], kept(), "use"),  # wide
        (GAIN, kept(-0.02, -0.001), "use with care"),
        (GAIN, kept(-0.02, 0.001), "use"),  # at most two points, which chance explains
        (GAIN, kept(-0.006, -0.001), "use"),
    ],
)
def test_a_verdict(gains, retained, verdict):
    assert rule(Case(gains, JUDGED, retained)).verdict == verdict


@pytest.mark.parametrize(("activated", "verdict"), [(0.05, "use"), (0.051, "use in its domain")])
def test_terms_that_general_questions_activate_keep_a_model_in_its_domain(activated, verdict):
    assert rule(Case(GAIN, JUDGED, kept(), activated)).verdict == verdict


def said(case, about):
    return next((line for line in rule(case).lines if line.about == about), None)


def test_a_ruling_is_five_lines_at_the_most_by_hand():
    retained = kept(-0.006, 0.006, known_items(-0.03, -0.01))
    gains = [gain("all queries", 0.06, 0.18), gain("semantic", 0.2, 0.6)]
    ruling = rule(Case(gains, JUDGED, retained, 0.107, weights=(198.2, 193.4)))
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
    line = said(Case(GAIN, JUDGED, kept(-0.004, 0.002, known_items(change, high))), "lost")
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
        (Case(GAIN, JUDGED, kept(), among="6 of 9 documents"), "a part is easier to search than the whole"),
    ],
)
def test_what_to_beware_of(case, words):
    assert words in said(case, "beware").text


def test_nothing_to_beware_of_is_no_line():
    assert said(Case(GAIN, JUDGED, kept()), "beware") is None


REFUSED = "no gain beyond chance: synthetic queries +0.1 ± 1.0 points"
TRIED = [
    {"name": "base", "nonzero_document": 150.2, "ndcg@10": 0.5},
    {"name": "rank", "nonzero_document": 127.6, "ndcg@10": 0.6},
]


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"kept": 0, "best": 1, "refused": REFUSED}, None),
        ({"kept": 1}, "selected: rank"),
        (
            {"kept": 1, "evidence": [gain("synthetic queries", 0.01, 0.03)._asdict()]},
            "selected: rank; without a label: synthetic queries +2.0 ± 1.0 points",
        ),
        (
            {"kept": 0, "may_forget": True},
            "selected: no model with new words, for each may lose too much on general questions; rank ranks better, "
            "but may lose more than 0.5 points on general questions or a kind of them",
        ),
        (
            {
                "kept": 1,
                "evidence": [gain("definitions in other words", 0.1, 0.3)._asdict()],
                "meaning": {"active": 0.9},
            },
            "selected: rank; without a label: definitions in other words +20.0 ± 10.0 points; "
            "90% of definitions in other words activate their term first",
        ),
    ],
)
def test_why_a_model_was_selected_is_one_line(choice, words):
    tried = [TRIED[0], {**TRIED[1], "may_forget": choice.pop("may_forget", False)}]
    line = said(Case(GAIN, JUDGED, choice={"tried": tried, **choice}), "selected")
    assert (line if words is None else str(line)) == words


def test_a_base_model_that_is_kept_says_why():
    ruling = rule(Case(GAIN, JUDGED, choice={"kept": 0, "best": 1, "tried": TRIED, "refused": REFUSED}))
    assert ruling.verdict == "keep the base model"
    (line,) = ruling.lines
    assert str(line) == f"The base model is kept, as it was: rank shows {REFUSED}."


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
    choice = {"kept": kept, "best": 1, "tried": TRIED, "refused": None if kept else REFUSED}
    adapted = {"choice": choice, "retention": {}, "frozen": frozen, "documents_with_a_new_term": 7}
    rows = [each._asdict() for each in GAIN]
    ruling = ruling_of({"adapt": adapted, "evidence": {"judged by": JUDGED, "rows": rows}})
    assert any(str(line).startswith(last) for line in ruling.lines)


def test_a_ruling_survives_json():
    ruling = rule(Case(GAIN, JUDGED, kept(), 0.2))
    assert Ruling.of(json.loads(json.dumps(ruling.plain()))) == ruling


def test_the_gain_of_a_run_is_what_evaluate_says(tiny_model, zorvex_collection, tmp_path, monkeypatch):
    """Of all documents and queries, and where there are too many of them the line says of which part."""
    base, model = (SparseEncoder.load(str(tiny_model)) for _ in range(2))
    documents = list(read_documents(zorvex_collection))
    add_exact_words(model, lambda: documents, WordOptions(language="none"))
    model.save(tmp_path / "model")
    found = sa.evaluate(tmp_path / "model", str(zorvex_collection), baseline=tiny_model, device="cpu")
    evidence = judged_evidence(base, model, JudgedDocuments.of(str(zorvex_collection), tmp_path))
    whole = evidence["rows"][0]
    assert "among" not in evidence
    assert (whole["queries"], whole["base"], whole["model"]) == (
        found.figures["count"]["queries"],
        pytest.approx(found.baseline["ndcg@10"]),
        pytest.approx(found.measures["ndcg@10"]),
    )
    monkeypatch.setattr(comparison, "JUDGED_DOCUMENTS", 6)
    monkeypatch.setattr(comparison, "JUDGED", 2)
    part = judged_evidence(base, model, JudgedDocuments.of(str(zorvex_collection), tmp_path))
    assert part["among"] == f"6 of {len(documents)} documents and 2 of {whole['queries']} queries"
    line = next(each for each in ruling_of({"evidence": part}).lines if each.about == "gained")
    assert f"on 2 judged queries (among {part['among']}), between" in line.text


@pytest.mark.plugins("pages")
def test_report_page_card_and_terminal_say_the_same(sparse_adapt, tmp_path, tiny_run, monkeypatch):
    from sparse_adapt.plugins.pages.run import write_run_page

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
