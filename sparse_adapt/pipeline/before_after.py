"""What terms that activate less, or more, change, before and after: false activations, texts that say a term, known
items, judged queries.

A term's amount is taken from its logit in every text. Vectors change in the moved terms' own columns alone, so they
follow from logits without encoding anything again, and only queries that touch a column that moved find anything
else. Exact words stay beside them. Dimensions: N texts, T terms, V vocabulary, W with words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document
from sparse_adapt.model.exact.words import FIRST_WORD
from sparse_adapt.model.forms import heaviest
from sparse_adapt.model.idf import scaled
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.activity import Activity, Bools, Floats, background_queries
from sparse_adapt.retrieve.columns import beside, only, used_columns
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, ModelResult, evaluate_vectors
from sparse_adapt.selection.retention import known_of

DEPTH = 100  # documents of a query that are looked at
MEASURE, KNOWN = "ndcg@10", "mrr@10"

Amounts = NDArray[np.float32]  # (T) by how much each new term is lowered, in the order of the new tokens


def logits_less(texts: Activity, amounts: Amounts) -> Floats:
    """The largest logits of terms that are lowered by amounts: (N, T), right where they are above 0.

    A term that is raised may activate any text, so all of them are read; else their weights tell.
    """
    return np.asarray((texts.logits if (amounts < 0).any() else texts.positive_logits) - amounts)


def lowered(texts: Activity, amounts: Amounts) -> csr_matrix:
    """The vectors of texts (N, V) with every term lowered by its amount."""
    moved = np.flatnonzero(amounts)
    if not len(moved):
        return texts.vectors
    model, ids = texts.model, np.array(texts.tokens, np.int64)[moved]
    block = model.form.activate(torch.from_numpy(logits_less(texts, amounts)[:, moved])).numpy()
    block = block * model.token_scales_of(ids)
    others = texts.vectors.copy()
    is_moved = np.zeros(others.shape[1], np.bool_)
    is_moved[ids] = True
    others.data[is_moved[others.indices]] = 0.0
    rows, columns = np.nonzero(block)
    own = csr_matrix((block[rows, columns], (rows, ids[columns])), shape=others.shape, dtype=np.float32)
    whole = csr_matrix(others + own)
    whole.eliminate_zeros()
    whole.sort_indices()
    return whole


@dataclass(frozen=True)
class SearchedTexts:
    """What texts activate, and their exact words (N, W) if any.

    `most`: weights of a text that count beside its words, all by default.
    """

    activity: Activity
    words: csr_matrix | None = None
    most: int | None = None

    @classmethod
    def of_queries(cls, model: SparseEncoder, texts: Sequence[str]) -> "SearchedTexts":
        """Queries, with their exact words where the model has some."""
        words = None if model.words is None else model.words.queries(texts, model.tokenizer)
        return cls(Activity.of(model, texts, "query"), words)

    @classmethod
    def of_documents(cls, texts: Activity, documents: Sequence[Document]) -> "SearchedTexts":
        """The same of documents, whose heaviest weights alone count beside words."""
        words = texts.model.words
        return (
            cls(texts) if words is None else cls(texts, words.documents(documents), words.settings.heaviest)
        )

    def searched(self, amounts: Amounts) -> csr_matrix:
        """Their vectors with every term lowered by its amount: (N, V), or (N, W) with exact words beside."""
        weights = lowered(self.activity, amounts)
        return weights if self.words is None else beside(self._kept(weights), self.words, FIRST_WORD)

    def _kept(self, weights: csr_matrix) -> csr_matrix:
        """The `most` heaviest weights (N, V), as heavy as they are without token scales."""
        model = self.activity.model
        if self.most is None or model.token_scales is None:
            return heaviest(weights, self.most)
        scales = model.token_scales_of()
        inverse = np.divide(1.0, scales, out=np.zeros_like(scales), where=scales > 0)
        return scaled(heaviest(scaled(weights, inverse), self.most), scales)

    @cached_property
    def as_it_is(self) -> csr_matrix:
        """The same with no term moved."""
        return self.searched(np.zeros(len(self.activity.tokens), np.float32))


# -- figures --------------------------------------------------------------------------------------


class BeforeAfter(NamedTuple):
    """One figure before and after: `share` tells a share of texts from a measure or a weight."""

    name: str
    before: float
    after: float
    share: bool = False


@dataclass(frozen=True)
class EncodedQueries:
    """Queries whose relevant documents are known, and the measure of the documents as they are."""

    name: str
    measure: str
    collection: Collection
    texts: SearchedTexts
    documents: csr_matrix

    @classmethod
    def of(
        cls, name: str, measure: str, collection: Collection, documents: SearchedTexts
    ) -> "EncodedQueries":
        """The queries over documents, encoded once for every amount."""
        model, texts = documents.activity.model, [query.text for query in collection.queries]
        return cls(name, measure, collection, SearchedTexts.of_queries(model, texts), documents.as_it_is)

    @cached_property
    def before(self) -> ModelResult:
        """The measures of the queries with no term moved."""
        return evaluate_vectors(self.texts.as_it_is, self.documents, self.collection, DEPTH)

    def before_after(self, amounts: Amounts, documents: csr_matrix) -> list[BeforeAfter]:
        """The measure before and after, of all queries and of each kind where there are several.

        documents: (N, V or W) as they are searched then.
        """
        after = self._after(amounts, documents)
        kinds = self.before.kinds if len(self.before.kinds) > 1 else ()
        chosen = [(self.name, np.ones(len(after), np.bool_))]
        chosen += [
            (f"  {kind}", np.array([each.kind == kind for each in self.before.queries])) for kind in kinds
        ]
        values = self.before.values[self.measure]
        return [
            BeforeAfter(name, float(values[rows].mean()), float(after[rows].mean())) for name, rows in chosen
        ]

    def _after(self, amounts: Amounts, documents: csr_matrix) -> NDArray[np.float64]:
        """The measure of each query (queries,) with terms moved: another one only where it touches what moved."""
        values = self.before.values[self.measure].copy()
        before, vectors = self.texts.as_it_is, self.texts.searched(amounts)
        moved = used_columns([documents - self.documents, vectors - before])
        rows = np.flatnonzero((only(before, moved) + only(vectors, moved)).getnnz(axis=1))
        if len(rows):
            few = replace(self.collection, queries=tuple(self.collection.queries[row] for row in rows))
            values[rows] = evaluate_vectors(vectors[rows], documents, few, DEPTH).values[self.measure]
        return values


@dataclass(frozen=True)
class Scales:
    """What amounts are weighed by: background queries, the user's own, a corpus, queries that know their documents."""

    background: Activity
    own: Activity | None = None
    documents: SearchedTexts | None = None
    query_sets: Sequence[EncodedQueries] = ()

    @classmethod
    def of(
        cls,
        model: SparseEncoder,
        own: Sequence[str] = (),
        documents: Sequence[Document] = (),
        judged: Collection | None = None,
        progress: Progress = no_progress,
    ) -> "Scales":
        """Encode everything once."""
        mine = Activity.of(model, own, "query") if own else None
        if not documents:
            return cls(_background(model), mine)
        texts = [document.full_text for document in documents]
        vectors = encode(model, texts, "document", progress=progress)
        activity = Activity.of(model, texts, "document", vectors=vectors)
        return replace(cls.over(activity, documents, judged), own=mine)

    @classmethod
    def over(cls, texts: Activity, documents: Sequence[Document], judged: Collection | None) -> "Scales":
        """The same for documents that are encoded."""
        items = known_of(documents, texts.says_any)
        searched = SearchedTexts.of_documents(texts, documents)
        sets = []
        if items is not None:
            sets.append(EncodedQueries.of("two words of a document, MRR@10", KNOWN, items, searched))
        if judged is not None:
            sets.append(EncodedQueries.of("judged queries, nDCG@10", MEASURE, judged, searched))
        return cls(_background(texts.model), None, searched, sets)

    def before_after(self, amounts: Amounts) -> list[BeforeAfter]:
        """Every figure without the amounts (T,) and with them."""
        shares = [
            ("background queries that activate a term", self.background),
            ("your queries that activate a term", self.own),
        ]
        nothing = np.zeros_like(amounts)
        rows = [
            BeforeAfter(name, _active(queries, nothing), _active(queries, amounts), share=True)
            for name, queries in shares
            if queries is not None
        ]
        if self.documents is None:
            return rows
        texts, says = self.documents.activity, self.documents.activity.says
        before, after = (np.maximum(logits_less(texts, each), 0.0) for each in (nothing, amounts))
        if says.any():
            rows.append(_share("documents that say a term and activate it", before, after, says))
            means = float(before[says].mean()), float(after[says].mean())
            rows.append(BeforeAfter("largest logit of a term where it is said", means[0], means[1]))
        rows.append(_share("other documents that activate a term", before, after, ~says))
        vectors = self.documents.searched(amounts)
        return [
            *rows,
            *(each for queries in self.query_sets for each in queries.before_after(amounts, vectors)),
        ]


def _background(model: SparseEncoder) -> Activity:
    return Activity.of(model, background_queries(), "query")


def _active(queries: Activity, amounts: Amounts) -> float:
    """The share of queries that activate a term."""
    return float((logits_less(queries, amounts) > 0).any(axis=1).mean()) if queries.texts else 0.0


def _share(name: str, before: Floats, after: Floats, where: Bools) -> BeforeAfter:
    """The share of marked pairs (N, T) of a document and a term in which the term is active."""
    pairs = max(1, int(where.sum()))
    shares = [float(((logits > 0) & where).sum()) / pairs for logits in (before, after)]
    return BeforeAfter(name, shares[0], shares[1], share=True)
