"""The head where only weights above zero count: a quick look at all tokens, then the exact few.

Dimensions: B texts, T rows (unmasked positions of all texts), H hidden, V vocabulary.
Of 30,000 maxima a text keeps a hundred or two. Products in bfloat16, seven times as fast on a processor with
tiles for them and twice on one with vector instructions, rule out the tokens that can't be above zero, with a bound
on their error; what passes is multiplied again in float32. The result is that of float32 products throughout.
"""

import os
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparse_adapt.model.head.cpu import Block, multiply
from sparse_adapt.model.threads import compiled

Precision = Literal["float32", "bfloat16"]

# oneDNN makes code for every shape of a bfloat16 product or a GELU, up to a megabyte each, and would keep 1,024.
ROWS_BY = 64
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "32")  # read at the first use
ROUNDING = 2.0**-8  # of bfloat16: largest relative error


def exact_precision(device: torch.device) -> Precision:
    """The fastest precision that gives float32 weights: "bfloat16" on processors that multiply it themselves."""
    known = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    multiplies = any(known.get(name) for name in ("amx_bf16", "avx512_bf16"))
    return "bfloat16" if device.type == "cpu" and multiplies else "float32"


def positive_logits(states: Tensor, starts: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """Maximum logits (B, V) in float32 where they are above zero, zero or less elsewhere.

    states: (T, H) float32; starts: (B + 1) first row of each text; weight: (V, H); bias: (V) or None.
    """
    states, weight = states.float(), weight.float()
    shift = torch.zeros(len(weight)) if bias is None else bias.float()
    rough = _rough(states, starts, weight, shift)
    for text, passed, products in _settled(rough, states, starts, weight, None):
        rough[text].clamp_(max=0.0)
        rough[text, passed] = products.amax(dim=1).add_(shift[passed])
    return rough


def positive_pool(
    states: Tensor, starts: Tensor, places: Tensor, weight: Tensor, bias: Tensor | None, wanted: Tensor
) -> tuple[Tensor, Tensor]:
    """Maximum logits (B, V) and their positions (B, V), exact where they may be above zero or are `wanted`.

    Elsewhere -inf and 0.

    wanted: booleans (B, V) or (V); the rest as in `cpu.pool`, all float32.
    """
    shift = torch.zeros(len(weight)) if bias is None else bias.float()
    rough = _rough(states, starts, weight, shift)
    maximum = torch.full_like(rough, float("-inf"))
    position = torch.zeros(rough.shape, dtype=torch.long)
    for text, passed, products in _settled(rough, states, starts, weight, wanted):
        largest, row = products.max(dim=1)
        maximum[text, passed] = largest.add_(shift[passed])
        position[text, passed] = places[starts[text] + row]
    return maximum, position


def _rough(states: Tensor, starts: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
    """Maximum logits (B, V) as bfloat16 has them."""
    return rough_largest(states.bfloat16(), starts, weight.bfloat16()).add_(shift)


def _settled(
    rough: Tensor, states: Tensor, starts: Tensor, weight: Tensor, wanted: Tensor | None
) -> Iterator[tuple[int, Tensor, Tensor]]:
    """For each text its number, the tokens (n) that may be above zero or are `wanted`, their exact products (n, rows).

    rough: (B, V); states: (T, H); starts: (B + 1); weight: (V, H); wanted: booleans (B, V) or (V), or None.
    """
    lengths = weight.norm(dim=1)
    for text, (first, last) in enumerate(pairwise(starts.tolist())):
        if first == last:
            continue
        rows = states[first:last]
        error = error_bound(float(rows.norm(dim=1).max())) * lengths
        passes = rough[text] > -error
        if wanted is not None:
            passes |= wanted.expand_as(rough)[text]
        passed = passes.nonzero().squeeze(1)
        yield text, passed, weight[passed] @ rows.T


def error_bound(length: float) -> float:
    """How far a bfloat16 product of two vectors may be off, divided by the second one's length.

    `length` is that of the first. Each number of both is rounded, and so is the product: three roundings, by
    Cauchy and Schwarz; a fourth covers their products and the sums in float32.
    """
    return 4 * ROUNDING * length


def rough_largest(states: Tensor, starts: Tensor, weight: Tensor) -> Tensor:
    """Largest bfloat16 product of each text's states with each vocabulary row, as float32 (B, V)."""
    largest = torch.empty(len(starts) - 1, len(weight), dtype=torch.int16)
    bounds, out = starts.numpy(), largest.numpy()

    def pool_block(block: Block, logits: Tensor) -> None:
        where = block.texts.start, block.texts.stop, block.tokens.start
        _largest_bits(logits.view(torch.int16).numpy(), bounds, out, *where)

    multiply(states, bounds, weight, pool_block, rows_by=ROWS_BY)
    return largest.view(torch.bfloat16).float()


@compiled
def _largest_bits(
    logits: NDArray[np.int16],
    bounds: NDArray[np.int64],
    out: NDArray[np.int16],
    first_text: int,
    last_text: int,
    first_token: int,
) -> None:
    """Write a block's maxima of bfloat16 numbers, all given as the int16 of their bits.

    Among numbers of which one is positive, the largest has the largest int16; among negative ones, the
    smallest unsigned. Integers are compared twice as many at a time. A text without rows gets -inf.

    logits: (rows, width); bounds: (B + 1); out: (B, V).
    """
    width = logits.shape[1]
    smallest = np.empty(width, np.uint16)
    for text in range(first_text, last_text):
        largest = out[text, first_token : first_token + width]
        for token in range(width):
            largest[token] = -32768
            smallest[token] = 0xFF80  # -inf
        row, end = bounds[text] - bounds[first_text], bounds[text + 1] - bounds[first_text]
        while row + 4 <= end:
            a, b, c, d = logits[row], logits[row + 1], logits[row + 2], logits[row + 3]
            for token in range(width):
                high = max(max(a[token], b[token]), max(c[token], d[token]))
                low = min(
                    min(np.uint16(a[token]), np.uint16(b[token])),
                    min(np.uint16(c[token]), np.uint16(d[token])),
                )
                largest[token] = max(largest[token], high)
                smallest[token] = min(smallest[token], low)
            row += 4
        while row < end:
            for token in range(width):
                largest[token] = max(largest[token], logits[row, token])
                smallest[token] = min(smallest[token], np.uint16(logits[row, token]))
            row += 1
        for token in range(width):
            if largest[token] < 0:
                largest[token] = np.int16(smallest[token])
