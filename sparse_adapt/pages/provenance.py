"""Where a term's weight comes from: the position of a text that lit it, and the lessons that taught it."""

from collections.abc import Iterator, Sequence

from sparse_adapt.pages.influence import influences
from sparse_adapt.pages.states import ends_told, heat_of
from sparse_adapt.pages.subject import Subject
from sparse_adapt.pages.terms import TermFindings
from sparse_adapt.report.html.parts import Bar, Bars, Fold, Part, Prose, Section
from sparse_adapt.report.tables import percentage

TERMS = 6
LESSONS = 5
LONG = 160  # characters of a lesson that are shown
ABOUT = (
    "The figure behind a word of a text is the weight that its position gives the term. A lesson counts as far as one "
    "step on it would have raised the term's logit in the text, summed over the saved models (TracIn); its share is of "
    "all that raised it. The gradient is that of the term's own output row and bias, parameters that no other term "
    "has: what a lesson did to the layers that all terms share isn't counted. Shares lie near to each other, so their "
    "order tells more. A document that says a term counts as a lesson."
)


def provenance_section(subject: Subject, findings: Sequence[TermFindings]) -> Section:
    """For the first terms: a document that says it, a query that means it, an everyday query that lights it."""
    parts: list[Part] = [
        Fold(each.token.term, list(_of_term(subject, each)), open=number == 0)
        for number, each in enumerate(findings[:TERMS])
    ]
    if not parts:
        parts = [Prose("No term was added, so there is no weight to explain.", "quiet")]
    elif not subject.checkpoints:
        parts.append(
            Prose("What the run learnt from is no longer where it was, so no lesson is named.", "quiet")
        )
    else:
        saved, lessons = len(subject.checkpoints), len(subject.lessons)
        ends = ends_told(subject.final.model)
        parts.append(
            Prose(f"{ABOUT} {ends} There were {lessons:,} lessons and {saved} saved models.", "quiet")
        )
    return Section("provenance", "Where the weight comes from", parts)


def _of_term(subject: Subject, each: TermFindings) -> Iterator[Part]:
    for title, text in _texts(subject, each):
        yield heat_of(subject.final.model, text, each.token.token_id, title)
        if subject.checkpoints:
            yield _taught(subject, text, each.token.token_id)


def _texts(subject: Subject, each: TermFindings) -> Iterator[tuple[str, str]]:
    if each.rows:
        document = subject.documents[each.rows[0]]
        yield f"A document that says it: {document.document_id}", document.full_text
    if each.meaning:
        yield "A query that means it", each.meaning[0].text
    if each.strays:
        yield "An everyday query that lights it by mistake", each.strays[0].text


def _taught(subject: Subject, text: str, token_id: int) -> Bars:
    found = influences(subject.checkpoints, subject.lessons, text, token_id)[:LESSONS]
    largest = max((each.share for each in found), default=0.0) or 1.0
    bars = [
        Bar(_short(each.lesson.text), percentage(each.share), each.share / largest, each.lesson.source)
        for each in found
        if each.value > 0
    ]
    return Bars("Lessons that taught it", bars, "" if bars else "No lesson raised it.")


def _short(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 1].rstrip()}…"
