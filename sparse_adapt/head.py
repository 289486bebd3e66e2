"""The SPLADE head: hidden states in, one number per text and vocabulary token out.

Dimensions: B texts, L positions, T unmasked positions of all texts, H hidden, V vocabulary.
The weight of a token is max over unmasked positions of log(1 + relu(logit)); both functions are
monotone, so one maximum over positions comes first and one elementwise pass after
(Formal et al. 2021, arXiv:2107.05720 and arXiv:2109.10086). The maximum needs the logits of one tile of
the vocabulary at a time, and its gradient touches one position: nothing of size (B, L, V) is ever built.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sparse_adapt.head_cpu import hidden_gradient, pool_rows, weight_gradient

TILE_LOGITS = 1 << 21  # logits at a time: 8 MB in float32, which a shared cache still holds
WIDEST_TILE, NARROWEST_TILE = 1 << 15, 256
DENSE_BACKWARD_SPEED = 24  # multiply-adds that a matrix product does while a scattered one is done


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
    hidden: Tensor, weight: Tensor, bias: Tensor | None, attention_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Largest raw logit of each token over unmasked positions, and the position that held it.

    hidden: (B, L, H); weight: (V, H); bias: (V) or None; attention_mask: (B, L), not 0 where a token is.
    Returns maximum (B, V), differentiable in the first three and float32 where the products are in half
    precision, and position (B, V). The first of tied positions wins, before the bias is added; a text that
    is masked everywhere has maximum -inf, position 0 and no gradient. Memory grows with B V, not with L.
    On a processor the same input gives the same bits; on CUDA the gradient's sums do so under
    `torch.use_deterministic_algorithms`.
    """
    result: tuple[Tensor, Tensor] = _Pool.apply(hidden, weight, bias, attention_mask)  # type: ignore[no-untyped-call]
    return result


def activate(maximum: Tensor) -> Tensor:
    """Weights from maximum logits, log(1 + relu(x)) in float32: (B, V), never negative."""
    return maximum.float().relu().log1p()


class Rows(NamedTuple):
    """The unmasked positions of B texts, one after another: no padding is ever multiplied.

    states: (T, H); starts: (B + 1), first row of each text; places: (T), position of each row in its text.
    """

    states: Tensor
    starts: Tensor
    places: Tensor


def pack(hidden: Tensor, attention_mask: Tensor) -> Rows:
    """Drop what is masked: (B, L, H) states and their (B, L) mask become rows."""
    mask = attention_mask != 0
    starts = torch.nn.functional.pad(mask.sum(dim=1).cumsum(dim=0), (1, 0))
    places = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)[mask]
    whole = len(places) == mask.numel()
    return Rows(hidden.reshape(-1, hidden.shape[-1]) if whole else hidden[mask], starts, places)


class _Pool(torch.autograd.Function):
    """Forward and backward of `splade_pool`; saves its inputs and (B, V) positions, nothing larger."""

    @staticmethod
    def forward(
        context: Any, hidden: Tensor, weight: Tensor, bias: Tensor | None, attention_mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        precision = product_precision(hidden, weight)
        rows = pack(hidden.to(precision), attention_mask)
        maximum, position = pool_tiles(rows, weight.to(precision))
        if bias is not None:
            maximum += bias
        context.save_for_backward(hidden, weight, position, attention_mask)
        context.bias_precision = None if bias is None else bias.dtype
        context.mark_non_differentiable(position)
        return maximum, position

    @staticmethod
    @once_differentiable
    def backward(context: Any, gradient: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, position, attention_mask = context.saved_tensors
        gradient = gradient * (attention_mask != 0).any(dim=1, keepdim=True)
        wanted = context.needs_input_grad
        for_hidden, for_weight = _gradients(gradient, position, hidden, weight, wanted[0], wanted[1])
        for_bias = gradient.sum(dim=0).to(context.bias_precision) if wanted[2] else None
        return for_hidden, for_weight, for_bias, None


def product_precision(hidden: Tensor, weight: Tensor) -> torch.dtype:
    """The type that states and rows are multiplied in: autocast's where it is on, else the wider one."""
    device = hidden.device.type
    if torch.is_autocast_enabled(device) and hidden.dtype != torch.float64:
        return torch.get_autocast_dtype(device)
    return torch.promote_types(hidden.dtype, weight.dtype)


def pool_tiles(rows: Rows, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Maximum and position, both (B, V), of states times rows, one tile of the vocabulary at a time."""
    texts, vocabulary = len(rows.starts) - 1, len(weight)
    wide = torch.float64 if weight.dtype == torch.float64 else torch.float32
    maximum = torch.empty(texts, vocabulary, dtype=wide, device=weight.device)
    position = torch.empty(texts, vocabulary, dtype=torch.long, device=weight.device)
    for part, tile, logits in _tiles(rows, weight):
        _pool_tile(logits.to(wide), part, maximum[:, tile], position[:, tile])
    return maximum, position


def _tiles(rows: Rows, weight: Tensor) -> Iterator[tuple[Rows, slice, Tensor]]:
    """The logits (T, width) of one tile of the vocabulary after another, each in the place of the last."""
    width = _tile_width(len(rows.states))
    space = rows.states.new_empty(len(rows.states) * min(width, len(weight)))
    for start in range(0, len(weight), width):
        tile = slice(start, min(start + width, len(weight)))
        shape = len(rows.states), tile.stop - tile.start
        logits = space[: shape[0] * shape[1]].view(shape)
        torch.mm(rows.states, weight[tile].T, out=logits)
        yield rows, tile, logits


def _tile_width(rows: int) -> int:
    return min(max(TILE_LOGITS // max(rows, 1), NARROWEST_TILE), WIDEST_TILE)


def _pool_tile(logits: Tensor, rows: Rows, maximum: Tensor, position: Tensor) -> None:
    """Write the maxima (B, width) and positions of one tile of logits (T, width)."""
    if logits.device.type == "cpu":
        pool_rows(*(tensor.numpy() for tensor in (logits, rows.starts, rows.places, maximum, position)))
        return
    counts = rows.starts.diff()
    longest = int(counts.max()) if len(counts) else 0
    padded = logits.new_full((len(counts), max(longest, 1), logits.shape[1]), float("-inf"))
    text = torch.repeat_interleave(torch.arange(len(counts), device=logits.device), counts)
    order = torch.arange(len(logits), device=logits.device) - rows.starts[:-1][text]
    padded[text, order] = logits
    values, first = padded.max(dim=1)
    maximum.copy_(values)
    row = (rows.starts[:-1, None] + first).clamp(max=max(len(rows.places) - 1, 0))
    position.copy_(rows.places[row] * (counts > 0)[:, None] if len(rows.places) else first)


def _gradients(
    gradient: Tensor, position: Tensor, hidden: Tensor, weight: Tensor, for_hidden: bool, for_weight: bool
) -> tuple[Tensor | None, Tensor | None]:
    """Gradients in hidden (B, L, H) and weight (V, H) from the gradient of the maxima (B, V)."""
    wide = gradient.dtype
    of_hidden = torch.zeros(hidden.shape, dtype=wide, device=hidden.device) if for_hidden else None
    of_weight = torch.zeros(weight.shape, dtype=wide, device=weight.device) if for_weight else None
    operands = gradient, position, hidden.to(wide).contiguous(), weight.to(wide)
    entries = int(gradient.count_nonzero())
    if entries * DENSE_BACKWARD_SPEED > gradient.numel() * hidden.shape[1]:
        _dense_gradients(*operands, of_hidden, of_weight)
    elif gradient.device.type == "cpu":
        _scattered_gradients(*operands, of_hidden, of_weight)
    else:
        _indexed_gradients(*operands, of_hidden, of_weight)
    return (
        None if of_hidden is None else of_hidden.to(hidden.dtype),
        None if of_weight is None else of_weight.to(weight.dtype),
    )


def _scattered_gradients(
    gradient: Tensor,
    position: Tensor,
    hidden: Tensor,
    weight: Tensor,
    of_hidden: Tensor | None,
    of_weight: Tensor | None,
) -> None:
    """Visit the maxima whose gradient isn't zero, one row added at a time."""
    arrays = gradient.numpy(), position.numpy()
    if of_hidden is not None:
        hidden_gradient(*arrays, weight.detach().numpy(), of_hidden.numpy())
    if of_weight is not None:
        weight_gradient(*arrays, hidden.detach().numpy(), of_weight.numpy())


def _indexed_gradients(
    gradient: Tensor,
    position: Tensor,
    hidden: Tensor,
    weight: Tensor,
    of_hidden: Tensor | None,
    of_weight: Tensor | None,
) -> None:
    """The same on a device that adds many rows at once, in pieces as large as a tile."""
    text, token = gradient.nonzero(as_tuple=True)
    row = text * hidden.shape[1] + position[text, token]
    value = gradient[text, token].unsqueeze(-1)
    for piece in torch.arange(len(text), device=gradient.device).split(TILE_LOGITS * 8 // hidden.shape[-1]):
        if of_hidden is not None:
            of_hidden.view(-1, hidden.shape[-1]).index_add_(
                0, row[piece], value[piece] * weight[token[piece]]
            )
        if of_weight is not None:
            states = hidden.view(-1, hidden.shape[-1])[row[piece]]
            of_weight.index_add_(0, token[piece], value[piece] * states)


def _dense_gradients(
    gradient: Tensor,
    position: Tensor,
    hidden: Tensor,
    weight: Tensor,
    of_hidden: Tensor | None,
    of_weight: Tensor | None,
) -> None:
    """Matrix products, a tile of the vocabulary at a time: for short texts where most gradients count."""
    texts, length, units = hidden.shape
    width = _tile_width(texts * length)
    states = hidden.reshape(-1, units)
    for start in range(0, len(weight), width):
        tile = slice(start, min(start + width, len(weight)))
        sparse = gradient.new_zeros(texts, length, tile.stop - tile.start)
        sparse.scatter_(1, position[:, None, tile], gradient[:, None, tile])
        rows = sparse.view(texts * length, -1)
        if of_hidden is not None:
            of_hidden.view(-1, units).addmm_(rows, weight[tile])
        if of_weight is not None:
            torch.mm(rows.T, states, out=of_weight[tile])
