"""Measures by hand, ties, empty results, and what chance alone would give."""

import json
import math
from dataclasses import replace
from itertools import product
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.stats import ttest_rel

from sparse_adapt.collection.readers import (
    Document,
    Query,
    write_documents,
    write_judgements,
    write_queries,
)
from sparse_adapt.errors import InputError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.evaluate import (
    MEASURES,
    Collection,
    ModelResult,
    compare,
    evaluate_dense,
    evaluate_model,
    evaluate_ranking,
    evaluate_run,
    evaluate_vectors,
    evaluation,
    read_collection,
)
from sparse_adapt.retrieve.significance import holm, randomisation_test

LOG3 = math.log2(3)


def test_measures_by_hand():
    run = {"q": {"d1": 3.0, "d2": 2.0, "d3": 1.0}}
    means = evaluate_run(run, {"q": {"d2": 2, "d3": 1, "d9": 1}}).means
    # gains by rank 0, 2, 1; the ideal ranking has 2, 1, 1
    assert means["ndcg@10"] == pytest.approx((2 / LOG3 + 1 / 2) / (2 + 1 / LOG3 + 1 / 2))
    assert means["mrr@10"] == pytest.approx(1 / 2)
    assert means["map"] == pytest.approx((1 / 2 + 2 / 3) / 3)
    assert means["recall@100"] == pytest.approx(2 / 3)
    assert means["p@1"] == 0.0
    assert means["p@5"] == pytest.approx(2 / 5)


def test_gains_are_linear():
    means = evaluate_run({"q": {"d1": 2.0, "d2": 1.0}}, {"q": {"d1": 1, "d2": 3}}).means
    # with gains of 2 ** grade - 1 it would be (1 + 7 / log2(3)) / (7 + 1 / log2(3))
    assert means["ndcg@10"] == pytest.approx((1 + 3 / LOG3) / (3 + 1 / LOG3))


def test_equal_scores_keep_the_order_of_the_documents():
    run = {"q": {f"d{number}": 1.0 for number in (5, 1, 4, 2, 3)}}
    assert evaluate_run(run, {"q": {"d4": 1}}).means["mrr@10"] == pytest.approx(1 / 3)
    later = {"q": {"low": 0.5, **run["q"]}}  # a lower score that is named first still comes last
    assert evaluate_run(later, {"q": {"d3": 1}}).means["mrr@10"] == pytest.approx(1 / 5)


def test_many_ties_keep_their_order():
    run = {"q": {f"d{number}": 1.0 for number in range(900)}}
    assert evaluate_run(run, {"q": {"d700": 1}}).means["map"] == pytest.approx(1 / 701)


def test_cuts():
    run = {"q": {f"d{number}": -float(number) for number in range(1, 1201)}}  # d1 first; scores below 0
    assert evaluate_run(run, {"q": {"d11": 1}}).means == pytest.approx(
        {"ndcg@10": 0.0, "mrr@10": 0.0, "map": 1 / 11, "p@1": 0.0, "p@5": 0.0, "recall@100": 1.0}
    )
    assert evaluate_run(run, {"q": {"d101": 1}}).means["recall@100"] == 0.0
    assert evaluate_run(run, {"q": {"d1001": 1}}).means["map"] == 0.0


def test_queries_without_a_positive_judgement_are_left_out():
    run = {"none": {"d1": 1.0}, "some": {"d1": 1.0}, "unjudged": {"d1": 1.0}}
    measured = evaluate_run(run, {"none": {"d1": 0, "d2": -2}, "some": {"d1": 1, "d2": -2}})
    assert measured.query_ids == ("some",)
    assert measured.means == pytest.approx({**dict.fromkeys(MEASURES, 1.0), "p@5": 0.2})


def test_an_empty_result_counts_as_zero():
    judgements = {"found": {"d1": 1}, "empty": {"d1": 1}, "absent": {"d1": 1}}
    measured = evaluate_run({"empty": {}, "found": {"d1": 1.0}}, judgements)
    assert measured.query_ids == ("found", "empty", "absent")
    for measure, values in measured.values.items():
        assert values.tolist() == [0.2 if measure == "p@5" else 1.0, 0.0, 0.0]
    assert evaluate_run({}, judgements).means == dict.fromkeys(MEASURES, 0.0)


def test_the_document_that_a_query_is_is_no_answer_to_it():
    run = {"a": {"a": 9.0, "b": 1.0}, "b": {"c": 5.0, "b": 4.0, "a": 3.0}}
    documents = (Document("a", "a pump"), Document("b", "a valve"), Document("c", "a bird"))
    asked = Query("a", "A pump"), Query("b", "a valve")
    collection = Collection(documents, asked, {"a": {"b": 1}, "b": {"a": 1}})
    found = evaluate_ranking(run, collection)
    assert found.means()["mrr@10"] == pytest.approx(
        (1 + 1 / 2) / 2
    )  # with the queries themselves (1/2 + 1/3) / 2
    other = Collection(documents, (Query("a", "which pump"), asked[1]), collection.judgements)
    assert evaluate_ranking(run, other).means()["mrr@10"] == pytest.approx((1 / 2 + 1 / 2) / 2)


def test_numba_keeps_its_threads():
    threads = numba.get_num_threads()
    evaluate_run({"q": {"d1": 1.0}}, {"q": {"d1": 1}})
    assert numba.get_num_threads() == threads


def plain_ndcg(ranked: list[str], judged: dict[str, int]) -> float:
    """nDCG@10 by its definition, with linear gains."""
    gains = [max(0, judged.get(document_id, 0)) for document_id in ranked[:10]]
    ideal = sorted((max(0, grade) for grade in judged.values()), reverse=True)[:10]
    discounts = [1 / math.log2(rank + 1) for rank in range(1, 11)]
    return sum(map(math.prod, zip(gains, discounts, strict=False))) / sum(
        map(math.prod, zip(ideal, discounts, strict=False))
    )


@settings(max_examples=60, deadline=None)
@given(
    scores=st.lists(st.integers(0, 4), min_size=1, max_size=25),
    grades=st.lists(st.integers(-1, 3), min_size=1, max_size=25).filter(lambda grades: max(grades) > 0),
)
def test_ndcg_against_its_definition(scores, grades):
    documents = {f"d{number}": float(score) for number, score in enumerate(scores)}
    judged = {f"d{2 * number}": grade for number, grade in enumerate(grades)}  # half of them are never found
    ranked = [name for _, name in sorted((-score, int(name[1:])) for name, score in documents.items())]
    expected = plain_ndcg([f"d{number}" for number in ranked], judged)
    assert evaluate_run({"q": documents}, {"q": judged}).means["ndcg@10"] == pytest.approx(expected)


# -- chance -----------------------------------------------------------------------------------


def p_value(differences: list[float], seed: int = 0) -> float:
    return randomisation_test(np.array(differences), np.random.default_rng(seed))


def test_randomisation_test_by_hand():
    assert p_value([1.0, 1.0, 1.0]) == 2 / 8  # of 8 sign patterns only +++ and --- reach a sum of 3
    assert p_value([3.0, 1.0]) == 2 / 4  # sums 4, 2, -2, -4
    assert p_value([3.0, -1.0]) == 1.0  # every pattern reaches at least 2
    assert p_value([0.5]) == 1.0
    assert p_value([0.2] * 13) == 2 / 2**13


def test_models_that_never_differ_get_one():
    assert p_value([0.0, 0.0, 0.0]) == 1.0
    assert p_value([0.0] * 5000) == 1.0
    assert p_value([]) == 1.0


def test_sampled_patterns_are_seeded_symmetric_and_near_the_truth():
    differences = np.random.default_rng(3).normal(0.3, 1.0, size=60).tolist()
    sampled = p_value(differences)
    assert sampled == p_value(differences)
    assert sampled == p_value(differences[::-1]) == p_value([-difference for difference in differences])
    student = ttest_rel(differences, np.zeros(60)).pvalue  # close for normal differences
    assert sampled == pytest.approx(student, abs=0.02)
    assert p_value([0.1] * 40) == 1 / 10_001  # 2 / 2 ** 40 can't be sampled: the observed one alone is left


def test_sampled_patterns_against_all_of_them():
    differences = np.random.default_rng(8).normal(0.4, 1.0, size=14).round(1)  # one too many to try all
    signs = np.array(list(product((-1, 1), repeat=14)))
    every = float(np.mean(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-9))
    assert 0.05 < every < 0.5
    assert p_value(differences.tolist()) == pytest.approx(every, abs=0.015)


def test_sums_in_another_order_are_not_more_extreme():
    # 0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 differ in the last bit; both must count as reached
    assert p_value([0.1, 0.2, 0.3]) == p_value([0.3, 0.2, 0.1]) == 2 / 8


# -- models -----------------------------------------------------------------------------------


def vectors(rows: list[list[float]]) -> csr_matrix:
    return csr_matrix(np.array(rows, dtype=np.float32))


@pytest.fixture
def small(twelve_documents) -> Collection:
    """Three queries over the first three documents."""
    queries = (Query("q1", "one", "plain"), Query("q2", "two", "plain"), Query("q3", "three", "odd"))
    judgements = {"q1": {"d01": 1}, "q2": {"d02": 1}, "q3": {"d03": 1}}
    return Collection(tuple(twelve_documents[:3]), queries, judgements)


def test_evaluate_vectors_by_hand(small):
    documents = vectors([[1, 0, 0, 0], [1, 2, 0, 0], [0, 0, 0, 0]])
    queries = vectors([[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0]])
    result = evaluate_vectors(queries, documents, small)
    assert result.values["mrr@10"].tolist() == [1.0, 1.0, 0.0]  # q1 ties d01 with d02; q3 shares no token
    assert result.values["nonzero_document"].tolist() == [1.0, 2.0, 0.0]
    assert result.values["nonzero_query"].tolist() == [1.0, 2.0, 1.0]
    means = result.means()
    assert means["mrr@10"] == pytest.approx(2 / 3)
    assert (means["nonzero_document"], means["nonzero_query"]) == pytest.approx((1.0, 4 / 3))
    assert result.kinds == ("plain", "odd")
    assert result.means("plain")["mrr@10"] == 1.0
    assert result.means("odd")["mrr@10"] == 0.0
    assert "nonzero_document" not in result.means("odd")


def result_of(queries: tuple[Query, ...], ndcg: list[float], documents: list[float]) -> ModelResult:
    measured = dict.fromkeys((*MEASURES, "nonzero_query"), np.array(ndcg))
    return ModelResult(queries, {**measured, "nonzero_document": np.array(documents)})


def test_compare_by_hand(small):
    ours = result_of(small.queries, [1.0, 0.5, 0.5], [10.0, 20.0])
    theirs = result_of(small.queries, [0.5, 0.0, 0.0], [10.0, 20.0])
    compared = compare(ours, theirs)
    assert compared["difference"]["ndcg@10"] == pytest.approx(0.5)
    assert compared["p_value"]["ndcg@10"] == 2 / 8
    assert compared["difference"]["nonzero_document"] == 0.0
    assert "nonzero_document" not in compared["p_value"], "which is no measure"
    assert compare(ours, theirs, "odd")["p_value"]["ndcg@10"] == 1.0  # one query proves nothing
    other = replace(theirs, queries=small.queries[:2])
    with pytest.raises(AssertionError, match="same queries"):
        compare(ours, other)


def test_evaluation_is_plain_json(small):
    ours = result_of(small.queries, [1.0, 0.5, 0.0], [10.0, 20.0])
    content = json.loads(json.dumps(evaluation(ours, ours), allow_nan=False))
    figures = {*MEASURES, "nonzero_document", "nonzero_query"}
    for part in ("model", "baseline", "difference"):
        assert set(content[part]) == figures
    assert set(content["p_value"]) == set(content["adjusted"]) == {*MEASURES}
    assert set(content["p_value"].values()) == {1.0}
    assert set(content["difference"].values()) == {0.0}
    assert set(content["kinds"]) == {"plain", "odd"}
    assert content["kinds"]["plain"]["model"]["ndcg@10"] == 0.75
    assert [query["model"]["ndcg@10"] for query in content["queries"]] == [1.0, 0.5, 0.0]
    assert content["queries"][2]["query_id"] == "q3"
    assert content["count"] == {"queries": 3, "documents": 2}
    assert set(evaluation(ours)) == {"model", "kinds", "queries", "count"}


@pytest.fixture
def folder(tmp_path: Path, twelve_documents) -> Path:
    """A BEIR folder whose fourth query has no positive judgement."""
    write_documents(tmp_path / "corpus.jsonl", twelve_documents)
    texts = {"q1": "zorvex report", "q2": "backup of the database", "q3": "agent log", "q4": "nothing"}
    write_queries(tmp_path / "queries.jsonl", [Query(name, text) for name, text in texts.items()])
    judgements = {"q1": {"d06": 2, "d05": 1}, "q2": {"d03": 1}, "q3": {"d09": 1}, "q4": {"d01": 0}}
    (tmp_path / "qrels").mkdir()
    write_judgements(tmp_path / "qrels" / "test.tsv", judgements)
    return tmp_path


def test_evaluate_model_counts_what_the_model_gives(folder, tiny_model, twelve_documents):
    model = SparseEncoder.load(tiny_model)
    heard: list[int] = []
    result = evaluate_model(model, folder, progress=heard.append)
    assert [query.query_id for query in result.queries] == ["q1", "q2", "q3"]
    texts = [document.full_text for document in twelve_documents]
    weights = model(model.tokenize(texts)).weights
    assert result.values["nonzero_document"].tolist() == (weights > 0).sum(dim=1).tolist()
    assert all(0 <= value <= 1 for measure in MEASURES for value in result.values[measure])
    assert sum(heard) == len(texts) + 3
    again = evaluate_model(model, folder)
    assert compare(result, again)["p_value"] == dict.fromkeys(MEASURES, 1.0)


def test_queries_without_a_positive_judgement_are_counted(folder, capfd):
    write_judgements(folder / "qrels" / "none.tsv", {"q1": {"d06": 1}, "q2": {"d01": 0}, "q3": {"d02": -1}})
    assert [query.query_id for query in read_collection(folder, "none").queries] == ["q1"]
    told = "2 of 3 judged queries have no positive judgement ('q2'), and are left out"
    assert told in capfd.readouterr().err


def test_judged_documents_that_the_corpus_lacks_are_said(folder, capfd):
    write_judgements(folder / "qrels" / "more.tsv", {"q1": {"d06": 2, "x1": 1, "x2": 1}})
    read_collection(folder, "more")
    told = "2 of 3 judged documents aren't in the corpus ('x1'), and count as not found"
    assert capfd.readouterr().err == f"{folder}: {told}\n"


@pytest.mark.parametrize("depth", [1, 2])
def test_queries_that_are_documents_are_said_and_left_out_of_their_own_rankings(tmp_path, capfd, depth):
    (tmp_path / "qrels").mkdir()
    write_documents(tmp_path / "corpus.jsonl", [Document("a", "x"), Document("b", "x"), Document("c", "x")])
    write_queries(tmp_path / "queries.jsonl", [Query("a", "x"), Query("q", "x")])
    write_judgements(tmp_path / "qrels" / "test.tsv", {"a": {"b": 1}, "q": {"a": 1}})
    collection = read_collection(tmp_path)
    told = (
        "1 of 2 queries have the id and the text of a document, which is left out of the query's own ranking, as "
        "BEIR does"
    )
    assert capfd.readouterr().err == f"{tmp_path}: {told}\n"
    result = evaluate_vectors(vectors([[1], [1]]), vectors([[3], [2], [1]]), collection, depth)
    ranked = {
        "a": {"b": 2.0, "c": 1.0},
        "q": {"a": 3.0, "b": 2.0},
    }  # as deep as asked, though one is left out
    assert result.run == {name: dict(list(scores.items())[:depth]) for name, scores in ranked.items()}
    assert result.values["ndcg@10"].tolist() == [1.0, 1.0]
    dense = evaluate_dense(np.ones((2, 1), np.float32), np.array([[3], [2], [1]], np.float32), collection)
    assert list(dense.run["a"]) == ["b", "c"]


def test_ids_that_are_alike_by_chance_leave_nothing_out(tmp_path, capfd):
    (tmp_path / "qrels").mkdir()
    write_documents(tmp_path / "corpus.jsonl", [Document("1", "a pump"), Document("2", "a valve")])
    write_queries(tmp_path / "queries.jsonl", [Query("1", "which valve"), Query("2", "A  Valve")])
    write_judgements(tmp_path / "qrels" / "test.tsv", {"1": {"2": 1}, "2": {"1": 1}})
    collection = read_collection(tmp_path)
    assert "1 of 2 queries have the id and the text of a document" in capfd.readouterr().err
    result = evaluate_vectors(vectors([[1], [1]]), vectors([[3], [2]]), collection)
    assert result.run == {"1": {"1": 3.0, "2": 2.0}, "2": {"1": 3.0}}


def test_a_split_that_measures_nothing_is_refused(folder):
    write_judgements(folder / "qrels" / "none.tsv", {"q1": {"d06": 0}})
    write_judgements(folder / "qrels" / "ghost.tsv", {"q9": {"d06": 1}})
    write_judgements(folder / "qrels" / "other.tsv", {"q1": {"x": 1}})
    for split, problem in (
        ("none", "no query with a positive judgement"),
        ("ghost", "judges query 'q9', which has no text"),
        ("other", "no document that the split 'other' judges is in the corpus"),
    ):
        with pytest.raises(InputError, match=problem):
            read_collection(folder, split)


def test_p_values_of_an_evaluation_are_corrected_over_all_its_tests(tiny_model, zorvex_collection):
    model = SparseEncoder.load(tiny_model)
    result = evaluate_model(model, zorvex_collection)
    worse = ModelResult(result.queries, {name: values * 0.5 for name, values in result.values.items()})
    content = evaluation(result, worse)
    groups = [content, *content["kinds"].values()]
    plain = [value for group in groups for value in group["p_value"].values()]
    assert [value for group in groups for value in group["adjusted"].values()] == holm(plain)


def test_an_evaluation_holds_the_rankings(tiny_model, zorvex_collection):
    model = SparseEncoder.load(tiny_model)
    result = evaluate_model(model, zorvex_collection)
    first = evaluation(result, result)["queries"][0]
    found = result.run[first["query_id"]]
    expected = [{"document_id": name, "score": score} for name, score in list(found.items())[:10]]
    assert first["model"]["ranking"] == first["baseline"]["ranking"] == expected
    assert expected
    assert [each["score"] for each in expected] == sorted((each["score"] for each in expected), reverse=True)
