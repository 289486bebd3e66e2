"""The health of a whole model, on vectors small enough to count by hand."""

import json

import numpy as np
from scipy.sparse import csr_matrix

from diagnostics.health import measure_health
from sparse_adapt.model.encoder import NewToken
from sparse_adapt.model.sparse import SparseEncoder

TEXTS = ["server log", "the server", "a log", "log"]


def with_new(folder, *tokens: str) -> SparseEncoder:
    plain = SparseEncoder.load(folder)
    vocabulary = plain.tokenizer.get_vocab()
    new = [NewToken(vocabulary[token], token, token, "jargon", ()) for token in tokens]
    return SparseEncoder(plain.masked_lm, plain.tokenizer, new, 64)


def weigh(model: SparseEncoder, *texts: dict[str, float]) -> csr_matrix:
    rows = np.zeros((len(texts), model.vocabulary_size), dtype=np.float32)
    for row, weights in enumerate(texts):
        for token, weight in weights.items():
            rows[row, model.tokenizer.get_vocab()[token]] = weight
    return csr_matrix(rows)


def test_health_says_which_tokens_are_dead_inactive_and_falsely_active(tiny_model):
    model = with_new(tiny_model, "server", "log")
    vectors = weigh(model, {"server": 1.0}, {"the": 3.0}, {"server": 1.0}, {"server": 1.0})
    health = measure_health(model, TEXTS, vectors)
    assert health.function_share == 0.5  # "the" 3.0 of 6.0
    assert health.findings() == [
        "new tokens with weight in no document (1): log",
        "new tokens that activate most documents that don't say them (1): server",
    ]
    assert [table.title for table in health.tables()] == ["New tokens", "Cost", "Longest posting lists"]


def test_a_new_token_whose_term_is_cut_into_others_is_named(tiny_model):
    model = with_new(tiny_model, "server")
    token = model.new_tokens[0]
    model.new_tokens = (NewToken(token.token_id, "server", "the log", "jargon", ()),)
    health = measure_health(
        model, TEXTS, weigh(model, {"server": 1.0}, {"server": 1.0}, {"log": 1.0}, {"log": 1.0})
    )
    assert health.findings() == ["new tokens that their own term isn't cut into (1): server"]
    assert health.to_dict()["unreachable_new"] == ["server"]


def test_a_token_lit_elsewhere_only_is_unlit_where_said(tiny_model):
    model = with_new(tiny_model, "server")
    health = measure_health(model, TEXTS, weigh(model, {"log": 1.0}, {"log": 1.0}, {"server": 1.0}, {}))
    assert health.findings() == [
        "new tokens without weight where they are said (1): server",
        "documents without any weight, which no search finds: 1",
    ]


def test_health_of_a_good_model_finds_nothing_and_measures_drift(tiny_model):
    model = with_new(tiny_model, "server")
    vectors = weigh(model, {"server": 1.0}, {"server": 1.0}, {"log": 1.0}, {"log": 1.0})
    health = measure_health(model, TEXTS, vectors, vectors)
    assert health.findings() == []
    assert health.drift is not None
    assert health.drift.mean_cosine == 1.0
    assert json.loads(json.dumps(health.to_dict()))["drift"]["mean_overlap"] == 1.0
