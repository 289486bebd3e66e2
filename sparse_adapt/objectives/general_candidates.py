"""General passages among the candidates of queries, as in a search box that serves more than one corpus.

A stage that compares a corpus's documents with each other alone may lower all of them at once. In an index with other
texts, they then sink below these.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count

import numpy as np
import torch
from numpy.typing import NDArray

from sparse_adapt.collection.examples import Candidates
from sparse_adapt.model.idf import scaled
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.objectives.texts import vectors
from sparse_adapt.synthetic.background import background_pairs


def with_general(
    encoder: SparseEncoder, candidates: Sequence[Candidates], documents: Mapping[str, str], most: int
) -> tuple[list[Candidates], dict[str, str]]:
    """Candidates, to each query's the general passages that the encoder finds first, and the text of these, by id.

    The teacher has not read the passages. Each has the score of the query's least relevant candidate.
    documents: text of every document, by id; most: general passages of a query.
    """
    if not most:
        return list(candidates), {}
    passages = [passage.full_text for passage, _ in background_pairs()]
    names = [_free(f"general passage {number}", documents) for number in range(len(passages))]
    read: dict[str, str] = {}
    beside = []
    passages_first = _found_first(encoder, [entry.query for entry in candidates], passages, most)
    for entry, rows in zip(candidates, passages_first, strict=True):
        read |= {names[row]: passages[row] for row in rows}
        scores = (*entry.teacher_scores, *[min(entry.teacher_scores)] * len(rows))
        ids = (*entry.document_ids, *(names[row] for row in rows))
        beside.append(replace(entry, document_ids=ids, teacher_scores=scores, texts=()))
    return beside, read


def _found_first(
    encoder: SparseEncoder, queries: Sequence[str], passages: Sequence[str], most: int
) -> Iterator[NDArray[np.int64]]:
    """Rows (at most `most`,) of each query's best passages, best first; only of those that share a token with it."""
    read = vectors(encoder, encoder.tokenize(passages, "document"))
    query_vectors = vectors(encoder, encoder.tokenize(queries, "query"))
    if encoder.token_scales is not None:
        read, query_vectors = (scaled(each, encoder.token_scales_of()) for each in (read, query_vectors))
    for query in query_vectors:
        scores = torch.from_numpy((read @ query.T).toarray().ravel())
        best = torch.sort(scores, descending=True, stable=True).indices[:most].numpy()
        yield best[scores.numpy()[best] > 0]


def _free(name: str, taken: Mapping[str, str]) -> str:
    """A name that no document has."""
    return next(free for free in (name + "'" * marks for marks in count()) if free not in taken)
