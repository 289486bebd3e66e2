"""What a dense model and BM25 find for each question among all passages, so that choices need no model that is judged.

Dimensions: P passages, Q questions, H width of the dense model's vectors.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from questions import PER_PASSAGE, Passage

from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.retrieve.search import TopDocuments
from sparse_adapt.teachers.bm25 import Bm25

FIRST = 50  # passages of a question that each of them finds
AT_ONCE = 512  # questions
SAME_QUESTION = 0.85  # cosine from which on two questions say the same


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the row of its passage, and which place the dense model gives that passage among all."""

    text: str
    row: int
    place: int
    asked_elsewhere: bool  # whether a question of another passage says the same

    @property
    def key(self) -> str:
        """What draws depend on."""
        return f"{self.row} {self.text}"


class Finder:
    """All passages and questions with their dense vectors, and BM25's weights of the passages."""

    def __init__(self, passages: Sequence[Passage], cache: Path | None) -> None:
        """`cache`: a folder that keeps dense vectors, for a run that is begun again."""
        self.passages = passages
        dense = DenseEncoder(cache=cache, rough=True)
        read, questions = [], []
        for kind in PER_PASSAGE:
            some = [passage for passage in passages if passage.kind == kind]
            read.append(dense.encode([passage.full_text for passage in some]))
            questions.append(dense.encode([text for passage in some for text in passage.questions]))
        self.read, self.asked = np.concatenate(read), np.concatenate(questions)  # (P, H), (Q, H)
        self.lexical = Bm25.fit([passage.text for passage in passages])
        self.questions = list(self._questions())
        self.rows = {question: row for row, question in enumerate(self.questions)}

    def _questions(self) -> Iterator[Question]:
        pairs = [(row, text) for row, passage in enumerate(self.passages) for text in passage.questions]
        owners = np.array([row for row, _ in pairs])
        for start in range(0, len(pairs), AT_ONCE):
            block = slice(start, start + AT_ONCE)
            scores, alike = self.asked[block] @ self.read.T, self.asked[block] @ self.asked.T
            places = 1 + (scores > scores[np.arange(len(scores)), owners[block]][:, None]).sum(axis=1)
            alike[owners[block][:, None] == owners] = 0.0
            same = alike.max(axis=1) >= SAME_QUESTION
            for (row, text), place, elsewhere in zip(pairs[block], places, same, strict=True):
                yield Question(text, row, int(place), bool(elsewhere))

    def found(self, questions: Sequence[Question]) -> NDArray[np.int64]:
        """The passages that BM25 and the dense model find first, in turns: (questions, 2 FIRST) rows."""
        scores = self.asked[[self.rows[question] for question in questions]] @ self.read.T
        dense = np.argsort(-scores, axis=1, kind="stable")[:, :FIRST]
        rows = np.full((len(questions), 2 * FIRST), -1)
        rows[:, 1::2] = dense
        for place, (best, _) in enumerate(self._by_words(questions, FIRST)):
            rows[place, : 2 * len(best) : 2] = best
        return rows

    def words_suffice(self, questions: Sequence[Question]) -> list[bool]:
        """For which questions BM25 puts the right passage first."""
        first = [best for best, _ in self._by_words(questions, 1)]
        return [question.row in best for question, best in zip(questions, first, strict=True)]

    def _by_words(self, questions: Sequence[Question], count: int) -> list[TopDocuments]:
        return self.lexical.top_k([question.text for question in questions], count)
