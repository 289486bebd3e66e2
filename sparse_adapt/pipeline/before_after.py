"""What terms that activate less, or more, change, before and after: false activations, texts that say a term, known
items, judged queries.

A term's amount is taken from its logit in every text. Vectors change in the moved terms' own columns alone, so they
follow from the raw logits without encoding anything again, and only queries that touch a column that moved find
anything else. Exact words stay beside them. Dimensions: N texts, T terms, V vocabulary, W with words.
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
from sparse_adapt.model.forms import Side, heaviest
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import group_by_length, pad
from sparse_adapt.model.windows import cut_up
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.columns import beside, only, used_columns
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, ModelResult, evaluate_vectors
from sparse_adapt.selection.retention import background_queries, known_of

TOKENS_A_PASS = 8192
DEPTH = 100  # documents of a query that are looked at
MEASURE, KNOWN = "ndcg@10", "mrr@10"

Logits = NDArray[np.float32]
Amounts = NDArray[np.float32]  # (T) by how much each new term is lowered, in the order of the new tokens


# -- texts ----------------------------------------------------------------------------------------


@torch.inference_mode()
def raw_logits(
    model: SparseEncoder, texts: Sequence[str], side: Side, progress: Progress = no_progress
) -> Logits:
    """The largest logit of each new term in each text: (N, T), negative ones too."""
    if side == "document" and model.windows is not None:
        windows, owners = cut_up(texts, model.tokenizer, model.windows, model.form.prompt(side))
        with model.without_windows():
            of_windows = raw_logits(model, windows, side)
        whole = np.full((len(texts), len(model.new_tokens)), -np.inf, np.float32)
        np.maximum.at(whole, owners, of_windows)
        return whole
    ids = [token.token_id for token in model.new_tokens]
    rows = model.output_rows[ids].float()
    bias = torch.zeros(len(ids)) if model.output_bias is None else model.output_bias[ids].float()
    token_ids = model.tokenize(texts, side)
    best_logits = np.zeros((len(texts), len(ids)), np.float32)
    for group in group_by_length([len(each) for each in token_ids], TOKENS_A_PASS):
        padded, mask = pad([token_ids[row] for row in group], model.tokenizer.pad_token_id or 0)
        states = model.hidden(padded.to(model.device), mask.to(model.device)).float()
        logits = (states @ rows.T + bias).masked_fill(mask.to(model.device)[..., None] == 0, -torch.inf)
        best_logits[group] = logits.max(dim=1).values.cpu().numpy()
        progress(len(group))
    return best_logits


@dataclass(frozen=True)
class EncodedTexts:
    """Texts of one side: their vectors (N, V), the largest logits of the new terms (N, T), exact words (N, W) if any.

    `most`: weights of a text that count beside its words, all by default.
    """

    model: SparseEncoder
    vectors: csr_matrix
    logits: Logits
    words: csr_matrix | None = None
    most: int | None = None

    @classmethod
    def of(
        cls, model: SparseEncoder, texts: Sequence[str], side: Side, progress: Progress = no_progress
    ) -> "EncodedTexts":
        """Encode texts once for every amount."""
        vectors = encode(model, texts, side, progress=progress)
        return cls(model, vectors, raw_logits(model, texts, side))

    @classmethod
    def of_queries(cls, model: SparseEncoder, texts: Sequence[str]) -> "EncodedTexts":
        """Queries, with their exact words where the model has some."""
        words = None if model.words is None else model.words.queries(texts, model.tokenizer)
        return replace(cls.of(model, texts, "query"), words=words)

    @classmethod
    def encoded(cls, model: SparseEncoder, vectors: csr_matrix) -> "EncodedTexts":
        """Texts whose vectors (N, V) are there: logits of 0 and less are told as 0, which is enough to lower terms."""
        ids = _ids(model)
        weights = vectors[:, ids].toarray() / np.maximum(
            model.token_scales_of(ids), np.finfo(np.float32).tiny
        )
        return cls(model, vectors, model.form.largest_logits(torch.from_numpy(weights)).numpy())

    def lowered(self, amounts: Amounts) -> csr_matrix:
        """Their vectors (N, V) with every term lowered by its amount."""
        moved = np.flatnonzero(amounts)
        if not len(moved):
            return self.vectors
        ids = _ids(self.model)[moved]
        block = self.model.form.activate(torch.from_numpy(self.logits[:, moved] - amounts[moved])).numpy()
        block = block * self.model.token_scales_of(ids)
        others = self.vectors.copy()
        is_moved = np.zeros(others.shape[1], np.bool_)
        is_moved[ids] = True
        others.data[is_moved[others.indices]] = 0.0
        rows, columns = np.nonzero(block)
        own = csr_matrix((block[rows, columns], (rows, ids[columns])), shape=others.shape, dtype=np.float32)
        whole = csr_matrix(others + own)
        whole.eliminate_zeros()
        whole.sort_indices()
        return whole

    def searched(self, amounts: Amounts) -> csr_matrix:
        """The same as they are searched: (N, V), or (N, W) with exact words beside the heaviest weights."""
        weights = self.lowered(amounts)
        return weights if self.words is None else beside(heaviest(weights, self.most), self.words, FIRST_WORD)

    def as_it_is(self) -> csr_matrix:
        """The same with no term moved."""
        return self.searched(np.zeros(self.logits.shape[1], np.float32))


def _ids(model: SparseEncoder) -> NDArray[np.int64]:
    return np.array([token.token_id for token in model.new_tokens], np.int64)


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
    texts: EncodedTexts
    documents: csr_matrix

    @classmethod
    def of(cls, name: str, measure: str, collection: Collection, documents: EncodedTexts) -> "EncodedQueries":
        """Encode the queries once for every amount."""
        texts = EncodedTexts.of_queries(documents.model, [query.text for query in collection.queries])
        return cls(name, measure, collection, texts, documents.as_it_is())

    @cached_property
    def before(self) -> ModelResult:
        """The measures of the queries with no term moved."""
        return evaluate_vectors(self.texts.as_it_is(), self.documents, self.collection, DEPTH)

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
        before, vectors = self.texts.as_it_is(), self.texts.searched(amounts)
        moved = used_columns([documents - self.documents, vectors - before])
        rows = np.flatnonzero((only(before, moved) + only(vectors, moved)).getnnz(axis=1))
        if len(rows):
            few = replace(self.collection, queries=tuple(self.collection.queries[row] for row in rows))
            values[rows] = evaluate_vectors(vectors[rows], documents, few, DEPTH).values[self.measure]
        return values


@dataclass(frozen=True)
class Scales:
    """What amounts are weighed by: background queries, the user's own, a corpus, and queries that know their documents.

    background, own: largest logits of the terms in queries (N, T). mentions: which documents say which term (N, T).
    """

    background: Logits
    own: Logits | None = None
    documents: EncodedTexts | None = None
    mentions: NDArray[np.bool_] | None = None
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
        mine = raw_logits(model, own, "query") if own else None
        if not documents:
            return cls(raw_logits(model, background_queries(), "query"), mine)
        texts = EncodedTexts.of(model, [document.full_text for document in documents], "document", progress)
        return replace(cls.over(texts, documents, judged), own=mine)

    @classmethod
    def over(cls, texts: EncodedTexts, documents: Sequence[Document], judged: Collection | None) -> "Scales":
        """The same for documents that are encoded."""
        model = texts.model
        if model.words is not None:
            texts = replace(texts, words=model.words.documents(documents), most=model.words.settings.heaviest)
        mentions = model.new_tokens_in([document.full_text for document in documents])
        items = known_of(documents, np.asarray(mentions.any(axis=1)))
        sets = []
        if items is not None:
            sets.append(EncodedQueries.of("two words of a document, MRR@10", KNOWN, items, texts))
        if judged is not None:
            sets.append(EncodedQueries.of("judged queries, nDCG@10", MEASURE, judged, texts))
        return cls(raw_logits(model, background_queries(), "query"), None, texts, mentions, sets)

    def before_after(self, amounts: Amounts) -> list[BeforeAfter]:
        """Every figure without the amounts (T,) and with them."""
        shares = [
            ("background queries that activate a term", self.background),
            ("your queries that activate a term", self.own),
        ]
        rows = [
            BeforeAfter(name, _active(logits, np.zeros_like(amounts)), _active(logits, amounts), share=True)
            for name, logits in shares
            if logits is not None
        ]
        if self.documents is None or self.mentions is None:
            return rows
        before, after = (np.maximum(self.documents.logits - each, 0.0) for each in (0.0, amounts))
        if self.mentions.any():
            rows.append(_share("documents that say a term and activate it", before, after, self.mentions))
            means = float(before[self.mentions].mean()), float(after[self.mentions].mean())
            rows.append(BeforeAfter("largest logit of a term where it is said", means[0], means[1]))
        rows.append(_share("other documents that activate a term", before, after, ~self.mentions))
        vectors = self.documents.searched(amounts)
        return [
            *rows,
            *(each for queries in self.query_sets for each in queries.before_after(amounts, vectors)),
        ]


def _active(logits: Logits, amounts: Amounts) -> float:
    """The share of texts, with logits (N, T), that activate a term."""
    return float((logits > amounts).any(axis=1).mean()) if len(logits) else 0.0


def _share(name: str, before: Logits, after: Logits, where: NDArray[np.bool_]) -> BeforeAfter:
    """The share of marked pairs (N, T) of a document and a term in which the term is active."""
    pairs = max(1, int(where.sum()))
    shares = [float(((logits > 0) & where).sum()) / pairs for logits in (before, after)]
    return BeforeAfter(name, shares[0], shares[1], share=True)
