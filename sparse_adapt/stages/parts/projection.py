"""A head between the vectors of a dense encoder and a contrastive loss, which is gone once the model is saved.

The loss may throw away in it what tells texts apart in other ways, and the vectors before it keep that (Chen et
al. 2020, arXiv:2002.05709). Dimensions: B texts, H width of the vectors, P of the projection.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 128  # P, or H where that is less


class Projection(nn.Module):
    """Two layers with a rectifier between them, made by a seed."""

    def __init__(self, width: int, seed: int) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(seed)
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, min(WIDTH, width), bias=False)
        for layer in (self.first, self.second):
            nn.init.xavier_uniform_(layer.weight, generator=random)
        nn.init.zeros_(self.first.bias)

    def forward(self, vectors: Tensor) -> Tensor:
        """Vectors (B, H) as (B, P) of length 1, float32."""
        return functional.normalize(self.second(self.first(vectors).relu()).float(), dim=1)
