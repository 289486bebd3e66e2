"""Whether a difference is more than chance: an interval of 95 %; for `evaluate` a test by random signs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

TWO_SIDED = 1.96  # standard errors beyond which 1 chance in 20 lies, on both sides together
ROUNDS = 10_000  # random sign patterns of a test
EXACT = 13  # with up to this many differences all sign patterns are tried: 2 ** 13 is less than ROUNDS
ROUNDS_AT_ONCE = 500


@dataclass(frozen=True, slots=True)
class Interval:
    """A figure and between what it lies at a level of 95 %."""

    value: float
    low: float
    high: float


def interval(values: Values) -> Interval:
    """The mean of values (Q), and 1.96 standard errors to either side.

    Of a single value nothing is known of the error; it counts as the whole range of a measure.
    """
    mean = float(values.mean())
    error = TWO_SIDED * (float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 1.0)
    return Interval(mean, mean - error, mean + error)


def paired(ours: Values, theirs: Values) -> Interval:
    """What one model reaches beyond another on the same queries (Q): a gain above 0, a loss below, else chance."""
    return interval(ours - theirs)


def randomisation_test(differences: Values, generator: np.random.Generator) -> float:
    """The chance that a mean difference is at least this far from 0 if it didn't matter which model is which.

    differences: (pairs,). Two-sided paired randomisation test: under the null hypothesis each difference
    could as well have the other sign. All sign patterns are tried where that is possible, else `ROUNDS`
    random ones, with the observed one among them (Smucker, Allan and Carterette 2007, CIKM; Phipson and
    Smyth 2010). It needs no normal distribution, and models that never differ get 1.
    """
    sizes, counts = np.unique(np.abs(differences[differences != 0]), return_counts=True)
    observed = abs(differences.sum()) - 1e-9 * sizes.sum()  # sums in another order differ in the last bits
    if counts.sum() <= EXACT:
        signs = _sign_patterns(int(counts.sum()))
        return float(np.mean(np.abs(signs @ np.repeat(sizes, counts)) >= observed))
    extreme = 0
    for _ in range(ROUNDS // ROUNDS_AT_ONCE):  # `counts` equal differences turn into a binomial each
        heads = generator.binomial(counts, 0.5, size=(ROUNDS_AT_ONCE, len(counts)))
        extreme += int(np.sum(np.abs((2 * heads - counts) @ sizes) >= observed))
    return (extreme + 1) / (ROUNDS + 1)


def _sign_patterns(length: int) -> Values:
    """Every row of `length` signs: (2 ** length, length)."""
    bits = np.arange(2**length)[:, None] >> np.arange(length) & 1
    return np.where(bits == 1, -1.0, 1.0)


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
