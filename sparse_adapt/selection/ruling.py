"""The verdict on an adapted model in words: made once, of evidence alone, and the same wherever the model is shown.

Six lines at the most: whether to use the model, what it gains, what it loses, what to beware of, what it costs, and why
it was selected. A loss counts that lies beyond chance and beyond half a point; an interval that is merely wide counts
as nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from sparse_adapt.report.sections import Facts, Part, Prose, Tone
from sparse_adapt.report.tables import percentage
from sparse_adapt.selection.evidence import GENERAL, IN_OTHER_WORDS, KNOWN_ITEMS, Evidence
from sparse_adapt.selection.record import Chosen, RulingRecord, has_words
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

    gains: what both models reach on judged queries, all of them first, then each kind; judged_by: which queries; among:
    of which part of a large corpus, in words. retained: what is left of the base model's knowledge, general questions
    first; activated: the share of these that activate a new term. weights: of a document, before and after. encode:
    which documents to encode again. choice: of an adaptation, what was tried, which is selected, and the evidence.
    """

    gains: Sequence[Evidence] = ()
    judged_by: str = ""
    retained: Sequence[Evidence] = ()
    activated: float = 0.0
    weights: tuple[float, float] | None = None
    encode: str = "encode every document again"
    choice: Chosen | None = None
    among: str = ""


def rule(case: Case) -> Ruling:
    """Whether to use an adapted model, and why."""
    selected = [] if case.choice is None else list(_selected(case.choice))
    if case.choice is not None and case.choice["kept"] == 0:
        text = f"The base model is kept, as it was: {_why_base(case.choice)}."
        return Ruling("keep the base model", (RulingLine("", text, "quiet"), *selected))
    verdict = _verdict(case)
    lines = [RulingLine("", *SENTENCES[verdict]), *_gained(case), *_lost(case), *_beware(case), _costs(case)]
    return Ruling(verdict, (*lines, *selected))


def _verdict(case: Case) -> Verdict:
    if not case.gains or decide(case.gains).deciding.queries < FEW:
        return "judge first"
    if not decide(case.gains).deciding.gains:
        return "judge first" if case.gains[0].gain > MAY_LOSE else "keep the base model"
    if _fallen(case) or any(falls(row) for row in _general(case)):
        return "use with care"
    return "use in its domain" if case.activated > ACTIVATIONS_ENOUGH else "use"


# -- lines ----------------------------------------------------------------------------------------


def _gained(case: Case) -> Iterator[RulingLine]:
    """The measure of all judged queries, with its interval, and before and after of each kind."""
    if not case.gains:
        return
    whole, *kinds = case.gains
    among = f" (among {case.among})" if case.among else ""
    text = f"{_signed(whole.gain)} points of nDCG@10 on {whole.queries:,} {_queries(case)}{among}, between "
    text += f"{_signed(whole.low)} and {_signed(whole.high)} at 95 % ({_both(whole)})"
    by_kind = ", ".join(f"{each.kind} {_both(each)}" for each in kinds)
    tone: Tone = "good" if whole.gains else "bad" if whole.loses else ""
    yield RulingLine("gained", f"{text}; {by_kind}" if by_kind else text, tone)


def _queries(case: Case) -> str:
    return "synthetic queries" if SYNTHETIC in case.judged_by else "judged queries"


def _lost(case: Case) -> Iterator[RulingLine]:
    """What is lost at the most on general questions, and what else falls."""
    fallen = [f"nDCG@10 of {each.kind} queries {_both(each)}" for each in _fallen(case)]
    others = [row for row in case.retained if row not in _general(case)]
    fallen += [f"{row.kind} {_both(row)}" for row in filter(falls, others)]
    parts = [*map(at_most, _general(case)), *fallen]
    if parts:
        bad = bool(fallen) or any(falls(row) for row in _general(case))
        yield RulingLine("lost", "; ".join(parts), "bad" if bad else "")


def at_most(general: Evidence) -> str:
    """As much as may be lost on general questions."""
    questions = f"{general.queries:,} general questions"
    most = f"{100 * max(0.0, -general.low):.1f}"
    lost = "nothing" if most == "0.0" else f"at most {most} points"
    return f"{lost} of nDCG@10 on {questions}, at 95 % ({_both(general)})"


def _beware(case: Case) -> Iterator[RulingLine]:
    parts = []
    if case.activated > ACTIVATIONS_ENOUGH:
        parts.append(
            f"{percentage(case.activated)} of general questions activate a new term, though none means it "
            "(sparse-adapt calibrate lowers a term)"
        )
    if case.gains and SYNTHETIC in case.judged_by:
        parts.append("synthetic queries promise more than real ones give, so judge some of your own")
    if case.gains and case.among:
        parts.append("a part is easier to search than the whole, which sparse-adapt evaluate measures")
    if not case.gains:
        parts.append("there are no judged queries; fifty of your own would tell")
    elif case.gains[0].queries < FEW:
        parts.append(f"{case.gains[0].queries:,} judged queries are too few to tell")
    if not _general(case):
        parts.append("nobody asked it general questions (sparse-adapt evaluate --general general does)")
    if parts:
        yield RulingLine("beware", "; ".join(parts), "bad" if case.activated > ACTIVATIONS_ENOUGH else "")


def _costs(case: Case) -> RulingLine:
    if case.weights is None:
        return RulingLine("costs", case.encode)
    before, after = case.weights
    return RulingLine("costs", f"{before:.0f} to {after:.0f} weights a document; {case.encode}")


# -- of an adaptation: what was selected ----------------------------------------------------------


def why_refused(rows: Sequence[Evidence]) -> str | None:
    """Why a model doesn't take the base model's place; None where it does."""
    decision = decide(rows)
    if not decision.deciding.gains:
        return f"no gain beyond chance: {decision.deciding}"
    return f"a gain that costs others: {decision.fallen[0]}" if decision.refused else None


def _why_base(choice: Chosen) -> str:
    refused = choice.get("refused")
    shown = f"{choice['tried'][choice.get('best', 0)]['name']} shows {refused}"
    return shown if refused else "no model ranks the queries that were set aside better"


def _selected(choice: Chosen) -> Iterator[RulingLine]:
    """Which model, by what evidence without a label, and which that ranks better isn't."""
    tried, refused = choice["tried"], choice.get("refused")
    selected, best = tried[choice["kept"]], tried[choice.get("best", 0)]
    rows = [Evidence(**row) for row in choice.get("evidence", ())]
    parts = [selected["name"]] if choice["kept"] else []
    if choice["kept"] and refused:
        parts.append(f"{best['name']} shows {refused}")
    learnt = [has_words(row["name"]) for row in tried]
    if any(learnt) and not learnt[choice["kept"]] and not refused:
        parts.append("no model with new words, for each may lose too much on general questions")
    better = [row for row in tried if row.get("may_forget") and row["ndcg@10"] > selected["ndcg@10"]]
    if better:
        name = max(better, key=lambda row: row["ndcg@10"])["name"]
        parts.append(
            f"{name} ranks better, but may lose more than {100 * MAY_LOSE:.1f} points on general questions or a kind "
            "of them"
        )
    if rows:
        parts.append(f"without a label: {'; '.join(map(str, rows))}")
    parts += [
        f"{choice['meaning']['active']:.0%} of {row.kind} activate their term first"
        for row in rows
        if row.kind == IN_OTHER_WORDS.name
    ]
    fallen = any(falls(row) for row in rows if row.kind != KNOWN_ITEMS.name)
    if parts:
        yield RulingLine("selected", "; ".join(parts), "bad" if fallen else "")


# -- figures --------------------------------------------------------------------------------------


def in_words(evidence: Evidence, measure: str) -> tuple[str, Tone]:
    """The difference of all queries in two sentences, and whether it is good."""
    verb = (
        "gains"
        if evidence.gains
        else "loses"
        if evidence.loses
        else "neither gains nor loses by more than chance"
    )
    return (
        f"The model {verb}. {measure} goes from {_both(evidence)} on {evidence.queries:,} queries: "
        f"{evidence.gain:+.3f}, with a 95\u00a0% interval from {evidence.low:+.3f} to {evidence.high:+.3f}.",
        "good" if evidence.gains else "bad" if evidence.loses else "",
    )


def _fallen(case: Case) -> list[Evidence]:
    """Kinds of judged query that lose beyond chance and half a point."""
    return list(filter(falls, decide(case.gains).fallen)) if case.gains else []


def _general(case: Case) -> list[Evidence]:
    """The row of general questions, where they were asked."""
    return [row for row in case.retained if row.kind == GENERAL.title]


def _both(evidence: Evidence) -> str:
    return f"{evidence.base:.3f} to {evidence.model:.3f}"


def _signed(gain: float) -> str:
    return f"{100 * gain:+.1f}"
