"""Texts as lines of JSON: weights in as few digits as read back the same, in blocks that fit one request.

Dimensions: V vocabulary.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.engines.quantise import Entries
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

REQUEST_BYTES = 8_000_000  # hosted engines take 10 MB at most a request, others 16 to 100 MB
LONGEST_DECIMAL = 16  # characters of a float32, such as 1.17549435e-38


class LineSize(NamedTuple):
    """How long the lines of an engine are: (V) what stands for each token, and the bytes beside id and entries."""

    keys: Sequence[str]
    frame: int


def rows(entries: Entries) -> Iterator[tuple[str, list[int], list[str]]]:
    """Id, token ids and weights of each text; a weight as the shortest decimal of that float32, in JSON."""
    decimals = entries.vectors.data.astype(f"U{LONGEST_DECIMAL}").tolist()
    bounds = entries.vectors.indptr.tolist()
    for row, row_id in enumerate(entries.ids):
        inside = slice(bounds[row], bounds[row + 1])
        yield row_id, entries.vectors.indices[inside].tolist(), decimals[inside]


def json_string(text: str) -> str:
    """A string in JSON, its letters as they are."""
    return json.dumps(text, ensure_ascii=False)


def json_object(keys: Sequence[str], columns: Sequence[int], weights: Sequence[str]) -> str:
    """Weights by token. keys: (V) the names of all tokens, in JSON already."""
    return f"{{{', '.join(f'{keys[column]}: {weight}' for column, weight in zip(columns, weights, strict=True))}}}"


def vector_lines(keys: Sequence[str], entries: Entries) -> Iterator[str]:
    """Each text that has an entry as {"id": ..., "vector": {token: value, ...}}. keys: (V) names as JSON."""
    for text_id, columns, values in rows(entries):
        if columns:
            yield f'{{"id": {json_string(text_id)}, "vector": {json_object(keys, columns, values)}}}\n'


def small_blocks(
    blocks: Iterable[EncodedBatch], line: LineSize, limit: int = REQUEST_BYTES
) -> Iterator[EncodedBatch]:
    """The same texts in blocks whose lines have at most `limit` bytes, be it only one text that has more."""
    widths = np.array([len(key.encode()) for key in line.keys], np.int64) + LONGEST_DECIMAL + 4
    for block in blocks:
        sizes = _line_bytes(block, widths) + line.frame
        first, filled = 0, 0
        for row, size in enumerate(sizes.tolist()):
            if filled and filled + size > limit:
                yield EncodedBatch(block.ids[first:row], block.vectors[first:row])
                first, filled = row, 0
            filled += size
        yield EncodedBatch(block.ids[first:], block.vectors[first:])


def _line_bytes(block: EncodedBatch, widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most that each text's id and entries can take (rows)."""
    sums = np.concatenate([[0], np.cumsum(widths[block.vectors.indices])])
    ids: NDArray[np.int64] = np.array([len(json_string(row_id).encode()) for row_id in block.ids], np.int64)
    return ids + sums[block.vectors.indptr[1:]] - sums[block.vectors.indptr[:-1]]  # type: ignore[no-any-return]
