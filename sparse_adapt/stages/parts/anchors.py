"""An anchor in the corpus: texts like queries and documents keep the vectors that they had.

Dimensions: B documents, S made-up texts, V vocabulary.
"""

from typing import TYPE_CHECKING, Protocol

import torch
from numpy.random import Generator
from torch import Tensor

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.stages.parts.texts import GENERAL, Remembered, Texts
from sparse_adapt.training import losses

if TYPE_CHECKING:
    from sparse_adapt.stages.parts.six_terms import SixTermsReading

LIT, QUIET = (
    0.1,
    -1.0,
)  # what a general passage's logit of a new token counts, and up to which it counts nothing
SHORT = 8  # made-up texts that the anchor holds, besides documents: the first, which are everyday ones


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

    def distance(self, read: "SixTermsReading") -> Tensor:
        """How far texts like queries and documents are from what they were.

        Documents that the step has read aren't read again.
        """
        short = read.short_ids
        place = {row: number for number, row in enumerate(read.drawn.documents)}
        again = [row for row in read.drawn.others if row in place]
        fresh = [row for row in read.drawn.others if row not in place]
        with torch.no_grad():
            short_before = self.reference.weights(short)
            before = self.before.weights([*fresh, *again])
        kept = torch.ones(before.shape[1], device=before.device)
        kept[self.documents.first :] = 0.0
        if self.penalty is not None:
            kept = kept * (1.0 - self.penalty.to(before.device))
        fresh_before = before[: len(fresh)]
        general = read.drawn.general
        with torch.no_grad():
            general_before = self.general_before.weights(general)
        beside = torch.cat([fresh_before, general_before])
        ids = [self.documents.ids[row] for row in fresh] + [self.general.ids[row] for row in general]
        logits = read.encoder(ids, self.documents.asked_beside(beside, 0)).maximum
        unread, of_general = losses.unclipped(logits, beside, read.encoder.form.activate).split(
            [len(fresh), len(general)]
        )
        found = torch.cat([unread, read.unclipped_documents[[place[row] for row in again]]])
        far = len(found) * losses.drift(found, before, kept)
        moved = losses.drift(of_general, general_before, torch.ones_like(kept)) + self._lit(
            logits[len(fresh) :]
        )
        if short:
            far = far + len(short) * losses.distance(read.short, short_before, kept)
        return moved + far / (len(found) + len(short))

    def _lit(self, logits: Tensor) -> Tensor:
        """How brightly general passages (B, V) light new tokens, which none of them means."""
        new = slice(self.documents.first, self.documents.first + self.documents.new)
        found = logits[:, new]
        return LIT * losses.hinge_below(found, torch.ones_like(found, dtype=torch.bool), QUIET)


class Anchored(Protocol):
    """A step with texts that are held."""

    def moved(self) -> Tensor:
        """How far they are from what they were; zero where none are held."""


def anchor(read: Anchored) -> Tensor:
    """Distance of held texts to the vectors that they had."""
    return read.moved()
