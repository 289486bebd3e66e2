"""`evaluate`: beside a model, BM25 or a run; the measures asked for and no others; tables for a paper."""

import csv

import pytest

import sparse_adapt as sa
from sparse_adapt.collection.readers import read_documents, write_run
from sparse_adapt.errors import ConfigError, InputError, ModelError
from sparse_adapt.report.tables import Column, Table, to_csv, to_latex
from sparse_adapt.retrieve.evaluate import MEASURES, evaluate_run, ranx_name, read_collection
from sparse_adapt.retrieve.significance import holm
from sparse_adapt.teachers.bm25 import Bm25

HOW = {"device": "cpu", "progress": False}
PLAIN = "\\begin{tabular}"


def test_bm25_is_a_baseline(tiny_model, zorvex_collection):
    found = sa.evaluate(tiny_model, zorvex_collection, baseline="bm25", **HOW)
    collection = read_collection(zorvex_collection)
    index = Bm25.fit([each.full_text for each in read_documents(zorvex_collection)])
    ranked = index.top_k([query.text for query in collection.queries], 1000)
    run = {
        query.query_id: {
            collection.documents[row].document_id: score for row, score in zip(*pair, strict=True)
        }
        for query, pair in zip(collection.queries, ranked, strict=True)
    }
    assert found.baseline == pytest.approx(evaluate_run(run, collection.judgements).means)
    assert "baseline" in found.headline
    assert "nonzero_query" in found.measures and "nonzero_query" not in found.baseline


def test_a_run_file_is_a_baseline(tiny_model, zorvex_collection, tmp_path):
    queries = read_collection(zorvex_collection).queries
    first = read_collection(zorvex_collection).documents[0].document_id
    write_run(tmp_path / "other.trec", {queries[0].query_id: {first: 1.0}})
    found = sa.evaluate(tiny_model, zorvex_collection, baseline=tmp_path / "other.trec", **HOW)
    assert found.baseline is not None and found.baseline["recall@100"] <= 1 / len(queries)
    write_run(tmp_path / "strange.trec", {"nobody": {first: 1.0}})
    with pytest.raises(InputError, match=r"strange\.trec: answers none of the judged queries"):
        sa.evaluate(tiny_model, zorvex_collection, baseline=tmp_path / "strange.trec", **HOW)
    with pytest.raises(ConfigError, match="bm25 is none; leave one of both out"):
        sa.evaluate(tiny_model, zorvex_collection, baseline="bm25", general="general", **HOW)
    with pytest.raises(ModelError):
        sa.evaluate(tiny_model, zorvex_collection, baseline="bm52", **HOW)


def test_the_measures_asked_for_are_tested_and_no_others(tiny_model, zorvex_collection):
    asked = sa.evaluate(tiny_model, zorvex_collection, baseline="bm25", measures=["map", "ndcg@3"], **HOW)
    assert [*asked.measures] == ["map", "ndcg@3"], "and no sizes"
    written = sa.evaluate(tiny_model, zorvex_collection, baseline="bm25", measures="map,ndcg@3", **HOW)
    assert written.measures == asked.measures, "as on the command line"
    groups = [asked.figures, *asked.figures.get("kinds", {}).values()]
    assert all([*group["p_value"]] == ["map", "ndcg@3"] for group in groups)
    plain = [value for group in groups for value in group["p_value"].values()]
    assert [value for group in groups for value in group["adjusted"].values()] == holm(plain)
    assert asked.first == "map" and "map " in asked.headline and str(asked) and asked.page("title")
    usual = sa.evaluate(tiny_model, zorvex_collection, baseline="bm25", **HOW)
    assert {*usual.p_value} == {*MEASURES}, "how many weights a vector has is no measure"


@pytest.mark.parametrize("measure", ["ndcg", "ndcg@0", "ndcg@x", "err@10", "ndcg@1001", ""])
def test_a_measure_that_there_is_not_is_refused(measure, tiny_model, zorvex_collection):
    with pytest.raises(ConfigError, match=r"--measures .*: no such measure; there are ndcg@10, mrr@10"):
        sa.evaluate(tiny_model, zorvex_collection, measures=[measure], **HOW)


def test_measures_have_other_cuts():
    assert [ranx_name(each) for each in ("ndcg@20", "p@1", "p@3", "map", "recall@1000")] == [
        "ndcg@20", "precision@1", "precision@3", "map@1000", "recall@1000",
    ]  # fmt: skip
    run = {"q": {"a": 3.0, "b": 2.0, "c": 1.0}}
    values = evaluate_run(run, {"q": {"c": 1}}, ["p@3", "p@2"]).means
    assert values == pytest.approx({"p@3": 1 / 3, "p@2": 0.0})
    assert evaluate_run(run, {"q": {"c": 1}}, ["mrr@3"]).means == pytest.approx({"mrr@3": 1 / 3})


def test_the_p_value_of_one_measure_is_that_of_a_suite(tiny_model, zorvex_collection, tmp_path, sparse_adapt):
    """Without kinds of query, which are tests of their own."""
    documents = list(read_documents(zorvex_collection))
    collection = read_collection(zorvex_collection)
    queries = {query.query_id: query.text for query in collection.queries}
    found = sa.evaluate(
        tiny_model, documents, queries=queries, judgements=collection.judgements, baseline="bm25",
        measures=["ndcg@10"], **HOW,
    )  # fmt: skip
    from sparse_adapt.plugins.research.suite.measure import run_suite
    from sparse_adapt.plugins.research.suite.settings import read_suite

    (tmp_path / "suite.toml").write_text(
        f'[rows]\nbm25 = {{ bm25 = true }}\nmine = {{ model = "{tiny_model}" }}\n'
        f'[collections]\nz = {{ path = "{zorvex_collection}" }}\n'
    )
    outcome = run_suite(read_suite(tmp_path / "suite.toml"), None)
    assert found.figures["adjusted"]["ndcg@10"] == pytest.approx(outcome.differences[0].adjusted)


def test_a_table_for_a_paper():
    columns = (
        Column("name", "model", "text"),
        Column("value", "nDCG", decimals=3, signed=True),
        Column("n", "n"),
    )
    rows = [{"name": "my_model-1 & co", "value": -0.5, "n": None}, {"name": "b", "value": 0.25, "n": 3}]
    table = Table("A_table", columns, rows, "a note")
    assert to_latex(table) == (
        "% A_table\n% a note\n\\begin{tabular}{lrr}\n\\toprule\nmodel & nDCG & n \\\\\n\\midrule\n"
        "my\\_model-1 \\& co & $-$0.500 & - \\\\\nb & $+$0.250 & 3 \\\\\n\\bottomrule\n\\end{tabular}\n"
    )
    assert to_csv(table) == "model,nDCG,n\nmy_model-1 & co,-0.5,\nb,0.25,3\n"


def test_the_command_prints_tables_and_writes_each_query(
    sparse_adapt, tiny_model, zorvex_collection, tmp_path
):
    words = ["evaluate", "--model", tiny_model, "--collection", zorvex_collection, "--device", "cpu"]
    words += ["--baseline", "bm25", "--measures", "ndcg@10,recall@100"]
    file = tmp_path / "queries.csv"
    ran = sparse_adapt(*words, "--latex", "--per-query", file)
    assert (ran.status, PLAIN in ran.out) == (0, True), ran.err
    rows = list(csv.DictReader(file.open()))
    assert len(rows) == len(read_collection(zorvex_collection).queries)
    assert {"query_id", "query", "ndcg@10", "baseline ndcg@10", "recall@100"} <= {*rows[0]}
    assert "map" not in rows[0]
    ran = sparse_adapt(*words, "--csv")
    head = next(csv.reader(ran.out.splitlines()))
    assert head[-5:] == ["measure", "model", "baseline", "difference", "p"]
    ran = sparse_adapt(*words, "--per-query", file)
    assert (ran.status, "already there" in ran.err) == (2, True)
    assert sparse_adapt(*words, "--per-query", file, "--overwrite").status == 0
    assert "choose one" in sparse_adapt(*words, "--csv", "--latex").err
