"""What each word says for a term: a ridge regression over all texts, which knows a word by its company."""

import numpy as np
import pytest

from sparse_adapt.synthetic import labels as module
from sparse_adapt.synthetic.labels import RIDGE, word_scores

WORDS = np.array([7, 3, 5, 9])
PAY, COST, DOG, NEVER = range(4)
TEXTS = [[1, 7, 3, 2], [1, 7, 5, 2], [1, 5, 2], [1, 3, 3, 2], [1, 2], [1, 5, 7, 3, 2]]
NEARNESS = np.array([[0.1], [0.0], [-0.2], [0.05], [-0.1], [0.02]], np.float32)


def test_scores_are_those_of_a_ridge_regression():
    counts = np.array([[(np.array(text) == word).sum() for word in WORDS] for text in TEXTS], float)
    rows = counts / np.sqrt(counts.sum(axis=1, keepdims=True).clip(1.0))
    wanted = NEARNESS - NEARNESS.mean(axis=0)
    exact = np.linalg.solve(rows.T @ rows + RIDGE * np.eye(4), rows.T @ wanted)
    scores = word_scores(TEXTS, WORDS, NEARNESS)
    assert scores == pytest.approx(exact / np.sqrt((exact**2).sum(axis=1).mean()), abs=1e-3)
    assert scores[PAY] > scores[COST] > 0.0 > scores[DOG]
    assert scores[NEVER] == 0.0


def test_what_is_sure_is_no_surer_the_further_it_is():
    further = np.where(NEARNESS <= -0.2, -2.0, NEARNESS)
    assert word_scores(TEXTS, WORDS, further) == pytest.approx(word_scores(TEXTS, WORDS, NEARNESS))


def test_many_terms_are_told_apart_in_their_main_directions(monkeypatch):
    monkeypatch.setattr(module, "MOST", 2)
    two = np.concatenate([NEARNESS, NEARNESS[::-1]], axis=1)
    scores = word_scores(TEXTS, WORDS, two @ np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0]], np.float32))
    assert scores.shape == (4, 2)
    told = np.linalg.lstsq(scores, word_scores(TEXTS, WORDS, NEARNESS), rcond=None)
    assert told[1] == pytest.approx(0.0, abs=1e-3)  # the residual: nothing of the first is lost


def test_texts_without_a_word_or_a_difference_say_nothing():
    assert not word_scores([[1, 2], [2]], WORDS, NEARNESS[:2]).any()
    assert not word_scores(TEXTS, WORDS, np.full((6, 1), -1.0, np.float32)).any()
