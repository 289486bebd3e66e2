"""Queries that won or lost most, each with both rankings side by side, and documents that too many queries find."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from diagnostics.matches import QueryReport, explain, largest_contribution, ranked_document
from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.plugins.pages.subject import EncodedSubject, RunSubject
from sparse_adapt.report.sections import Fold, Part, Prose, Ranking, Rankings, Section, TableRows
from sparse_adapt.report.tables import Column, Row, Table, percentage
from sparse_adapt.retrieve.hybrid import query_vectors
from sparse_adapt.selection.evidence import SYNTHETIC

SHOWN = 5  # queries that won, and as many that lost
TOP = 5  # documents of a ranking
HUBS = 8  # documents that many queries find
FIRST = 10  # documents of a query that people look at
SHARED = 12  # expansions of a query that are told
HEAVIEST = 8  # tokens of a query that stand above its ranking


class QueryVector(NamedTuple):
    """A query and its vector (1, V)."""

    text: str
    vector: csr_matrix


def queries_section(subject: RunSubject) -> Section:
    """The queries that changed most, then hubs."""
    parts: list[Part] = []
    if subject.results is None:
        parts.append(
            Prose("Without judged queries nothing says which of two rankings is the better one.", "quiet")
        )
        parts += [_pair(subject, query, None) for query in subject.own_queries[: 2 * SHOWN]]
    else:
        parts += list(_changed(subject))
    parts.append(TableRows(_hubs(subject)))
    return Section("queries", "Queries", parts)


def _changed(subject: RunSubject) -> Iterator[Part]:
    assert subject.results is not None and subject.judged is not None, "asked before"
    base, final = subject.results
    gaps = final.values[SYNTHETIC.measure] - base.values[SYNTHETIC.measure]
    order = np.argsort(-gaps, kind="stable")
    won = [int(row) for row in order if gaps[row] > 0]
    lost = [int(row) for row in order[::-1] if gaps[row] < 0]
    stayed = len(gaps) - len(won) - len(lost)
    summary = f"Of {len(gaps):,} judged queries {len(won):,} won, {len(lost):,} lost, and {stayed:,} stayed."
    yield Prose(f"{summary} Open one to see both rankings and the tokens that made each document match.")
    for title, rows in (("Won most", won), ("Lost most", lost)):
        if rows:
            yield Prose(title, "title")
        for row in rows[:SHOWN]:
            yield _pair(subject, subject.judged.queries[row], float(gaps[row]))


def _pair(subject: RunSubject, query: Query, gap: float | None) -> Fold:
    """A query under both models, side by side, and what changed in words."""
    grades = None if subject.judged is None else subject.judged.judgements.get(query.query_id)
    models = {"before": subject.base, "after": subject.final}
    queries = {name: weighed(each, query.text) for name, each in models.items()}
    rankings = rankings_of(models, queries, subject.documents, grades)
    firsts = [[document.name for document in each.documents] for each in rankings]
    kind = f"{query.kind}, " if query.kind else ""
    summary = query.text if gap is None else f"{query.text} ({kind}nDCG@10 {gap:+.3f})"
    return Fold(summary, [Prose(_what_changed(*firsts)), Rankings(rankings)])


def weighed(encoded: EncodedSubject, text: str) -> QueryVector:
    """A query as a model weighs it."""
    return QueryVector(text, query_vectors(encoded.model, [text]))


def rankings_of(
    models: Mapping[str, EncodedSubject],
    queries: Mapping[str, QueryVector],
    documents: Sequence[Document],
    grades: Mapping[str, int] | None = None,
    link: Callable[[str], str] = lambda document_id: "",
) -> list[Ranking]:
    """What each model finds, best first, with the tokens that a document shares with the query, all on one scale."""
    found = {name: _found(encoded, queries[name], documents) for name, encoded in models.items()}
    largest = largest_contribution([match for each in found.values() if each for match in each.matches])
    return [_ranking(name, each, largest, grades, link) for name, each in found.items()]


def _found(encoded: EncodedSubject, query: QueryVector, documents: Sequence[Document]) -> QueryReport | None:
    """What a model finds for a query; None for nothing."""
    rows = [int(row) for row in encoded.searcher.top_k(query.vector, TOP)[0][0]]
    if not rows:
        return None
    return explain(
        query.text,
        encoded.model,
        [documents[row] for row in rows],
        len(rows),
        SHARED,
        vectors=encoded.documents[rows],
        vector=query.vector,
    )


def _ranking(
    name: str,
    report: QueryReport | None,
    largest: float,
    grades: Mapping[str, int] | None,
    link: Callable[[str], str],
) -> Ranking:
    if report is None:
        return Ranking(name, [])
    inactive = f"Words without weight: {', '.join(report.inactive)}." if report.inactive else ""
    tokens = ", ".join(f"{token.token} {token.weight:.2f}" for token in report.tokens[:HEAVIEST])
    ranked = [
        replace(
            ranked_document(match, largest),
            relevant=None if grades is None else grades.get(match.document_id, 0) > 0,
            link=link(match.document_id),
            open=place == 0,
        )
        for place, match in enumerate(report.matches)
    ]
    return Ranking(name, ranked, f"The query weighs {report.nonzero:,} tokens: {tokens}. {inactive}".strip())


def _what_changed(before: Sequence[str], after: Sequence[str]) -> str:
    came = [name for name in after if name not in before]
    went = [name for name in before if name not in after]
    if not came and not went:
        same = list(before) == list(after)
        return "The same documents in the same order." if same else "The same documents in another order."
    moves = [
        f"{word}: {', '.join(names)}" for word, names in (("came up", came), ("went down", went)) if names
    ]
    return f"In the first {TOP}, {'; '.join(moves)}."


def _hubs(subject: RunSubject) -> Table:
    """Documents among the first ten of most background queries, after the adaptation, and how many it was before."""
    counts = []
    for encoded in (subject.base, subject.final):
        tops = encoded.searcher.top_k(encoded.background, FIRST)
        rows = np.concatenate([rows for rows, _ in tops]) if tops else np.zeros(0, np.int64)
        counts.append(
            np.bincount(rows, minlength=len(subject.documents)) / max(1, encoded.background.shape[0])
        )
    order = np.argsort(-counts[1], kind="stable")[:HUBS]
    rows_: list[Row] = [
        {
            "document": subject.documents[row].document_id,
            "before": float(counts[0][row]),
            "after": float(counts[1][row]),
            "change": float(counts[1][row] - counts[0][row]),
        }
        for row in map(int, order)
    ]
    columns = (
        Column("document", "document", "text"),
        Column("before", "before", "share", decimals=1),
        Column("after", "after", "share", decimals=1),
        Column("change", "change", "share", decimals=1, signed=True),
    )
    count = subject.final.background.shape[0]
    even = min(1.0, FIRST / max(1, len(subject.documents)))
    note = f"The share of {count:,} background queries, which mean no document, that have it among their first {FIRST}."
    note += f" If all documents were found as often, each would have {percentage(even)}."
    return Table("Documents that background queries find most", columns, rows_, note)
