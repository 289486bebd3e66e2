"""Search against a dense product, with ties, empty rows and every k."""

import numpy as np
import pytest
import scipy.sparse as sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from sparse_adapt.retrieve import search
from sparse_adapt.retrieve.search import Searcher, expected_products, top_k


def dense_top_k(queries: np.ndarray, documents: np.ndarray, k: int):
    """The slow obvious way: all scores in float64, rounded, sorted so that ties keep the documents' order."""
    found = []
    for row in (queries.astype(np.float64) @ documents.astype(np.float64).T).astype(np.float32):
        order = np.argsort(-row, kind="stable")[:k]
        order = order[row[order] > 0]
        found.append((order, row[order]))
    return found


def assert_same(result, expected):
    assert len(result) == len(expected)
    for (rows, scores), (expected_rows, expected_scores) in zip(result, expected, strict=True):
        np.testing.assert_array_equal(rows, expected_rows)
        np.testing.assert_array_equal(scores, expected_scores)


def random_vectors(seed: int, rows: int, columns: int, density: float, *, low: int = 1) -> np.ndarray:
    """Quarters, so that sums are exact and ties are many."""
    generator = np.random.default_rng(seed)
    values = generator.integers(low, 9, (rows, columns)) / 4
    return (values * (generator.random((rows, columns)) < density)).astype(np.float32)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    sizes=st.tuples(st.integers(0, 5), st.integers(0, 150), st.integers(1, 12)),
    density=st.sampled_from([0.0, 0.05, 0.4, 1.0]),
    k=st.integers(0, 160),
    low=st.sampled_from([1, -3]),
)
def test_the_same_as_a_dense_product(seed, sizes, density, k, low):
    queries = random_vectors(seed, sizes[0], sizes[2], 0.5, low=low)
    documents = random_vectors(seed + 1, sizes[1], sizes[2], density, low=low)
    result = top_k(sparse.csr_matrix(queries), sparse.csr_matrix(documents), k)
    assert_same(result, dense_top_k(queries, documents, k))


@pytest.mark.parametrize("k", [1, 10, 1000])
def test_many_blocks_of_skewed_weights(k):
    generator = np.random.default_rng(4)
    chance = 1 / np.arange(1, 401)  # a few tokens everywhere, most of them rare
    shape = (5000, 400)
    documents = np.where(generator.random(shape) < chance * 3, generator.integers(1, 2000, shape) / 512, 0)
    queries = documents[::500] * (generator.random((10, 400)) < 0.8)
    documents, queries = documents.astype(np.float32), queries.astype(np.float32)
    result = top_k(sparse.csr_matrix(queries), sparse.csr_matrix(documents), k)
    assert_same(result, dense_top_k(queries, documents, k))


def test_most_blocks_are_never_scored(monkeypatch):
    """A document that shares nothing with the rest of a query's blocks costs no look at them."""
    documents = sparse.csr_matrix(np.repeat(np.eye(50, dtype=np.float32), 64, axis=0))
    searcher = Searcher(documents)
    query = np.zeros((1, 50), np.float32)
    query[0, [7, 9]] = 2.0, 1.0
    bounds = np.zeros(400)
    search._add_bounds(searcher.postings, np.array([7, 9]), query[0, [7, 9]], bounds, True)
    assert np.count_nonzero(bounds) == 16  # 64 documents of each of the two tokens, 8 a block
    rows, scores = searcher.top_k(sparse.csr_matrix(query), 3)[0]
    assert rows.tolist() == [448, 449, 450] and scores.tolist() == [2.0, 2.0, 2.0]


def test_ties_keep_the_order_of_the_documents():
    documents = sparse.csr_matrix(np.array([[1, 0], [0, 2], [1, 0], [0, 2], [3, 0]], np.float32))
    rows, scores = top_k(sparse.csr_matrix(np.array([[2, 1]], np.float32)), documents, 4)[0]
    assert rows.tolist() == [4, 0, 1, 2]
    assert scores.tolist() == [6.0, 2.0, 2.0, 2.0]


def test_threads_change_nothing(monkeypatch):
    import torch

    from sparse_adapt.model.head import threads

    queries, documents = random_vectors(1, 90, 30, 0.3), random_vectors(2, 900, 30, 0.3)
    alone = top_k(sparse.csr_matrix(queries), sparse.csr_matrix(documents), 7)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    torch.set_num_threads(3)
    assert_same(top_k(sparse.csr_matrix(queries), sparse.csr_matrix(documents), 7), alone)


@pytest.mark.parametrize("size", [1, 3, 7, 50])
def test_blocks_taken_in_turn_give_what_all_at_once_do(size):
    random = np.random.default_rng(4)
    documents = sparse.csr_matrix(random.integers(0, 3, (50, 6)).astype(np.float32))  # many ties
    query = sparse.csr_matrix(random.integers(0, 2, (1, 6)).astype(np.float32))
    names = [f"d{row}" for row in range(50)]
    blocks = [(names[start : start + size], documents[start : start + size]) for start in range(0, 50, size)]
    rows, scores = top_k(query, documents, 12)[0]
    expected = [(names[row], float(score)) for row, score in zip(rows, scores, strict=True)]
    assert search.best_of_blocks(query, iter(blocks), 12) == [expected]
    assert search.best_of_blocks(query, iter([]), 12) == [[]]


def test_a_run_names_queries_and_documents():
    documents = sparse.csr_matrix(np.array([[1, 0], [0, 2], [4, 0]], np.float32))
    queries = sparse.csr_matrix(np.array([[1, 0], [0, 0]], np.float32))
    run = search.search(queries, ["q1", "q2"], documents, ["a", "b", "c"], 10)
    assert run == {"q1": {"c": 4.0, "a": 1.0}, "q2": {}}
    assert list(run["q1"]) == ["c", "a"]


def test_expected_products_is_the_mean_over_all_pairs():
    generator = np.random.default_rng(5)
    queries, documents = (
        sparse.csr_matrix(generator.random((size, 30)) * (generator.random((size, 30)) < 0.2))
        for size in (7, 11)
    )
    shared = ((queries > 0).astype(int) @ (documents > 0).astype(int).T).toarray()
    shares = np.asarray((documents > 0).mean(axis=0)).ravel()
    assert expected_products(queries, shares) == pytest.approx(shared.mean())
