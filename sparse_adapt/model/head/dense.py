"""Gradients of the head as matrix products over one tile of the vocabulary at a time, on any device.

Dimensions: B texts, L positions, H hidden, V vocabulary.
For short texts in which most maxima have a gradient: few positions share the work, so little of each product
is wasted on zeros. It is the whole backward pass of the textbook without its (B, L, V) tensors.
"""

import torch
from torch import Tensor

from sparse_adapt.model.head.device import tiles


def hidden_gradient(gradient: Tensor, position: Tensor, weight: Tensor, length: int) -> Tensor:
    """Gradient of the hidden states (B, L, H). gradient, position: (B, V); weight: (V, H)."""
    out = gradient.new_zeros(len(gradient) * length, weight.shape[1])
    for tile in tiles(len(out), len(weight), weight.device):
        out.addmm_(_slopes(gradient, position, length, tile), weight[tile])
    return out.view(len(gradient), length, -1)


def weight_gradient(gradient: Tensor, position: Tensor, hidden: Tensor) -> Tensor:
    """Gradient of the vocabulary rows (V, H). gradient, position: (B, V); hidden: (B, L, H)."""
    out = gradient.new_empty(gradient.shape[1], hidden.shape[2])
    states = hidden.flatten(0, 1)
    for tile in tiles(len(states), len(out), states.device):
        torch.mm(_slopes(gradient, position, hidden.shape[1], tile).T, states, out=out[tile])
    return out


def _slopes(gradient: Tensor, position: Tensor, length: int, tile: slice) -> Tensor:
    """Gradient of a tile's logits (B L, width): that of the maximum where it was, zero elsewhere."""
    slopes = gradient.new_zeros(len(gradient), length, tile.stop - tile.start)
    slopes.scatter_(1, position[:, None, tile], gradient[:, None, tile])
    return slopes.flatten(0, 1)
