"""The verdict of a run: what was gained and lost on which queries, what it costs, whether to use it, and when not."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from diagnostics.cost import Cost, measure_cost
from sparse_adapt.pages.subject import Subject
from sparse_adapt.pipeline.keeps import STRAYS_ENOUGH, keeps_lines
from sparse_adapt.report.html.parts import Facts, Listing, Part, Pictures, Prose, Rows, Section, Tone
from sparse_adapt.report.html.pictures import differences
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.report.watching import duration
from sparse_adapt.retrieve.evaluate import Result
from sparse_adapt.retrieve.keeping import MAY_LOSE, lights, new_terms
from sparse_adapt.retrieve.significance import interval

MEASURE = "ndcg@10"
ALL = "all queries"
MADE_UP = "made-up"
FEW = 20  # queries from which on an interval says something
MANY = 50  # documents from which on the index is estimated
COLUMNS = (
    Column("kind", "queries", "text"),
    Column("queries", "how many"),
    Column("before", "before", decimals=3),
    Column("after", "after", decimals=3),
    Column("difference", "difference", decimals=3, signed=True),
    Column("low", "from", decimals=3, signed=True),
    Column("high", "to", decimals=3, signed=True),
)


class Gain(NamedTuple):
    """nDCG@10 of one kind of query, before and after, and between what the difference lies at 95 %."""

    kind: str
    queries: int
    before: float
    after: float
    difference: float
    low: float
    high: float

    @property
    def tone(self) -> Tone:
        """Whether the whole interval lies on one side of nothing."""
        return "good" if self.low > 0 else "bad" if self.high < 0 else ""


class Ruling(NamedTuple):
    """Whether to use a model, in a sentence, and why."""

    said: str
    tone: Tone


def gains_of(results: tuple[Result, Result]) -> list[Gain]:
    """The difference on all queries, then on those of each kind."""
    base, final = results
    return [_gain(base, final, kind) for kind in (None, *final.kinds)]


def _gain(base: Result, final: Result, kind: str | None) -> Gain:
    before, after = (result.select(kind)[MEASURE] for result in (base, final))
    found = interval(after - before)
    values = float(before.mean()), float(after.mean()), found.value, found.low, found.high
    return Gain(ALL if kind is None else kind, len(before), *values)


def rule(gains: list[Gain], strays: float, judged_by: str) -> Ruling:
    """Whether to use the model, by its gains and by how many everyday queries light a term."""
    if not gains:
        said = "This page can't tell whether the model ranks better: the run has no judged queries."
        return Ruling(f"{said} Judge fifty of your own, and look at the queries below.", "quiet")
    whole, lost = gains[0], [gain.kind for gain in gains[1:] if gain.tone == "bad"]
    told = f"nDCG@10 {whole.before:.3f} to {whole.after:.3f} on {whole.queries:,} queries "
    told += f"(difference {whole.difference:+.3f}, 95 % from {whole.low:+.3f} to {whole.high:+.3f})"
    if MADE_UP in judged_by:
        told += "; these are made up, and promise more than real ones give"
    if whole.queries < FEW:
        return Ruling(f"Judge more queries first: {whole.queries:,} are too few to say. {told}.", "quiet")
    if whole.tone != "good":
        return Ruling(f"Don't use it yet: no gain that is more than chance. {told}.", "bad")
    if lost:
        return Ruling(f"Use it with care: it gains, but loses on {', '.join(lost)} queries. {told}.", "bad")
    if strays > STRAYS_ENOUGH:
        share = f"{strays:.0%} of everyday queries light a new term"
        return Ruling(
            f"Use it for searches of this domain: it gains and loses nowhere by more than chance, but {share}. {told}.",
            "good",
        )
    return Ruling(f"Use it: it gains, and loses on no kind of query by more than chance. {told}.", "good")


def strays_of(subject: Subject) -> float:
    """Share of everyday queries that light a new term."""
    final = subject.final
    lit = lights(final.everyday, new_terms(final.model))
    return float(lit.mean()) if len(lit) else 0.0


def verdict_section(subject: Subject) -> Section:
    """The verdict, first of all."""
    gains = [] if subject.results is None else gains_of(subject.results)
    strays = strays_of(subject)
    ruling = rule(gains, strays, subject.judged_by)
    parts: list[Part] = [Prose(ruling.said, ruling.tone)]
    if gains:
        parts += _gained(gains, subject.judged_by)
    parts += [
        Facts(list(_costs(subject))),
        Prose("When not to use it:"),
        Listing(list(_when_not(subject, gains, strays))),
    ]
    parts += list(_own_words(subject.report))
    return Section("verdict", "Verdict", parts)


def _gained(gains: list[Gain], judged_by: str) -> list[Part]:
    rows: list[Row] = [gain._asdict() for gain in gains]
    note = f"nDCG@10, by {judged_by}. from, to: between what the difference lies at 95 % (bootstrap over the queries)."
    if any(gain.queries < FEW for gain in gains):
        note += f" Fewer than {FEW} queries of a kind say little."
    named: list[Row] = [
        {"name": gain.kind, "value": gain.difference, "low": gain.low, "high": gain.high} for gain in gains
    ]
    told = "; ".join(
        f"{gain.kind} {gain.difference:+.3f} from {gain.low:+.3f} to {gain.high:+.3f}" for gain in gains
    )
    picture = differences(
        "Gained and lost, nDCG@10", named, told=f"Difference of nDCG@10 by kind of query: {told}"
    )
    return [Pictures([picture]), Rows(Table("Gained and lost", COLUMNS, rows, note))]


def _costs(subject: Subject) -> Iterator[tuple[str, str]]:
    before, after = (
        measure_cost(each.documents, each.model.tokenizer, each.everyday)
        for each in (subject.base, subject.final)
    )
    yield "index", _index(before, after)
    yield "work of a query", _work(before, after)
    yield "training", duration(float(subject.report.get("seconds", 0.0)))
    yield "in production", _production(subject)


def _index(before: Cost, after: Cost) -> str:
    weights = f"{before.nonzero_document:.0f} to {after.nonzero_document:.0f} weights a document"
    change = after.index_bytes / max(1, before.index_bytes) - 1
    if before.documents < MANY:
        return f"{weights}; too few documents to estimate an index"
    return f"{weights}, {change:+.0%} bytes (estimated, without texts)"


def _work(before: Cost, after: Cost) -> str:
    assert before.flops is not None and after.flops is not None, "queries were given"
    return f"{before.flops:.1f} to {after.flops:.1f} tokens shared by an everyday query and a document"


def _production(subject: Subject) -> str:
    found = subject.report.get("adapt", {})
    if found.get("frozen"):
        return f"encode again the {found['documents_with_a_new_term']:,} documents that say a new term"
    return "encode every document again; queries cost what they did"


def _when_not(subject: Subject, gains: list[Gain], strays: float) -> Iterator[Prose]:
    yield Prose(
        f"For general questions. Everyday queries that light a new term, though they mean none: {strays:.1%}.",
        "bad" if strays > STRAYS_ENOUGH else "",
    )
    for gain in gains[1:]:
        if gain.difference < -MAY_LOSE:
            yield Prose(f"For {gain.kind} queries: nDCG@10 {gain.difference:+.3f}.", "bad")
    if subject.judged is None:
        yield Prose("Before you have judged some queries: without them nobody can tell whether it helps.")
    if "adapt" not in subject.report and "demo" not in subject.report:
        yield Prose(
            "Before you know what it keeps: this run didn't measure general questions. sparse-adapt evaluate "
            "--general general does."
        )


def _own_words(report: Mapping[str, Any]) -> Iterator[Part]:
    """What the run itself said at its end."""
    criteria = report.get("demo", {}).get("criteria", ())
    if criteria:
        lines = [
            Prose(
                f"{'holds' if each['holds'] else 'falls short'}: {each['name']}: {each['found']}",
                "" if each["holds"] else "bad",
            )
            for each in criteria
        ]
        yield Prose("What the demo asks of a model:")
        yield Listing(lines)
    kept = keeps_lines(report.get("adapt", {}).get("keeps", {}))
    if kept:
        yield Prose("What it keeps of what the base model knew:")
        yield Listing([Prose(line, "bad" if line.startswith("FALLS") else "") for line in kept])
