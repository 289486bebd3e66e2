"""What is known of a choice as JSON holds it: in `choice.json`, and in `report.json` of a run."""

from typing import Any, TypedDict

BASE = "base"  # the model that all others come from, which is the first
EXACT = "exact words"  # the base model with exact words and nothing learnt, which others have to beat
RANKING = (
    "ranking alone"  # a model beside those that learnt words, which stands in for them where they are refused
)

Tried = TypedDict(
    "Tried",
    {
        "name": str,
        "back": float | None,
        "weighed": str,
        "ndcg@10": float,
        "recall@100": float,
        "general": float,
        "nonzero_document": float,
        "nonzero_query": float,
        "may_forget": bool,
        "difference": float,
        "low": float,
        "high": float,
    },
    total=False,
)  # a model that was tried on the queries set aside

OnJudged = TypedDict(
    "OnJudged",
    {"judged by": str, "among": str, "rows": list[dict[str, Any]]},
    total=False,
)  # what both models reach on judged queries, of which part of a large corpus; a row is an `Evidence`


class RulingRecord(TypedDict):
    """A ruling: the verdict, and lines that are each a `RulingLine`."""

    verdict: Any
    lines: list[dict[str, Any]]


class Chosen(TypedDict, total=False):
    """Every model that was tried, which is kept, and why.

    Rows of `general` are each a `GeneralRow`, those of `evidence` each an `Evidence`.
    """

    measure: str
    queries: int
    kept: int
    tried: list[Tried]
    general: list[dict[str, Any]]
    evidence: list[dict[str, Any]]
    meaning: dict[str, float]
    refused: str | None
    best: int


def has_words(name: str) -> bool:
    """Whether the model of a name learnt terms: no base model, with exact words or not, nor one that ranks alone."""
    return not name.startswith((BASE, EXACT, RANKING))
