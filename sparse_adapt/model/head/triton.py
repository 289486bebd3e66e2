"""The head's forward pass on a GPU as one kernel: a tile of logits lives in registers until it is pooled.

Dimensions: B texts, T rows (unmasked positions of all texts), H hidden, V vocabulary.
Imported only where triton is installed. With TRITON_INTERPRET=1 in the environment before that import the
kernel runs on a processor, slowly, for tests.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS, TOKENS, UNITS = 128, 128, 64  # of a tile
TEXTS_A_GROUP = 4  # whose tiles run together, so that vocabulary rows are read from the cache


def pool(states: Tensor, starts: Tensor, places: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Largest product of each text's states with each vocabulary row (B, V), and its place (B, V).

    states: (T, H); starts: (B + 1) first row of each text; places: (T) position of each row in its text;
    weight: (V, H), both in half precision (or float32: exact, but slower than tiles). Sums and maxima in
    float32. A text without rows gets -inf and 0; a product that is not a number counts as infinity, so that
    it can't hide.
    """
    texts, (vocabulary, units) = len(starts) - 1, weight.shape
    maximum = torch.empty(texts, vocabulary, dtype=torch.float32, device=weight.device)
    row = torch.empty(texts, vocabulary, dtype=torch.int32, device=weight.device)
    grid = (texts * triton.cdiv(vocabulary, TOKENS),)
    if grid[0]:
        _pool_kernel[grid](
            states.contiguous(),
            weight.contiguous(),
            starts,
            maximum,
            row,
            texts,
            vocabulary,
            units,
            ROWS=ROWS,
            TOKENS=TOKENS,
            UNITS=UNITS if weight.dtype.itemsize == 2 else UNITS // 2,
            GROUP=TEXTS_A_GROUP,
            num_warps=8,
            num_stages=3,
        )
    if not len(places):
        return maximum, torch.zeros_like(row, dtype=torch.long)
    return maximum, places[row.long()].masked_fill_((starts.diff() == 0).unsqueeze(-1), 0)


@triton.jit  # type: ignore[untyped-decorator]
def _pool_kernel(  # type: ignore[no-untyped-def]  # noqa: ANN202
    states,  # noqa: ANN001
    weight,  # noqa: ANN001
    starts,  # noqa: ANN001
    maximum,  # noqa: ANN001
    row_of_maximum,  # noqa: ANN001
    texts,  # noqa: ANN001
    vocabulary,  # noqa: ANN001
    units,  # noqa: ANN001
    ROWS: tl.constexpr,
    TOKENS: tl.constexpr,
    UNITS: tl.constexpr,
    GROUP: tl.constexpr,
):
    """One text times one tile of the vocabulary: running maxima and rows over the text's rows."""
    tiles = tl.cdiv(vocabulary, TOKENS)
    program = tl.program_id(0)
    group = program // (GROUP * tiles)
    members = tl.minimum(texts - group * GROUP, GROUP)
    text = group * GROUP + (program % (GROUP * tiles)) % members
    token = (program % (GROUP * tiles)) // members * TOKENS + tl.arange(0, TOKENS)
    first, last = tl.load(starts + text), tl.load(starts + text + 1)
    best = tl.full((TOKENS,), float("-inf"), tl.float32)
    where = tl.zeros((TOKENS,), tl.int32)
    in_tile, in_vocabulary = tl.arange(0, ROWS), token < vocabulary
    for start in range(first, last, ROWS):
        rows = start + in_tile
        logits = tl.zeros((ROWS, TOKENS), tl.float32)
        for offset in range(0, units, UNITS):
            unit = offset + tl.arange(0, UNITS)
            left = tl.load(
                states + rows[:, None].to(tl.int64) * units + unit[None, :],
                mask=(rows < last)[:, None] & (unit < units)[None, :],
                other=0.0,
            )
            right = tl.load(
                weight + token[None, :].to(tl.int64) * units + unit[:, None],
                mask=in_vocabulary[None, :] & (unit < units)[:, None],
                other=0.0,
            )
            logits = tl.dot(left, right, logits, input_precision="ieee")
        logits = tl.where(logits == logits, logits, float("inf"))
        logits = tl.where((rows < last)[:, None], logits, float("-inf"))
        value, winner = tl.max(logits, axis=0, return_indices=True)
        where = tl.where(value > best, (start + winner).to(tl.int32), where)
        best = tl.maximum(value, best)
    out = text.to(tl.int64) * vocabulary + token
    tl.store(maximum + out, best, mask=in_vocabulary)
    tl.store(row_of_maximum + out, where, mask=in_vocabulary)
