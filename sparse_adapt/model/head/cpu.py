"""The head on a processor: blocks of logits, multiplied by a library and pooled while still in the cache.

Dimensions: B texts, L positions, T rows (unmasked positions of all texts), H hidden, V vocabulary.
A thread takes the next block of rows and tokens when it is done with its last, so that a busy core delays
nobody. One compiled loop reads each logit once and remembers where the largest was; a library's `max(dim)`
with indices takes seven times as long on the same layout.
"""

from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from sparse_adapt.model.head.threads import compiled, share_out

Integers = NDArray[np.int64]
Floats = NDArray[np.float32] | NDArray[np.float64]

BLOCK_ROWS = 2048
BLOCK_LOGITS = 1 << 20  # 4 MB in float32: a core's own cache and a little of the shared one
NARROWEST, WIDEST = 256, 1 << 14
ROWS_OF_A_WIDTH = 256


class Block(NamedTuple):
    """A part of the work: some texts and the rows that are theirs, times some tokens of the vocabulary."""

    texts: slice
    rows: slice
    tokens: slice


def pool(states: Tensor, starts: Tensor, places: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Largest product of each text's states with each vocabulary row (B, V), and its place (B, V).

    states: (T, H); starts: (B + 1) first row of each text; places: (T) position of each row in its text;
    weight: (V, H). Products in the operands' precision, maxima in float32 or wider.
    """
    wide = torch.promote_types(weight.dtype, torch.float32)
    maximum = torch.empty(len(starts) - 1, len(weight), dtype=wide)
    position = torch.empty(len(starts) - 1, len(weight), dtype=torch.long)
    bounds, row_places, maxima, positions = (each.numpy() for each in (starts, places, maximum, position))

    def pool_block(block: Block, logits: Tensor) -> None:
        where = block.texts.start, block.texts.stop, block.tokens.start
        _pool_rows(logits.to(wide).numpy(), bounds, row_places, maxima, positions, *where)

    multiply(states, bounds, weight, pool_block)
    return maximum, position


def hidden_gradient(gradient: Tensor, position: Tensor, weight: Tensor, length: int) -> Tensor:
    """Gradient of the hidden states (B, L, H): each winning position gets the rows whose maxima it holds.

    gradient, position: (B, V); weight: (V, H). Visits only what is not zero.
    """
    out = torch.zeros(len(gradient), length, weight.shape[1], dtype=gradient.dtype)
    slopes, winners, rows, sums = _arrays(gradient, position, weight, out)
    add = partial(_add_rows, slopes, winners, rows, sums)
    share_out(lambda: add, _parts(len(slopes)), _additions(slopes, weight.shape[1]))
    return out


def weight_gradient(gradient: Tensor, position: Tensor, hidden: Tensor) -> Tensor:
    """Gradient of the vocabulary rows (V, H): each gets the hidden states that hold its maxima.

    gradient, position: (B, V); hidden: (B, L, H). Visits only what is not zero.
    """
    out = torch.zeros(gradient.shape[1], hidden.shape[2], dtype=gradient.dtype)
    slopes, winners, states, sums = _arrays(gradient, position, hidden, out)
    add = partial(_add_states, slopes, winners, states, sums)
    share_out(lambda: add, _parts(len(out)), _additions(slopes, hidden.shape[2]))
    return out


def _arrays(*tensors: Tensor) -> tuple[NDArray[Any], ...]:
    return tuple(tensor.detach().contiguous().numpy() for tensor in tensors)


def _additions(slopes: Floats, units: int) -> int:
    """The work of adding rows for slopes (B, V), in multiply-adds of a matrix product of the same duration."""
    return int(np.count_nonzero(slopes)) * units * 24


def multiply(
    states: Tensor,
    bounds: Integers,
    weight: Tensor,
    use: Callable[[Block, Tensor], None],
    *,
    rows_by: int = 1,
) -> None:
    """Hand each block's products (rows, tokens) to `use`, which must be done with them when it returns.

    Those of int8 numbers are int32; all others have the operands' precision.
    Rows are multiplied in multiples of `rows_by`, for a library that prepares and keeps code for every shape.
    """
    blocks = list(_blocks(bounds, len(weight)))
    padded = functional.pad(states, (0, 0, 0, rows_by - 1)) if rows_by > 1 else states

    def shape_of(block: Block) -> tuple[int, int]:
        rows, tokens = block.rows.stop - block.rows.start, block.tokens.stop - block.tokens.start
        return -(-rows // rows_by) * rows_by, tokens

    largest_size = max((prod(shape_of(block)) for block in blocks), default=0)

    whole = states.dtype == torch.int8
    product = torch._int_mm if whole else torch.mm

    def make_worker() -> Callable[[Block], None]:
        space = torch.empty(largest_size, dtype=torch.int32 if whole else states.dtype)

        def multiply(block: Block) -> None:
            shape = shape_of(block)
            logits = space[: prod(shape)].view(shape)
            first = block.rows.start
            product(padded[first : first + shape[0]], weight[block.tokens].T, out=logits)
            use(block, logits[: block.rows.stop - first])

        return multiply

    share_out(make_worker, blocks, len(states) * weight.numel())


def _blocks(bounds: Integers, vocabulary: int) -> Iterator[Block]:
    """Cut the work so that a block's logits fit a cache; the blocks of the same tokens follow each other.

    bounds: (B + 1) first row of each text.
    """
    texts = list(_neighbours(bounds))
    most = max((int(bounds[part.stop] - bounds[part.start]) for part in texts), default=0)
    most = -(-most // ROWS_OF_A_WIDTH) * ROWS_OF_A_WIDTH  # a few widths serve all batches
    width = min(max(BLOCK_LOGITS // max(most, 1), NARROWEST), WIDEST)
    for first in range(0, vocabulary, width):
        tokens = slice(first, min(first + width, vocabulary))
        for part in texts:
            yield Block(part, slice(int(bounds[part.start]), int(bounds[part.stop])), tokens)


def _neighbours(bounds: Integers) -> Iterator[slice]:
    """Consecutive texts, as many as hold `BLOCK_ROWS` rows; a longer one stands alone. bounds: (B + 1)."""
    first, texts = 0, len(bounds) - 1
    while first < texts:
        last = int(np.searchsorted(bounds, bounds[first] + BLOCK_ROWS, side="right")) - 1
        yield slice(first, min(max(last, first + 1), texts))
        first = min(max(last, first + 1), texts)


def _parts(count: int) -> list[tuple[int, int]]:
    """Bounds of equal parts, a few for each thread."""
    edges = np.linspace(0, count, min(count, 4 * torch.get_num_threads()) + 1).astype(int).tolist()
    return list(pairwise(edges))


@compiled
def _pool_rows(
    logits: Floats,
    bounds: Integers,
    places: Integers,
    maximum: Floats,
    position: Integers,
    first_text: int,
    last_text: int,
    first_token: int,
) -> None:
    """Write a block's maxima and the places of the first rows that held them.

    logits: (rows, width); bounds: (B + 1); places: (T); maximum, position: (B, V). A text without rows gets -inf and 0;
    a NaN wins and stays.
    """
    width = logits.shape[1]
    for text in range(first_text, last_text):
        best = maximum[text, first_token : first_token + width]
        where = position[text, first_token : first_token + width]
        for token in range(width):
            best[token] = -np.inf
            where[token] = 0
        for row in range(bounds[text], bounds[text + 1]):
            values, place = logits[row - bounds[first_text]], places[row]
            for token in range(width):
                value = values[token]
                if (value > best[token]) | (value != value):
                    best[token] = value
                    where[token] = place


@compiled
def _add_rows(
    gradient: Floats, position: Integers, weight: Floats, out: Floats, part: tuple[int, int]
) -> None:
    """Add to the winning positions of some texts the vocabulary rows whose maxima they hold.

    gradient, position: (B, V); weight: (V, H); out: (B, L, H).
    """
    for text in range(part[0], part[1]):
        for token in range(gradient.shape[1]):
            slope = gradient[text, token]
            if slope != 0:
                target, row = out[text, position[text, token]], weight[token]
                for unit in range(len(row)):
                    target[unit] += slope * row[unit]


@compiled
def _add_states(
    gradient: Floats, position: Integers, hidden: Floats, out: Floats, part: tuple[int, int]
) -> None:
    """Add to some vocabulary rows the hidden states that hold their maxima.

    gradient, position: (B, V); hidden: (B, L, H); out: (V, H).
    """
    for token in range(part[0], part[1]):
        for text in range(gradient.shape[0]):
            slope = gradient[text, token]
            if slope != 0:
                target, row = out[token], hidden[text, position[text, token]]
                for unit in range(len(row)):
                    target[unit] += slope * row[unit]
