"""Queries whose candidates a teacher has scored, some of them at a time, and what is learnt from these scores.

Three loss terms compare a student's scores with the teacher's: `kd`, `rank` and `contrast`. They need no vocabulary, so
encoders of either kind learn by them. Dimensions: Q queries, N candidates each; a loss term is a scalar, ().
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.synthetic.windows import Samples
from sparse_adapt.training import losses

SCALE_QUERIES = 300  # queries from which the scale is taken, where there are more


@dataclass(frozen=True, slots=True)
class Drawn:
    """Queries, the documents of all their candidates once each, and where each candidate is among these."""

    queries: list[int]
    documents: list[int]
    places: Tensor  # (Q, N) into `documents`
    teacher: Tensor  # (Q, N)
    present: Tensor  # (Q, N), False where a query has fewer candidates

    def beside(
        self, others: list[int], general: list[int] | None = None, samples: Samples | None = None
    ) -> "CandidateBatch":
        """The same with texts that are read beside it."""
        shared = self.queries, self.documents, self.places, self.teacher, self.present
        return CandidateBatch(*shared, others, general or [], samples)


@dataclass(frozen=True, slots=True)
class CandidateBatch(Drawn):
    """Queries with their candidates, and the texts beside them that a stage reads.

    others: rows of documents or background texts that an anchor holds; general: rows of general passages.
    """

    others: list[int]
    general: list[int]
    samples: Samples | None


class Scored:
    """Candidates and the rows of their documents."""

    def __init__(self, candidates: Sequence[Candidates], document_ids: Sequence[str]) -> None:
        """`document_ids`: of the documents in their order; the candidates are among them."""
        self.candidates = candidates
        self.row = {document_id: row for row, document_id in enumerate(document_ids)}

    def draw(self, count: int, random: Generator) -> Drawn:
        """Queries drawn without repetition, each with all of its candidates."""
        count = min(count, len(self.candidates))
        return self.of(sorted(int(row) for row in random.choice(len(self.candidates), count, replace=False)))

    def evenly(self) -> Drawn:
        """Queries from which a scale is taken: all, or some of many."""
        among = np.linspace(0, len(self.candidates) - 1, SCALE_QUERIES).round().astype(int)
        return self.of([int(row) for row in np.unique(among)])

    def of(self, queries: list[int]) -> Drawn:
        """These queries with all of their candidates."""
        chosen = [self.candidates[row] for row in queries]
        documents = sorted({self.row[name] for entry in chosen for name in entry.document_ids})
        place = {row: index for index, row in enumerate(documents)}
        width = max(len(entry.document_ids) for entry in chosen)
        places = torch.zeros(len(chosen), width, dtype=torch.long)
        teacher = torch.zeros(len(chosen), width)
        present = torch.zeros(len(chosen), width, dtype=torch.bool)
        for row, entry in enumerate(chosen):
            count = len(entry.document_ids)
            places[row, :count] = torch.tensor([place[self.row[name]] for name in entry.document_ids])
            teacher[row, :count] = torch.tensor(entry.teacher_scores)
            present[row, :count] = True
        return Drawn(queries, documents, places, teacher, present)

    def relevant(self, drawn: Drawn) -> Tensor:
        """Which candidates the teacher finds relevant: (Q, N) booleans."""
        relevant = torch.zeros_like(drawn.present)
        for place, row in enumerate(drawn.queries):
            good = relevant_to(self.candidates[row])
            relevant[place, : len(good)] = torch.from_numpy(good)
        return relevant

    def scale(self, drawn: Drawn, scores: Tensor) -> losses.Scale:
        """How teacher scores map to a student's scores (Q, N) of the same candidates."""
        teacher = [score for row in drawn.queries for score in self.candidates[row].teacher_scores]
        return losses.Scale.between(teacher, scores[drawn.present].tolist())

    def compared(self, scores: Tensor, drawn: Drawn, comparison: "ScoreComparison") -> "Compared":
        """A student's scores (Q, N) beside the teacher's, where the student is."""
        device = scores.device
        positive = self.relevant(drawn).to(device)
        return Compared(comparison, scores, drawn.teacher.to(device), drawn.present.to(device), positive)


@dataclass(frozen=True, slots=True)
class ScoreComparison:
    """How scores are held against a teacher's: see the settings of these names."""

    kd: Literal["mse", "margin_mse", "kl"]
    temperature: float
    scale: losses.Scale | None  # None where the teacher's scores are taken as they come
    tau: float = 1.0
    margin: float = 0.0


@dataclass(frozen=True, slots=True)
class Compared:
    """The scores of one step: the student's and the teacher's, all (Q, N), and how they are compared."""

    comparison: ScoreComparison
    student: Tensor
    teacher: Tensor
    present: Tensor  # False where a query has fewer candidates
    positive: Tensor  # candidates that the teacher finds relevant


class Scores(Protocol):
    """A step that has scored candidates."""

    @property
    def compared(self) -> Compared:
        """Its scores beside the teacher's."""


def kd(read: Scores) -> Tensor:
    """Distance of the student's scores to the teacher's."""
    scores = read.compared
    how, wanted = scores.comparison, scores.teacher
    if how.scale is not None:
        wanted = losses.rescaled(wanted, how.scale)
    if how.kd == "kl":
        return losses.kl(scores.student, wanted, scores.present, how.temperature)
    return losses.KD[how.kd](scores.student, wanted, scores.present)


def rank(read: Scores) -> Tensor:
    """The teacher's best candidate before the others."""
    scores = read.compared
    return losses.rank_loss(scores.student, scores.teacher, scores.present, scores.comparison.tau)


def contrast(read: Scores) -> Tensor:
    """Relevant candidates a margin above the others."""
    scores = read.compared
    return losses.contrast_loss(scores.student, scores.positive, scores.present, scores.comparison.margin)


def relevant_to(entry: Candidates) -> NDArray[np.bool_]:
    """Which candidates (N,) the teacher finds relevant: those in the upper half of its range for this query."""
    scores = np.array(entry.teacher_scores)
    return np.asarray(scores > (scores.max() + scores.min()) / 2)


def with_theirs(documents: Mapping[str, str], candidates: Sequence[Candidates]) -> dict[str, str]:
    """Documents by id, those that the candidates bring along too."""
    whole = dict(documents)
    for entry in candidates:
        for name, text in zip(entry.document_ids, entry.texts, strict=False):
            whole.setdefault(name, text)
    return whole
