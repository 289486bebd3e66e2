"""What a match on each token counts, learnt beside the model: its idf at first, then what a teacher's scores say.

A weight is log(1 + relu(logit)), so no layer can make one token's matches count twice as much as another's
wherever they are; a factor outside the logarithm can. Dimensions: N documents, V vocabulary.
"""

from collections.abc import Callable

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor, nn

from sparse_adapt.model.idf import Shares, TokenScales, fourth_root
from sparse_adapt.model.sparse import SparseEncoder


class LearntScales(nn.Module):
    """Token scales that learn at a rate of their own, as logarithms, so that none becomes negative."""

    def __init__(self, start: TokenScales, learning_rate: float) -> None:
        """`start` (V): what a weight of each token is multiplied with before the first step.

        At a rate of 0 they have no gradient either, so that other gradients are clipped by their own length.
        """
        super().__init__()
        self.learning_rate = learning_rate
        self.start = torch.from_numpy(start.copy())
        self.gain = nn.Parameter(torch.zeros(len(start)), requires_grad=learning_rate > 0)

    def forward(self, weights: Tensor) -> Tensor:
        """Weights (B, V) times the factors of their tokens."""
        start = self.start.to(weights.device)
        scaled: Tensor = weights.float() * (start * self.gain.exp())
        return scaled

    @property
    def values(self) -> TokenScales:
        """The token scales as they are now: (V)."""
        scales: TokenScales = (self.start * self.gain.detach().cpu().exp()).numpy().astype(np.float32)
        return scales


def first_scales(
    encoder: SparseEncoder, documents: Callable[[], csr_matrix], background: Callable[[int], Shares] | None
) -> TokenScales:
    """What a stage begins with (V): the encoder's own token scales or, where it has none, by the idf in documents.

    A table for queries says by itself how much a token tells, so that token scales begin at 1 beside one.
    `documents`: their weights (N, V), asked for only where they are needed.
    `background`: how often texts of general language give each of so many tokens weight, where that is known.
    """
    if encoder.token_scales is not None or encoder.query_side is not None:
        return encoder.token_scales_of()
    return fourth_root(documents(), None if background is None else background(encoder.vocabulary_size))
