"""What `report.json` of a run holds, for those who show it."""

from typing import TypedDict

from sparse_adapt.report.tables import Retained
from sparse_adapt.selection.record import Chosen, OnJudged
from sparse_adapt.stages.record import StageRecord


class HardQuery(TypedDict):
    """The ranks of a hard query's documents, None for one that isn't found, and what is on top."""

    ranks: dict[str, int | None]
    top: list[str]
    all_on_top: bool


class DemoTermFigures(TypedDict):
    """A term's weight in each document that says it and each hard query that means it, and the largest elsewhere."""

    term: str
    single_token: bool
    weights: dict[str, float]
    heaviest_in: int
    least_logit: float | None
    others_firing: int
    others_largest: float
    others_largest_in: str | None
    hard_queries: dict[str, float]
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
    """What the demo adds: its terms, a text for each hard query, a column for each model, what it asks of them."""

    terms: list[str]
    hard_queries: dict[str, str]
    columns: list[ColumnFigures]
    criteria: list[dict[str, object]]


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
    demo: Demonstrated
    adapt: Adapted
