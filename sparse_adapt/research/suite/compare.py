"""Each row beside the baseline: the difference, how sure it is, and whether a control was harmed."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from sparse_adapt.research.suite.settings import Suite
from sparse_adapt.retrieve.evaluate import Measured
from sparse_adapt.retrieve.significance import Interval, holm, interval, randomisation_test


class BaselineDifference(NamedTuple):
    """A row's measure less the baseline's on one collection.

    `p_value` comes from the paired randomisation test, `adjusted` is that after Holm's correction over all
    tests of the suite. `holds` says of a control whether it lost no more than it may; None elsewhere.
    """

    row: str
    collection: str
    value: Interval
    p_value: float
    adjusted: float
    holds: bool | None


def differences(suite: Suite, measured: Mapping[tuple[str, str], Measured]) -> Iterator[BaselineDifference]:
    """Every row but the baseline, on every collection."""
    top = suite.top
    pairs = [(row, name) for name in suite.collections for row in suite.rows if row != top.baseline]
    gaps = [
        measured[row, name].values[top.measure] - measured[top.baseline, name].values[top.measure]
        for row, name in pairs
    ]
    p_values = [randomisation_test(gap, np.random.default_rng(top.seed)) for gap in gaps]
    for (row, name), gap, p_value, adjusted in zip(pairs, gaps, p_values, holm(p_values), strict=True):
        place = suite.collections[name]
        holds = bool(gap.mean() >= -place.loses_at_most) if place.control else None
        yield BaselineDifference(row, name, interval(gap, seed=top.seed), p_value, adjusted, holds)
