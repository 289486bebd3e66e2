"""The verdict of a run: what was gained and lost on which queries, what it costs, whether to use it, and when not."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from diagnostics.figures import ServingCost, measure_cost
from sparse_adapt.pages.subject import RunSubject
from sparse_adapt.pipeline.report import Report
from sparse_adapt.report.charts import differences
from sparse_adapt.report.progress import duration
from sparse_adapt.report.sections import (
    Beside,
    Facts,
    Fold,
    Listing,
    Part,
    Pictures,
    Prose,
    Section,
    TableRows,
    Tone,
)
from sparse_adapt.report.tables import Column, Retained, Row, Table, percentage
from sparse_adapt.selection.evidence import Evidence
from sparse_adapt.selection.general import general_sentences, general_table, read_general_rows
from sparse_adapt.selection.rule import ACTIVATIONS_ENOUGH, MAY_LOSE, decide, retention_lines

SYNTHETIC = "synthetic"
FEW = 20  # queries from which on an interval says something
MANY = 50  # documents from which on the index is estimated
COLUMNS = (
    Column("kind", "queries", "text"),
    Column("queries", "number"),
    Column("base", "before", decimals=3),
    Column("model", "after", decimals=3),
    Column("difference", "change", decimals=3, signed=True),
    Column("low", "from", decimals=3, signed=True),
    Column("high", "to", decimals=3, signed=True),
)


class Ruling(NamedTuple):
    """Whether to use a model, in a sentence; and the figures that say so, where there are some."""

    sentence: str
    tone: Tone
    explanation: str = ""


def rule(gains: Sequence[Evidence], false_activations: float, judged_by: str) -> Ruling:
    """Whether to use the model, by its gains and by how many background queries activate a term."""
    if not gains:
        sentence = "This page can't tell whether the model ranks better: the run has no judged queries."
        return Ruling(f"{sentence} Judge fifty of your own, and look at the queries below.", "quiet")
    decision, explanation = decide(gains), _in_words(gains[0], judged_by)
    if decision.deciding.queries < FEW:
        return Ruling(
            f"Judge more queries first: {gains[0].queries:,} are too few to say.", "quiet", explanation
        )
    if not decision.gains:
        return Ruling("Don't use it yet: it gains nothing that is more than chance.", "bad", explanation)
    if decision.fallen:
        lost = ", ".join(gain.kind for gain in decision.fallen)
        return Ruling(f"Use it with care: it gains, but loses on {lost} queries.", "bad", explanation)
    reason = "it gains, and loses on no kind of query by more than chance"
    if false_activations > ACTIVATIONS_ENOUGH:
        share = f"{percentage(false_activations, 0)} of background queries activate a new term, though they mean none"
        return Ruling(
            f"Use it for searches of this domain: {reason}. Elsewhere beware: {share}.", "good", explanation
        )
    return Ruling(f"Use it: {reason}.", "good", explanation)


def _in_words(whole: Evidence, judged_by: str) -> str:
    """The measure before and after in a sentence, with its interval."""
    verb = "rises" if whole.gain > 0 else "falls" if whole.gain < 0 else "stays"
    sentence = f"nDCG@10 {verb} from {whole.base:.3f} to {whole.model:.3f} on {whole.queries:,} queries: "
    sentence += f"{whole.gain:+.3f}, with a 95\u00a0% interval from {whole.low:+.3f} to {whole.high:+.3f}."
    if SYNTHETIC in judged_by:
        sentence += " The queries are made up, and promise more than real ones give."
    return sentence


def verdict_section(subject: RunSubject) -> Section:
    """The verdict, first of all."""
    evidence = subject.report.get("evidence", {})
    gains, judged_by = (
        [Evidence(**row) for row in evidence.get("rows", ())],
        str(evidence.get("judged by", "")),
    )
    false_activations = float(evidence.get("background queries that activate a term", 0.0))
    ruling = rule(gains, false_activations, judged_by)
    parts: list[Part] = [Prose(ruling.sentence, ruling.tone)]
    if ruling.explanation:
        parts.append(Prose(ruling.explanation))
    parts.append(Facts([*_won_and_lost(gains), *_costs(subject)]))
    if gains:
        parts += _gained(gains, judged_by)
    parts += [Prose("When not to use it:"), Listing(list(_when_not(subject, gains, false_activations)))]
    parts += list(_own_words(subject.report))
    return Section("verdict", "Verdict", parts)


def _tone(gain: Evidence) -> Tone:
    """Whether the whole interval lies on one side of nothing."""
    return "good" if gain.low > 0 else "bad" if gain.high < 0 else ""


def _won_and_lost(gains: Sequence[Evidence]) -> Iterator[tuple[str, str]]:
    """On which kinds of query the model gains and loses by more than chance."""
    for name, tone in (("gains on", "good"), ("loses on", "bad")) if gains else ():
        kinds = [gain for gain in gains[1:] or gains if _tone(gain) == tone]
        intervals = [
            f"{each.kind} ({each.gain:+.3f}, from {each.low:+.3f} to {each.high:+.3f})" for each in kinds
        ]
        yield name, ", ".join(intervals) or "nothing, by more than chance"


def _gained(gains: Sequence[Evidence], judged_by: str) -> list[Part]:
    rows: list[Row] = [{**gain._asdict(), "difference": gain.gain} for gain in gains]
    note = f"nDCG@10 of {judged_by}. The last two columns are the 95 % interval of the difference, by bootstrap over "
    note += "the queries."
    if any(gain.queries < FEW for gain in gains):
        note += f" Fewer than {FEW} queries of a kind say little."
    named: list[Row] = [
        {"name": gain.kind, "value": gain.gain, "low": gain.low, "high": gain.high} for gain in gains
    ]
    intervals = "; ".join(
        f"{gain.kind} {gain.gain:+.3f} from {gain.low:+.3f} to {gain.high:+.3f}" for gain in gains
    )
    picture = differences(
        "Gained and lost, nDCG@10", named, description=f"Difference of nDCG@10 by kind of query: {intervals}"
    )
    return [
        Beside([Pictures([picture]), TableRows(Table("Gained and lost, in figures", COLUMNS, rows, note))])
    ]


def _costs(subject: RunSubject) -> Iterator[tuple[str, str]]:
    before, after = (
        measure_cost(each.documents, each.model.tokenizer, each.background)
        for each in (subject.base, subject.final)
    )
    yield "index", _index(before, after)
    yield "work of a query", _work(before, after)
    yield "time to train", duration(float(subject.report.get("seconds", 0.0)))
    yield "in production", _production(subject)


def _index(before: ServingCost, after: ServingCost) -> str:
    weights = f"{before.nonzero_document:.0f} to {after.nonzero_document:.0f} weights a document"
    change = after.index_bytes / max(1, before.index_bytes) - 1
    if before.documents < MANY:
        return f"{weights}; too few documents to estimate an index"
    return f"{weights}, {percentage(change, 0, '+')} bytes (estimated, without texts)"


def _work(before: ServingCost, after: ServingCost) -> str:
    assert before.flops is not None and after.flops is not None, "queries were given"
    change = "" if not before.flops else f" ({percentage(after.flops / before.flops - 1, 0, '+')})"
    return (
        f"{before.flops:.1f} to {after.flops:.1f} tokens that a background query and a document share{change}"
    )


def _production(subject: RunSubject) -> str:
    training = subject.report.get("adapt", {})
    if training.get("frozen"):
        return f"encode again the {training['documents_with_a_new_term']:,} documents that say a new term"
    return "encode every document again; encoding a query takes as long as before"


def _when_not(subject: RunSubject, gains: Sequence[Evidence], false_activations: float) -> Iterator[Prose]:
    yield Prose(
        f"For general questions: {percentage(false_activations)} of background queries activate a new term, though "
        "they mean none.",
        "bad" if false_activations > ACTIVATIONS_ENOUGH else "",
    )
    retention = _retention(subject.report)
    yield from (
        Prose(f"For general questions: the model {sentence}.")
        for sentence in islice(general_sentences(read_general_rows(retention)), 1)
    )
    for gain in gains[1:]:
        if gain.gain < -MAY_LOSE:
            yield Prose(f"For {gain.kind} queries: nDCG@10 {gain.gain:+.3f}.", "bad")
    if not gains:
        yield Prose("Before you have judged some queries: without them nobody can tell whether it helps.")
    if "adapt" not in subject.report and "demo" not in subject.report:
        yield Prose(
            "Before you know what it keeps: this run didn't measure general questions. sparse-adapt evaluate "
            "--general general does."
        )


def _retention(report: Report) -> Mapping[str, Retained]:
    """What the run found of the base model's knowledge; nothing where it didn't look."""
    return report.get("adapt", report).get("retention", {})


def _own_words(report: Report) -> Iterator[Part]:
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
        holding = sum(bool(each["holds"]) for each in criteria)
        yield Fold(f"What the demo asks of a model: {holding} of {len(criteria)} hold", [Listing(lines)])
    retention = _retention(report)
    sentences = retention_lines(retention)
    if sentences:
        yield Prose("What the base model knew, and how much of it may be lost:")
        yield Listing([Prose(line, "bad" if line.startswith("FALLS") else "") for line in sentences])
        yield TableRows(general_table(read_general_rows(retention)))
