"""Wackiness by hand, and on documents that say their expansions or don't."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.research.wackiness import area_under, measure_wackiness, wackiness_of
from sparse_adapt.retrieve.search import Searcher


def test_wackiness_by_hand():
    assert wackiness_of(np.array([4.0, 1.0, 0.0])).tolist() == [0.0, 0.75, 1.0]
    assert wackiness_of(np.zeros(2)).tolist() == [1.0, 1.0]


def test_area_by_hand():
    assert area_under(np.array([1.0, 0.0])) == pytest.approx(0.5)
    assert area_under(np.array([1.0, 0.5, 0.0])) == pytest.approx(0.5)  # (0.75 + 0.25) / 2
    assert area_under(np.zeros(0)) == 0.0
    assert area_under(np.array([0.3])) == pytest.approx(0.3)


def test_an_expansion_that_its_documents_say_is_less_wacky(tiny_model):
    model = SparseEncoder.load(tiny_model)
    texts = ["the server stores the log", "a saw for wood"]
    ids = {
        word: model.tokenizer.convert_tokens_to_ids(word) for word in ("server", "log", "password", "wood")
    }
    documents = np.zeros((2, model.vocabulary_size), np.float32)
    documents[0, [ids["server"], ids["log"], ids["password"]]] = 1.0
    documents[1, ids["wood"]] = 1.0
    queries = np.zeros((2, model.vocabulary_size), np.float32)
    queries[:, [ids["server"], ids["log"], ids["password"]]] = 1.0
    found = measure_wackiness(
        model, Searcher(csr_matrix(documents)), texts, ["server", "server"], csr_matrix(queries)
    )
    assert found.tokens == {ids["log"]: 0.0, ids["password"]: 1.0}  # "server" is what the queries say
    assert found.area == pytest.approx(0.5)


def test_the_use_of_an_expansion_by_hand(tiny_model):
    """Two documents of three tokens: idf ln(3 / 2) + 1 or 1, tf 1, length ln 4, decay 1 / ln 2 and 1 / ln 3."""
    model = SparseEncoder.load(tiny_model)
    texts = ["server log team", "server server team"]
    log, team = model.tokenizer.convert_tokens_to_ids(["log", "team"])
    server = model.tokenizer.convert_tokens_to_ids("server")
    documents = np.zeros((2, model.vocabulary_size), np.float32)
    documents[:, server] = [2.0, 1.0]  # the first stands first
    queries = np.zeros((2, model.vocabulary_size), np.float32)
    queries[:, [server, log, team]] = 1.0
    found = measure_wackiness(
        model, Searcher(csr_matrix(documents)), texts, ["server"] * 2, csr_matrix(queries)
    )
    of_log = (np.log(3 / 2) + 1) / np.log(4) / np.log(2)
    of_team = (1 / np.log(2) + 1 / np.log(3)) / np.log(4)
    assert found.tokens[log] == pytest.approx(1 - of_log / max(of_log, of_team))
    assert found.tokens[team] == pytest.approx(1 - of_team / max(of_log, of_team))
