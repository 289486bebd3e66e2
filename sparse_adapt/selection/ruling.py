"""The ruling on an adapted model: made once, from the evidence, and in the same words wherever the model is shown.

Five lines at the most: whether to use the model, what it gains, what it loses, what to beware of, what it costs. A loss
counts that lies beyond chance and beyond half a point; an interval that is merely wide counts as nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from sparse_adapt.report.sections import Facts, Part, Prose, Tone
from sparse_adapt.report.tables import Retained, percentage
from sparse_adapt.selection.evidence import FALSE_ACTIVATIONS, GENERAL, RETAINED, Evidence
from sparse_adapt.selection.general import GeneralRow, read_general_rows
from sparse_adapt.selection.record import RulingRecord
from sparse_adapt.selection.rule import ACTIVATIONS_ENOUGH, MAY_LOSE, decide, falls

Verdict = Literal["use", "use in its domain", "use with care", "judge first", "keep the base model"]

SYNTHETIC = "synthetic"  # in the name of the queries that judge
FEW = 20  # queries from which on an interval says something
SENTENCES: Mapping[Verdict, tuple[str, Tone]] = {
    "use": ("Use it: it ranks better, and no kind of judged query loses by more than chance.", "good"),
    "use in its domain": (
        "Use it for searches of its domain: it ranks better there, and no kind of judged query loses by more than "
        "chance.",
        "good",
    ),
    "use with care": ("Use it with care: it ranks better, but not for every kind of query.", "bad"),
    "judge first": (
        "Judge some queries of your own first: so far too little says whether it ranks better.",
        "quiet",
    ),
    "keep the base model": ("Keep the base model: the adapted one shows no gain beyond chance.", "bad"),
}


class RulingLine(NamedTuple):
    """A sentence of a ruling, what it is about, and whether that is good."""

    about: str
    text: str
    tone: Tone = ""

    def __str__(self) -> str:
        return f"{self.about}: {self.text}" if self.about else self.text


class Ruling(NamedTuple):
    """Whether to use a model, and the lines that say so."""

    verdict: Verdict
    lines: tuple[RulingLine, ...]

    @classmethod
    def of(cls, stored: RulingRecord) -> "Ruling":
        """A ruling as JSON holds it."""
        return cls(stored["verdict"], tuple(RulingLine(**line) for line in stored["lines"]))

    def parts(self) -> list[Part]:
        """What a terminal, a page and a notebook show of it."""
        first, *others = self.lines
        named = [(line.about, line.text) for line in others]
        shown: list[Part] = [Prose(first.text, first.tone)]
        return [*shown, Facts(named, [line.tone for line in others])] if others else shown

    def plain(self) -> RulingRecord:
        """As JSON holds it."""
        return {"verdict": self.verdict, "lines": [line._asdict() for line in self.lines]}


class Case(NamedTuple):
    """The evidence of a ruling.

    gains: what both models reach on judged queries, all of them first, then each kind; judged_by: which queries.
    retention: what is left of the base model's knowledge, by kind of query. weights: of a document, before and after.
    encode: which documents to encode again. kept: why the base model is kept, where it is.
    """

    gains: Sequence[Evidence] = ()
    judged_by: str = ""
    retention: Mapping[str, Retained] = {}
    weights: tuple[float, float] | None = None
    encode: str = "encode every document again"
    kept: str = ""


def rule(case: Case) -> Ruling:
    """Whether to use an adapted model, and why."""
    if case.kept:
        text = f"The base model is kept, as it was: {case.kept}."
        return Ruling("keep the base model", (RulingLine("", text, "quiet"),))
    verdict = _verdict(case)
    lines = [RulingLine("", *SENTENCES[verdict]), *_gained(case), *_lost(case), *_beware(case), _costs(case)]
    return Ruling(verdict, tuple(lines))


def _verdict(case: Case) -> Verdict:
    if not case.gains or decide(case.gains).deciding.queries < FEW:
        return "judge first"
    if not decide(case.gains).deciding.gains:
        return "judge first" if case.gains[0].gain > MAY_LOSE else "keep the base model"
    general = read_general_rows(case.retention)
    if _fallen(case) or (general and _falls(general[0])):
        return "use with care"
    return "use in its domain" if _activated(case) > ACTIVATIONS_ENOUGH else "use"


# -- lines ----------------------------------------------------------------------------------------


def _gained(case: Case) -> Iterator[RulingLine]:
    """The measure of all judged queries, with its interval, and before and after of each kind."""
    if not case.gains:
        return
    whole, *kinds = case.gains
    text = f"{_signed(whole.gain)} points of nDCG@10 on {whole.queries:,} {_queries(case)}, between "
    text += f"{_signed(whole.low)} and {_signed(whole.high)} at 95 % ({_both(whole.base, whole.model)})"
    by_kind = ", ".join(f"{each.kind} {_both(each.base, each.model)}" for each in kinds)
    tone: Tone = "good" if whole.low > 0 else "bad" if whole.high < 0 else ""
    yield RulingLine("gained", f"{text}; {by_kind}" if by_kind else text, tone)


def _queries(case: Case) -> str:
    return "synthetic queries" if SYNTHETIC in case.judged_by else "judged queries"


def _lost(case: Case) -> Iterator[RulingLine]:
    """What is lost at the most on general questions, and what else falls."""
    general, parts = read_general_rows(case.retention), list[str]()
    if general:
        parts.append(_at_most(general[0]))
    fallen = [f"nDCG@10 of {each.kind} queries {_both(each.base, each.model)}" for each in _fallen(case)]
    fallen += _less(case.retention)
    parts += fallen
    bad = bool(fallen or (general and _falls(general[0])))
    if parts:
        yield RulingLine("lost", "; ".join(parts), "bad" if bad else "")


def _at_most(whole: GeneralRow) -> str:
    before = "" if whole.baseline is None else f" ({_both(whole.baseline, whole.model)})"
    questions = f"{whole.questions:,} general questions"
    return f"at most {100 * whole.most:.1f} points of nDCG@10 on {questions}, at 95 %{before}"


def _less(retention: Mapping[str, Retained]) -> Iterator[str]:
    """Other knowledge of the base model of which less is left, beyond chance and half a point."""
    for kind in RETAINED:
        if kind.name not in retention or (kind.name, kind.measure) == (GENERAL.name, GENERAL.measure):
            continue
        if falls(kind.evidence(retention)):
            yield f"{kind.title} {_both(*kind.figures(retention))}"


def _beware(case: Case) -> Iterator[RulingLine]:
    parts = []
    if _activated(case) > ACTIVATIONS_ENOUGH:
        parts.append(
            f"{percentage(_activated(case))} of general questions activate a new term, though none means it "
            "(sparse-adapt calibrate lowers a term)"
        )
    if case.gains and SYNTHETIC in case.judged_by:
        parts.append("synthetic queries promise more than real ones give, so judge some of your own")
    if not case.gains:
        parts.append("there are no judged queries; fifty of your own would tell")
    elif case.gains[0].queries < FEW:
        parts.append(f"{case.gains[0].queries:,} judged queries are too few to tell")
    if not read_general_rows(case.retention):
        parts.append("nobody asked it general questions (sparse-adapt evaluate --general general does)")
    if parts:
        yield RulingLine("beware", "; ".join(parts), "bad" if _activated(case) > ACTIVATIONS_ENOUGH else "")


def _costs(case: Case) -> RulingLine:
    if case.weights is None:
        return RulingLine("costs", case.encode)
    before, after = case.weights
    return RulingLine("costs", f"{before:.0f} to {after:.0f} weights a document; {case.encode}")


# -- figures --------------------------------------------------------------------------------------


def _fallen(case: Case) -> list[Evidence]:
    """Kinds of judged query that lose beyond chance and half a point."""
    return list(filter(falls, decide(case.gains).fallen)) if case.gains else []


def _falls(whole: GeneralRow) -> bool:
    """Whether general questions lose beyond chance and half a point."""
    return whole.baseline is not None and whole.high < 0 and whole.change < -MAY_LOSE


def _activated(case: Case) -> float:
    """The share of general questions that activate a new term."""
    return FALSE_ACTIVATIONS.figures(case.retention)[1] if FALSE_ACTIVATIONS.name in case.retention else 0.0


def _both(before: float, after: float) -> str:
    return f"{before:.3f} to {after:.3f}"


def _signed(gain: float) -> str:
    return f"{100 * gain:+.1f}"
