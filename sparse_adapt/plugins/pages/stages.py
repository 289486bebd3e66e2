"""What each stage of a run gained and cost, and its loss terms over the steps."""

from collections.abc import Sequence
from pathlib import Path

from sparse_adapt.pipeline.choice import tabulate
from sparse_adapt.pipeline.demo_report import has_alone, tabulate_demo
from sparse_adapt.pipeline.report import ColumnFigures
from sparse_adapt.plugins.pages.subject import RunSubject
from sparse_adapt.report.charts import lines
from sparse_adapt.report.sections import Fold, Part, Picture, Pictures, Prose, Section, TableRows
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.selection.evidence import BACKGROUND, FALSE_ACTIVATIONS
from sparse_adapt.stages.record import StageRecord
from sparse_adapt.stages.table import every_stage
from sparse_adapt.training.loop import HISTORY_FILE, NO_TERMS, read_history

POINTS = 60  # of a line
SAYS_ALONE = "The model alone is the base model, fine-tuned without new tokens."
STAGE_COLUMNS = (
    Column("stage", "stage", "text"),
    Column("steps", "steps"),
    Column("seconds", "time", unit="s"),
    Column("does", "what it does", "text"),
)


def stages_section(subject: RunSubject) -> Section:
    """Pictures of what each stage gained and cost, then the stages, then their losses."""
    columns = subject.report.get("demo", {}).get("columns", [])
    parts: list[Part] = []
    if columns:
        note = f"After each stage. {SAYS_ALONE}" if has_alone(subject.report) else "After each stage."
        parts.append(Pictures(before_after(columns), note))
        parts.append(Fold("Every figure after each stage", [TableRows(tabulate_demo(subject.report))]))
    models = subject.report.get("adapt", {}).get("choice", {}).get("tried", [])
    if models:
        parts.append(TableRows(tabulate(subject.report)))
    if not columns and not models:
        parts.append(Prose("Nothing was measured between the stages of this run.", "quiet"))
    if subject.stages:
        parts.append(TableRows(Table("Stages", STAGE_COLUMNS, [_stage(each) for each in subject.stages])))
    pictures = [
        drawn for stage in subject.stages if (drawn := _losses(subject.run.folder, stage)) is not None
    ]
    if pictures:
        note = "Each loss term as a share of its largest value; the method of each stage says what its terms are for."
        parts.append(Fold("Loss terms over the steps", [Pictures(pictures, note)]))
    return Section("stages", "Stages", parts)


def before_after(columns: Sequence[ColumnFigures]) -> list[Picture]:
    """After each stage: nDCG@10 of unseen queries, weights of terms, queries that activate one by mistake, sizes."""
    order = [each["name"] for each in columns]
    rows: list[Row] = [
        {"model": each["name"], "nDCG@10": value, "kind": kind}
        for each in columns
        for kind, value in each["ndcg@10"]["test"].items()
    ]
    size: list[Row] = [
        {"model": each["name"], "weights": each["nonzero_document"], "kind": "a document"} for each in columns
    ]
    active: list[Row] = [
        {"model": each["name"], "%": 100 * share, "kind": kind}
        for each in columns
        for kind, share in (
            ("control queries", each["control_active"]),  # first, as in the other pictures: in their colour
            ("background queries", each["general"][BACKGROUND.name][BACKGROUND.measure]),
            ("general questions", each["general"][FALSE_ACTIVATIONS.name][FALSE_ACTIVATIONS.measure]),
        )
    ]
    noise: list[Row] = [
        {"model": each["name"], "%": 100 * value, "kind": kind}
        for each in columns
        for kind, value in each["function_share"].items()
    ]
    return [
        _over("Unseen queries", rows, order, "nDCG@10"),
        _over("Weight of the terms", _weights(columns), order, "weight"),
        _over("Queries that activate a term by mistake", active, order, "%"),
        _over("Weights of a document", size, order, "weights"),
        _over("Stop words in the top scores", noise, order, "%"),
    ]


def _weights(columns: Sequence[ColumnFigures]) -> list[Row]:
    """The mean weight of all terms where they are said and where they are meant, and the largest in other texts."""
    rows: list[Row] = []
    for each in columns:
        terms = each["terms"]
        figures = {
            "where said": _mean([value for term in terms for value in term["weights"].values()]),
            "where meant": _mean([value for term in terms for value in term["meant"].values()]),
            "other documents, largest": max((term["others_largest"] for term in terms), default=0.0),
            "control queries, largest": max((term["control_largest"] for term in terms), default=0.0),
        }
        rows += [{"model": each["name"], "weight": value, "kind": kind} for kind, value in figures.items()]
    return rows


def _mean(values: Sequence[float]) -> float:
    return sum(values) / max(1, len(values))


def _over(title: str, rows: Sequence[Row], order: Sequence[str], measure: str) -> Picture:
    summary = "; ".join(f"{row['model']} {row['kind']} {_number(row[measure])}" for row in rows)
    return lines(
        title, rows, "model", measure, "kind", order=order, description=f"{title}, {measure}: {summary}"
    )


def _number(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, int | float) else str(value)


def _stage(stage: StageRecord) -> Row:
    does = {row.name: row.summary for row in every_stage()}.get(str(stage.get("stage")), "")
    return {
        "does": does,
        "stage": stage.get("stage"),
        "steps": stage.get("steps"),
        "seconds": stage.get("seconds"),
    }


def _losses(run: Path, stage: StageRecord) -> Picture | None:
    """One stage's loss terms; None for a stage that takes no steps."""
    history = read_history(run / str(stage.get("folder", "")) / HISTORY_FILE)
    if not history:
        return None
    terms = [key for key in history[0] if key not in NO_TERMS]
    width = max(1, len(history) // POINTS)
    rows: list[Row] = []
    for term in terms:
        largest = max(abs(row.get(term, 0.0)) for row in history) or 1.0
        for start in range(0, len(history), width):
            part = history[start : start + width]
            mean = sum(row.get(term, 0.0) for row in part) / len(part)
            rows.append({"step": part[-1]["step"], "share": round(mean / largest, 3), "term": term})
    ends = ", ".join(
        f"{term} from {history[0].get(term, 0.0):.3g} to {history[-1].get(term, 0.0):.3g}" for term in terms
    )
    title = str(stage.get("stage", ""))
    return lines(title, rows, "step", "share", "term", description=f"Loss terms of {title}: {ends}")
