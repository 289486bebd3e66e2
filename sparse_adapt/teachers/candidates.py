"""Queries and the documents that a student learns to tell apart: `candidates.jsonl` with a teacher's scores.

Each query has documents that the teacher ranks high, documents that the student ranks high, and random ones. A
query stays only where the teacher, too, finds the document that it was made from, its source (Dai et al. 2022,
arXiv:2209.11755): a sentence that could be about anything teaches nothing. The source itself is left out
unless it is asked for: it shares the query's words, and real needs are worded by others. What the teacher
scores near the source may be relevant: it is left out, or kept with its score where the loss takes scores. Of a query
that says less than it means, such as an acronym, the teacher reads the meaning, and the student learns what it finds.
Dimensions: Q queries, N documents.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.collection.readers import Document
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.synthetic.queries import SyntheticQuery
from sparse_adapt.teachers.settings import CandidateSettings as Settings
from sparse_adapt.teachers.teacher import RerankedQuery, Teacher, not_a_score

QUERIES_A_PART = 32
FEWEST = 2  # documents: one by itself says nothing of ranking


class Gathered(NamedTuple):
    """Candidates by query, the source or the teacher's best first, and the queries that were left out."""

    candidates: list[Candidates]
    left_out: list[SyntheticQuery]


def gather(
    queries: Sequence[SyntheticQuery],
    documents: Sequence[Document],
    teacher: Teacher,
    settings: Settings,
    progress: Progress = no_progress,
) -> Gathered:
    """Candidates for every query whose source the teacher finds. One without a source takes the teacher's best.

    Raises InputError, with query and document, for a score that isn't a number.
    """
    row_of = {document.document_id: row for row, document in enumerate(documents)}
    candidates: list[Candidates] = []
    left_out: list[SyntheticQuery] = []
    for start in range(0, len(queries), QUERIES_A_PART):
        part = queries[start : start + QUERIES_A_PART]
        to_rerank = [RerankedQuery(query.query_id, query.meaning or query.text) for query in part]
        teacher_scores = teacher.scores(to_rerank, documents)
        student_scores = np.asarray(teacher.student([query.text for query in part]))
        for place, query in enumerate(part):
            seed = int.from_bytes(query.query_id.encode()[-6:], "big")
            random = default_rng([settings.seed, 2, seed])  # of the query, wherever it stands
            source = row_of.get(query.document_id)
            ranked = _Ranked(teacher_scores[place], student_scores[place], source)
            reranked = _reranked(ranked, to_rerank[place], documents, teacher, settings, random)
            if reranked is None:
                left_out.append(query)
                continue
            rows, scores = _chosen(*reranked, ranked, settings, random)
            if len(rows) < FEWEST:
                left_out.append(query)
                continue
            names = tuple(documents[row].document_id for row in rows)
            candidates.append(Candidates(query.query_id, query.text, names, tuple(map(float, scores))))
        progress(len(part))
    return Gathered(candidates, left_out)


class _Ranked(NamedTuple):
    """One query's scores (N) by teacher and student, and the row of its source."""

    teacher: NDArray[np.floating]
    student: NDArray[np.floating]
    source: int | None


def _reranked(
    ranked: _Ranked,
    query: RerankedQuery,
    documents: Sequence[Document],
    teacher: Teacher,
    settings: Settings,
    random: Generator,
) -> tuple[int, NDArray[np.floating]] | None:
    """The source's row and every document's score (N), -inf for what a reranker wasn't shown.

    None where the teacher doesn't find the source among its best.
    """
    scores = ranked.teacher.astype(np.float64)
    if teacher.reranker is not None:
        shown = np.union1d(_best(ranked.teacher, settings.depth), _best(ranked.student, settings.depth))
        shown = np.union1d(shown, random.choice(len(scores), min(settings.count, len(scores)), replace=False))
        shown = shown if ranked.source is None else np.union1d(shown, [ranked.source])
        of_teacher = np.array(
            teacher.reranker.score(query, [documents[row] for row in shown]), dtype=np.float64
        )
        if not teacher.reranker.knows_all:
            shown, of_teacher = shown[~np.isnan(of_teacher)], of_teacher[~np.isnan(of_teacher)]
        for row, score in zip(shown, of_teacher, strict=True):
            if not np.isfinite(score):
                raise not_a_score(teacher.name, score, query, documents[int(row)])
        scores = np.full(len(scores), -np.inf)
        scores[shown] = of_teacher
    source = int(scores.argmax()) if ranked.source is None else ranked.source
    better = int((scores > scores[source]).sum())
    lost = not np.isfinite(scores[source]) or better >= settings.consistent
    return None if lost else (source, scores)


def _chosen(
    source: int, scores: NDArray[np.floating], ranked: _Ranked, settings: Settings, random: Generator
) -> tuple[list[int], NDArray[np.floating]]:
    """Rows of the candidates (n,), the source first or else the teacher's best, and their scores (n,), of all (N,)."""
    known = np.isfinite(scores)
    near = scores > scores[source] - settings.near * (scores[source] - scores[known].mean())
    allowed = known & ~near if settings.near_ones == "drop" else known.copy()
    allowed[source] = False
    if settings.source == "drop" and ranked.source is not None:
        rows = [int(row) for row in _best(np.where(allowed, scores, -np.inf), 1) if allowed[row]]
    else:
        rows = [source]
    sources = (
        (_best(np.where(allowed, scores, -np.inf), settings.depth), settings.from_teacher),
        (_best(np.where(allowed, ranked.student, -np.inf), settings.depth), settings.from_student),
        (np.flatnonzero(allowed), settings.count),
    )
    for pool, wanted in sources:
        left = [int(row) for row in pool if allowed[row] and row not in rows]
        count = min(wanted, len(left), settings.count - len(rows))
        rows += [int(row) for row in random.choice(left, count, replace=False)] if count > 0 else []
    return rows, scores[rows]


def _best(scores: NDArray[np.floating], k: int) -> NDArray[np.int64]:
    """Rows (k,) of the highest scores (N,), best first, ties in document order."""
    if k < len(scores):
        threshold = np.partition(scores, len(scores) - k)[len(scores) - k]
        rows = np.flatnonzero(scores >= threshold)
    else:
        rows = np.arange(len(scores))
    return rows[np.argsort(-scores[rows], kind="stable")][:k]
