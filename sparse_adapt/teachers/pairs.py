"""The pairs of a synthetic query and its document that hold.

A title says what its document is about, a sentence often doesn't. A pair stays where at most so many documents score
higher than its own by exact search with a reference encoder (Dai et al. 2022, arXiv:2209.11755).
Dimensions: Q queries, N documents.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.collection.examples import Pair
from sparse_adapt.collection.readers import Document
from sparse_adapt.collection.sentences import language_of
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.synthetic.queries import SyntheticQuery
from sparse_adapt.teachers.teacher import Rank

DEPTH = 10
QUERIES_A_PART = 64


def ranked_by(encoder: EitherEncoder, texts: Sequence[str], progress: Progress = no_progress) -> Rank:
    """How an encoder of either kind scores some texts for queries: (Q, N), by exact products."""
    if isinstance(encoder, SentenceEncoder):
        dense = encoder.encode(texts, progress=progress).T
        return lambda queries: encoder.encode(queries) @ dense
    sparse = encode(encoder, texts, "document", progress=progress).T.tocsr()

    def rank(queries: Sequence[str]) -> NDArray[np.floating]:  # (Q, N)
        return np.asarray((encode(encoder, list(queries), "query") @ sparse).todense())

    return rank


def consistent(
    queries: Sequence[SyntheticQuery],
    documents: Sequence[Document],
    rank: Rank,
    depth: int = DEPTH,
    progress: Progress = no_progress,
    least: float | None = None,
) -> list[Pair]:
    """The queries whose source is among the `depth` best by `rank`, as pairs in their order.

    `least`: the score that a source has at least, a threshold of similarity as published. Documents that score the same
    as the source don't count against it. Queries without a source are left out.
    """
    row_of = {document.document_id: row for row, document in enumerate(documents)}
    pairs: list[Pair] = []
    for start in range(0, len(queries), QUERIES_A_PART):
        part = queries[start : start + QUERIES_A_PART]
        scores = np.asarray(rank([query.text for query in part]))
        for query, row in zip(part, scores, strict=True):
            source = row_of.get(query.document_id)
            if source is None or (least is not None and row[source] < least):
                continue
            if int((row > row[source]).sum()) < depth:
                pairs.append(Pair(query.text, query.document_id, query.query_id))
        progress(len(part))
    return pairs


def in_language(pairs: Sequence[Pair], documents: Sequence[Document], language: str) -> list[Pair]:
    """The pairs that are in a language: told from query and document as one text, since a query is short."""
    text_of = {document.document_id: document.full_text for document in documents}
    languages = (language_of(f"{pair.query} {text_of[pair.document_id]}") for pair in pairs)
    return [pair for pair, own in zip(pairs, languages, strict=True) if own == language]
