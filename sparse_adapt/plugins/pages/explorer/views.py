"""The explorer's pages of a query and of a document, and what all its pages share: addresses, tokens, rankings."""

from collections.abc import Container, Iterable
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import urlencode

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.model.exact.words import FIRST_WORD
from sparse_adapt.plugins.pages.explorer.subject import Explored
from sparse_adapt.plugins.pages.queries import rankings_of, weighed
from sparse_adapt.plugins.pages.states import heat_of_all
from sparse_adapt.plugins.pages.subject import EncodedSubject
from sparse_adapt.report.sections import (
    Bar,
    BarList,
    Beside,
    Field,
    Fold,
    Part,
    Prose,
    Rankings,
    Section,
    TableRows,
    WebForm,
    WebPage,
)
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.retrieve.hybrid import names_of_columns

ASK, TERMS = "Ask a query", "Terms"
LONGEST = 2_000  # characters of a query
EXAMPLES = 8
TOKENS = 25  # of a text


class Missing(Exception):
    """Nothing is at this address."""


class Addresses(NamedTuple):
    """Where the pages are, below the token that every address begins with."""

    root: str

    def query(self, text: str = "") -> str:
        """The page of a query."""
        return f"{self.root}/?{urlencode({'q': text})}" if text else f"{self.root}/"

    def term(self, token_id: int, **query: str) -> str:
        """The page of a term."""
        return f"{self.root}/term/{token_id}" + (f"?{urlencode(query)}" if query else "")

    def document(self, name: str) -> str:
        """The page of a document."""
        return f"{self.root}/document?{urlencode({'name': name})}"  # no part of a path: `..` is a name, too

    def page(
        self, explored: Explored, title: str, sections: list[Section], lead: str = "", here: str = ""
    ) -> WebPage:
        """A page with what leads to the others. `here`: the name of the one that it is or belongs to."""
        links = [(ASK, f"{self.root}/"), (TERMS, f"{self.root}/terms")]
        return WebPage(title, sections, lead or _about(explored), links=links, here=here)

    def message_page(self, explored: Explored, title: str, text: str) -> WebPage:
        """A page that says one thing: a mistake, or that nothing is here."""
        return self.page(explored, title, [Section("said", "", [Prose(text)])])


def _about(explored: Explored) -> str:
    places = explored.places
    model = places.model if places.against is None else f"Before: {places.against}. After: {places.model}"
    return f"{model}. {len(explored.documents):,} documents of {places.corpus}."


def token_bars(
    explored: Explored,
    at: Addresses,
    encoded: EncodedSubject,
    vector: csr_matrix,
    largest: float,
    text: str = "",
) -> Part:
    """The heaviest tokens of a vector (1, V); a query's `text` tells which of them it doesn't hold.

    `largest`: the weight of the longest bar.
    """
    order = np.argsort(-vector.data, kind="stable")[:TOKENS]
    ids = [int(vector.indices[place]) for place in order]
    token_ids = set(encoded.model.tokenize([text], "query")[0]) if text else set(ids)
    new = {token.token_id for token in encoded.model.new_tokens}
    linked = explored.terms if encoded is explored.main else {}
    bars = [
        Bar(
            name,
            f"{weight:.2f}",
            weight / largest,
            _origin(token_id, new, token_ids),
            token_id in new,
            at.term(token_id) if token_id in linked else "",
        )
        for token_id, name, weight in zip(
            ids, names_of_columns(encoded.model, ids), vector.data[order].tolist(), strict=True
        )
    ]
    return BarList("By weight", bars, f"{vector.nnz:,} tokens have weight.")


def largest_weight(vectors: Iterable[csr_matrix]) -> float:
    """The largest weight of some vectors, (1, V) each."""
    return max((float(vector.data.max(initial=0.0)) for vector in vectors), default=0.0) or 1.0


def _origin(token_id: int, new: Container[int], said: Container[int]) -> str:
    """What a dimension is besides a token of the text."""
    if token_id >= FIRST_WORD:
        return "exact word"
    return "new term" if token_id in new else "" if token_id in said else "expansion"


def query_page(explored: Explored, at: Addresses, text: str) -> WebPage:
    """What each model finds for a query, and the query's tokens by weight and by position."""
    text = text[:LONGEST]
    parts: list[Part] = [WebForm(at.query(), [Field("q", "Query", text)], "Ask")]
    sections = [Section("ask", "", parts)]
    if not text.strip():
        parts.append(Prose("Type a query to see its tokens, and what each model finds and why.", "quiet"))
        parts.append(_examples(explored, at))
        return at.page(explored, ASK, sections, here=ASK)
    queries = {name: weighed(encoded, text) for name, encoded in explored.encoded.items()}
    largest, grades = largest_weight(query.vector for query in queries.values()), explored.grades(text)
    rankings = rankings_of(explored.encoded, queries, explored.documents, grades, at.document)
    rankings = [replace(each, note="") for each in rankings]  # the query's tokens stand below, all of them
    found: list[Part] = (
        [] if grades is None else [Prose("A judged query: its relevant documents are marked.")]
    )
    folds: list[Part] = []
    for name, encoded in explored.encoded.items():
        tokens = token_bars(explored, at, encoded, queries[name].vector, largest, text)
        folds.append(Fold(name, [tokens, heat_of_all(encoded.model, text, "By position")], open=True))
    sections += [
        Section("found", "What is found", [*found, Rankings(rankings)]),
        Section("tokens", "What the query weighs", [Beside(folds)]),
    ]
    return at.page(explored, text, sections, here=ASK)


def _examples(explored: Explored, at: Addresses) -> Part:
    queries = () if explored.judged is None else explored.judged.queries[:EXAMPLES]
    titles = [document.title for document in explored.documents[:EXAMPLES] if document.title]
    texts = [query.text for query in queries] or titles
    rows: list[Row] = [{"query": text, "to": at.query(text)} for text in texts]
    return TableRows(Table("", (Column("query", "some to begin with", "text"),), rows), {"query": "to"})


def document_page(explored: Explored, at: Addresses, name: str) -> WebPage:
    """Where a document's weights come from under each model, and its heaviest tokens."""
    row = explored.rows.get(name)
    if row is None:
        raise Missing
    document, folds = explored.documents[row], []
    largest = largest_weight(each.documents[row] for each in explored.encoded.values())
    for which, encoded in explored.encoded.items():
        heat = heat_of_all(encoded.model, document.full_text, "By position")
        tokens = token_bars(explored, at, encoded, encoded.documents[row], largest)
        folds.append(Fold(which, [tokens, heat], open=True))
    sections = [Section("weights", "Where its weights come from", [Beside(folds)])]
    return at.page(explored, document.document_id, sections, document.title)
