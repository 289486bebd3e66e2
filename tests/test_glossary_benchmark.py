"""What a glossary could add to queries, worked out by hand."""

import numpy as np

from benchmarks.glossary import Queries, reciprocal_ranks

SCORES = np.array([[3.0, 1.0, 2.0], [1.0, 2.0, 2.0]])


def test_reciprocal_ranks_end_at_the_tenth():
    assert reciprocal_ranks(SCORES, np.array([2, 0])).tolist() == [1 / 2, 1 / 3]
    eleven = np.arange(11.0)[None]
    assert [reciprocal_ranks(eleven, np.array([row]))[0] for row in (0, 1)] == [0.0, 1 / 10]


def test_a_gain_is_what_other_scores_add():
    asked = Queries(np.ones((2, 1)), SCORES, np.array([2, 0]))
    more = np.array([[0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])  # the first source comes first: +1/2 of two queries
    assert asked.gain("entries matched", 1.0, more).startswith("entries matched, weight 1.0 +25.0 ")
