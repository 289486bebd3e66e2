"""What `report.json` of a run holds, for those who show it, and the evidence of the run's ruling in it."""

from typing import TypedDict

from sparse_adapt.report.sections import Part
from sparse_adapt.report.tables import Retained
from sparse_adapt.selection.evidence import FALSE_ACTIVATIONS, Evidence, retained_in
from sparse_adapt.selection.record import Chosen, OnJudged, RulingRecord
from sparse_adapt.selection.ruling import Case, Ruling, rule
from sparse_adapt.stages.record import StageRecord


class HardQuery(TypedDict):
    """The ranks of a hard query's documents, None for one that isn't found, and what is on top."""

    ranks: dict[str, int | None]
    top: list[str]
    all_on_top: bool


class DemoTermFigures(TypedDict):
    """A term's weight in each document that says it and each query that means it, and the largest elsewhere.

    The queries are the hard ones, and, as `meant`, the unseen ones.
    """

    term: str
    single_token: bool
    weights: dict[str, float]
    heaviest_in: int
    others_largest: float
    hard_queries: dict[str, float]
    meant: dict[str, float]
    control_largest: float


ColumnFigures = TypedDict(
    "ColumnFigures",
    {
        "name": str,
        "model": str,
        "general": dict[str, dict[str, float]],
        "hard_queries": dict[str, HardQuery],
        "terms": list[DemoTermFigures],
        "ndcg@10": dict[str, dict[str, float]],
        "nonzero_document": float,
        "nonzero_query": float,
        "function_share": dict[str, float],
        "control_active": float,
    },
    total=False,
)  # of a model that the demo measured: by kind of query, by split and kind, by term


class Demonstrated(TypedDict):
    """What the demo adds: its terms, a text for each hard query, a column for each model."""

    terms: list[str]
    hard_queries: dict[str, str]
    columns: list[ColumnFigures]


class Adapted(TypedDict, total=False):
    """What an adaptation adds: each step, the choice of a model, and what the kept one retains."""

    steps: dict[str, dict[str, object]]
    choice: Chosen
    retention: dict[str, Retained]
    terms: int
    documents: int
    documents_with_a_new_term: int
    frozen: bool
    seconds: float
    peak_memory: float


class Report(TypedDict, total=False):
    """What every run says of itself, with what a demo or an adaptation adds."""

    version: str
    written: str
    model: str
    corpus: str | None
    preset: str
    final: str
    seconds: float
    stages: list[StageRecord]
    retention: dict[str, Retained]
    evidence: OnJudged
    ruling: RulingRecord
    demo: Demonstrated
    adapt: Adapted


# -- the ruling -----------------------------------------------------------------------------------


def ruling_of(report: Report) -> Ruling | None:
    """The ruling of a run, made now where its report holds none; None where nothing was measured."""
    if "ruling" in report:
        return Ruling.of(report["ruling"])
    return rule(_case(report)) if "evidence" in report else None


def ruling_parts(report: Report) -> list[Part]:
    """What a terminal and a page show of the ruling of a run; nothing where nothing was measured."""
    ruling = ruling_of(report)
    return [] if ruling is None else ruling.parts()


def _case(report: Report) -> Case:
    evidence, retention = report["evidence"], retention_in(report)
    return Case(
        gains=[Evidence(**row) for row in evidence.get("rows", ())],
        judged_by=str(evidence.get("judged by", "")),
        among=str(evidence.get("among", "")),
        retained=retained_in(retention),
        activated=FALSE_ACTIVATIONS.figures(retention)[1] if FALSE_ACTIVATIONS.name in retention else 0.0,
        weights=_weights(report),
        encode=_encode_again(report),
        choice=report["adapt"]["choice"] if "adapt" in report else None,
    )


def retention_in(report: Report) -> dict[str, Retained]:
    """What a run found of the base model's knowledge; nothing where it didn't look."""
    return report["adapt"].get("retention", {}) if "adapt" in report else report.get("retention", {})


def _weights(report: Report) -> tuple[float, float] | None:
    """Weights of a document, before and after, of a run that measured them."""
    if "demo" in report:
        first, *_, last = report["demo"]["columns"]
        return first["nonzero_document"], last["nonzero_document"]
    if "adapt" in report:
        choice = report["adapt"]["choice"]
        before, after = choice["tried"][0], choice["tried"][choice["kept"]]
        return before["nonzero_document"], after["nonzero_document"]
    return None


def _encode_again(report: Report) -> str:
    if "adapt" in report and report["adapt"].get("frozen"):
        count = report["adapt"]["documents_with_a_new_term"]
        return f"encode again the {count:,} documents that hold a new term: their ids are in reencode.txt"
    return "encode every document again"
