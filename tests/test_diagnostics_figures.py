"""Usage, drift and cost on vectors small enough to count by hand."""

import json

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from diagnostics.figures import (
    compare_vectors,
    estimate_index_bytes,
    measure_cost,
    measure_usage,
    tabulate_cost,
    tabulate_drift,
    tabulate_usage,
)
from sparse_adapt.model.encoder import NewToken
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.tables import to_json, to_markdown
from sparse_adapt.retrieve.encode import encode


@pytest.fixture
def tiny(tiny_model) -> SparseEncoder:
    return SparseEncoder.load(tiny_model)


def sparse(rows: list[list[float]]) -> csr_matrix:
    return csr_matrix(np.array(rows, dtype=np.float32))


def weigh(model: SparseEncoder, *texts: dict[str, float]) -> csr_matrix:
    """Vectors (texts, V) with these tokens' weights."""
    rows = np.zeros((len(texts), model.vocabulary_size), dtype=np.float32)
    for row, weights in enumerate(texts):
        for token, weight in weights.items():
            rows[row, model.tokenizer.get_vocab()[token]] = weight
    return csr_matrix(rows)


# -- usage ------------------------------------------------------------------------------------


@pytest.fixture
def with_two_new(tiny) -> SparseEncoder:
    vocabulary = tiny.tokenizer.get_vocab()
    new = [NewToken(vocabulary[token], token, token, "jargon", ()) for token in ("server", "log")]
    return SparseEncoder(tiny.masked_lm, tiny.tokenizer, new, 64)


def test_usage_by_hand(with_two_new):
    texts = ["server log", "the server", "a log", "log"]
    vectors = weigh(with_two_new, {"server": 1.0}, {"the": 1.0}, {"server": 0.5}, {})
    usage = measure_usage(with_two_new, texts, vectors)
    server, log = usage.tokens
    assert (server.documents_with, server.fires_with) == (2, 1)
    assert (server.documents_without, server.fires_without) == (2, 1)
    assert (server.mean_weight_with, server.largest_weight) == (0.5, 1.0)
    assert (log.documents_with, log.fires_with, log.dead) == (3, 0, True)
    assert not server.dead
    assert usage.dead_share == 1 / 2
    assert usage.fires_with_share == 1 / 5  # 2 + 3 pairs of token and document that says it
    assert usage.fires_without_share == 1 / 3
    content = json.loads(json.dumps(usage.to_dict()))
    assert [token["dead"] for token in content["tokens"]] == [False, True]
    assert "without weight 50.0%" in tabulate_usage(usage).note


def test_usage_without_new_tokens_has_no_shares(tiny):
    usage = measure_usage(tiny, ["server"], weigh(tiny, {"server": 1.0}))
    assert (usage.dead_share, usage.fires_with_share, usage.fires_without_share) == (None, None, None)
    assert tabulate_usage(usage).note == ""


# -- drift ------------------------------------------------------------------------------------


def test_drift_by_hand():
    before = sparse([[3, 4, 0], [1, 0, 0], [0, 0, 0], [1, 1, 0]])
    after = sparse([[3, 4, 0, 7], [0, 1, 0, 0], [0, 0, 0, 2], [1, 0, 0, 0]])
    drift = compare_vectors(before, after, top=1)
    # 1: only a new dimension; 2: orthogonal; 3: nothing before or after in the old ones; 4: 1 / sqrt(2)
    assert [text.cosine for text in drift.texts] == pytest.approx([1.0, 0.0, 1.0, 2**-0.5])
    assert [text.overlap for text in drift.texts] == [1.0, 0.0, 1.0, 1.0]
    assert [text.nonzero_before for text in drift.texts] == [2, 1, 0, 2]
    assert [text.nonzero_after for text in drift.texts] == [3, 1, 1, 1]
    assert drift.furthest_text == 1
    assert drift.mean_cosine == pytest.approx((2 + 2**-0.5) / 4)
    assert (drift.nonzero_before, drift.nonzero_after) == (5 / 4, 6 / 4)
    json.dumps(drift.to_dict())


def test_a_model_does_not_drift_from_itself(tiny, twelve_documents):
    texts = [document.full_text for document in twelve_documents]
    vectors = encode(tiny, texts, "document")
    drift = compare_vectors(vectors, vectors)
    assert drift.least_cosine == pytest.approx(1.0)
    assert drift.mean_overlap == 1.0
    assert drift.nonzero_before == drift.nonzero_after > 0


# -- cost -------------------------------------------------------------------------------------


def test_cost_by_hand(tiny):
    documents = weigh(tiny, {"server": 1, "log": 1, "the": 1}, {"server": 2}, {}, {"server": 1, "log": 1})
    queries = weigh(tiny, {"server": 1, "client": 1}, {"log": 1})
    cost = measure_cost(documents, tiny, queries, lists=2)
    assert (cost.documents, cost.nonzero_document, cost.largest_document, cost.empty_documents) == (
        4,
        1.5,
        3,
        1,
    )
    assert cost.tokens_used == 3
    assert [(posting.token, posting.documents, posting.share) for posting in cost.longest] == [
        ("server", 3, 0.75),
        ("log", 2, 0.5),
    ]
    # half of the queries have "server", in 3/4 of the documents; half have "log", in 2/4
    assert cost.flops == pytest.approx(0.5 * 0.75 + 0.5 * 0.5)
    assert cost.postings_a_query == pytest.approx((3 + 2) / 2)
    assert (cost.queries, cost.nonzero_query) == (2, 1.5)
    json.dumps(cost.to_dict())


def test_index_size_by_hand():
    # lists of 1, 4 and 0 out of 4 documents: 1 * (2 + 2 + 8) + 4 * (2 + 0 + 8) = 52 bits
    assert estimate_index_bytes(np.array([1, 4, 0]), 4) == 7


def test_tables_show_the_figures(tiny):
    cost = measure_cost(weigh(tiny, {"server": 1.0}), tiny)
    figures, lists = tabulate_cost(cost)
    assert {row["figure"]: row["value"] for row in figures.rows}["non-zeros a query"] is None
    assert to_json(lists) == [{"token": "server", "documents": 1, "share": 1.0}]
    assert "| <code>server</code> | 1 | 100.0 % |" in to_markdown(lists)
    drift = tabulate_drift(compare_vectors(sparse([[1, 0]]), sparse([[1, 0]])))
    assert [row["value"] for row in drift.rows] == [1.0, 1.0, 1.0, 1.0, 1.0]
