"""The coordinates in which rows are fitted to hidden states, and the way back to plain rows and biases.

A row learns slowly along directions in which states vary little, and a dense encoder's states vary along few. In the
coordinates of a fit the variance is 1 along any direction (whitening), or along the widest one alone; rows are taken
there and back so that every logit stays what it was.

Dimensions: N states, D rows, H width of the states.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

MEASURED_ON = 100_000  # states, at most, that tell mean and variance


@dataclass(frozen=True, slots=True)
class Coordinates:
    """mean: (H); spread: standard deviations (H) along the columns of `axes` (H, H), or one for any direction."""

    mean: Tensor
    spread: Tensor
    axes: Tensor | None = None

    def of_states(self, states: Tensor) -> Tensor:
        """States (N, H) in these coordinates."""
        moved = states - self.mean
        return (moved if self.axes is None else moved @ self.axes) / self.spread

    def of_rows(self, rows: Tensor) -> Tensor:
        """Plain rows (D, H) in these coordinates."""
        return (rows if self.axes is None else rows @ self.axes) * self.spread

    def plain_rows(self, rows: Tensor) -> Tensor:
        """Rows (D, H) of these coordinates as plain ones."""
        plain = rows / self.spread
        return plain if self.axes is None else plain @ self.axes.T

    def at_mean(self, rows: Tensor) -> Tensor:
        """The logits (D) that rows of these coordinates have at the mean, by which biases differ from plain ones."""
        return rows @ self.mean / self.spread if self.axes is None else self.plain_rows(rows) @ self.mean


def coordinates(states: Tensor, *, centred: bool, floor: float) -> Coordinates:
    """Coordinates in which states (N, H) have variance 1, and mean 0 if wanted.

    floor: variance of a direction, as a share of the largest, from which on it becomes 1; narrower ones stay below it.
    """
    some = states[:: 1 + len(states) // MEASURED_ON]
    mean = some.mean(dim=0) * float(centred)
    covariance = torch.cov((some - mean).T)
    if floor >= 1.0:
        return Coordinates(mean, torch.linalg.eigvalsh(covariance)[-1].sqrt())
    variances, axes = torch.linalg.eigh(covariance)
    return Coordinates(mean, variances.clamp_min(floor * variances[-1]).sqrt(), axes)
