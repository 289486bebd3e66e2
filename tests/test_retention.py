"""What a model keeps: general questions, false activations, the mixed index, known items; by hand and on the small
model.
"""

import math

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.activity import new_terms
from sparse_adapt.retrieve.evaluate import Collection, read_collection
from sparse_adapt.selection.questions import general_collection
from sparse_adapt.selection.retention import (
    EncodedCollection,
    active,
    encode_collection,
    evaluate_with_retention,
    known_of,
    retention_figures,
    retention_of,
    say_new,
    with_p_values,
)


def vectors(*rows):
    return csr_matrix(np.array(rows, np.float32))


DOMAIN = EncodedCollection(
    Collection((Document("1", "x"),), (Query("q", "x", "semantic"),), {"q": {"1": 1}}),
    vectors([0, 0, 1]),
    vectors([2, 0, 1]),
)
GENERAL = EncodedCollection(
    Collection(
        (Document("1", "a"), Document("2", "b")),
        (Query("q", "a"), Query("r", "b")),
        {"q": {"1": 1}, "r": {"2": 1}},
    ),
    vectors([1, 0, 1], [0, 1, 0]),
    vectors([1, 0, 0], [0, 1, 0]),
)


def test_a_mixed_index_by_hand(tiny_model):
    groups = retention_of(SparseEncoder.load(tiny_model), DOMAIN, GENERAL, None, [[2]])
    assert groups["general"]["ndcg@10"].tolist() == [1.0, 1.0]
    assert groups["general"]["false_activations"].tolist() == [
        1.0,
        0.0,
    ]  # the first question has weight for token 2
    mixed = groups["general, mixed index"]
    # the domain's document scores 2 + 1 for the first question, the right one 1: second place
    assert mixed["ndcg@10"].tolist() == pytest.approx([1 / math.log2(3), 1.0])
    assert mixed["domain enters"].tolist() == [1.0, 0.0]
    assert groups["semantic, mixed index"]["ndcg@10"].tolist() == [1.0]


def test_a_term_of_several_tokens_is_lit_by_all_of_them():
    queries = vectors([1, 1, 0], [1, 0, 1], [0, 0, 0])
    assert active(queries, [[0, 1]]).tolist() == [1.0, 0.0, 0.0]
    assert active(queries, [[0, 1], [2]]).tolist() == [1.0, 1.0, 0.0]
    assert active(queries, []).tolist() == [0.0] * 3


def test_known_items_are_asked_of_documents_that_say_no_new_term(tiny_model, zorvex_collection):
    documents = read_collection(zorvex_collection).documents
    saying = np.array([document.document_id != "d03" for document in documents])
    known = known_of(documents, saying)
    assert known is not None
    assert {name for judged in known.judgements.values() for name in judged} == {"d03"}
    assert known_of(documents, np.ones(len(documents), np.bool_)) is None
    assert not say_new([SparseEncoder.load(tiny_model)], documents).any()  # it has no new token


def test_a_model_beside_itself_keeps_everything(tiny_model, zorvex_collection):
    model, domain = SparseEncoder.load(tiny_model), read_collection(zorvex_collection)
    heard: list[int] = []
    general = general_collection(most=9)
    pair = list(evaluate_with_retention([model, model], domain, general, [heard.append] * 2))
    (result, ours), (_, theirs) = pair
    told = retention_figures(ours, theirs, questions=general.queries)
    assert set(told) == {
        "general",
        "general, mixed index",
        *(f"{kind}, mixed index" for kind in result.kinds),
        "known items",
    }
    for figures in told.values():
        assert set(figures["difference"].values()) == {0.0}
        if figures["queries"] > 1:  # of a single one nothing is known of the error
            assert {*figures["low"].values(), *figures["high"].values()} == {0.0}
    adjusted = [
        value for each in with_p_values(told, ours, theirs).values() for value in each["adjusted"].values()
    ]
    assert set(adjusted) == {1.0}
    assert sum(heard) == 2 * (len(domain.documents) + len(domain.queries) + len(general.documents) + 9)
    several = [row for row in told["general"]["rows"] if row["questions"] > 1]
    assert {(row["low"], row["high"]) for row in several} == {(0.0, 0.0)}
    alone = retention_figures(ours)
    assert alone["general"]["model"] == told["general"]["model"]
    assert new_terms(model) == []
    assert encode_collection(model, domain).documents.shape[0] == len(domain.documents)
