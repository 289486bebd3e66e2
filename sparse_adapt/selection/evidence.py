"""What queries of one kind say of two models: what both reach, and between what the gain lies.

`KINDS` names every kind of query whose figures count, with the measure that counts.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from sparse_adapt.report.tables import Retained
from sparse_adapt.retrieve.significance import Values, paired

if TYPE_CHECKING:
    from sparse_adapt.retrieve.evaluate import ModelResult  # whose measures take long to load

FEWEST = 16  # queries of a kind that speak for themselves


class Kind(NamedTuple):
    """A kind of query: its name in reports, the measure that counts, and both in words."""

    name: str
    measure: str
    title: str

    def figures(self, retention: Mapping[str, Retained]) -> tuple[float, float]:
        """What the base model and the adapted one reach, by what `retention.retention_figures` says."""
        return retention[self.name]["baseline"][self.measure], retention[self.name]["model"][self.measure]

    def evidence(self, retention: Mapping[str, Retained]) -> "Evidence":
        """The same with between what the difference lies."""
        figures = retention[self.name]
        bounds = (figures[bound][self.measure] for bound in ("low", "high"))
        return Evidence(self.title, figures["queries"], *self.figures(retention), *bounds)


ALL = "all queries"
SYNTHETIC = Kind("synthetic queries", "ndcg@10", "nDCG@10 of synthetic queries")
IN_OTHER_WORDS = Kind("definitions in other words", "ndcg@10", "nDCG@10 of definitions in other words")
KNOWN_ITEMS = Kind("known items", "mrr@10", "MRR@10 of two words of a document")
GENERAL = Kind("general", "ndcg@10", "nDCG@10 of general questions")
GENERAL_RECALL = Kind("general", "recall@100", "their recall@100")
MIXED = Kind("general, mixed index", "ndcg@10", "nDCG@10 in a mixed index")
FALSE_ACTIVATIONS = Kind("general", "false_activations", "general questions that activate a new term")
BACKGROUND = Kind("background texts", "false_activations", "background texts that activate a new term")
KINDS = (
    SYNTHETIC,
    IN_OTHER_WORDS,
    KNOWN_ITEMS,
    GENERAL,
    GENERAL_RECALL,
    MIXED,
    FALSE_ACTIVATIONS,
    BACKGROUND,
)
RETAINED = (GENERAL, GENERAL_RECALL, MIXED, KNOWN_ITEMS)  # of which nothing may fall


class Evidence(NamedTuple):
    """Queries of one kind: how many there are, what both models reach, and between what the gain lies at 95 %."""

    kind: str
    queries: int
    base: float
    model: float
    low: float
    high: float

    @property
    def gain(self) -> float:
        """What the model reaches beyond the base model."""
        return self.model - self.base

    @property
    def gains(self) -> bool:
        """Whether the model reaches more, beyond chance."""
        return self.low > 0.0

    @property
    def loses(self) -> bool:
        """Whether the model reaches less, beyond chance."""
        return self.high < 0.0

    def __str__(self) -> str:
        return f"{self.kind} {100 * self.gain:+.1f} ± {50 * (self.high - self.low):.1f} points"


def retained_in(retention: Mapping[str, Retained]) -> list[Evidence]:
    """What is left of the base model's knowledge, a row for each of `RETAINED` that was measured beside a baseline."""
    return [kind.evidence(retention) for kind in RETAINED if "low" in retention.get(kind.name, {})]


def evidence_of(kind: str, model: Values, base: Values) -> Evidence:
    """What two models reach on the same queries (Q)."""
    gain = paired(model, base)
    return Evidence(kind, len(model), float(base.mean()), float(model.mean()), gain.low, gain.high)


def by_kind(kind: Kind, model: "ModelResult", base: "ModelResult") -> list[Evidence]:
    """A row for all queries, and one for each kind of which there are enough, where there are several."""
    ours, theirs = (result.values[kind.measure] for result in (model, base))
    kinds = np.array([query.kind or "" for query in model.queries])
    enough = [str(each) for each in dict.fromkeys(kinds) if (kinds == each).sum() >= FEWEST]
    apart = [(f"{kind.name} ({each})", kinds == each) for each in enough] if len(enough) > 1 else []
    return [
        evidence_of(kind.name, ours, theirs),
        *(evidence_of(name, ours[rows], theirs[rows]) for name, rows in apart),
    ]
