"""What a run's glossary says of a term, and what the term activates before and after the glossary was taught."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.sections import Facts, Part, TableRows
from sparse_adapt.report.tables import Column, Row, Table
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.terms.entries import EntryKeys
from sparse_adapt.terms.uses import Use

EXPANSIONS = 10
COLUMNS = (
    Column("token", "token", "token"),
    Column("before", "before", decimals=3),
    Column("after", "after", decimals=3, bar=True),
)


@dataclass(frozen=True, slots=True)
class Expansion:
    """A token that a query of the term alone activates, with its weight before and after."""

    token: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class InGlossary:
    """An entry of a glossary: what it is called there, its kind, its senses, what else says it, what it activates."""

    term: str
    kind: str
    forms: tuple[str, ...]
    senses: tuple[str, ...]
    not_used: str
    expansions: tuple[Expansion, ...]

    def parts(self) -> Iterator[Part]:
        """The entry, and the tokens that are heaviest before or after."""
        facts = [("entry", self.term), ("kind", self.kind), ("forms", ", ".join(self.forms))]
        facts += [(f"sense {number}", sense) for number, sense in enumerate(self.senses, start=1)]
        yield Facts([*facts, *([("not used", self.not_used)] if self.not_used else [])])
        rows: list[Row] = [
            {"token": each.token, "before": each.before, "after": each.after} for each in self.expansions
        ]
        yield TableRows(Table("what a query of the term alone activates, before and after", COLUMNS, rows))


def in_glossary(
    term: str, uses: Sequence[Use], base: SparseEncoder, model: SparseEncoder
) -> InGlossary | None:
    """The entry that a term is a form of, with what it activates in two models; None where the glossary has none."""
    keys = EntryKeys(base.tokenizer)
    wanted = keys.of(term)
    use = next((each for each in uses if wanted in map(keys.of, each.entry.forms)), None)
    if use is None:
        return None
    entry = use.entry
    return InGlossary(
        entry.written or entry.term,
        use.kind,
        entry.forms,
        entry.senses,
        use.refused,
        tuple(_expansions(term, base, model)),
    )


def _expansions(term: str, base: SparseEncoder, model: SparseEncoder) -> Iterator[Expansion]:
    """The heaviest tokens of a query of the term alone by either model, by their weight after."""
    before, after = (encode(each, [term], "query").toarray()[0] for each in (base, model))
    before = np.pad(before, (0, max(0, len(after) - len(before))))
    heaviest = {
        int(row) for weights in (before, after) for row in np.argsort(-weights, kind="stable")[:EXPANSIONS]
    }
    for row in sorted(heaviest, key=lambda row: (-after[row], -before[row], row)):
        if before[row] > 0 or after[row] > 0:
            yield Expansion(model.names_of([row])[0], float(before[row]), float(after[row]))
