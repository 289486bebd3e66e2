"""What a source of made-up texts offers to a stage, whoever tells what the texts mean.

Dimensions: B texts, S sources, D new tokens, V vocabulary, W ordinary words, F features.
"""

from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor


class Samples(NamedTuple):
    """Texts as token ids, and per new token whether the text means it (B, D) or should be silent on it (B, D).

    Where a judge says it by degrees, `nearness` (B, D) tells how far each means it, 0 being the border.
    """

    token_ids: list[list[int]]
    meant: Tensor
    quiet: Tensor
    nearness: Tensor | None = None

    def of(self, rows: NDArray[np.int64]) -> "Samples":
        """Some of these texts, by their rows."""
        places = torch.from_numpy(rows)
        nearness = None if self.nearness is None else self.nearness[places]
        return Samples(
            [self.token_ids[row] for row in rows], self.meant[places], self.quiet[places], nearness
        )

    def beside(self, others: "Samples") -> "Samples":
        """These texts and then others, whose nearness is known where that of these is."""
        nearness = None
        if self.nearness is not None and others.nearness is not None:
            nearness = torch.cat([self.nearness, others.nearness])
        meant, quiet = (torch.cat(both) for both in ((self.meant, others.meant), (self.quiet, others.quiet)))
        return Samples([*self.token_ids, *others.token_ids], meant, quiet, nearness)


class WordFeatures(NamedTuple):
    """Ordinary words as token ids (W), and what tells them apart (W, F)."""

    token_ids: NDArray[np.int64]
    features: NDArray[np.float32]


class MadeUpTexts(Protocol):
    """Texts made from the sources of a stage.

    document_share: (V) share of the sources in which a token has weight; unknown: (S, D) terms that a source may
    mean though nothing says so.
    """

    document_share: NDArray[np.float64]
    unknown: NDArray[np.bool_]

    def draw(self, count: int, random: Generator) -> Samples:
        """`count` texts from anywhere and, where terms are taught, `count` that mean one."""

    def word_features(self) -> WordFeatures | None:
        """What is known of ordinary words; None where no dense encoder has read them."""
