"""The benchmark of fusion: Lucene's sum is BM25 plus a dot product, both computed apart; the boost by hand."""

import math

import numpy as np
import pytest

from benchmarks.fusion import ENGLISH, STANDARD, Question, fused, mean_best, page
from sparse_adapt.collection.readers import Document

DOCUMENTS = [
    Document("d1", "wing in slipstream", "wing"),
    Document("d2", "a wing a wing a tail", "the tail"),
    Document("d3", "slipstream"),
    Document("d4", "nothing of it", "other"),
    Document("d5", "wing slipstream wing slipstream tail", "slipstream wing"),
    Document("d6", "", "wing"),
]
WEIGHTS = [{"wing": 1.5}, {"air": 2.0}, {"wing": 0.25, "air": 1.0}, {"air": 0.5}, {}, {"wing": 3.0}]
ASKED = Question("Wing slipstream", {"wing": 2.0, "air": 100.0})  # 100: the query is halved, the sum isn't


def bm25(texts, words):
    """Robertson's formula in Lucene's form, k1 1.2 and b 0.75, over documents that have the field."""
    cut = [text.split() for text in texts]
    there = [len(each) for each in cut if each]
    scores = np.zeros(len(texts))
    for word in words:
        has = sum(word in each for each in cut)
        idf = math.log(1 + (len(there) - has + 0.5) / (has + 0.5))
        for row, each in enumerate(cut):
            count = each.count(word)
            scores[row] += idf * count / (count + 1.2 * (0.25 + 0.75 * len(each) / np.mean(there)))
    return scores


def test_lucene_adds_bm25_and_the_dot_product():
    words = ASKED.text.lower().split()
    statistics = bm25([each.text for each in DOCUMENTS], words) + bm25(
        [each.title for each in DOCUMENTS], words
    )
    products = np.array([sum(ASKED.weights[name] * each[name] for name in each) for each in WEIGHTS])
    with fused(zip(DOCUMENTS, WEIGHTS, strict=True), STANDARD) as index:
        found = {factors: index.search(ASKED, *factors) for factors in ((1.0, 0.0), (0.0, 1.0), (0.5, 1.0))}
    for (first, second), run in found.items():
        expected = first * statistics + second * products
        assert run == pytest.approx(
            {f"d{row + 1}": each for row, each in enumerate(expected) if each}, rel=1e-5
        )
        assert list(run) == [f"d{row + 1}" for row in np.argsort(-expected, kind="stable") if expected[row]]


def test_stems_are_the_analyzers():
    asked = Question("wings", {})
    for analyzer, ids in ((STANDARD, set()), (ENGLISH, {"d1", "d2", "d5", "d6"})):
        with fused(zip(DOCUMENTS, WEIGHTS, strict=True), analyzer) as index:
            assert index.search(asked, 1.0, 0.0).keys() == ids


def test_best_scores_and_the_page_by_hand():
    assert mean_best({"q1": {"d1": 1.0, "d2": 4.0}, "q2": {}, "q3": {"d1": 2.0}}) == 2.0  # (4 + 0 + 2) / 3
    entry = {"analyzer": STANDARD, "boost": 2.0, "BM25": 0.4996, "sparse": 0.5, "both": 0.6}
    entries = [{"collection": "a", **entry}, {"collection": "b", **entry, "both": 1.0}]
    assert page(entries).splitlines() == [
        "| Lucene's StandardAnalyzer | a | b |",
        "| --- | ---: | ---: |",
        "| BM25 | 0.500 | 0.500 |",
        "| sparse | 0.500 | 0.500 |",
        "| both | 0.600 | 1.000 |",
        "| boost of BM25 | 2.00 | 2.00 |",
    ]
