"""What a teacher is called, and which documents of a query it scores. Nothing heavy loads with this module."""

from typing import Literal

from sparse_adapt.settings import Settings, setting

ENSEMBLE = "ensemble"
QUICK = "bm25"  # the ensemble without its slowest member
SCORE_FILES = (".jsonl", ".jsonl.gz", ".tsv", ".trec", ".run", ".txt")


class CandidateSettings(Settings):
    """Documents of a query that a student learns to tell apart."""

    seed: int = setting(0, "Seed of every random draw.", ge=0)
    count: int = setting(8, "Documents of a query.", unit="documents", ge=2)
    source: Literal["keep", "drop"] = setting(
        "drop", "Whether the document that a query was made of is among them. It shares the query's words."
    )
    from_teacher: int = setting(
        4, "Documents that are drawn among the teacher's best `depth`.", unit="documents", ge=0
    )
    from_student: int = setting(
        2,
        "Documents that are drawn among the student's best `depth`. The rest are random.",
        unit="documents",
        ge=0,
    )
    depth: int = setting(20, "Rank down to which documents are drawn.", unit="rank", ge=1)
    consistent: int = setting(
        10,
        "Lowest rank that the teacher may give the document that a query was made of.",
        unit="rank",
        ge=1,
    )
    near: float = setting(
        0.1,
        "How near to the score of that document another counts as near it.",
        unit="share of the way down to the mean score",
        ge=0,
        le=1,
    )
    near_ones: Literal["keep", "drop"] = setting(
        "keep", "Whether documents so near to it stay, with their scores, or are left out."
    )
