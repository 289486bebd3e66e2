"""Texts as lines of JSON: weights in as few digits as read back the same, in batches that fit one request.

Dimensions: V vocabulary.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document
from sparse_adapt.engines.quantise import Entries

REQUEST_BYTES = 8_000_000  # hosted engines take 10 MB at most a request, others 16 to 100 MB
LONGEST_DECIMAL = 16  # characters of a float32, such as 1.17549435e-38


class LineSize(NamedTuple):
    """How long the lines of an engine are: (V) what stands for each token, and the bytes beside id and entries."""

    keys: Sequence[str]
    frame: int


class ExportBatch(NamedTuple):
    """Texts on their way into a file: ids, weights (rows, V), and what else is stored with each, as fields in JSON."""

    ids: list[str]
    vectors: csr_matrix
    fields: Sequence[str] = ()

    def cut(self, first: int, end: int) -> "ExportBatch":
        """Some of the texts."""
        return ExportBatch(self.ids[first:end], self.vectors[first:end], self.fields[first:end])


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


def text_fields(document: Document) -> str:
    """Title, where there is one, and text of a document as fields in JSON."""
    title = f'"title": {json_string(document.title)}, ' if document.title else ""
    return f'{title}"text": {json_string(document.text)}'


def small_batches(
    batches: Iterable[ExportBatch], line: LineSize, limit: int = REQUEST_BYTES
) -> Iterator[ExportBatch]:
    """The same texts in batches whose lines have at most `limit` bytes, be it only one text that has more."""
    widths = np.array([len(key.encode()) for key in line.keys], np.int64) + LONGEST_DECIMAL + 4
    for batch in batches:
        sizes = _line_bytes(batch, widths) + line.frame
        first, filled = 0, 0
        for row, size in enumerate(sizes.tolist()):
            if filled and filled + size > limit:
                yield batch.cut(first, row)
                first, filled = row, 0
            filled += size
        yield batch.cut(first, len(batch.ids))


def _line_bytes(batch: ExportBatch, widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most that each text's id, entries and further fields can take (rows)."""
    sums = np.concatenate([[0], np.cumsum(widths[batch.vectors.indices])])
    others = [json_string(row_id).encode() for row_id in batch.ids]
    if batch.fields:
        others = [name + field.encode() for name, field in zip(others, batch.fields, strict=True)]
    sizes: NDArray[np.int64] = np.array([len(content) for content in others], np.int64)
    return sizes + sums[batch.vectors.indptr[1:]] - sums[batch.vectors.indptr[:-1]]  # type: ignore[no-any-return]
