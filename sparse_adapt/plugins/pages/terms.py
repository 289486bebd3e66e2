"""Each new term: what it was before, where it has weight, what is near it, and who activates it by mistake."""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sparse_adapt.model.encoder import NewToken
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.pages.states import end_tokens_note, heat_of
from sparse_adapt.plugins.pages.subject import RunSubject
from sparse_adapt.report.charts import strip
from sparse_adapt.report.sections import (
    Bar,
    BarList,
    Facts,
    Fold,
    Part,
    Picture,
    Pictures,
    Prose,
    Section,
    TableRows,
)
from sparse_adapt.report.tables import Column, Row, Table, percentage
from sparse_adapt.retrieve.activity import Activity

SHOWN = 40  # terms in full
EXPLAINED = 6  # terms whose weight is shown by position
ABOUT = "The figure behind a word of a text is the weight that its position gives the term."
LISTED = 400  # in the table
NEAREST = 8
FALSE_ACTIVATIONS = 6  # of a term, in words
TICKS = 120  # of a group of the picture
MENTIONS, MEANINGS = "documents that say it", "queries that mean it"
COLUMNS = (
    Column("term", "term", "token"),
    Column("pieces", "pieces before", "token"),
    Column("documents", "documents say it"),
    Column("said", "weight there", decimals=2),
    Column("meant", "weight where it is meant", decimals=2),
    Column("others", "other documents activate it", "share", decimals=1),
    Column("background", "background queries activate it", "share", decimals=1),
)


class ActivatingText(NamedTuple):
    """A text that activates a term and shouldn't, and how much."""

    text: str
    weight: float


class TermFindings(NamedTuple):
    """One new term over the texts of a page. None where nothing says it or means it."""

    token: NewToken
    pieces: str
    rows: list[int]  # documents that say it
    mention_weight: float | None
    meaning_weight: float | None
    meaning: list[ActivatingText]  # queries that mean it, with its weight
    others: float
    background: float
    false_activations: list[ActivatingText]
    own: list[ActivatingText]

    def row(self) -> Row:
        """The findings as a row of the table."""
        return {
            "term": self.token.term,
            "pieces": self.pieces,
            "documents": len(self.rows),
            "said": self.mention_weight,
            "meant": self.meaning_weight,
            "others": self.others,
            "background": self.background,
        }


def find_terms(subject: RunSubject) -> list[TermFindings]:
    """Every new term, those of most documents first."""
    own = Activity.of(subject.final.model, [query.text for query in subject.own_queries], "query")
    findings = [
        _find(subject, place, token, own) for place, token in enumerate(subject.final.model.new_tokens)
    ]
    findings.sort(key=lambda each: (-len(each.rows), each.token.token_id))
    return findings


def _find(subject: RunSubject, place: int, token: NewToken, own: Activity) -> TermFindings:
    """The findings on the new term of a place."""
    documents, queries, background = (
        each.weights[:, place]
        for each in (subject.documents_activity, subject.queries_activity, subject.background_activity)
    )
    says, means = subject.documents_activity.says[:, place], subject.means[:, place]
    asked = [subject.queries_activity.texts[row] for row in np.flatnonzero(means).tolist()]
    return TermFindings(
        token=token,
        pieces=" ".join(subject.final.model.names_of(token.pieces)),
        rows=np.flatnonzero(says).tolist(),
        mention_weight=float(documents[says].mean()) if says.any() else None,
        meaning_weight=float(queries[means].mean()) if means.any() else None,
        meaning=_heaviest(asked, queries[means]),
        others=float((documents[~says] > 0).mean()) if not says.all() else 0.0,
        background=float((background > 0).mean()),
        false_activations=_heaviest(subject.background_texts, background),
        own=_heaviest(own.texts, own.weights[:, place]),
    )


def _heaviest(texts: Sequence[str], weights: NDArray[np.float32]) -> list[ActivatingText]:
    """The texts with the largest weights (texts,), where they have any."""
    order = np.argsort(-weights, kind="stable")[:FALSE_ACTIVATIONS]
    return [ActivatingText(texts[row], float(weights[row])) for row in order if weights[row] > 0]


def terms_section(subject: RunSubject, findings: Sequence[TermFindings]) -> Section:
    """The picture of all terms, their table, and the first of them in full."""
    parts: list[Part] = [Pictures([_picture(subject)])]
    if len(findings) > min(1, SHOWN):  # what is told of a single one in full has every figure
        parts.append(TableRows(_table(findings), {"term": "link"}))
    if not subject.own_queries:
        parts.append(
            Prose(
                "To see which queries of your users activate a term: sparse-adapt report --queries FILE.",
                "quiet",
            )
        )
    nearest = nearest_tokens(subject.final.model, [each.token.token_id for each in findings[:SHOWN]])
    parts += [
        _fold(subject, each, nearest[each.token.token_id], open_=number == 0)
        for number, each in enumerate(findings[:SHOWN])
    ]
    if len(findings) > SHOWN:
        more = f"{len(findings) - SHOWN:,} more terms stand in the table alone; sparse-adapt diagnose TERM shows one."
        parts.append(Prose(more, "quiet"))
    return Section("terms", "Terms", parts, "The words that were given a token of their own.")


def _table(findings: Sequence[TermFindings]) -> Table:
    rows = [
        {**each.row(), "link": f"#{_anchor(each.token)}" if place < SHOWN else ""}
        for place, each in enumerate(findings[:LISTED])
    ]
    note = f"The first {LISTED:,} of {len(findings):,} terms." if len(findings) > LISTED else ""
    return Table("All terms", COLUMNS, rows, note)


def _anchor(token: NewToken) -> str:
    """Where a page tells of a term."""
    return f"term-{token.token_id}"


def _picture(subject: RunSubject) -> Picture:
    """The weights of all terms, by the texts that have them."""
    documents, says = subject.documents_activity.weights, subject.documents_activity.says
    groups: dict[str, list[float]] = {
        MENTIONS: documents[says].tolist(),
        MEANINGS: subject.queries_activity.weights[subject.means].tolist(),
        "other documents": documents[~says].tolist(),
        "background queries": subject.background_activity.weights.ravel().tolist(),
    }
    rows_: list[Row] = [
        {"name": name, "value": round(value, 3)}
        for name, values in groups.items()
        for value in _thinned(values)
    ]
    summary = "; ".join(f"{name}: {_spread(values)}" for name, values in groups.items())
    return strip("Weight of the new terms", rows_, description=f"Weights of the new terms in {summary}")


def _thinned(values: Sequence[float]) -> list[float]:
    """Some of many values, evenly from the sorted ones."""
    ordered = sorted(values)
    return (
        [ordered[int(row)] for row in np.linspace(0, len(ordered) - 1, min(TICKS, len(ordered)))]
        if ordered
        else []
    )


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "none"
    active = sum(value > 0 for value in values)
    return f"{active:,} of {len(values):,} above 0, mean {sum(values) / len(values):.2f}"


def _fold(
    subject: RunSubject, each: TermFindings, nearest: Sequence[tuple[str, float]], *, open_: bool
) -> Fold:
    definition = subject.definitions.get(each.token.term.casefold())
    pairs = [
        ("token", each.token.token),
        ("pieces before", each.pieces),
        ("category", each.token.category or "none"),
        ("definition", "the run was given none" if definition is None else definition.definition),
        ("documents", _documents(subject, each.rows)),
        ("weight where said", _weight(each.mention_weight)),
        ("weight where meant", _weight(each.meaning_weight)),
        ("other documents", f"{percentage(each.others)} activate it"),
        ("nearest tokens", ", ".join(f"{name} {value:.2f}" for name, value in nearest)),
    ]
    title = f"False activations: background queries that activate it ({percentage(each.background)})"
    lists = [
        ("Queries that mean it", each.meaning, "no judged query means it without saying it"),
        (title, each.false_activations, "no background query activates it"),
    ]
    if subject.own_queries:
        lists.append(
            ("Your queries that activate it; is it meant?", each.own, "none of your queries activates it")
        )
    largest = max((text.weight for _, texts, _ in lists for text in texts), default=1.0)
    parts: list[Part] = [Facts(pairs), *(_bars_of_texts(*one, largest) for one in lists)]
    return Fold(each.token.term, parts, open=open_, name=_anchor(each.token))


def _documents(subject: RunSubject, rows: Sequence[int]) -> str:
    names = [subject.documents[row].document_id for row in rows[:5]]
    more = f" and {len(rows) - 5:,} more" if len(rows) > 5 else ""
    return f"{len(rows):,}: {', '.join(names)}{more}" if rows else "none says it"


def _weight(value: float | None) -> str:
    return "in no text of this page" if value is None else f"{value:.2f} on average"


def _bars_of_texts(title: str, texts: Sequence[ActivatingText], without: str, largest: float) -> Part:
    """Texts by the weight that they give a term; `largest`: the weight of the longest bar."""
    if not texts:
        return Prose(f"{title}: {without}.", "quiet")
    return BarList(title, [Bar(each.text, f"{each.weight:.2f}", each.weight / largest) for each in texts])


@torch.inference_mode()
def nearest_tokens(model: SparseEncoder, token_ids: Sequence[int]) -> Mapping[int, list[tuple[str, float]]]:
    """For each token those whose output rows point the same way: their names and cosines, the nearest first."""
    rows = torch.nn.functional.normalize(model.output_rows.float(), dim=1)
    nearest: dict[int, list[tuple[str, float]]] = {}
    for token_id in token_ids:
        best = (rows @ rows[token_id]).topk(NEAREST + 1)
        pairs = [
            (int(other), float(value))
            for value, other in zip(best.values, best.indices, strict=True)
            if int(other) != token_id
        ][:NEAREST]
        names = model.names_of([other for other, _ in pairs])
        nearest[token_id] = [(name, value) for name, (_, value) in zip(names, pairs, strict=True)]
    return nearest


# -- where a weight comes from -------------------------------------------------------------------


def provenance_section(subject: RunSubject, findings: Sequence[TermFindings]) -> Section:
    """For the first terms: a document that says it, a query that means it, a background query that activates it."""
    model = subject.final.model
    parts: list[Part] = []
    for number, each in enumerate(findings[:EXPLAINED]):
        heats: list[Part] = [
            heat_of(model, text, each.token.token_id, title) for title, text in texts_of(subject, each)
        ]
        parts.append(Fold(each.token.term, heats, open=number == 0))
    note = Prose(f"{ABOUT} {end_tokens_note(model)}", "quiet")
    return Section("provenance", "Where the weight comes from", [*parts, note])


def texts_of(subject: RunSubject, each: TermFindings) -> Iterator[tuple[str, str]]:
    """The texts that show most of a term, each under its title."""
    if each.rows:
        document = subject.documents[each.rows[0]]
        yield f"A document that says it: {document.document_id}", document.full_text
    if each.meaning:
        yield "A query that means it", each.meaning[0].text
    if each.false_activations:
        yield "A background query that activates it by mistake", each.false_activations[0].text
