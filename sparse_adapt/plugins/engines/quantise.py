"""Weights as an engine keeps them: whole impacts or floats, and what was rounded, dropped and clipped."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError
from scipy.sparse import csr_matrix

from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.records import Record
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

DEFAULT_SCALE = 100.0
DEFAULT_LARGEST = 65_535


class Quantisation(Record):
    """How a weight becomes an impact: weight x scale, to the nearest integer, ties to even.

    An impact of 0 is dropped, one above `largest` clipped. Scale 100 is what naver/splade recommends for
    Anserini; Pyserini's SPLADE query encoders use 256 / 5. `largest` 255 gives impacts of 8 bits.
    """

    scale: float = Field(default=DEFAULT_SCALE, gt=0, allow_inf_nan=False)
    largest: int = Field(default=DEFAULT_LARGEST, ge=1, le=2**24)

    @classmethod
    def of(cls, scale: float, largest: int = DEFAULT_LARGEST) -> "Quantisation":
        """Settings as a user gives them. Raises ConfigError for those that mean nothing."""
        try:
            return cls(scale=float(scale), largest=largest)
        except ValidationError as error:
            first = error.errors()[0]
            raise ConfigError(f"{first['loc'][0]} {first['input']}: {first['msg'].lower()}") from error

    def impacts(self, block: EncodedBatch) -> "Entries":
        """The impacts of a block of weights. Raises InputError for a weight that is negative or no number."""
        block = _checked(block)
        rounded = np.rint(block.vectors.data.astype(np.float64) * self.scale)
        return _entries(block, rounded, self.largest, np.int32)

    def score(self, impact: float) -> float:
        """What a sum of impact products stands for in terms of weights."""
        return impact / (self.scale * self.scale)


class Entries(NamedTuple):
    """What an engine gets of some texts: ids, and CSR rows (rows, V) without zeros, int32 impacts or float32
    weights; beside them how many positive weights became nothing and how many were clipped.
    """

    ids: list[str]
    vectors: csr_matrix
    dropped: int
    clipped: int

    def rows(self) -> Iterator[tuple[str, list[int], list[Any]]]:
        """Id, token ids and values of each text, as plain lists."""
        bounds = self.vectors.indptr.tolist()
        for row, row_id in enumerate(self.ids):
            inside = slice(bounds[row], bounds[row + 1])
            yield row_id, self.vectors.indices[inside].tolist(), self.vectors.data[inside].tolist()


def as_floats(block: EncodedBatch, largest: float = float(np.finfo(np.float32).max)) -> Entries:
    """The weights themselves, float32, those above `largest` clipped; the same errors as for impacts.

    What is below the smallest normal float32 (1.2e-38) becomes nothing: Lucene refuses it, others disagree on it.
    """
    block = _checked(block)
    values = block.vectors.data
    return _entries(block, np.where(values < np.finfo(np.float32).tiny, 0, values), largest, np.float32)


def _summed(vectors: csr_matrix) -> csr_matrix:
    """The same rows (rows, V) with each token once: entries of one token in one row add up, as scipy does it."""
    if vectors.has_canonical_format:
        return vectors
    vectors = vectors.copy()
    vectors.sum_duplicates()
    return vectors


def _checked(block: EncodedBatch) -> EncodedBatch:
    """A block whose rows have each token once, all weights sound."""
    vectors = _summed(block.vectors)
    wrong = ~((vectors.data >= 0) & np.isfinite(vectors.data))
    if wrong.any():
        entry = int(wrong.argmax())
        row = int(np.searchsorted(vectors.indptr, entry, side="right")) - 1
        raise InputError(
            block.ids[row], f"has the weight {vectors.data[entry]}; encode again with a sound model"
        )
    return EncodedBatch(block.ids, vectors)


def _entries(
    block: EncodedBatch, values: NDArray[np.floating], largest: float, kind: type[np.generic]
) -> Entries:
    """The entries of a block with other values, one for each of its non-zeros (nnz,), clipped and without zeros."""
    vectors = block.vectors
    impacts = np.minimum(values, largest).astype(kind)
    result = csr_matrix((impacts, vectors.indices.copy(), vectors.indptr.copy()), shape=vectors.shape)
    dropped = int((vectors.data > 0).sum() - (impacts > 0).sum())
    result.eliminate_zeros()
    return Entries(block.ids, result, dropped, int((values > largest).sum()))
