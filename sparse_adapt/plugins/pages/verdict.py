"""The verdict of a run: its ruling, then the figures of what was gained, what it costs, and what is left."""

from collections.abc import Iterator, Mapping, Sequence

from diagnostics.figures import ServingCost, measure_cost
from sparse_adapt.pipeline.report import retention_in, ruling_parts
from sparse_adapt.plugins.pages.subject import RunSubject
from sparse_adapt.report.charts import differences
from sparse_adapt.report.progress import duration
from sparse_adapt.report.sections import (
    Beside,
    Facts,
    Fold,
    Part,
    Pictures,
    Section,
    TableRows,
)
from sparse_adapt.report.tables import Column, Retained, Row, Table, percentage
from sparse_adapt.selection.evidence import BACKGROUND, FALSE_ACTIVATIONS, RETAINED, Evidence
from sparse_adapt.selection.general import general_table, read_general_rows
from sparse_adapt.selection.ruling import FEW

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
RETAINED_COLUMNS = (
    Column("kind", "measure", "text"),
    Column("before", "before", decimals=3),
    Column("after", "after", decimals=3),
    Column("change", "change", decimals=3, signed=True),
)


def verdict_section(subject: RunSubject) -> Section:
    """The ruling, first of all; then its figures."""
    report = subject.report
    evidence, parts = report.get("evidence", {}), ruling_parts(report)
    gains = [Evidence(**row) for row in evidence.get("rows", ())]
    parts.append(Facts(list(_costs(subject))))
    if gains:
        parts += _gained(gains, str(evidence.get("judged by", "")))
    parts += _retained(retention_in(report))
    return Section("verdict", "Verdict", parts)


def _gained(gains: Sequence[Evidence], judged_by: str) -> list[Part]:
    rows: list[Row] = [{**gain._asdict(), "difference": gain.gain} for gain in gains]
    note = f"nDCG@10 of {judged_by}. The last two columns are the 95 % interval of the difference."
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
        measure_cost(each.documents, each.model, each.background) for each in (subject.base, subject.final)
    )
    if not {"demo", "adapt"} & subject.report.keys():  # else the ruling says it
        yield "weights a document", f"{before.nonzero_document:.0f} to {after.nonzero_document:.0f}"
    if before.documents >= MANY:
        change = after.index_bytes / max(1, before.index_bytes) - 1
        yield "index", f"{percentage(change, 0, '+')} bytes (estimated, without texts)"
    yield "work of a query", _work(before, after)
    if subject.stages:
        yield "time to train", duration(float(subject.report.get("seconds", 0.0)))


def _work(before: ServingCost, after: ServingCost) -> str:
    assert before.flops is not None and after.flops is not None, "queries were given"
    change = "" if not before.flops else f" ({percentage(after.flops / before.flops - 1, 0, '+')})"
    return (
        f"{before.flops:.1f} to {after.flops:.1f} tokens that a background query and a document share{change}"
    )


def _retained(retention: Mapping[str, Retained]) -> Iterator[Part]:
    """What is left of the base model's knowledge: a row for each measure, then general questions by kind, folded."""
    if not retention:
        return
    rows: list[Row] = [
        {"kind": kind.title, "before": before, "after": after, "change": after - before}
        for kind in (*RETAINED, FALSE_ACTIVATIONS, BACKGROUND)
        if kind.name in retention
        for before, after in [kind.figures(retention)]
    ]
    tables = [
        TableRows(Table("", RETAINED_COLUMNS, rows)),
        TableRows(general_table(read_general_rows(retention))),
    ]
    yield Fold("What is left of what the base model knew", tables)
