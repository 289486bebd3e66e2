"""The queries that gained and lost most against the baseline, and the shared tokens that did it."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from sparse_adapt.plugins.research.suite.rankers import Ranker, Sparse
from sparse_adapt.plugins.research.suite.settings import Suite
from sparse_adapt.retrieve.evaluate import Collection, Measured
from sparse_adapt.retrieve.search import TopDocuments

SHOWN = 3  # queries each way, for each row and collection
TOKENS = 4


class Token(NamedTuple):
    """What a shared token adds to a document's score: in the baseline, and in the row."""

    token: str
    before: float
    after: float


class Change(NamedTuple):
    """A query whose measure differs, and the relevant document whose rank changed most.

    Ranks count from 1; None is beyond what was searched. `tokens` are empty where a row isn't sparse.
    """

    collection: str
    row: str
    query_id: str
    query: str
    before: float
    after: float
    document_id: str
    rank_before: int | None
    rank_after: int | None
    tokens: tuple[Token, ...]


def changes(
    suite: Suite,
    name: str,
    collection: Collection,
    measured: Mapping[str, Measured],
    rankings: Mapping[str, list[TopDocuments]],
    rankers: Mapping[str, Ranker],
) -> Iterator[Change]:
    """For every row but the baseline: what gained most, largest first, then what lost most."""
    base = suite.top.baseline
    before = measured[base].values[suite.top.measure]
    rows_of = {document.document_id: row for row, document in enumerate(collection.documents)}
    for row in suite.rows:
        if row == base:
            continue
        after = measured[row].values[suite.top.measure]
        order = np.argsort(before - after, kind="stable")
        gained = [index for index in order[:SHOWN] if after[index] > before[index]]
        lost = [index for index in order[::-1][:SHOWN] if after[index] < before[index]]
        for index in (*gained, *lost):
            query = collection.queries[index]
            judged = collection.judgements[query.query_id]
            relevant = [rows_of[each] for each, grade in judged.items() if grade > 0 and each in rows_of]
            ranks = [_ranks(rankings[which][index], relevant) for which in (base, row)]
            document = max(relevant, key=lambda each: _moved(ranks[0][each], ranks[1][each]))
            yield Change(
                name,
                row,
                query.query_id,
                query.text,
                float(before[index]),
                float(after[index]),
                collection.documents[document].document_id,
                ranks[0][document],
                ranks[1][document],
                _tokens(rankers.get(base), rankers.get(row), int(index), document),
            )


def _ranks(ranking: TopDocuments, documents: list[int]) -> dict[int, int | None]:
    place = {int(row): rank for rank, row in enumerate(ranking[0], start=1)}
    return {document: place.get(document) for document in documents}


def _moved(before: int | None, after: int | None) -> float:
    """How much a change of rank matters: as nDCG discounts it."""

    def gain(rank: int | None) -> float:
        return 0.0 if rank is None else float(1 / np.log2(1 + rank))

    return abs(gain(after) - gain(before))


def _tokens(base: Ranker | None, row: Ranker | None, query: int, document: int) -> tuple[Token, ...]:
    """The tokens whose contribution to the document's score changed most."""
    if not isinstance(base, Sparse) or not isinstance(row, Sparse):
        return ()
    before, after = (_contributions(each, query, document) for each in (base, row))
    both = [Token(name, before.get(name, 0.0), after.get(name, 0.0)) for name in before | after]
    both.sort(key=lambda token: (-abs(token.after - token.before), token.token))
    return tuple(both[:TOKENS])


def _contributions(ranker: Sparse, query: int, document: int) -> dict[str, float]:
    products = ranker.queries[query].multiply(ranker.documents[document]).tocsr()
    return {
        ranker.names[int(token)]: float(value)
        for token, value in zip(products.indices, products.data, strict=True)
    }
