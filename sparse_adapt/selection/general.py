"""General questions: how much of what a model knew outside a domain it still finds, and between what a loss lies.

Figures stand for all questions, for those of each kind, and for those of each question word. Dimensions: Q questions.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.collection.readers import Query
from sparse_adapt.report.tables import Retained, Row, Table
from sparse_adapt.retrieve.significance import Values, interval, paired
from sparse_adapt.selection.evidence import GENERAL, Evidence
from sparse_adapt.stages.card import general_columns

RANKED, FIRST = (
    "ndcg@10",
    "p@1",
)  # the measures that are shown: the ranking, and the share of first answers right
ALL, KIND, WORD = "all", "kind", "word"
WORDS = re.compile(r"\b(what|who|whom|whose|when|where|which|why|how)\b", re.IGNORECASE)
SAME_WORD = {"whom": "who", "whose": "who"}
YES_OR_NO = re.compile(
    r"(?:is|are|was|were|do|does|did|can|could|should|would|will|has|have|had|may|must|am)\b", re.IGNORECASE
)


class GeneralRow(NamedTuple):
    """Some general questions: how many, what is reached on them, and between what it or the change lies (95 %).

    `by`: whether all, those of a kind or those of a question word. `low`, `high`: of the change to the baseline, or of
    the model's own mean where there is none; `first` is the share of questions whose first passage is right.
    """

    by: str
    group: str
    questions: int
    model: float
    baseline: float | None
    low: float
    high: float
    first: float
    first_baseline: float | None
    first_low: float
    first_high: float

    @property
    def change(self) -> float:
        """What the model reaches beyond the baseline."""
        assert self.baseline is not None, "asked of one model alone"
        return self.model - self.baseline

    def evidence(self) -> Evidence:
        """The ranking alone, beside the baseline."""
        base = self.model - self.change
        return Evidence(GENERAL.title, self.questions, base, self.model, self.low, self.high)


def question_word(text: str) -> str:
    """The first question word of a text, "yes or no" where it begins with a verb, "other" without either."""
    if YES_OR_NO.match(text):
        return "yes or no"
    match = WORDS.search(text)
    word = "other" if match is None else match.group().lower()
    return SAME_WORD.get(word, word)


def general_rows(
    queries: Sequence[Query], ours: Mapping[str, Values], theirs: Mapping[str, Values] | None
) -> list[GeneralRow]:
    """What is reached on all questions, then on each kind, then on each question word, the most frequent first.

    ours, theirs: the values of both measures (Q), of a model and of a baseline.
    """
    return [
        GeneralRow(
            by,
            name,
            int(chosen.sum()),
            *_figures(RANKED, chosen, ours, theirs),
            *_figures(FIRST, chosen, ours, theirs),
        )
        for by, name, chosen in _parts(queries)
    ]


def _parts(queries: Sequence[Query]) -> Iterator[tuple[str, str, NDArray[np.bool_]]]:
    """By what, the name of a group of questions, and which (Q,) are of it."""
    yield ALL, ALL, np.ones(len(queries), np.bool_)
    for by, names in (
        (KIND, [each.kind for each in queries]),
        (WORD, [question_word(each.text) for each in queries]),
    ):
        counted = sorted({name for name in names if name}, key=lambda name: (-names.count(name), name))
        yield from ((by, name, np.array([each == name for each in names])) for name in counted)


def _figures(
    measure: str, chosen: NDArray[np.bool_], ours: Mapping[str, Values], theirs: Mapping[str, Values] | None
) -> tuple[float, float | None, float, float]:
    """The model's mean over the chosen questions (Q,), the baseline's, and the interval of what tells."""
    model = ours[measure][chosen]
    base = None if theirs is None else theirs[measure][chosen]
    mean = interval(model) if base is None else paired(model, base)
    return float(model.mean()), None if base is None else float(base.mean()), mean.low, mean.high


def general_table(rows: Sequence[GeneralRow]) -> Table:
    """A row for all questions, for each kind and for each question word."""
    compared = bool(rows) and rows[0].baseline is not None
    what = "change of nDCG@10" if compared else "mean of nDCG@10"
    note = f"from, to: the 95 % interval of the {what}, 1.96 standard errors to either side. first right: the share of "
    note += "questions whose first passage is the one that answers them."
    shown: list[Row] = [{**row._asdict(), "change": row.change if compared else None} for row in rows]
    return Table("General questions", general_columns(compared=compared), shown, note)


def read_general_rows(retention: Mapping[str, Retained]) -> list[GeneralRow]:
    """The rows that the figures of a model hold; none of a model that wasn't measured."""
    return [GeneralRow(**row) for row in retention.get(GENERAL.name, {}).get("rows", ())]
