"""The head of models that sum over positions: every logit counts, so that each is computed twice to train.

Dimensions: B texts, L positions, T rows (unmasked positions of all texts), H hidden, V vocabulary.
The weight of a token is the sum over unmasked positions of log(1 + relu(logit)) (Formal et al. 2021,
arXiv:2107.05720). A tile of the vocabulary is multiplied at a time, and again on the way back: nothing of size
(B, L, V) is ever built.
"""

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from sparse_adapt.model.head.device import tiles
from sparse_adapt.model.head.pooling import Activation, activate, pack_rows


def plain_splade_sum(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, attention_mask: Tensor, activation: Activation
) -> Tensor:
    """Weights (B, V) by the textbook: the reference for `splade_sum`. Builds the whole (B, L, V) tensor."""
    logits = hidden @ weight.T
    if bias is not None:
        logits = logits + bias
    return (activate(logits, activation) * (attention_mask != 0).unsqueeze(-1)).sum(dim=1)


def splade_sum(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, attention_mask: Tensor, activation: Activation
) -> Tensor:
    """Weights (B, V), float32: the sum over unmasked positions of each activated logit.

    hidden: (B, L, H); weight: (V, H); bias: (V) or None; attention_mask: (B, L), not 0 where a token is.
    Differentiable in the first three. A text that is masked everywhere has weights of zero.
    """
    result: Tensor = _Sum.apply(hidden, weight, bias, attention_mask, activation)  # type: ignore[no-untyped-call]
    return result


class _Context(FunctionCtx):
    """What the forward pass leaves for the backward pass: its inputs."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]
    activation: Activation


class _Sum(torch.autograd.Function):
    """Forward and backward of `splade_sum`."""

    @staticmethod
    def forward(
        context: _Context,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        attention_mask: Tensor,
        activation: Activation,
    ) -> Tensor:
        """Sums (B, V), of hidden (B, L, H), weight (V, H), bias (V), attention_mask (B, L)."""
        context.save_for_backward(
            hidden, weight, weight.new_zeros(0) if bias is None else bias, attention_mask
        )
        context.activation = activation
        rows, texts = _packed(hidden, attention_mask)
        sums = torch.zeros(len(hidden), len(weight), device=weight.device)
        for tile in tiles(len(rows), len(weight), weight.device):
            logits = _logits(rows, weight, bias, tile)
            sums[:, tile] = sums[:, tile].index_add(0, texts, activate(logits, activation))
        return sums

    @staticmethod
    @once_differentiable
    def backward(context: _Context, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of what `forward` takes, each in its shape; gradient: (B, V)."""
        hidden, weight, bias, attention_mask = context.saved_tensors
        rows, texts = _packed(hidden, attention_mask)
        for_rows, for_weight = torch.zeros_like(rows), torch.zeros_like(weight, dtype=torch.float32)
        for_bias = torch.zeros(len(bias), device=weight.device)
        for tile in tiles(len(rows), len(weight), weight.device):
            logits = _logits(rows, weight, bias if len(bias) else None, tile).relu()
            slope = (logits > 0) / (1.0 + logits)
            if context.activation == "log1p_relu":
                slope = slope / (1.0 + logits.log1p())
            slopes = gradient[:, tile][texts] * slope
            for_rows += slopes @ weight[tile].float()
            for_weight[tile] = slopes.T @ rows
            if len(bias):
                for_bias[tile] = slopes.sum(dim=0)
        for_hidden = torch.zeros_like(hidden, dtype=torch.float32)
        for_hidden[attention_mask != 0] = for_rows
        return (
            for_hidden.to(hidden.dtype),
            for_weight.to(weight.dtype),
            for_bias.to(bias.dtype) if len(bias) else None,
            None,
            None,
        )


def _packed(hidden: Tensor, attention_mask: Tensor) -> tuple[Tensor, Tensor]:
    """Unmasked states (T, H) in float32, and the text of each (T)."""
    rows = pack_rows(hidden, attention_mask)
    texts = torch.arange(len(hidden), device=hidden.device).repeat_interleave(rows.starts.diff())
    return rows.states.float(), texts


def _logits(rows: Tensor, weight: Tensor, bias: Tensor | None, tile: slice) -> Tensor:
    """Logits (T, width) of a tile of the vocabulary, in float32."""
    logits = rows @ weight[tile].float().T
    return logits if bias is None else logits + bias[tile].float()
