"""How near a text is to what is about a term, by vectors small enough to reckon by hand."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.synthetic.labels import Labeller

VECTORS = {
    "own": (1.0, 0.0),
    "also own": (0.6, 0.8),
    "other": (0.0, 1.0),
    "question": (0.8, 0.6),
}


class Table:
    """An encoder of four texts."""

    def encode(self, texts: Sequence[str], progress: object = None) -> NDArray[np.float32]:
        return np.array([VECTORS[text] for text in texts], dtype=np.float32).reshape(len(texts), 2)


def labeller(sources: list[str], *about: list[bool]) -> Labeller:
    return Labeller(Table(), sources, np.array(about, dtype=bool).T.reshape(len(sources), len(about)))


def test_similarity_margin_by_hand():
    asked = labeller(["own", "other"], [True, False], [False, True]).similarity_margin(["question", "other"])
    # question: cosines .8 and .6, so .8 - .6 and .6 - .8; other: cosines 0 and 1
    np.testing.assert_allclose(asked, [[0.2, -0.2], [-1.0, 1.0]], atol=1e-6)


def test_the_nearest_few_count_as_many_on_either_side():
    asked = labeller(["own", "also own", "other"], [True, True, False]).similarity_margin(["question"])
    # .8 and .8 x .6 + .6 x .8 = .96, so .88 in the mean; the only other one .6
    np.testing.assert_allclose(asked, [[0.88 - 0.6]], atol=1e-6)
    asked = labeller(["own", "also own", "other"], [True, False, False]).similarity_margin(["question"])
    np.testing.assert_allclose(asked, [[0.8 - 0.96]], atol=1e-6)  # of one source the nearest other one alone


def test_nothing_means_a_term_that_no_source_is_about():
    assert labeller(["own", "other"], [False, False]).similarity_margin(["own"]).tolist() == [[-1.0]]


def test_where_every_source_is_about_a_term_there_is_nothing_to_be_nearer_to():
    np.testing.assert_allclose(
        labeller(["own", "also own"], [True, True]).similarity_margin(["question"]), [[0.88]], atol=1e-6
    )


def test_what_is_no_nearer_than_background_texts_means_nothing():
    background = np.array([(0.0, 1.0), (0.28, 0.96), (0.6, 0.8), (0.8, 0.6), (1.0, 0.0)], dtype=np.float32)
    about = np.array([[True], [False]])
    asked = Labeller(Table(), ["own", "other"], about, background).similarity_margin(
        ["own", "question", "also own"]
    )
    # 85 in 100 background texts are at .88 from own or farther; other is at 0, at .6 and at .8
    np.testing.assert_allclose(asked[:, 0], [1.0 - 0.88, 0.8 - 0.88, 0.6 - 0.88], atol=1e-6)
    two = Labeller(Table(), ["own", "other"], np.eye(2, dtype=bool), background).similarity_margin(
        ["own", "other"]
    )
    # of two terms 92.5 % of background texts are too far from each: .7 of the way from .8 to 1, and from .96 to 1
    np.testing.assert_allclose(two, [[1.0 - 0.94, 0.0 - 1.0], [0.0 - 1.0, 1.0 - 0.988]], atol=1e-6)
    nothing = Labeller(Table(), ["own", "other"], about, background[:0]).similarity_margin(["own"])
    np.testing.assert_allclose(nothing, [[1.0]], atol=1e-6)


def test_no_text_and_no_term():
    assert labeller(["own", "other"], [True, False]).similarity_margin([]).shape == (0, 1)
    assert labeller(["own", "other"]).similarity_margin(["question"]).shape == (1, 0)


def test_many_terms_agree_with_one_at_a_time():
    random = np.random.default_rng(0)
    vectors = random.normal(size=(60, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    about = random.random((40, 7)) < 0.2
    assert (about.sum(axis=0) >= 3).all()

    class Rows:
        def encode(self, texts: Sequence[str], progress: object = None) -> NDArray[np.float32]:
            return vectors[[int(text) for text in texts]]

    found = Labeller(Rows(), [str(row) for row in range(40)], about).similarity_margin(
        [str(row) for row in range(40, 60)]
    )
    cosines = vectors[40:] @ vectors[:40].T
    for term in range(7):
        own = about[:, term]
        nearest, others = (np.sort(cosines[:, rows], axis=1)[:, -3:].mean(1) for rows in (own, ~own))
        np.testing.assert_allclose(found[:, term], nearest - others, atol=1e-6)


def test_a_source_as_close_as_the_terms_own_is_alike():
    found = labeller(["own", "also own", "question", "other"], [True, True, False, False]).alike()
    # the two are .6 alike; question is (.8 + .96) / 2 = .88 like them, other (0 + .8) / 2 = .4
    assert found[:, 0].tolist() == [False, False, True, False]


@pytest.mark.slow
def test_the_dense_model_finds_what_a_plain_question_means():
    sources = [
        "The practice of steering an organisation's spending through approvals and forecasts.",
        "A nightly job copies the database to a second server.",
    ]
    asked = Labeller(DenseEncoder(), sources, np.array([[True], [False]])).similarity_margin(
        ["who has to agree before we buy something", "how do I restore a table from yesterday"]
    )
    assert asked[0, 0] > 0 > asked[1, 0]
