"""Whether what was measured without a label shows a gain beyond chance."""

import numpy as np
import pytest

from sparse_adapt.collection.readers import Query
from sparse_adapt.retrieve.evaluate import ModelResult
from sparse_adapt.selection.evidence import IN_OTHER_WORDS, KNOWN_ITEMS, SYNTHETIC, by_kind, evidence_of
from sparse_adapt.selection.rule import BESIDE_RANKING, decide
from sparse_adapt.selection.ruling import why_refused

NOISE = np.tile([0.2, -0.2], 50)  # of 100 queries: a standard error of .02


def shown(kind, gain):
    return evidence_of(getattr(kind, "name", kind), 0.5 + gain + NOISE, np.full(100, 0.5))


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([shown(SYNTHETIC, 0.04), shown("titles", 0.01), shown("phrases", -0.03)], None),
        (
            [shown(SYNTHETIC, 0.03), shown("titles", 0.05)],
            "synthetic queries +3.0 ± 3.9 points",
        ),  # 1.96 x .0201 = .039
        (
            [shown(SYNTHETIC, 0.3), shown("phrases", -0.04)],
            "a gain that costs others: phrases -4.0 ± 3.9 points",
        ),
        ([shown(SYNTHETIC, 0.04), shown(KNOWN_ITEMS, -0.03)], None),  # which chance may explain
        ([shown(SYNTHETIC, 0.04), shown(KNOWN_ITEMS, -0.04)], "a gain that costs others: known items"),
        (
            [shown(SYNTHETIC, -0.03), shown("titles", -0.1), shown(IN_OTHER_WORDS, 0.04)],
            None,
        ),  # they don't ask for meaning
        (
            [shown(SYNTHETIC, -0.1), shown(IN_OTHER_WORDS, 0.04)],
            "a gain that costs others: synthetic queries -10.0 ± 3.9",
        ),
        (
            [shown(SYNTHETIC, 0.1), shown(IN_OTHER_WORDS, 0.04), shown(BESIDE_RANKING, -0.04)],
            "a gain that costs others: synthetic queries, beside ranking alone -4.0 ± 3.9",
        ),
        (
            [shown(SYNTHETIC, 0.1), shown(IN_OTHER_WORDS, 0.03)],
            "definitions in other words +3.0 ± 3.9 points",
        ),
    ],
)
def test_a_gain_within_chance_is_refused(rows, why):
    assert decide(rows).refused == (why is not None)
    assert why_refused(rows) is None if why is None else why in why_refused(rows)


def test_a_single_query_shows_nothing():
    assert decide([evidence_of(SYNTHETIC.name, np.ones(1), np.zeros(1))]).refused


def result(kinds, values):
    return ModelResult(
        tuple(Query(str(row), "text", kind) for row, kind in enumerate(kinds)), {"ndcg@10": values}
    )


def test_each_kind_with_enough_queries_speaks_for_itself():
    kinds = ["title"] * 20 + ["phrase"] * 16 + ["sentence"] * 9
    rows = by_kind(SYNTHETIC, result(kinds, np.full(45, 0.6)), result(kinds, np.full(45, 0.5)))
    assert [(row.kind, row.queries) for row in rows] == [
        ("synthetic queries", 45),
        ("synthetic queries (title)", 20),
        ("synthetic queries (phrase)", 16),
    ]
    rows = by_kind(SYNTHETIC, result(kinds[30:], np.ones(15)), result(kinds[30:], np.zeros(15)))
    assert [(row.kind, row.queries) for row in rows] == [("synthetic queries", 15)], (
        "few of each speak together"
    )
