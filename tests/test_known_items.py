"""A document's own words find it: drawn from it alone, and it alone is relevant to them."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document
from sparse_adapt.retrieve.evaluate import evaluate_vectors
from sparse_adapt.selection.retention import KINDS, TWO_WORDS, _queries_from, known_items

TEXT = "The valve of the pump is checked by the nurse, and by another nurse before the drip is started on the ward."


def test_own_rank_counts():
    vectors = csr_matrix(np.array([[1.0, 0.0], [2.0, 1.0], [0.0, 2.0], *[[3.0, 0.0]] * 9], np.float32))
    documents = tuple(Document(str(row), TEXT) for row in range(vectors.shape[0]))
    known = known_items(documents, np.array([0, 1, 2]), seed=0)
    asked = np.repeat(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], np.float32), len(KINDS), axis=0)
    found = evaluate_vectors(csr_matrix(asked), vectors, known).values["mrr@10"]
    assert found.reshape(3, len(KINDS)).tolist() == [
        pytest.approx([mean] * len(KINDS)) for mean in (0.0, 0.1, 1.0)
    ]


def test_queries_of_each_kind_are_asked_of_the_rows_alone():
    documents = (Document("a", TEXT), Document("b", "One valve."), Document("c", TEXT))
    known = known_items(documents, np.array([1, 2]), seed=0)
    assert [query.kind for query in known.queries] == [*KINDS, *KINDS]
    assert list(known.judgements.values()) == [{"b": 1}] * 4 + [{"c": 1}] * 4
    assert [query.text for query in known.queries[:4]] == ["valve", "valve", "one valve", "one valve"]


def test_words_are_those_of_the_document_and_tell_it_from_others():
    two, four, six, twelve = _queries_from(TEXT, np.random.default_rng(0))
    plain = TEXT.lower().replace(",", "").rstrip(".")
    assert six in plain
    assert twelve in plain
    assert (len(two.split()), len(four.split()), len(six.split()), len(twelve.split())) == (2, 4, 6, 12)
    assert len(set(four.split())) == 4
    assert set(two.split()) | set(four.split()) <= set(plain.split()) - {"the", "of", "is", "by", "and", "on"}
    assert _queries_from("One valve.", np.random.default_rng(0)) == [
        "valve",
        "valve",
        "one valve",
        "one valve",
    ]


def test_a_document_without_telling_words_is_left_out():
    documents = (Document("a", "it is the one"), Document("b", TEXT), Document("c", "42"))
    known = known_items(documents, np.arange(3), 0, [TWO_WORDS])
    assert {name for judged in known.judgements.values() for name in judged} == {"b"}


def test_words_are_drawn_again_for_as_many_queries():
    known = known_items((Document("a", TEXT),), np.array([0]), 0, [TWO_WORDS], draws=3)
    assert [query.kind for query in known.queries] == [TWO_WORDS] * 3
    assert len({query.text for query in known.queries}) > 1
    assert list(known.judgements.values()) == [{"a": 1}] * 3
