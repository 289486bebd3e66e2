"""A document's own words find it: drawn from it alone, and counted by its own rank."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from benchmarks.known_items import _asked, reciprocal_ranks

TEXT = "The valve of the pump is checked by the nurse, and by another nurse before the drip is started on the ward."


def test_own_rank_counts_the_first_of_those_that_score_alike():
    documents = csr_matrix([[1.0, 0.0], [2.0, 1.0], [0.0, 1.0], *[[3.0, 0.0]] * 9])
    queries = csr_matrix([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    found = reciprocal_ranks(queries, documents, np.array([1, 1, 2, 0]))
    assert found.tolist() == pytest.approx([0.1, 1.0, 1.0, 0.0])


def test_words_are_those_of_the_document_and_tell_it_from_others():
    two, four, six, twelve = _asked(TEXT, np.random.default_rng(0))
    plain = TEXT.lower().replace(",", "").rstrip(".")
    assert six in plain
    assert twelve in plain
    assert (len(two.split()), len(four.split()), len(six.split()), len(twelve.split())) == (2, 4, 6, 12)
    assert len(set(four.split())) == 4
    assert set(two.split()) | set(four.split()) <= set(plain.split()) - {"the", "of", "is", "by", "and", "on"}
    assert _asked("One valve.", np.random.default_rng(0)) == ["valve", "valve", "one valve", "one valve"]
