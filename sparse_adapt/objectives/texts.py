"""The texts of a stage in the extended vocabulary: what they say, what they are about, what they were before.

Dimensions: B texts, D new tokens, V vocabulary.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from torch import Tensor

from sparse_adapt.model.forms import Side
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds, cut
from sparse_adapt.report.progress import passing
from sparse_adapt.synthetic.background import background_pairs

ROWS_AT_ONCE = 64
READING = "texts read before the first step"
GENERAL = 8  # general passages of a step
GENERAL_ONE_IN = 4  # of the general passages that teach; those of few steps are read once or twice
LONGEST_GENERAL = 64  # tokens of a general passage that are read


class Texts:
    """Token ids of a stage's texts, and which new tokens each of them says."""

    def __init__(
        self,
        encoder: SparseEncoder,
        texts: Sequence[str],
        longest: int | None = None,
        side: Side = "document",
    ) -> None:
        """`longest`: tokens of a text that are read, where not as many as the encoder reads."""
        self.first = encoder.old_size
        self.size = encoder.vocabulary_size
        self.new = len(encoder.new_tokens)
        self.unclipped = encoder.no_token()  # new tokens: of them alone logits below zero count, too
        self.unclipped[self.first : self.first + self.new] = True
        self.pieces = {token.token_id: token.pieces for token in encoder.new_tokens if not token.beside}
        self.ids = cut(encoder.tokenize(texts, side), longest)
        self.old_ids = [encoder.old_tokenization(ids) for ids in self.ids]
        self.entries = encoder.entries
        self.says = encoder.new_tokens_said(self.ids)
        self.saying = np.flatnonzero(self.says.any(axis=1))

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def sources(self) -> Sequence[TokenIds]:
        """Token ids with a new token for each term that a text says, of which synthetic texts are made."""
        if self.entries is None:
            return self.ids
        return [[each for each, _ in self.parts(row)] for row in range(len(self))]

    def parts(self, row: int) -> Iterator[tuple[int, TokenIds]]:
        """A text as its tokens, each with itself, and as the terms that it says beside their pieces, with these."""
        if self.entries is not None:
            return self.entries.parts(self.ids[row])
        return ((token, [token]) for token in self.ids[row])

    def unclipped_beside(self, before: Tensor, others: int) -> Tensor:
        """What is asked of texts that had weights `before` (B, V), and of so many others: logits of what had weight.

        (B + others, V) booleans; those of the new tokens are asked of all.
        """
        return torch.cat([self.unclipped | (before > 0.0), self.unclipped.expand(others, -1)])

    def old_dimensions(self, count: int) -> Tensor:
        """Marks of what was in the vocabulary before, for so many texts: (B, V)."""
        marks = torch.zeros(count, self.size)
        marks[:, : self.first] = 1.0
        return marks

    def comparable(self, rows: Sequence[int]) -> Tensor:
        """Old dimensions (B, V) in which a text should stay what it was: all but the pieces that a token replaces."""
        marks = self.old_dimensions(len(rows))
        for place, row in enumerate(rows):
            for token in np.flatnonzero(self.says[row]):
                marks[place, list(self.pieces.get(self.first + int(token), ()))] = 0.0
        return marks


def general_passages(encoder: SparseEncoder) -> Texts:
    """General passages, which a stage reads so that the model goes on to weigh them as it did.

    They stand by length, so that little is padded where neighbours are read together.
    """
    passages = [passage.full_text for passage, _ in background_pairs()][::GENERAL_ONE_IN]
    lengths = [len(ids) for ids in encoder.tokenize(passages, "document")]
    by_length = sorted(range(len(passages)), key=lambda row: (lengths[row], row))
    return Texts(encoder, [passages[row] for row in by_length], LONGEST_GENERAL)


def some_passages(general: Texts, random: Generator) -> list[int]:
    """Rows of the general passages of a step, which are neighbours: one block of all."""
    block = int(random.integers(0, len(general) // GENERAL))
    return list(range(block * GENERAL, (block + 1) * GENERAL))


def says(token_ids: Sequence[TokenIds], tokens: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which of some tokens each text holds: (B, D) booleans."""
    return np.array([np.isin(tokens, ids) for ids in token_ids], dtype=bool).reshape(
        len(token_ids), len(tokens)
    )


def marks(array: NDArray[np.bool_], beside: Tensor) -> Tensor:
    """A boolean array as a tensor of the same shape, on the device of another."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(beside.device)


class Remembered:
    """Vectors of a frozen encoder, computed when first needed and kept as sparse rows."""

    def __init__(self, encoder: SparseEncoder, token_ids: Sequence[TokenIds], block: int = 1) -> None:
        """`block`: so many neighbours are read together, whichever of them is needed."""
        self.encoder, self.token_ids, self.block = encoder, token_ids, block
        self.rows: dict[int, tuple[Tensor, Tensor]] = {}

    @torch.no_grad()
    def weights(self, rows: Sequence[int]) -> Tensor:
        """Weights of the texts at `rows`: (B, V)."""
        for row in dict.fromkeys(rows):
            if row not in self.rows:  # its block: beside any others its last bits depend on what came before
                block = range(
                    row - row % self.block, min(row - row % self.block + self.block, len(self.token_ids))
                )
                weights = self.encoder.weights([self.token_ids[each] for each in block])
                for each, line in zip(block, weights, strict=True):
                    columns = line.nonzero().squeeze(1)
                    self.rows[each] = (columns, line[columns])
        dense = torch.zeros(len(rows), self.encoder.vocabulary_size, device=self.encoder.device)
        for place, row in enumerate(rows):
            columns, values = self.rows[row]
            dense[place, columns] = values
        return dense


@torch.no_grad()
def vectors(encoder: SparseEncoder, token_ids: Sequence[TokenIds]) -> csr_matrix:
    """Weights of many texts, given as token ids, as sparse rows: (B, V). Who waits for the first step hears of it."""
    advance, parts = passing(READING, len(token_ids)), list[csr_matrix]()
    for start in range(0, len(token_ids), ROWS_AT_ONCE):
        parts.append(csr_matrix(encoder.weights(token_ids[start : start + ROWS_AT_ONCE]).cpu().numpy()))
        advance(parts[-1].shape[0])
    return (
        vstack(parts, format="csr") if parts else csr_matrix((0, encoder.vocabulary_size), dtype=np.float32)
    )
