"""The explorer's pages of a query and of a document."""

from sparse_adapt.explore.parts import Addresses, ranking, token_bars
from sparse_adapt.explore.subject import Explored
from sparse_adapt.pages.queries import weigh
from sparse_adapt.pages.states import heat_of_all
from sparse_adapt.report.sections import (
    Field,
    Fold,
    Form,
    Page,
    Part,
    Prose,
    Ranking,
    Rankings,
    Rows,
    Section,
)
from sparse_adapt.report.tables import Column, Row, Table

LONGEST = 2_000  # characters of a query
EXAMPLES = 8


class Missing(Exception):
    """Nothing is at this address."""


def query_page(explored: Explored, at: Addresses, text: str) -> Page:
    """What each model finds for a query, and the query's tokens by weight and by position."""
    text = text[:LONGEST]
    parts: list[Part] = [Form(at.query(), [Field("q", "Query", text)], "Ask")]
    sections = [Section("ask", "Ask", parts)]
    if not text.strip():
        parts.append(Prose("Type a query to see its tokens, and what each model finds and why.", "quiet"))
        parts.append(_examples(explored, at))
        return at.page(explored, "Ask", sections)
    found: list[Ranking] = []
    folds: list[Part] = []
    for name, encoded in explored.encoded.items():
        query = weigh(encoded, text)
        found.append(ranking(explored, at, name, encoded, query))
        tokens = token_bars(explored, at, encoded, query.vector, text)
        folds.append(Fold(name, [tokens, heat_of_all(encoded.model, text, "By position")], open=True))
    sections += [
        Section("found", "What is found", [Rankings(found)]),
        Section("tokens", "What the query weighs", folds),
    ]
    return at.page(explored, text, sections)


def _examples(explored: Explored, at: Addresses) -> Part:
    queries = () if explored.judged is None else explored.judged.queries[:EXAMPLES]
    titles = [document.title for document in explored.documents[:EXAMPLES] if document.title]
    texts = [query.text for query in queries] or titles
    rows: list[Row] = [{"query": text, "to": at.query(text)} for text in texts]
    return Rows(Table("Some to begin with", (Column("query", "query", "text"),), rows), {"query": "to"})


def document_page(explored: Explored, at: Addresses, name: str) -> Page:
    """Where a document's weights come from under each model, and its heaviest tokens."""
    row = explored.rows.get(name)
    if row is None:
        raise Missing
    document, sections = explored.documents[row], []
    for which, encoded in explored.encoded.items():
        heat = heat_of_all(encoded.model, document.full_text, "By position")
        parts: list[Part] = [heat, token_bars(explored, at, encoded, encoded.documents[row])]
        title = f"Under the model {which}" if len(explored.encoded) > 1 else "Weights"
        sections.append(Section(which, title, parts))
    return at.page(explored, document.document_id, sections, document.title)
