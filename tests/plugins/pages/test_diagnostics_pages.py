"""Diagnostics as pages and in notebooks: the same figures as the tables, with pictures, escaped."""

import pytest

from diagnostics.matches import explain
from diagnostics.token import diagnose
from sparse_adapt.collection.readers import Document
from sparse_adapt.model.sparse import SparseEncoder

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def model(tiny_run):
    return SparseEncoder.load(tiny_run / "4-distill")


def test_a_page_of_a_term_has_its_sections_the_state_first(model, twelve_documents):
    report = diagnose("zorvex", model, twelve_documents)
    page = report.page("zorvex", "a lead")
    titles = ("1  Vocabulary", "2  Logits in ", "3  Weight", "4  Ranking", "5  What to do next")
    found = [page.index(f'-title">{title}') for title in titles]
    assert found == sorted(found) and page.index("zorvex  ") < found[0]
    assert 'role="img"' in page and "Logits of zorvex by position" in page
    assert f"{report.weights[0]['encoder_weight']:.4f}" in page
    assert "sparse-adapt" in page


def test_a_page_of_a_query_has_each_contribution(model, twelve_documents):
    report = explain("who owns zorvex", model, twelve_documents, top=3)
    page = report.page("who owns zorvex")
    for match in report.matches:
        assert f"{match.score:.3f}" in page and match.document_id in page
        for part in match.contributions[:8]:
            assert f"{part.contribution:.3f} = {part.query_weight:.3f} x {part.document_weight:.3f}" in page


def test_a_notebook_shows_the_same(model, twelve_documents):
    for report in (diagnose("zorvex", model, twelve_documents), explain("zorvex", model, twelve_documents)):
        shown = report._repr_html_()
        assert 'class="sparse-adapt inside"' in shown and "<html" not in shown
        assert "zorvex" in shown


def test_texts_stay_texts(model):
    documents = [Document(HOSTILE, f"zorvex {HOSTILE}", HOSTILE)]
    for report in (diagnose("zorvex", model, documents), explain(f"zorvex {HOSTILE}", model, documents)):
        for text in (report.page(HOSTILE, HOSTILE), report._repr_html_()):
            assert "<script" not in text and "&lt;script&gt;" in text


def test_pages_are_written_when_asked(sparse_adapt, tmp_path, tiny_run, zorvex_collection):
    files = ["--model", tiny_run / "4-distill", "--corpus", zorvex_collection]
    assert sparse_adapt("diagnose", "zorvex", *files, "--html", tmp_path / "term.html").status == 0
    assert sparse_adapt("explain", "who owns zorvex", *files, "--html", tmp_path / "query.html").status == 0
    compared = [
        "--model",
        tiny_run / "4-distill",
        "--collection",
        zorvex_collection,
        "--baseline",
        tiny_run / "1-extend",
    ]
    assert sparse_adapt("evaluate", *compared, "--html", tmp_path / "both.html").status == 0
    assert "Logits" in (tmp_path / "term.html").read_text()
    assert "Query tokens" in (tmp_path / "query.html").read_text()
    both = (tmp_path / "both.html").read_text()
    assert "Difference of nDCG@10" in both and "Queries that won and lost most" in both
    again = sparse_adapt("explain", "who owns zorvex", *files, "--html", tmp_path / "query.html")
    assert again.status == 0  # a page of ours is replaced
