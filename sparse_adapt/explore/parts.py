"""What several of the explorer's pages show: addresses, tokens with their bars, rankings."""

from typing import NamedTuple
from urllib.parse import quote, urlencode

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.explore.subject import Explored
from sparse_adapt.model.tokens import names_of
from sparse_adapt.pages.queries import Weighed, ranking_of
from sparse_adapt.pages.subject import Encoded
from sparse_adapt.report.sections import Bar, Bars, Page, Part, Prose, Ranking, Section

TOKENS = 25  # of a text


class Addresses(NamedTuple):
    """Where the pages are, below the token that every address begins with."""

    root: str

    def query(self, text: str = "") -> str:
        """The page of a query."""
        return f"{self.root}/?{urlencode({'q': text})}" if text else f"{self.root}/"

    def term(self, token_id: int, **asked: str) -> str:
        """The page of a term."""
        return f"{self.root}/term/{token_id}" + (f"?{urlencode(asked)}" if asked else "")

    def document(self, name: str) -> str:
        """The page of a document."""
        return f"{self.root}/document/{quote(name, safe='')}"

    def page(self, explored: Explored, title: str, sections: list[Section], lead: str = "") -> Page:
        """A page with what leads to the others."""
        links = [("Ask a query", f"{self.root}/"), ("Terms", f"{self.root}/terms")]
        return Page(title, sections, lead or _about(explored), links=links)

    def said(self, explored: Explored, title: str, text: str) -> Page:
        """A page that says one thing: a mistake, or that nothing is here."""
        return self.page(explored, title, [Section("said", title, [Prose(text)])])


def _about(explored: Explored) -> str:
    places = explored.places
    beside = f" beside {places.against}" if places.against is not None else ""
    return f"{places.model}{beside}, {len(explored.documents):,} documents of {places.corpus}"


def token_bars(
    explored: Explored, at: Addresses, encoded: Encoded, vector: csr_matrix, text: str = ""
) -> Part:
    """The heaviest tokens of a vector (1, V); a query's `text` tells which of them it doesn't hold."""
    order = np.argsort(-vector.data, kind="stable")[:TOKENS]
    ids = [int(vector.indices[place]) for place in order]
    said = set(encoded.model.tokenize([text], "query")[0]) if text else set(ids)
    new = {token.token_id for token in encoded.model.new_tokens}
    largest = float(vector.data.max(initial=0.0)) or 1.0
    linked = explored.terms if encoded is explored.main else {}
    bars = [
        Bar(
            name,
            f"{weight:.2f}",
            weight / largest,
            "new term" if token_id in new else "" if token_id in said else "expansion",
            token_id in new,
            at.term(token_id) if token_id in linked else "",
        )
        for token_id, name, weight in zip(
            ids, names_of(encoded.model.tokenizer, ids), vector.data[order].tolist(), strict=True
        )
    ]
    return Bars("By weight", bars, f"{vector.nnz:,} tokens have weight.")


def ranking(explored: Explored, at: Addresses, name: str, encoded: Encoded, query: Weighed) -> Ranking:
    """What one model finds for a query, each document with the tokens that it shares and where to look at it."""
    return ranking_of(name, encoded, query, explored.documents, link=at.document)
