"""What is left of the base model's knowledge, as evidence of a verdict."""

import pytest

from sparse_adapt.collection.readers import Document
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.evaluate import read_collection
from sparse_adapt.selection.evidence import KNOWN_ITEMS, retained_in
from sparse_adapt.selection.retention import measure_retention
from sparse_adapt.selection.ruling import Case, at_most, rule


@pytest.fixture
def retention(tiny_model, zorvex_collection):
    model = SparseEncoder.load(tiny_model)
    return measure_retention(model, model, read_collection(zorvex_collection).documents)


def test_a_model_beside_itself_loses_nothing_at_most(retention):
    whole, *_ = retained_in(retention)
    assert at_most(whole).startswith("nothing of nDCG@10 on 30 general questions, at 95 % (0.")
    assert {row.gain for row in retained_in(retention)} == {0.0}
    assert retained_in({}) == []


@pytest.mark.parametrize(
    ("kind", "measure", "name"),
    [
        ("general", "recall@100", "their recall@100"),
        ("general, mixed index", "ndcg@10", "nDCG@10 in a mixed index"),
        ("known items", "mrr@10", "MRR@10 of two words of a document"),
    ],
)
def test_any_fall_beyond_chance_and_half_a_point_is_said(retention, kind, measure, name):
    figures = retention[kind]
    for loss, high, falls in ((0.006, -0.001, True), (0.004, -0.001, False), (0.006, 0.001, False)):
        figures["model"][measure], figures["high"][measure] = figures["baseline"][measure] - loss, high
        lines = rule(Case(retained=retained_in(retention))).lines
        line = next(line for line in lines if line.about == "lost")
        assert (name in line.text) == falls and (line.tone == "bad") == falls


def test_documents_without_words_leave_known_items_out(tiny_model):
    model = SparseEncoder.load(tiny_model)
    retention = measure_retention(model, model, [Document("a", "1 2 3"), Document("b", "4 5")])
    assert "known items" not in retention
    assert KNOWN_ITEMS.title not in [row.kind for row in retained_in(retention)]
