"""Both ways of replacing noun phrases: the collection that is searched, the share of words replaced, the table."""

import json

import pytest

from benchmarks import refilling
from benchmarks.tables import RESULTS
from sparse_adapt.collection.examples import Triplet
from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.retrieve.evaluate import Collection

FOUND = [
    {"way": "before", "ndcg@10": 0.8},
    {
        "way": "one at a time",
        "what": "written",
        "contradictions": 1_000,
        "anchors": 200,
        "without_contradictions": 4,
        "unchanged": 52,
        "cosine": 0.87,
        "nearly_the_same": 0.41,
        "replaced": 0.15,
    },
    {"way": "one at a time", "seed": 0, "ndcg@10": 0.81},
    {"way": "one at a time", "seed": 1, "ndcg@10": 0.82},
]


def test_judged_documents_come_first_and_all_of_them():
    documents = tuple(Document(name, "") for name in "abcde")
    whole = Collection(documents, (Query("1", "x"),), {"1": {"d": 1, "b": 1}})
    names = [
        "".join(each.document_id for each in refilling.shortened(whole, size).documents) for size in (1, 3, 9)
    ]
    assert names == ["bd", "bda", "bdace"]


def test_replaced_is_a_share_of_the_anchors_words():
    triplet = Triplet("a saw cuts the tall tree", ("x", "y"), replaced=("saw", "tall tree"))
    assert refilling._replaced(triplet) == pytest.approx((1 / 6 + 2 / 6) / 2)


def test_the_table_has_a_line_for_each_way():
    found = [*FOUND, *({**each, "way": "all at once"} for each in FOUND[1:])]
    lines = refilling.table(found).splitlines()
    assert lines[2].endswith("| 0.800 |")
    assert lines[3] == "| one at a time | 1,000 | 200 of 204 | 52 | 15% | 0.87 | 41% | 0.810, 0.820 |"
    assert lines[4].startswith("| all at once |")


def test_the_page_shows_what_was_measured():
    found = json.loads((RESULTS / "refilling.json").read_text())
    assert refilling.table(found) in (RESULTS / "refilling.md").read_text()
