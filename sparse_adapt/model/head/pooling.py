"""The SPLADE head: hidden states in, one number per text and vocabulary token out.

Dimensions: B texts, L positions, T unmasked positions of all texts, H hidden, V vocabulary.
The weight of a token is max over unmasked positions of log(1 + relu(logit)); both functions are
monotone, so one maximum over positions comes first and one elementwise pass after
(Formal et al. 2021, arXiv:2107.05720 and arXiv:2109.10086). The maximum needs the logits of one tile of
the vocabulary at a time, and its gradient touches one position: nothing of size (B, L, V) is ever built.
"""

from importlib.util import find_spec
from types import ModuleType
from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from sparse_adapt.model.head import cpu, dense, device
from sparse_adapt.model.head.filter import positive_pool

Activation = Literal["relu", "log1p_relu"]

DENSE_SPEED = 24  # multiply-adds that a matrix product does in the time of a scattered one


def plain_splade_pool(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, attention_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Largest raw logit of each token and where it was, by the textbook: the reference for `splade_pool`.

    Builds the whole (B, L, V) tensor.
    """
    logits = hidden @ weight.T
    if bias is not None:
        logits = logits + bias
    logits = logits.masked_fill(~attention_mask.bool().unsqueeze(-1), float("-inf"))
    maximum, position = logits.max(dim=1)
    return maximum, position


def splade_pool(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    attention_mask: Tensor,
    wanted: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Largest raw logit of each token over unmasked positions, and the position that held it.

    hidden: (B, L, H); weight: (V, H); bias: (V) or None; attention_mask: (B, L), not 0 where a token is.
    Returns maximum (B, V), differentiable in the first three and float32 where the products are in half
    precision, and position (B, V). The first of tied positions wins, before the bias is added; a text that
    is masked everywhere has maximum -inf, position 0 and no gradient. Memory grows with B V, not with L.

    `wanted`, booleans (B, V) or (V): the tokens whose maximum is wanted even at zero or below; of the others, a
    hundred times as many, only what is above zero is told, which is all that weights need: the rest is -inf
    at position 0. A processor that multiplies whole numbers finds these in a third of the time (`filter.py`).
    On a processor the same input gives the same bits; on CUDA the gradient's sums do so under
    `torch.use_deterministic_algorithms`.
    """
    result: tuple[Tensor, Tensor] = _Pool.apply(hidden, weight, bias, attention_mask, wanted)  # type: ignore[no-untyped-call]
    return result


def activate(maximum: Tensor, activation: Activation = "relu") -> Tensor:
    """Weights from maximum logits, log(1 + relu(x)) in float32, by log1p_relu its logarithm: (B, V), never negative."""
    once = maximum.float().relu().log1p()
    return once.log1p() if activation == "log1p_relu" else once


class Rows(NamedTuple):
    """The unmasked positions of B texts, one after another: no padding is ever multiplied.

    states: (T, H); starts: (B + 1), first row of each text; places: (T), position of each row in its text.
    """

    states: Tensor
    starts: Tensor
    places: Tensor


def pack_rows(hidden: Tensor, attention_mask: Tensor) -> Rows:
    """Drop what is masked: (B, L, H) states and their (B, L) mask become rows."""
    mask = attention_mask != 0
    starts = torch.nn.functional.pad(mask.sum(dim=1).cumsum(dim=0), (1, 0))
    places = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)[mask]
    whole = len(places) == mask.numel()
    return Rows(hidden.reshape(-1, hidden.shape[-1]) if whole else hidden[mask], starts, places)


class _Context(FunctionCtx):
    """What one forward pass leaves for its backward pass."""

    saved_tensors: tuple[Tensor, ...]
    needs_input_grad: tuple[bool, ...]
    bias_precision: torch.dtype | None


class _Pool(torch.autograd.Function):
    """Forward and backward of `splade_pool`; saves its inputs and (B, V) positions, nothing larger."""

    @staticmethod
    def forward(
        context: _Context,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        attention_mask: Tensor,
        wanted: Tensor | None,
    ) -> tuple[Tensor, Tensor]:
        """Maxima and positions (B, V), of hidden (B, L, H), weight (V, H), bias (V), attention_mask (B, L)."""
        precision = product_precision(hidden, weight)
        rows = pack_rows(hidden.to(precision), attention_mask)
        if wanted is not None and precision == torch.float32 and weight.device.type == "cpu":
            maximum, position = positive_pool(*rows, weight.to(precision), bias, wanted)
        else:
            maximum, position = pool(rows, weight.to(precision))
            if bias is not None:
                maximum += bias
        if wanted is not None:
            untold = (maximum <= 0) & ~wanted
            maximum.masked_fill_(untold, float("-inf"))
            position.masked_fill_(untold, 0)
        context.save_for_backward(hidden, weight, position, attention_mask)
        context.bias_precision = None if bias is None else bias.dtype
        context.mark_non_differentiable(position)
        return maximum, position

    @staticmethod
    @once_differentiable
    def backward(context: _Context, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """Gradients of what `forward` takes, each in its shape; gradient: (B, V)."""
        hidden, weight, position, attention_mask = context.saved_tensors
        gradient = gradient * (attention_mask != 0).any(dim=1, keepdim=True)
        for_hidden = for_weight = for_bias = None
        back = _ways(gradient, hidden.shape[1])
        if context.needs_input_grad[0]:
            sums = back.hidden_gradient(gradient, position, weight.to(gradient.dtype), hidden.shape[1])
            for_hidden = sums.to(hidden.dtype)
        if context.needs_input_grad[1]:
            for_weight = back.weight_gradient(gradient, position, hidden.to(gradient.dtype)).to(weight.dtype)
        if context.needs_input_grad[2]:
            for_bias = gradient.sum(dim=0).to(context.bias_precision)
        return for_hidden, for_weight, for_bias, None, None


def product_precision(hidden: Tensor, weight: Tensor) -> torch.dtype:
    """The type that states (B, L, H) and rows (V, H) are multiplied in: autocast's where it is on, or the wider."""
    kind = hidden.device.type
    if torch.is_autocast_enabled(kind) and hidden.dtype != torch.float64:
        return torch.get_autocast_dtype(kind)
    return torch.promote_types(hidden.dtype, weight.dtype)


def pool(rows: Rows, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Maximum and position, both (B, V), of states times vocabulary rows, by what suits the device."""
    if weight.device.type == "cpu":
        return cpu.pool(*rows, weight)
    if weight.device.type == "cuda" and weight.dtype.itemsize == 2 and find_spec("triton") is not None:
        from sparse_adapt.model.head import triton  # only here: triton is not everywhere

        return triton.pool(*rows, weight)
    return device.pool(*rows, weight)


def _ways(gradient: Tensor, length: int) -> ModuleType:
    """Who sends a gradient (B, V) back: matrix products where most of it counts, else additions."""
    if int(gradient.count_nonzero()) * DENSE_SPEED > gradient.numel() * length:
        return dense
    return cpu if gradient.device.type == "cpu" else device
