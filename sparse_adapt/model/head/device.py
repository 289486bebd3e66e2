"""The head in whole-tensor operations, for CUDA and what else torch runs on.

Dimensions: B texts, L positions, T rows (unmasked positions of all texts), H hidden, V vocabulary.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

TILE_NUMBERS = {"cpu": 1 << 22}  # of a temporary tensor: 16 MB in float32
TILE_NUMBERS_ELSEWHERE = 1 << 27


def pool(states: Tensor, starts: Tensor, places: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Largest product of each text's states with each vocabulary row (B, V), and its place (B, V).

    states: (T, H); starts: (B + 1) first row of each text; places: (T) position of each row in its text;
    weight: (V, H). Products in the operands' precision, maxima in float32 or wider.
    """
    wide = torch.promote_types(weight.dtype, torch.float32)
    texts = len(starts) - 1
    maximum = torch.full((texts, len(weight)), float("-inf"), dtype=wide, device=weight.device)
    row = torch.zeros(texts, len(weight), dtype=torch.long, device=weight.device)
    if not len(states):
        return maximum, row
    order, filled = _padded_rows(starts)
    padded = states[order]
    for tile in tiles(order.numel(), len(weight), weight.device):
        logits = (padded @ weight[tile].T).masked_fill_(~filled.unsqueeze(-1), float("-inf"))
        values, first = logits.max(dim=1)
        maximum[:, tile] = values
        row[:, tile] = order.gather(1, first)
    return maximum, torch.where(filled[:, :1], places[row], 0)


def _padded_rows(starts: Tensor) -> tuple[Tensor, Tensor]:
    """Which row stands at each place of a padded batch (B, longest), and which places are filled."""
    counts = starts.diff()
    places = torch.arange(int(counts.max()), device=starts.device)
    filled = places < counts.unsqueeze(-1)
    return torch.where(filled, starts[:-1].unsqueeze(-1) + places, 0), filled


def hidden_gradient(gradient: Tensor, position: Tensor, weight: Tensor, length: int) -> Tensor:
    """Gradient of the hidden states (B, L, H): each winning position gets the rows whose maxima it holds.

    gradient, position: (B, V); weight: (V, H). Visits only what is not zero.
    """
    out = gradient.new_zeros(len(gradient) * length, weight.shape[1])
    text, token = gradient.nonzero(as_tuple=True)
    for part in tiles(weight.shape[1], len(text), weight.device):
        slope = gradient[text[part], token[part]].unsqueeze(-1)
        row = text[part] * length + position[text[part], token[part]]
        out.index_add_(0, row, slope * weight[token[part]])
    return out.view(len(gradient), length, -1)


def weight_gradient(gradient: Tensor, position: Tensor, hidden: Tensor) -> Tensor:
    """Gradient of the vocabulary rows (V, H): each gets the hidden states that hold its maxima.

    gradient, position: (B, V); hidden: (B, L, H). Visits only what is not zero.
    """
    out = gradient.new_zeros(gradient.shape[1], hidden.shape[2])
    text, token = gradient.nonzero(as_tuple=True)
    for part in tiles(hidden.shape[2], len(text), hidden.device):
        slope = gradient[text[part], token[part]].unsqueeze(-1)
        states = hidden[text[part], position[text[part], token[part]]]
        out.index_add_(0, token[part], slope * states)
    return out


def tiles(height: int, width: int, device: torch.device) -> Iterator[slice]:
    """Consecutive parts of `width` for which a tensor of this height is small beside the device's memory."""
    step = max(TILE_NUMBERS.get(device.type, TILE_NUMBERS_ELSEWHERE) // max(height, 1), 64)
    for start in range(0, width, step):
        yield slice(start, min(start + step, width))
