"""The health of a whole model on a corpus: its new tokens, what its vectors cost, how far it moved from its base."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from scipy.sparse import csr_matrix

from diagnostics.figures import (
    Drift,
    ServingCost,
    Usage,
    compare_vectors,
    measure_cost,
    measure_usage,
    tabulate_cost,
    tabulate_drift,
    tabulate_usage,
)
from sparse_adapt.model.health import HEALTHY_DOCUMENT, HEALTHY_QUERY, Head, sickness, unreachable
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.results import Shown
from sparse_adapt.report.sections import Prose, Section, TableRows
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.terms.function_words import function_tokens


@dataclass(frozen=True, slots=True, repr=False)
class Health(Shown):
    """A model's figures over the documents of one corpus.

    `function_share`: share of the documents' summed weights that lies on function words, punctuation and special
    tokens, from 0 to 1. `drift` is None where there was no model to compare with. `head`: what the model makes of
    general passages. `unreachable`: how many tokens no text is cut into; `unreachable_new`: new ones of them.
    """

    usage: Usage
    cost: ServingCost
    function_share: float
    drift: Drift | None
    head: Head | None = None
    unreachable: int = 0
    unreachable_new: tuple[str, ...] = ()

    @property
    def headline(self) -> str:
        """How many new tokens there are, and how many things are wrong."""
        wrong = "nothing wrong" if not self.findings() else "; ".join(self.findings())
        return f"{len(self.usage.tokens):,} new tokens; {wrong}"

    def rows(self) -> Sequence[Row]:
        """The new tokens, one row each."""
        return self.usage.rows()

    def sections(self) -> Sequence[Section]:
        """Every table, then what is wrong."""
        share = f"function words and punctuation hold {self.function_share:.1%} of the documents' weight"
        lost = f"{self.unreachable:,} tokens can't be reached: no text is cut into them"
        tables = [
            Section(f"table-{number}", "", [TableRows(table)]) for number, table in enumerate(self.tables())
        ]
        return [*tables, Section("findings", "", [Prose(line) for line in (share, lost, *self.findings())])]

    def to_dict(self) -> dict[str, object]:
        """Every figure, as plain objects and lists."""
        return {
            "usage": self.usage.to_dict(),
            "cost": self.cost.to_dict(),
            "function_share": self.function_share,
            "drift": None if self.drift is None else self.drift.to_dict(),
            "head": None if self.head is None else asdict(self.head),
            "unreachable": self.unreachable,
            "unreachable_new": list(self.unreachable_new),
        }

    def tables(self) -> list[Table]:
        """The figures as tables: new tokens first, then cost, then drift."""
        tables = [tabulate_usage(self.usage)] if self.usage.tokens else []
        tables += tabulate_cost(self.cost)
        tables += [] if self.head is None else [tabulate_head(self.head)]
        return tables if self.drift is None else [*tables, tabulate_drift(self.drift)]

    def findings(self) -> list[str]:
        """What is wrong with the model, a sentence each; empty where nothing is."""
        ill = None if self.head is None else sickness(self.head)
        findings = [] if ill is None else [ill]
        dead = [token.token for token in self.usage.tokens if token.dead]
        inactive = [
            token.token for token in self.usage.tokens if token.documents_with and not token.fires_with
        ]
        false_activation = [
            token.token for token in self.usage.tokens if token.fires_without > token.documents_without / 2
        ]
        if lost := self.unreachable_new:
            findings.append(f"new tokens that their own term isn't cut into ({len(lost):,}): {_some(lost)}")
        if dead:
            findings.append(f"new tokens with weight in no document ({len(dead):,}): {_some(dead)}")
        if inactive := [token for token in inactive if token not in dead]:
            findings.append(
                f"new tokens without weight where they are said ({len(inactive):,}): {_some(inactive)}"
            )
        if false_activation:
            findings.append(
                f"new tokens that activate most documents that don't say them ({len(false_activation):,}): "
                f"{_some(false_activation)}"
            )
        if self.cost.empty_documents:
            findings.append(
                f"documents without any weight, which no search finds: {self.cost.empty_documents:,}"
            )
        return findings


def measure_health(
    model: SparseEncoder,
    texts: Sequence[str],
    vectors: csr_matrix,
    before: csr_matrix | None = None,
    head: Head | None = None,
) -> Health:
    """The health of a model over texts and their vectors (texts, V).

    `before`: vectors (texts, V or fewer) of the model that this one was made from. `head`: what the model makes of
    general passages.
    """
    marks, lost = np.flatnonzero(function_tokens(model.tokenizer)), unreachable(model)
    whole = float(vectors.sum())
    return Health(
        usage=measure_usage(model, texts, vectors),
        cost=measure_cost(vectors, model),
        function_share=float(vectors[:, marks[marks < vectors.shape[1]]].sum()) / whole if whole else 0.0,
        drift=None if before is None else compare_vectors(before, vectors),
        head=head,
        unreachable=len(lost),
        unreachable_new=tuple(token.token for token in model.new_tokens if token.token_id in lost),
    )


def _some(names: Sequence[str], most: int = 5) -> str:
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


def tabulate_head(head: Head) -> Table:
    """What a head makes of general passages, beside what is usual for trained models."""
    usual = [f"{first} to {last}" for first, last in (HEALTHY_DOCUMENT, HEALTHY_QUERY)]
    rows: list[Row] = [
        {"figure": "non-zeros a passage", "value": head.nonzero_document, "usual": usual[0]},
        {"figure": "non-zeros a question", "value": head.nonzero_query, "usual": usual[1]},
        {"figure": "passages without a non-zero (%)", "value": 100 * head.dark, "usual": "0"},
        {"figure": "vocabulary that some passage activates (%)", "value": 100 * head.active, "usual": ""},
        {"figure": "tokens that passages say", "value": head.mentioned, "usual": ""},
        {"figure": "of these never active where said", "value": head.never_active, "usual": ""},
    ]
    columns = (
        Column("figure", "figure", "text"),
        Column("value", "value", decimals=1),
        Column("usual", "usual", "text"),
    )
    return Table("Head, on general passages", columns, rows)
