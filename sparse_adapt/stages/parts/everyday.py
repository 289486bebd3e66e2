"""Everyday texts that a model shall go on weighing as it did: words of general language as often as people use them.

A corpus holds a domain's words alone, so what it teaches shifts, unseen, what any other word stands for.
Dimensions: B texts, V vocabulary.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch.nn import functional

from sparse_adapt.model.idf import Shares, said_by, shares_of
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.stages.imitate import EVERYDAY
from sparse_adapt.stages.parts.factors import LearntFactors
from sparse_adapt.stages.parts.masked import unmasked
from sparse_adapt.stages.parts.texts import Remembered, vectors
from sparse_adapt.synthetic.everyday import LIKE_PASSAGES, TEXTS, made_up
from sparse_adapt.training.losses import distance


class Everyday(ABC):
    """Made-up texts and what their vectors were before."""

    def __init__(self, token_ids: Sequence[TokenIds]) -> None:
        self.ids = token_ids

    def draw(self, random: Generator) -> list[int]:
        """The rows of a batch's texts."""
        return [int(row) for row in random.choice(len(self.ids), EVERYDAY, replace=False)]

    @abstractmethod
    def distance(
        self,
        encoder: Any,  # noqa: ANN401 - of the kind that they were made for
        rows: list[int],
        factors: LearntFactors | None = None,
    ) -> Tensor:
        """How far the encoder's vectors of these texts are from what they were, as `losses.distance` counts it.

        With factors, of sparse encoders, each token as a match counts it: now, and when they began.
        """

    @abstractmethod
    def share(self, size: int) -> Shares:
        """The share of the texts like passages that have each token of a vocabulary: (size)."""


class SparseEveryday(Everyday):
    """Their weights by the model that knew nothing of the domain."""

    def __init__(self, encoder: SparseEncoder, before: SparseEncoder, seed: int) -> None:
        """`before`: whose vectors are to stay; `encoder` has its vocabulary and more."""
        texts = made_up(TEXTS, seed)
        super().__init__(encoder.tokenize(texts))
        self.before = Remembered(before.requires_grad_(False), before.tokenize(texts))

    def distance(
        self, encoder: SparseEncoder, rows: list[int], factors: LearntFactors | None = None
    ) -> Tensor:
        """Relative to the squared length of the weights before."""
        with torch.no_grad():
            wanted = self.before.weights(rows).to(encoder.device)
            wanted = functional.pad(wanted, (0, encoder.vocabulary_size - wanted.shape[1]))
        found = encoder.weights([self.ids[row] for row in rows])
        if factors is not None:
            found, wanted = factors(found), wanted * factors.start.to(wanted.device)
        return distance(found, wanted)

    def share(self, size: int) -> Shares:
        """Have it in their vectors before."""
        found = shares_of(vectors(self.before.encoder, self.before.token_ids[LIKE_PASSAGES]))
        return np.pad(found, (0, size - len(found)))


class DenseEveryday(Everyday):
    """Their dense vectors by that model."""

    def __init__(self, encoder: SentenceEncoder, before: SentenceEncoder, seed: int) -> None:
        """`before`: whose vectors are to stay."""
        texts = made_up(TEXTS, seed)
        super().__init__(encoder.tokenize(texts))
        self.before, self.before_ids = before.requires_grad_(False), before.tokenize(texts)
        self.count_as(encoder)

    def count_as(self, encoder: SentenceEncoder) -> None:
        """Have the model before count each token in a mean as the encoder does, if that has factors."""
        if encoder.factors is not None:
            self.before.factors = encoder.factors_of()[: self.before.vocabulary_size]

    def distance(
        self, encoder: SentenceEncoder, rows: list[int], factors: LearntFactors | None = None
    ) -> Tensor:
        """Squared distance to the vectors that were, of length 1."""
        with torch.no_grad():
            wanted = unmasked(self.before, [self.before_ids[row] for row in rows]).to(encoder.device)
        return distance(unmasked(encoder, [self.ids[row] for row in rows]), wanted)

    def share(self, size: int) -> Shares:
        """Say it."""
        return said_by(self.ids[LIKE_PASSAGES], size) / len(self.ids[LIKE_PASSAGES])


def everyday_for(encoder: EitherEncoder, before: EitherEncoder | None, seed: int) -> Everyday:
    """For an encoder of either kind; without a model before, what it says now is to stay."""
    match encoder, before or copy.deepcopy(encoder):
        case SparseEncoder(), SparseEncoder() as reference:
            return SparseEveryday(encoder, reference, seed)
        case SentenceEncoder(), SentenceEncoder() as reference:
            return DenseEveryday(encoder, reference, seed)
    raise AssertionError("an extension doesn't make a dense encoder of a sparse one")
