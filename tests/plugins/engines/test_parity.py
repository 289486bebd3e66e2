"""Parity: every difference is a tie, the engine's rounding, or a fault that is named."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sparse_adapt.errors import ConfigError
from sparse_adapt.plugins.engines.parity import check_engine, headline, tables
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

DOCUMENTS = EncodedBatch(
    ["d0", "d1", "d2", "d3"],
    csr_matrix(np.array([[1.0, 0.0], [1.26, 0.0], [1.24, 0.0], [0.0, 2.0]], dtype=np.float32)),
)
QUERIES = EncodedBatch(["q0", "q1"], csr_matrix(np.array([[1.0, 0.0], [0.0, 1.0]], dtype=np.float32)))
EXACT = {"q0": {"d1": 1.26, "d2": 1.24, "d0": 1.0}, "q1": {"d3": 2.0}}


class Rounding:
    """An engine that keeps weights to `decimals` and answers with a list made by hand."""

    name, tolerance, encode = "by hand", 1e-6, None

    def __init__(self, run, decimals=6):
        self.run, self.decimals = run, decimals

    def document_weights(self, documents):
        kept = documents.vectors.copy()
        kept.data = np.round(kept.data, self.decimals)
        return kept

    def query_weights(self, queries):
        return queries.vectors

    def search_all(self, queries, k):
        return {query_id: dict(list(self.run[query_id].items())[:k]) for query_id in queries.ids}


def check(run, decimals=6, **more):
    return check_engine(Rounding(run, decimals), DOCUMENTS, QUERIES, **more)


def test_the_exact_lists_are_the_same():
    parity = check(EXACT)
    assert parity.kinds == {"same": 2, "tie": 0, "rounding": 0, "fault": 0}
    assert (parity.differences, parity.measures["exact"], parity.encoding_difference) == ((), {}, None)
    assert parity.largest_difference < 1e-6


def test_rounding_explains_what_exact_search_over_the_rounded_weights_gives():
    # to one decimal d1 is 1.3 and d2 1.2: as before; to none d0, d1 and d2 are all 1
    parity = check({"q0": {"d2": 1.0, "d0": 1.0, "d1": 1.0}, "q1": {"d3": 2.0}}, decimals=0)
    assert [(each.query_id, each.kind) for each in parity.differences] == [("q0", "rounding")]
    assert parity.differences[0].words == "differs from rank 1"
    assert parity.largest_difference == pytest.approx(0.26 / 1.26)  # d1 scores 1 instead of 1.26, the best


def test_equal_scores_in_another_order_are_a_tie():
    documents = EncodedBatch(
        ["a", "b", "c"], csr_matrix(np.array([[1.0, 0], [1.0, 0], [0.5, 0]], dtype=np.float32))
    )
    run = {"q0": {"b": 1.0, "a": 1.0, "c": 0.5}, "q1": {}}
    parity = check_engine(Rounding(run), documents, QUERIES, k=3)
    assert parity.kinds == {"same": 1, "tie": 1, "rounding": 0, "fault": 0}
    last_place = check_engine(Rounding({"q0": {"b": 1.0}, "q1": {}}), documents, QUERIES, k=1)
    assert last_place.kinds["tie"] == 1


@pytest.mark.parametrize(
    ("ranking", "words"),
    [
        ({"d1": 1.26, "d2": 1.24}, "row 0 of the corpus scores 1 and is missing"),
        ({"d2": 1.24, "d1": 1.26, "d0": 1.0}, "d1 scores more than d2 above it"),
        ({"d1": 1.26, "d2": 1.3, "d0": 1.0}, "d2 scores 1.3, not 1.24"),
        ({"d1": 1.26, "ghost": 1.25}, "names 'ghost', which is not in the corpus"),
        ({}, "row 1 of the corpus scores 1.26 and is missing"),
        ({"d1": float("nan"), "d2": 1.24, "d0": 1.0}, "d1 scores nan, not 1.26"),
    ],
)
def test_what_nothing_explains_is_a_fault(ranking, words):
    parity = check({**EXACT, "q0": ranking})
    assert [(each.query_id, each.words) for each in parity.faults] == [("q0", words)]


def test_what_an_engine_costs_is_measured_on_judged_queries():
    judgements = {"q0": {"d1": 1}, "unasked": {"d0": 1}}
    run = {"q0": {"d2": 1.0, "d0": 1.0, "d1": 1.0}, "q1": {"d3": 2.0}}
    parity = check(run, decimals=0, judgements=judgements)
    assert parity.measures["exact"] == {"ndcg@10": 1.0}
    assert parity.measures["engine"] == {"ndcg@10": pytest.approx(0.5)}  # at rank 3: 1 / log2(4)
    assert json.loads(json.dumps(parity.as_json()))["measures"]["lost"] == {"ndcg@10": pytest.approx(0.5)}
    assert [len(table.rows) for table in tables(parity)] == [4, 1]
    assert headline(parity).startswith("by hand beside exact search: 4 documents, top 10")
    with pytest.raises(ConfigError, match="--top 5: nDCG@10 needs 10 documents a query"):
        check(run, judgements=judgements, k=5)


def test_queries_that_an_export_encodes_itself_are_the_ones_put():
    class Encoding(Rounding):
        def encode(self, texts):
            assert texts == ["one", "two"]
            return csr_matrix(np.array([[1.25, 0], [0, 1]], dtype=np.float32))

    run = {"q0": {"d1": 1.575, "d2": 1.55, "d0": 1.25}, "q1": {"d3": 2.0}}
    parity = check_engine(Encoding(run), DOCUMENTS, QUERIES, texts=["one", "two"])
    assert parity.encoding_difference == pytest.approx(0.25)
    assert parity.kinds["same"] == 2
