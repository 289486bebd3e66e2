"""What an adaptation's verdict says of what its model keeps."""

import pytest

from sparse_adapt.collection.readers import Document
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.evaluate import read_collection
from sparse_adapt.selection.retention import measure_keeps
from sparse_adapt.selection.rule import keeps_lines


@pytest.fixture
def keeps(tiny_model, zorvex_collection):
    model = SparseEncoder.load(tiny_model)
    return measure_keeps(model, model, read_collection(zorvex_collection).documents)


def test_a_model_beside_itself_keeps_what_it_knew(keeps):
    first, told = keeps_lines(keeps)
    assert first == "keeps what the base model knew"
    assert "0.0% of general questions and 0.0% of background texts activate a new term" in told
    assert keeps_lines({}) == []


@pytest.mark.parametrize(
    ("kind", "measure", "name"),
    [
        ("general", "ndcg@10", "nDCG@10 of general questions"),
        ("general", "recall@100", "their recall@100"),
        ("general, mixed index", "ndcg@10", "nDCG@10 in a mixed index"),
        ("known items", "mrr@10", "MRR@10 of two words of a document"),
    ],
)
def test_any_fall_is_said_first(keeps, kind, measure, name):
    keeps[kind]["difference"][measure] = -0.006
    assert keeps_lines(keeps)[0].startswith(f"FALLS: {name} ")
    keeps[kind]["difference"][measure] = -0.004
    assert keeps_lines(keeps)[0] == "keeps what the base model knew"


def test_strays_are_a_fall(keeps):
    keeps["general"]["model"]["false_activations"] = 0.06
    assert keeps_lines(keeps)[0] == "FALLS: 6% of general questions activate a new term"


def test_documents_without_words_leave_known_items_out(tiny_model):
    model = SparseEncoder.load(tiny_model)
    keeps = measure_keeps(model, model, [Document("a", "1 2 3"), Document("b", "4 5")])
    assert "known items" not in keeps
    assert "two words" not in keeps_lines(keeps)[1]
