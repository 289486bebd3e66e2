"""The head where only weights above zero count: a quick look at all tokens, then the exact few.

Dimensions: B texts, T rows (unmasked positions of all texts), H hidden, V vocabulary.
Of 30,000 maxima a text keeps a hundred or two. A quick look rules out the tokens that can't be above zero: by
products of whole numbers of eight bits, eight times as fast as float32, with a bound on their error, where a
processor has instructions for them, and by float32 products elsewhere. What passes is multiplied again in float32,
text by text, so that a text's weights follow from its own states alone.
"""

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparse_adapt.model.head.cpu import Block, multiply, pool
from sparse_adapt.model.head.threads import compiled

# oneDNN makes code for every shape of a product of whole numbers or a GELU, up to a megabyte each; it would keep 1,024.
ROWS_BY = 64
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")  # read at the first use
MOST_OF_A_STATE = 127
# Torch multiplies whole numbers by a plain loop elsewhere, with AVX2 thirty times as slow as float32.
MULTIPLIES = ("avx512_vnni", "amx_int8")
MOST_OF_A_ROW = 64  # with AVX2 two products, one factor + 128, have to fit 16 bits together
ROWS_AT_ONCE = 1024  # which are rounded: half a megabyte in float32, 128 wide
SMALLEST = 1e-30  # step between two whole numbers


class Whole(NamedTuple):
    """Vectors as whole numbers (N, H) times a step (N), and the length (N) of what that leaves out of each."""

    numbers: Tensor
    steps: Tensor
    errors: Tensor


def multiplies_whole() -> bool:
    """Whether this processor multiplies whole numbers of eight bits faster than float32."""
    known = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return any(known.get(name) for name in MULTIPLIES) and torch.backends.mkldnn.is_available()


def positive_logits(states: Tensor, starts: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Maximum logits (B, V) in float32 where they are above zero, zero or less elsewhere.

    states: (T, H) float32; starts: (B + 1) first row of each text; weight: (V, H); bias: (V) or None.
    """
    states, weight = states.float(), weight.float()
    shift = torch.zeros(len(weight)) if bias is None else bias.float()
    result = torch.zeros(len(starts) - 1, len(weight))
    with torch.autocast("cpu", enabled=False):
        for text, passed, products in _settled(states, starts, weight, shift, None):
            result[text, passed] = products.amax(dim=1).add_(shift[passed])
    return result


def positive_pool(
    states: Tensor, starts: Tensor, places: Tensor, weight: Tensor, bias: Tensor | None, wanted: Tensor
) -> tuple[Tensor, Tensor]:
    """Maximum logits (B, V) and their positions (B, V), exact where they may be above zero or are `wanted`.

    Elsewhere -inf and 0.

    wanted: booleans (B, V) or (V); the rest as in `cpu.pool`, all float32.
    """
    shift = torch.zeros(len(weight)) if bias is None else bias.float()
    maximum = torch.full((len(starts) - 1, len(weight)), float("-inf"))
    position = torch.zeros(maximum.shape, dtype=torch.long)
    with torch.autocast("cpu", enabled=False):
        for text, passed, products in _settled(states, starts, weight, shift, wanted):
            largest, row = products.max(dim=1)
            maximum[text, passed] = largest.add_(shift[passed])
            position[text, passed] = places[starts[text] + row]
    return maximum, position


def _settled(
    states: Tensor, starts: Tensor, weight: Tensor, shift: Tensor, wanted: Tensor | None
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """For each text its number, the tokens (n) that may be above zero or are `wanted`, their exact products (n, rows).

    states: (T, H); starts: (B + 1); weight: (V, H); shift: (V); wanted: booleans (B, V) or (V), or None.
    """
    above = bounds_above if multiplies_whole() else bounds_by_products
    bounds = above(states, starts, weight).add_(shift)
    for text, (first, last) in enumerate(pairwise(starts.tolist())):
        if first == last:
            continue
        passes = ~(bounds[text] <= 0.0)  # what isn't a number passes, and is seen
        if wanted is not None:
            passes |= wanted.expand_as(bounds)[text]
        passed = passes.nonzero().squeeze(1)
        yield text, passed, weight[passed] @ states[first:last].T


def bounds_above(states: Tensor, starts: Tensor, weight: Tensor) -> Tensor:
    """What no product of a text's states with a vocabulary row exceeds: (B, V).

    states: (T, H); starts: (B + 1); weight: (V, H). Each text's mean is multiplied exactly, for it is half of a state,
    and what remains as whole numbers. The product of two rounded vectors is off by the error of the first times the
    second's length, and the other way round (Cauchy and Schwarz); sums in float32 by a part of the lengths' product.
    """
    texts, owner = len(starts) - 1, _owners(starts)
    means = torch.zeros(texts, states.shape[1]).index_add_(0, owner, states)
    means /= starts.diff().clamp_min(1).unsqueeze(1)
    rest = states - means[owner]
    steps = _largest_of(rest.abs().amax(dim=1), owner, texts).div_(MOST_OF_A_STATE).clamp_min_(SMALLEST)
    ours, theirs = rounded(rest, steps[owner]), rounded_rows(weight)
    lengths, slack = weight.norm(dim=1), states.shape[1] * torch.finfo(torch.float32).eps
    errors = _largest_of(ours.errors + slack * states.norm(dim=1), owner, texts)
    reached = _largest_of(rest.norm(dim=1) + ours.errors, owner, texts)
    result = torch.addmm(torch.outer(errors, lengths), means, weight.T)
    result.addr_(reached, theirs.errors)
    return result.addcmul_(
        largest_whole(ours.numbers, starts, theirs.numbers), torch.outer(steps, theirs.steps)
    )


def bounds_by_products(states: Tensor, starts: Tensor, weight: Tensor) -> Tensor:
    """The same, by the products in float32 and what their sums may be off: (B, V); -inf for a text without rows."""
    largest, _ = pool(states, starts, torch.zeros(len(states), dtype=torch.long), weight)
    slack = states.shape[1] * torch.finfo(torch.float32).eps
    lengths = _largest_of(states.norm(dim=1), _owners(starts), len(starts) - 1)
    return largest.addr_(lengths, weight.norm(dim=1), alpha=slack)


def _owners(starts: Tensor) -> Tensor:
    """The text of each row: (T). starts: (B + 1)."""
    return torch.arange(len(starts) - 1).repeat_interleave(starts.diff())


def _largest_of(values: Tensor, owner: Tensor, texts: int) -> Tensor:
    """The largest value (T) of each text, none below zero: (B). owner: (T), whose each value is."""
    return torch.zeros(texts).scatter_reduce_(0, owner, values, "amax")


def rounded(vectors: Tensor, steps: Tensor) -> Whole:
    """Vectors (N, H) as whole numbers times these steps (N)."""
    numbers = (vectors / steps.unsqueeze(1)).round_()
    errors = torch.addcmul(vectors, numbers, steps.unsqueeze(1), value=-1.0).norm(dim=1)
    return Whole(numbers.to(torch.int8), steps, errors)


def rounded_rows(weight: Tensor) -> Whole:
    """Vocabulary rows (V, H) as whole numbers, some rows at a time, which stay in a core's cache."""
    parts = [
        rounded(rows, rows.abs().amax(dim=1).div_(MOST_OF_A_ROW).clamp_min_(SMALLEST))
        for rows in weight.split(ROWS_AT_ONCE)
    ]
    return Whole(*(torch.cat(each) for each in zip(*parts, strict=True)))


def largest_whole(states: Tensor, starts: Tensor, weight: Tensor) -> Tensor:
    """Largest product of each text's states (T, H) with each vocabulary row (V, H), all int8: (B, V) int32.

    starts: (B + 1). A text without rows has the least number there is.
    """
    largest = torch.empty(len(starts) - 1, len(weight), dtype=torch.int32)
    bounds, out = starts.numpy(), largest.numpy()

    def pool_block(block: Block, products: Tensor) -> None:
        where = block.texts.start, block.texts.stop, block.tokens.start
        _largest(products.numpy(), bounds, out, *where)

    multiply(states, bounds, weight, pool_block, rows_by=ROWS_BY)
    return largest


@compiled
def _largest(
    products: NDArray[np.int32],
    bounds: NDArray[np.int64],
    out: NDArray[np.int32],
    first_text: int,
    last_text: int,
    first_token: int,
) -> None:
    """Write a block's maxima.

    products: (rows, width); bounds: (B + 1); out: (B, V).
    """
    width = products.shape[1]
    for text in range(first_text, last_text):
        largest = out[text, first_token : first_token + width]
        for token in range(width):
            largest[token] = -2147483648
        row, end = bounds[text] - bounds[first_text], bounds[text + 1] - bounds[first_text]
        while row + 4 <= end:
            a, b, c, d = products[row], products[row + 1], products[row + 2], products[row + 3]
            for token in range(width):
                largest[token] = max(largest[token], max(max(a[token], b[token]), max(c[token], d[token])))
            row += 4
        while row < end:
            for token in range(width):
                largest[token] = max(largest[token], products[row, token])
            row += 1
