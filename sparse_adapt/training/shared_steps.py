"""Words that learn together: what the embedding of one learns, those of words like it learn too.

Texts that teach name few of the words that users choose, and each word but now and then. What is known of all words
beforehand, as vectors of features, carries it further: beside its own steps the embedding of a word w moves by
features(w) @ map, one linear map for all of them, which learns from every word's gradient. The rows hold the sum at
all times, so a model is saved as any other, and rows that are tied to the decoder stay tied. That one linear map
carries much of what one space of words knows to another: Mikolov et al. 2013, arXiv:1309.4168.

Dimensions: V vocabulary, W words with features, F features, H width of the embeddings.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, slots=True)
class SharedFeatures:
    """Features (W, F) of some tokens (W,), and how fast the map from these to embeddings learns.

    pace: times the learning rate of the embeddings.
    """

    token_ids: Tensor
    features: Tensor
    pace: float


class SharedSteps:
    """The map (F, H) as a parameter, and its part in the embeddings (V, H)."""

    def __init__(self, rows: nn.Parameter, shared_features: SharedFeatures) -> None:
        self.rows = rows
        self.token_ids = shared_features.token_ids.to(rows.device)
        self.features = shared_features.features.to(rows.device, rows.dtype)
        self.pace = shared_features.pace
        self.map = nn.Parameter(rows.new_zeros(self.features.shape[1], rows.shape[1]))
        self._within = torch.zeros_like(self.map)  # the map whose part the rows hold

    def collect(self) -> None:
        """Take the map's gradient from that of the rows, which keep their own."""
        if self.rows.grad is not None:
            self.map.grad = self.features.T @ self.rows.grad[self.token_ids]

    @torch.no_grad()
    def put_back(self) -> None:
        """Move the rows by what the map has moved since."""
        self.rows[self.token_ids] += self.features @ (self.map - self._within)
        self.taken_up()

    @torch.no_grad()
    def taken_up(self) -> None:
        """The rows hold the part of the map as it is, say because both were read back."""
        self._within.copy_(self.map)
