"""Each row beside the baseline: the difference, how sure it is, and whether a control was harmed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sparse_adapt.lab.coin.recovery import Interval, interval
from sparse_adapt.retrieve.evaluate import Measured, randomisation_test
from sparse_adapt.suite.settings import Suite


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


def holm(p_values: Sequence[float]) -> list[float]:
    """The same p-values, each as if it were the only one: the chance of any false alarm is bounded.

    The smallest of m times m, the next times m - 1, and so on; never smaller than one before it, at most 1
    (Holm 1979).
    """
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, p_values[index] * (len(p_values) - rank)))
        adjusted[index] = largest
    return adjusted
