"""The explorer's pages of all terms and of one: its false activations, what activated it, and a slider that lowers or
raises it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sparse_adapt.errors import ModelError
from sparse_adapt.model.encoder import NewToken
from sparse_adapt.pipeline.before_after import Amounts, SearchedTexts
from sparse_adapt.pipeline.calibrate import check_calibrates, tabulate_before_after
from sparse_adapt.plugins.pages.explorer.subject import Explored
from sparse_adapt.plugins.pages.explorer.views import TERMS, Addresses, Missing
from sparse_adapt.plugins.pages.queries import TOP
from sparse_adapt.plugins.pages.states import heat_of
from sparse_adapt.plugins.pages.terms import nearest_tokens
from sparse_adapt.report.sections import (
    Bar,
    BarList,
    Facts,
    Field,
    Part,
    Prose,
    RankedDocument,
    Ranking,
    Rankings,
    Section,
    TableRows,
    WebForm,
    WebPage,
)
from sparse_adapt.report.tables import Column, Row, Table, percentage
from sparse_adapt.retrieve.activity import Floats, weights_of
from sparse_adapt.retrieve.search import Searcher

FALSE_ACTIVATIONS = 10
LISTED = 500  # terms, and documents of a term
SLIDER = "slider"  # the anchor of the section to which its own forms lead back
COMPARED = {"before": "as it is", "after": "with this"}  # of the slider; the models are before and after, too
STEPS = 100  # of a slider
ENDS = ("raised", "lowered")  # of the slider, whose middle leaves a term as it is


def terms_page(explored: Explored, at: Addresses) -> WebPage:
    """Every new term with the share of background queries that activate it."""
    if not explored.terms:
        return at.message_page(explored, TERMS, "This model was given no new term.")
    shares = explored.scales.background.active.mean(axis=0)
    order = np.argsort(-shares, kind="stable")[:LISTED]
    tokens = explored.main.model.new_tokens
    rows: list[Row] = [
        {
            "term": tokens[place].term,
            "documents": int(explored.says[:, place].sum()),
            "background": float(shares[place]),
            "to": at.term(tokens[place].token_id),
        }
        for place in map(int, order)
    ]
    columns = (
        Column("term", "term", "token"),
        Column("documents", "documents say it"),
        Column("background", "background queries activate it", "share", decimals=1),
    )
    note = "Background queries are words of general English that mean no document."
    if len(tokens) > LISTED:
        note += f" The first {LISTED:,} of {len(tokens):,}, most false activations first."
    table = TableRows(Table("", columns, rows, note), {"term": "to"})
    return at.page(explored, TERMS, [Section("terms", "", [table])], here=TERMS)


def term_page(
    explored: Explored, at: Addresses, token_id: int, amount: float, text: str, saved: str = ""
) -> WebPage:
    """One term: what it stands for, the slider, its false activations, and where it is said."""
    token = explored.terms.get(token_id)
    if token is None:
        raise Missing
    sections = [
        Section("about", "About", [_about(explored, token)]),
        Section(SLIDER, "Lower or raise it", _slider(explored, at, token, amount, text, saved)),
        Section("false_activations", "False activations", _false_activations(explored, at, token)),
        Section("where", "Where it is said", _where(explored, at, token)),
    ]
    return at.page(explored, token.term, sections, here=TERMS)


def _about(explored: Explored, token: NewToken) -> Part:
    model = explored.main.model
    definition = explored.definitions.get(token.term.casefold())
    nearest = nearest_tokens(model, [token.token_id])[token.token_id]
    return Facts(
        [
            ("token", token.token),
            ("pieces before", " ".join(model.names_of(token.pieces))),
            ("category", token.category or "none"),
            ("definition", "none is known" if definition is None else definition.definition),
            ("nearest tokens", ", ".join(f"{name} {value:.2f}" for name, value in nearest)),
        ]
    )


# -- the slider -----------------------------------------------------------------------------------


def amounts_with(explored: Explored, token: NewToken, amount: float) -> Amounts:
    """The amounts (T,) that lower one of the T new terms and leave the others."""
    amounts = np.zeros(len(explored.main.model.new_tokens), np.float32)
    amounts[_place(explored, token)] = amount
    return amounts


def _slider(
    explored: Explored, at: Addresses, token: NewToken, amount: float, text: str, saved: str
) -> list[Part]:
    try:
        check_calibrates(explored.main.model, explored.places.model)
    except ModelError as error:
        return [Prose(f"{error}.", "quiet")]
    amounts, logits = amounts_with(explored, token, amount), _logits(explored, token)
    most = max(1.0, float(np.ceil(logits.max(initial=0.0))))
    fields = [
        Field("amount", "Lowered by", f"{amount:g}", (-most, most, round(2 * most / STEPS, 3)), ends=ENDS),
        Field("q", "A query to try it on", text),
    ]
    parts: list[Part] = [Prose(f"Saved as {saved}.", "good")] if saved else []
    parts.append(WebForm(f"{at.term(token.token_id)}#{SLIDER}", fields, "Show"))
    table = tabulate_before_after(explored.scales.before_after(amounts))
    columns = tuple(replace(each, title=COMPARED.get(each.key, each.title)) for each in table.columns)
    parts.append(TableRows(replace(table, columns=columns)))
    if text.strip():
        parts.append(
            Rankings([_with(explored, at, each, text) for each in (np.zeros_like(amounts), amounts)])
        )
    if amount:
        named = [
            Field("amount", "", f"{amount:g}", hidden=True),
            Field("name", "Folder for the model", f"calibrated-{token.token_id}"),
        ]
        parts.append(WebForm(f"{at.term(token.token_id)}/save", named, "Save as a model", posts=True))
    return parts


def _with(explored: Explored, at: Addresses, amounts: Amounts, text: str) -> Ranking:
    """What the model finds for a query with its terms lowered by some amounts (T,)."""
    documents = explored.scales.documents
    assert documents is not None, "scales of a corpus"
    query = SearchedTexts.of_queries(explored.main.model, [text]).searched(amounts)
    grades = explored.grades(text)
    rows, scores = Searcher(documents.searched(amounts)).top_k(query, TOP)[0]
    found = []
    for row, score in zip(rows, scores, strict=True):
        document = explored.documents[int(row)]
        relevant = None if grades is None else grades.get(document.document_id, 0) > 0
        link = at.document(document.document_id)
        found.append(RankedDocument(document.document_id, document.title, f"{score:.2f}", relevant, [], link))
    return Ranking(COMPARED["after" if amounts.any() else "before"], found)


# -- false activations, and where it is said -----------------------------------------------------------------


def _false_activations(explored: Explored, at: Addresses, token: NewToken) -> list[Part]:
    logits = _logits(explored, token)
    order = [int(row) for row in np.argsort(-logits, kind="stable")[:FALSE_ACTIVATIONS] if logits[row] > 0]
    if not order:
        return [Prose("No background query activates it.", "quiet")]
    texts, largest = explored.scales.background.texts, float(logits[order[0]])
    bars = [
        Bar(texts[row], f"{logits[row]:.1f}", float(logits[row]) / largest, link=at.query(texts[row]))
        for row in order
    ]
    share = float((logits > 0).mean())
    title = f"{percentage(share)} of {len(logits):,} background queries activate it; those with the largest logits"
    return [
        BarList(title, bars),
        heat_of(explored.main.model, texts[order[0]], token.token_id, "What activated it in the first"),
    ]


def _where(explored: Explored, at: Addresses, token: NewToken) -> list[Part]:
    rows: Sequence[int] = np.flatnonzero(explored.says[:, _place(explored, token)]).tolist()
    if not rows:
        return [Prose("No document says it.", "quiet")]
    weights = weights_of(explored.main.documents[rows], [[token.token_id]])[:, 0]
    names = [explored.documents[row].document_id for row in rows]
    places: list[Row] = [
        {"document": name, "weight": float(weight), "to": at.document(name)}
        for name, weight in zip(names[:LISTED], weights[:LISTED], strict=True)
    ]
    columns = (Column("document", "document", "text"), Column("weight", "weight", decimals=2))
    best = explored.documents[rows[int(weights.argmax())]]
    heat = heat_of(
        explored.main.model, best.full_text, token.token_id, f"What activated it in {best.document_id}"
    )
    return [heat, TableRows(Table("Documents", columns, places), {"document": "to"})]


def _place(explored: Explored, token: NewToken) -> int:
    return explored.main.model.new_tokens.index(token)


def _logits(explored: Explored, token: NewToken) -> Floats:
    """The largest logit of a term in each background query, 0 where it isn't active: (queries,)."""
    return np.asarray(explored.scales.background.positive_logits[:, _place(explored, token)])
