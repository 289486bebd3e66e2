"""The page of a run: what it shows, of whom, and what it says where there is nothing to show."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import refused

from sparse_adapt.collection.readers import Document, Query, write_documents, write_queries
from sparse_adapt.files.marker import faults
from sparse_adapt.plugins.pages.html import written
from sparse_adapt.plugins.pages.run import run_page, write_run_page
from sparse_adapt.plugins.pages.states import heat_of, heat_of_all, weights_at
from sparse_adapt.plugins.pages.subject import read_subject
from sparse_adapt.plugins.pages.terms import ActivatingText, find_terms, terms_section
from sparse_adapt.retrieve.encode import encode

PARTS = ["verdict", "stages", "terms", "queries", "provenance", "reproduction", "words"]


@pytest.fixture(scope="module")
def subject(tiny_run):
    return read_subject(tiny_run)


def test_a_page_has_each_part_the_verdict_first(tmp_path, tiny_run):
    path = write_run_page(tiny_run, tmp_path / "page.html")
    text = path.read_text()
    assert [text.index(f'<section id="{name}"') for name in PARTS] == sorted(
        text.index(f'<section id="{name}"') for name in PARTS
    )
    for said in (
        "nDCG@10",  # gained and lost
        "Loss terms over the steps",
        "Loss terms of warmup",
        "the way in which a team decides what it may spend",  # the definition of the term
        "False activations: background queries that activate it",
        "how a team signs for spending" if "how a team signs" in text else "the plan of what to spend",
        "sparse-adapt run run.toml",
        "SHA-256",
    ):
        assert said in text, said
    assert str(tiny_run.parent) not in text  # no folder of this machine
    assert len(text) < 3_000_000


def test_figures_of_the_verdict_are_those_of_evaluate(subject):
    base, final = subject.results
    page = run_page(subject)
    beside = next(part for part in page.sections[0].parts if part.kind == "beside")
    table = beside.parts[1].table
    assert table.rows[0]["base"] == pytest.approx(base.means()["ndcg@10"])
    assert table.rows[0]["model"] == pytest.approx(final.means()["ndcg@10"])
    assert [row["kind"] for row in table.rows] == ["all queries", "control", "explicit", "semantic"]


def test_weights_at_positions_make_the_weight_of_the_vector(subject):
    model, text = subject.final.model, "who owns zorvex in the team"
    vector = encode(model, [text], "document")
    read = model.tokenize([text])[0]
    for token_id in (model.new_tokens[0].token_id, int(vector.indices[0])):
        assert weights_at(model, read, token_id).max() == pytest.approx(vector[0, token_id], abs=1e-5)


def test_the_warmest_position_is_marked(subject):
    model = subject.final.model
    heat = heat_of(model, "who owns zorvex in the team", model.new_tokens[0].token_id, "t")
    marked = [token for token in heat.tokens if token.marked]
    assert len(marked) <= 1 and all(token.warmth == 1.0 for token in marked)


def test_all_weights_of_a_text_come_from_its_positions(subject):
    model, text = subject.final.model, "the server stores the log"
    heat = heat_of_all(model, text, "t")
    figures = [float(token.figure.split()[0]) for token in heat.tokens if token.figure]
    assert sum(figures) == pytest.approx(encode(model, [text], "document").sum(), rel=0.1)


def parts_of(page, name):
    """The parts of a section, with those in folds."""
    parts = list(next(section for section in page.sections if section.name == name).parts)
    return parts + [inner for part in parts if part.kind == "fold" for inner in part.parts]


def test_nothing_stands_on_a_page_twice(subject):
    page = run_page(subject)
    assert "rows" not in [part.kind for part in parts_of(page, "terms")]  # the one term is told in full
    facts = [name for part in parts_of(page, "terms") if part.kind == "facts" for name, _ in part.pairs]
    assert {"pieces before", "weight where said", "weight where meant", "other documents"} <= set(facts)
    kinds = [part.kind for part in page.sections[0].parts]
    assert kinds[:4] == ["prose", "facts", "facts", "beside"]  # what it costs, with all else that is said
    made = written(page)
    assert made.count(subject.report["written"].replace("T", " ")) == 1
    assert f"sparse-adapt {subject.report['version']}, " not in made


def test_many_terms_have_a_table(subject):
    (found,) = find_terms(subject)
    (table,) = (part for part in terms_section(subject, [found, found]).parts if part.kind == "rows")
    assert [row["term"] for row in table.table.rows] == ["zorvex", "zorvex"]


def test_checksums_are_folded(subject):
    folds = [part for part in parts_of(run_page(subject), "reproduction") if part.kind == "fold"]
    assert [fold.summary for fold in folds] == [
        "What each stage read, with checksums",
        "Every setting (run.toml)",
    ]


def test_how_often_a_document_is_found_is_compared_with_chance(subject):
    table = next(part for part in parts_of(run_page(subject), "queries") if part.kind == "rows").table
    assert "each would have 83.3 %" in table.note  # 10 of 12 documents


def test_bars_of_a_term_have_one_scale(subject):
    (found,) = find_terms(subject)
    found = found._replace(
        meaning=[ActivatingText("a plan", 2.2)], false_activations=[ActivatingText("a saw", 4.4)]
    )
    fold = terms_section(subject, [found]).parts[-1]
    bars = [bar for part in fold.parts if part.kind == "bars" for bar in part.bars]
    assert [(bar.figure, bar.share) for bar in bars] == [("2.20", 0.5), ("4.40", 1.0)]


# -- other runs -----------------------------------------------------------------------------------


def moved(tiny_run, place, corpus):
    """A copy of the run over another corpus."""
    shutil.copytree(tiny_run, place)
    report = json.loads((place / "report.json").read_text())
    changed = {**report, "corpus": str(corpus)}
    if not (Path(corpus) / "qrels").is_dir():
        changed["evidence"] = {**report["evidence"], "rows": []}
        del changed["ruling"]
    (place / "report.json").write_text(json.dumps(changed))
    return place


def test_a_run_without_judgements_says_what_it_cant_tell(tmp_path, tiny_run, twelve_documents):
    write_documents(tmp_path / "corpus.jsonl", twelve_documents)
    run = moved(tiny_run, tmp_path / "run", tmp_path / "corpus.jsonl")
    write_queries(tmp_path / "mine.jsonl", [Query("1", "who owns zorvex")])
    path = write_run_page(run, queries=str(tmp_path / "mine.jsonl"))
    text = path.read_text()
    assert path == run / "report.html"
    assert "there are no judged queries; fifty of your own would tell" in text
    assert "Your queries that activate it" in text or "none of your queries activates it" in text
    assert "who owns zorvex" in text


def test_hostile_texts_stay_texts(tmp_path, tiny_run, zorvex_collection, twelve_documents):
    folder = tmp_path / "hostile"
    shutil.copytree(zorvex_collection, folder)
    hostile = "</script><img src=x onerror=alert(1)>\x1b]52;c;aGk=\x07 \u202ezorvex signs"
    documents = [Document(each.document_id, f"{each.text} {hostile}", hostile) for each in twelve_documents]
    (folder / "corpus.jsonl").unlink()
    write_documents(folder / "corpus.jsonl", documents)
    text = write_run_page(moved(tiny_run, tmp_path / "run", folder), tmp_path / "x.html").read_text()
    assert "<img" not in text and "<script" not in text
    assert "\x1b" not in text and "\u202e" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text


def test_a_page_in_its_run_is_vouched_for(tmp_path, tiny_run):
    run = tmp_path / "run"
    shutil.copytree(tiny_run, run)
    write_run_page(run)
    assert list(faults(run)) == []
    (run / "report.html").write_text("changed")
    assert [fault.path.name for fault in faults(run)] == ["report.html"]


def test_many_terms_are_told_in_part(subject, monkeypatch):
    monkeypatch.setattr("sparse_adapt.plugins.pages.terms.SHOWN", 0)
    page = run_page(subject)
    terms = next(section for section in page.sections if section.name == "terms")
    assert "1 more terms stand in the table alone" in terms.parts[-1].text


def test_documents_that_are_not_judged_are_drawn_evenly(monkeypatch, tiny_run):
    monkeypatch.setattr("sparse_adapt.selection.comparison.JUDGED_DOCUMENTS", 6)
    subject = read_subject(tiny_run)
    assert len(subject.documents) == 6
    assert subject.all_documents == 12
    assert {"d03", "d05", "d06", "d07"} <= {each.document_id for each in subject.documents}  # the judged ones
    assert "looks at 6 of 12 documents" in run_page(subject).lead


# -- mistakes -------------------------------------------------------------------------------------


def test_mistakes(sparse_adapt, tmp_path, monkeypatch, tiny_run, zorvex_collection):
    monkeypatch.chdir(tmp_path)
    assert "no report.json here" in refused(sparse_adapt("report", zorvex_collection))
    assert "no such folder" in refused(sparse_adapt("report", "nowhere"))
    assert "holds no finished run" in refused(sparse_adapt("report"))
    run = moved(tiny_run, tmp_path / "run", "gone.jsonl")
    assert "gone.jsonl" in refused(sparse_adapt("report", run))
    (run / "report.json").write_text('{"final": "4-distill", "corpus": "x", "model": 3, "stages": []}')
    assert "not the report of a run; make the run again" in refused(sparse_adapt("report", run))
    (run / "report.json").write_text("{")
    assert "not the report of a run" in refused(sparse_adapt("report", run))
    (tmp_path / "mine.html").write_text("mine")
    assert "already there" in refused(sparse_adapt("report", tiny_run, "-o", "mine.html"))
    assert "mine.html" in refused(sparse_adapt("report", tiny_run, "-o", "mine.html", "--overwrite"))
    assert (tmp_path / "mine.html").read_text() == "mine"


def test_lit_by_nothing_is_said(subject):
    model = subject.final.model
    read = model.tokenize(["a"])[0]
    inactive = next(
        token for token in range(model.vocabulary_size) if not np.any(weights_at(model, read, token))
    )
    assert heat_of(model, "a", inactive, "t").note.startswith("No position activates")
