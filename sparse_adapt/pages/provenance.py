"""Where a term's weight comes from: the position of a text that lit it."""

from collections.abc import Iterator, Sequence

from sparse_adapt.pages.states import ends_told, heat_of
from sparse_adapt.pages.subject import Subject
from sparse_adapt.pages.terms import TermFindings
from sparse_adapt.report.sections import Fold, Part, Prose, Section

TERMS = 6
ABOUT = "The figure behind a word of a text is the weight that its position gives the term."


def provenance_section(subject: Subject, findings: Sequence[TermFindings]) -> Section:
    """For the first terms: a document that says it, a query that means it, an everyday query that lights it."""
    model = subject.final.model
    parts: list[Part] = []
    for number, each in enumerate(findings[:TERMS]):
        heats: list[Part] = [
            heat_of(model, text, each.token.token_id, title) for title, text in texts_of(subject, each)
        ]
        parts.append(Fold(each.token.term, heats, open=number == 0))
    told = f"{ABOUT} {ends_told(model)}" if parts else "No term was added, so there is no weight to explain."
    return Section("provenance", "Where the weight comes from", [*parts, Prose(told, "quiet")])


def texts_of(subject: Subject, each: TermFindings) -> Iterator[tuple[str, str]]:
    """The texts that show most of a term, each under its title."""
    if each.rows:
        document = subject.documents[each.rows[0]]
        yield f"A document that says it: {document.document_id}", document.full_text
    if each.meaning:
        yield "A query that means it", each.meaning[0].text
    if each.strays:
        yield "An everyday query that lights it by mistake", each.strays[0].text
