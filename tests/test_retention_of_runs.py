"""What an adaptation's verdict says of what its model keeps."""

import pytest

from sparse_adapt.collection.readers import Document
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.evaluate import read_collection
from sparse_adapt.selection.retention import measure_retention
from sparse_adapt.selection.rule import retention_lines


@pytest.fixture
def retention(tiny_model, zorvex_collection):
    model = SparseEncoder.load(tiny_model)
    return measure_retention(model, model, read_collection(zorvex_collection).documents)


def test_a_model_beside_itself_loses_nothing_at_most(retention):
    first, by_kind, told = retention_lines(retention)
    assert (
        first
        == "loses at most 0.0 points of nDCG@10 on 30 general questions (forum, search and wiki), at 95 %"
    )
    assert (
        by_kind.startswith("nDCG@10 by kind: forum 0.")
        and "0.0% of general questions and 0.0% of background texts activate a new term" in told
    )
    assert retention_lines({}) == []


@pytest.mark.parametrize(
    ("kind", "measure", "name"),
    [
        ("general", "ndcg@10", "nDCG@10 of general questions"),
        ("general", "recall@100", "their recall@100"),
        ("general, mixed index", "ndcg@10", "nDCG@10 in a mixed index"),
        ("known items", "mrr@10", "MRR@10 of two words of a document"),
    ],
)
def test_any_fall_is_said_first(retention, kind, measure, name):
    figures = retention[kind]
    for loss, high, falls in ((0.006, -0.001, True), (0.004, -0.001, False), (0.006, 0.001, False)):
        figures["model"][measure], figures["high"][measure] = figures["baseline"][measure] - loss, high
        first = retention_lines(retention)[0]
        assert first.startswith(f"FALLS: {name} " if falls else "loses at most")


def test_strays_are_a_fall(retention):
    retention["general"]["model"]["false_activations"] = 0.06
    assert retention_lines(retention)[0] == "FALLS: 6% of general questions activate a new term"


def test_documents_without_words_leave_known_items_out(tiny_model):
    model = SparseEncoder.load(tiny_model)
    retention = measure_retention(model, model, [Document("a", "1 2 3"), Document("b", "4 5")])
    assert "known items" not in retention
    assert "two words" not in retention_lines(retention)[-1]
