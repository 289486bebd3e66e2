"""Texts that keep the vectors that they had: documents of the corpus, and texts of general language.

A corpus holds a domain's words alone, so what it teaches shifts, unseen, what any other word stands for.
Dimensions: B texts, V vocabulary. A distance is a scalar: ().
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch.nn import functional

from sparse_adapt.model.idf import Shares, shares_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.objectives.matching import Matching, StepReading
from sparse_adapt.objectives.scores import CandidateBatch
from sparse_adapt.objectives.texts import GENERAL, Remembered, Texts, vectors
from sparse_adapt.objectives.token_scales import LearntScales
from sparse_adapt.synthetic.background import LIKE_PASSAGES, TEXTS, synthetic
from sparse_adapt.training import losses

BACKGROUND = 32  # background texts of a step


class Background(ABC):
    """Synthetic texts and what their vectors were before."""

    def __init__(self, token_ids: Sequence[TokenIds]) -> None:
        self.ids = token_ids

    def draw(self, random: Generator) -> list[int]:
        """The rows of a batch's texts."""
        return [int(row) for row in random.choice(len(self.ids), BACKGROUND, replace=False)]

    @abstractmethod
    def distance(
        self,
        encoder: Any,  # noqa: ANN401 - of the kind that they were made for
        rows: list[int],
        token_scales: LearntScales | None = None,
    ) -> Tensor:
        """How far the encoder's vectors of these texts are from what they were, as `losses.distance` counts it.

        With token scales, of sparse encoders, each token as a match counts it: now, and when they began.
        """

    @abstractmethod
    def share(self, size: int) -> Shares:
        """The share of the texts like passages that have each token of a vocabulary: (size)."""


class SparseBackground(Background):
    """Their weights by the model that knew nothing of the domain."""

    def __init__(self, encoder: SparseEncoder, before: SparseEncoder, seed: int) -> None:
        """`before`: whose vectors are to stay; `encoder` has its vocabulary and more."""
        texts = synthetic(TEXTS, seed)
        super().__init__(encoder.tokenize(texts))
        self.before = Remembered(before.requires_grad_(False), before.tokenize(texts))

    def distance(
        self, encoder: SparseEncoder, rows: list[int], token_scales: LearntScales | None = None
    ) -> Tensor:
        """Relative to the squared length of the weights before."""
        with torch.no_grad():
            wanted = self.before.weights(rows).to(encoder.device)
            wanted = functional.pad(wanted, (0, encoder.vocabulary_size - wanted.shape[1]))
        weights = encoder.weights([self.ids[row] for row in rows])
        if token_scales is not None:
            weights, wanted = token_scales(weights), wanted * token_scales.start.to(wanted.device)
        return losses.distance(weights, wanted)

    def share(self, size: int) -> Shares:
        """Have it in their vectors before."""
        shares = shares_of(vectors(self.before.encoder, self.before.token_ids[LIKE_PASSAGES]))
        return np.pad(shares, (0, size - len(shares)))


ACTIVATION = 0.1  # what a general passage's logit of a new token counts
INACTIVE = -1.0  # the logit up to which it counts nothing
SHORT = 8  # synthetic texts that the anchor holds, besides documents: the first, which are background ones


class AnchoredTexts(NamedTuple):
    """What a step holds: its documents with their weights (B, V), synthetic texts with theirs (S, V), and others.

    documents, others: rows of the corpus's documents; general: rows of general passages.
    unclipped: (B, V) weights that go on below zero where there was weight before.
    """

    documents: Sequence[int]
    unclipped: Tensor
    others: Sequence[int]
    general: Sequence[int]
    short: Tensor
    short_ids: Sequence[TokenIds]


class CorpusAnchor:
    """Documents as a frozen encoder has them, and what of them may change: new tokens, and penalised ones."""

    def __init__(
        self, reference: SparseEncoder, documents: Texts, general: Texts, penalty: Tensor | None
    ) -> None:
        """penalty: (V) in [0, 1], how far each token of a document is free to change; of a general passage none is."""
        self.reference, self.documents, self.penalty = reference, documents, penalty
        self.before = Remembered(reference, documents.ids)
        self.general, self.general_before = general, Remembered(reference, general.ids, GENERAL)

    def draw(self, queries: int, random: Generator) -> list[int]:
        """Rows of documents beside a step of so many queries."""
        return [int(row) for row in random.choice(len(self.documents), max(1, queries // 2))]

    def distance(self, encoder: SparseEncoder, texts: "AnchoredTexts") -> Tensor:
        """How far texts like queries and documents are from what they were.

        Documents that the step has read aren't read again.
        """
        short = texts.short_ids
        place = {row: number for number, row in enumerate(texts.documents)}
        again = [row for row in texts.others if row in place]
        fresh = [row for row in texts.others if row not in place]
        with torch.no_grad():
            short_before = self.reference.weights(short)
            before = self.before.weights([*fresh, *again])
        factors = torch.ones(before.shape[1], device=before.device)
        factors[self.documents.first :] = 0.0
        if self.penalty is not None:
            factors = factors * (1.0 - self.penalty.to(before.device))
        fresh_before = before[: len(fresh)]
        general = texts.general
        with torch.no_grad():
            general_before = self.general_before.weights(general)
        beside = torch.cat([fresh_before, general_before])
        ids = [self.documents.ids[row] for row in fresh] + [self.general.ids[row] for row in general]
        logits = encoder(ids, self.documents.unclipped_beside(beside, 0)).maximum
        unread, of_general = losses.unclipped(logits, beside, encoder.form.activate).split(
            [len(fresh), len(general)]
        )
        unclipped = torch.cat([unread, texts.unclipped[[place[row] for row in again]]])
        far = len(unclipped) * losses.drift(unclipped, before, factors)
        moved = losses.drift(of_general, general_before, torch.ones_like(factors)) + self._active(
            logits[len(fresh) :]
        )
        if short:
            far = far + len(short) * losses.distance(texts.short, short_before, factors)
        return moved + far / (len(unclipped) + len(short))

    def _active(self, logits: Tensor) -> Tensor:
        """How strongly general passages (B, V) activate new tokens, which none of them means."""
        new = slice(self.documents.first, self.documents.first + self.documents.new)
        new_logits = logits[:, new]
        return ACTIVATION * losses.hinge_below(
            new_logits, torch.ones_like(new_logits, dtype=torch.bool), INACTIVE
        )


class Anchored(Protocol):
    """A step with texts that are held."""

    def moved(self) -> Tensor:
        """How far they are from what they were; zero where none are held."""


def anchor(read: Anchored) -> Tensor:
    """Distance of held texts to the vectors that they had."""
    return read.moved()


class BackgroundTask(Matching, Protocol):
    """A task that matches queries and documents while background texts keep their vectors."""

    @property
    def background(self) -> SparseBackground | None:
        """The background texts; None where none are held."""


@dataclass
class BackgroundReading(StepReading):
    """What one step has read, with rows of background texts beside it."""

    task: BackgroundTask
    drawn: CandidateBatch

    def moved(self) -> Tensor:
        """How far background texts are from the vectors that they had."""
        if self.task.background is None:
            return self.nothing
        return self.task.background.distance(self.encoder, self.drawn.others, self.task.token_scales)
