"""Weights become impacts, or stay floats, and what that costs is counted."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sparse_adapt.errors import ConfigError
from sparse_adapt.plugins.engines.quantise import Quantisation, as_floats
from sparse_adapt.retrieve.vectors.folder import EncodedBatch


def test_impacts_by_hand():
    weights = EncodedBatch(
        ["d"], csr_matrix(np.array([[0.0049, 0.005, 0.0051, 1.115, 2.5, 2.56]], dtype=np.float32))
    )
    result = Quantisation(scale=100, largest=255).impacts(weights)
    # in float32 0.005 is 0.00499999989 and 1.115 is 1.11500001: neither is a tie
    assert result.vectors.toarray().tolist() == [[0, 0, 1, 112, 250, 255]]
    assert (result.dropped, result.clipped) == (2, 1)
    assert Quantisation(scale=100).score(12_500) == 1.25  # 125 x 100 stands for 1.25 x 1.00


@pytest.mark.parametrize(
    ("scale", "largest", "problem"),
    [
        (0, 9, r"scale 0\.0: input should be greater than 0"),
        (float("inf"), 9, "scale inf: input should be a finite number"),
        (1, 0, "largest 0: input should be greater than or equal to 1"),
    ],
)
def test_a_scale_that_means_nothing_is_refused(scale, largest, problem):
    with pytest.raises(ConfigError, match=problem):
        Quantisation.of(scale, largest)


def test_floats_are_clipped_and_counted():
    block = EncodedBatch(
        ["d1", "d2"], csr_matrix(np.array([[0.5, 0, 70_000.0], [0, 0, 0]], dtype=np.float32))
    )
    entries = as_floats(block, 65_504.0)
    assert entries.vectors.toarray().tolist() == [[0.5, 0, 65_504], [0, 0, 0]]
    assert (entries.dropped, entries.clipped) == (0, 1)
    assert as_floats(block).clipped == 0
