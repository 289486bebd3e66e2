"""Terms that a text says, and terms that a query wants: which of them should be active, and how strongly.

Dimensions: Q queries, B documents, D new tokens. A loss term is a scalar: ().
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparse_adapt.model.forms import Form
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.objectives.anchor import AnchoredTexts, CorpusAnchor
from sparse_adapt.objectives.matching import Matching, StepReading
from sparse_adapt.objectives.meanings import new_logits, recall
from sparse_adapt.objectives.scores import CandidateBatch
from sparse_adapt.objectives.targets import Targets
from sparse_adapt.objectives.texts import marks
from sparse_adapt.training import losses


@dataclass(frozen=True, slots=True)
class Hinges:
    """How strongly terms should be active, and by which texts.

    wanted: (all queries, D) terms of a query's relevant documents; unknown: (all documents, D) terms that a document
    may mean though it doesn't say them. `raw`: whether logits are held, or weights, which the form makes.
    """

    targets: Targets
    inactive_weight: float
    raw: bool
    form: Form
    wanted: NDArray[np.bool_]
    unknown: NDArray[np.bool_]

    def values(self, logits: Tensor, queries: int) -> tuple[Tensor, Tensor]:
        """What is held of queries and of documents, of largest raw logits (Q + B, D)."""
        values = logits if self.raw else self.form.activate(logits)
        return values[:queries], values[queries:]


class Teaching(Matching, Protocol):
    """A task that matches queries and documents, and teaches by which texts terms are activated."""

    @property
    def hinges(self) -> Hinges:
        """How strongly terms should be activated, and by which texts."""

    @property
    def anchor(self) -> CorpusAnchor | None:
        """Texts that keep their vectors; None where none do."""

    @property
    def learns_meanings(self) -> bool:
        """Whether synthetic texts teach."""


@dataclass
class TermReading(StepReading):
    """What one step has read, synthetic texts too.

    short: (S, V) weights of the synthetic texts that the anchor holds; maximum: (Q + B + S, V) largest raw logits;
    before: (B, V) weights of the documents before the stage, where the anchor holds them.
    """

    task: Teaching
    drawn: CandidateBatch
    short: Tensor
    short_ids: Sequence[TokenIds]
    maximum: Tensor
    before: Tensor | None

    def moved(self) -> Tensor:
        """How far the texts that the anchor holds are from what they were."""
        if self.task.anchor is None:
            return self.nothing
        assert self.before is not None, "of documents that are held"
        first, count, drawn = len(self.queries), len(self.documents), self.drawn
        unclipped = losses.unclipped(
            self.maximum[first : first + count], self.before, self.encoder.form.activate
        )
        anchored = AnchoredTexts(
            drawn.documents, unclipped, drawn.others, drawn.general, self.short, self.short_ids
        )
        return self.task.anchor.distance(self.encoder, anchored)

    @cached_property
    def new(self) -> Tensor:
        """Largest raw logits of the new tokens: (Q + B + S, D)."""
        first = self.task.matched.documents.first
        return self.maximum[:, first : first + self.task.matched.documents.new]

    @cached_property
    def hinge_values(self) -> tuple[Tensor, Tensor]:
        """What the hinges hold of the new tokens: of queries (Q, D) and of documents (B, D)."""
        count = len(self.queries)
        return self.task.hinges.values(self.new[: count + len(self.documents)], count)

    @cached_property
    def synthetic(self) -> Tensor:
        """Largest raw logits of the new tokens in synthetic texts: (M, D)."""
        read = self.new[len(self.queries) + len(self.documents) :]
        assert self.drawn.samples is not None, "of a step with synthetic texts"
        rest = self.drawn.samples.token_ids[len(read) :]
        return torch.cat([read, new_logits(self.encoder, rest, self.task.matched.documents)])


def domain(read: TermReading) -> Tensor:
    """A term is active where it is said, and inactive where nothing is known of it."""
    hinges, drawn, matched = read.task.hinges, read.drawn, read.task.matched
    queries, documents = read.hinge_values
    targets = hinges.targets
    mentioning_documents = marks(matched.documents.says[drawn.documents], documents)
    mentioning_queries = marks(matched.queries.says[drawn.queries], queries)
    wanted = marks(hinges.wanted[drawn.queries], queries)
    unknown = marks(hinges.unknown[drawn.documents], documents)
    active = losses.hinge_above(documents, mentioning_documents, targets.mention)
    active = active + losses.hinge_above(queries, mentioning_queries, targets.meaning)
    inactive = losses.hinge_below(documents, ~mentioning_documents & ~unknown, targets.none)
    inactive = inactive + losses.hinge_below(queries, ~mentioning_queries & ~wanted, targets.none)
    return active + hinges.inactive_weight * inactive


def expand(read: TermReading) -> Tensor:
    """A query activates the terms that its relevant documents say."""
    hinges, (queries, _) = read.task.hinges, read.hinge_values
    wanted = marks(hinges.wanted[read.drawn.queries], queries)
    return losses.expand_loss(queries - hinges.targets.meaning, wanted)


def recall_term(read: TermReading) -> Tensor:
    """A term is activated by the synthetic texts that mean it, and by no others."""
    task = read.task
    if not task.learns_meanings:
        return read.nothing
    assert read.drawn.samples is not None, "of a step with synthetic texts"
    return recall(read.synthetic, read.drawn.samples, task.hinges.targets, task.hinges.inactive_weight)
