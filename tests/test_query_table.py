"""Queries without a model: inverse document frequencies, learnt weights, and the table on disk."""

import json
from math import log

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random

from sparse_adapt.engines.query_table import (
    idf_weights,
    learn_weights,
    read_table,
    token_queries,
    weigh,
    write_table,
)
from sparse_adapt.errors import InputError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch


def test_idf_by_hand():
    rows = np.array([[1.0, 2.0, 0.0], [0.0, 3.0, 0.0], [0.0, 0.5, 0.0]])
    blocks = [EncodedBatch(["a", "b"], csr_matrix(rows[:2])), EncodedBatch(["c"], csr_matrix(rows[2:]))]
    # one of three: ln(1 + 2.5 / 1.5); three of three: ln(1 + 0.5 / 3.5); no document: nothing to find
    assert idf_weights(blocks, 3) == pytest.approx([log(1 + 2.5 / 1.5), log(1 + 0.5 / 3.5), 0.0])


def test_a_query_has_each_token_once_and_no_special_one(tiny_model):
    model = SparseEncoder.load(tiny_model)
    names = {token_id: token for token, token_id in model.tokenizer.get_vocab().items()}
    tokens = token_queries(model, ["the server, the server", ""])
    assert tokens.shape == (2, 200)
    assert {names[column] for column in tokens[0].indices} == {"the", "server", ","}
    assert tokens[0].data.tolist() == [1.0, 1.0, 1.0]
    assert tokens[1].nnz == 0
    weights = np.zeros(200)
    weights[model.tokenizer.convert_tokens_to_ids("server")] = 2.5
    assert weigh(tokens, weights).data.tolist() == [2.5]


def test_learnt_weights_are_those_that_made_the_scores():
    """Where the model's own queries are weighed tokens already, these weights are found again, up to caution."""
    documents = random(300, 8, density=0.6, random_state=0, format="csr", dtype=np.float32)
    tokens = random(200, 8, density=0.4, random_state=1, format="csr", dtype=np.float32)
    tokens.data[:] = 1.0
    true = np.array([0.2, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0])
    learnt = learn_weights(np.ones(8), tokens, weigh(tokens, true), documents)
    assert learnt == pytest.approx(true, rel=0.1)
    assert (learn_weights(true, tokens[:0], tokens[:0], documents) == true).all()


def test_the_table_is_a_json_object_that_reads_back(tmp_path):
    tokens = ["a b", 'quo"te', "日本", "unused"]
    assert write_table(tmp_path / "idf.json", tokens, np.array([1.5, 0.25, 3.0, 0.0])) == 3
    assert json.loads((tmp_path / "idf.json").read_text()) == {"a b": 1.5, 'quo"te': 0.25, "日本": 3.0}
    assert read_table(tmp_path / "idf.json", tokens).tolist() == [1.5, 0.25, 3.0, 0.0]
    with pytest.raises(InputError, match="has the token '日本', which the model doesn't"):
        read_table(tmp_path / "idf.json", tokens[:2])
    (tmp_path / "idf.json").write_text("[1]")
    with pytest.raises(InputError, match="isn't a table of tokens and weights"):
        read_table(tmp_path / "idf.json", tokens)
