import copy
import json
import shutil

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import read_documents
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline import demo as scorecard
from sparse_adapt.pipeline.demo import function_share, measure, read_scene, run_demo
from sparse_adapt.pipeline.demo_report import tabulate_demo
from sparse_adapt.pipeline.plan import make_plan
from sparse_adapt.pipeline.run import run
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.report.tables import to_json
from sparse_adapt.retrieve.activity import background_queries
from sparse_adapt.retrieve.encode import encode

QUICK = {"steps": 2, "batch_size": 4, "checkpoint_every": 1, "device": "cpu", "labeller": "none"}


@pytest.fixture(scope="module")
def plan(tiny_model, zorvex_collection):
    return make_plan(str(zorvex_collection), model=str(tiny_model), overrides=QUICK)


@pytest.fixture(scope="module")
def done(plan, tmp_path_factory):
    """A demo with fine-tuning alone. Read only."""
    return run_demo(plan, Place(tmp_path_factory.mktemp("done") / "run"), alone=True)


# -- one column -------------------------------------------------------------------------------------


def test_a_scene_knows_who_says_and_who_means_a_term(zorvex_collection):
    scene = read_scene(str(zorvex_collection), ["zorvex"])
    (texts,) = scene.terms
    assert [scene.documents[row].document_id for row in texts.rows] == ["d05", "d06", "d07"]
    assert texts.hard_query_ids == ["q3"]
    assert scene.relevant(scene.hard_queries[0]) == ["d05", "d06", "d07"]


def test_a_term_inside_another_word_isnt_said(zorvex_collection):
    assert read_scene(str(zorvex_collection), ["log"]).terms[0].rows == [1, 8]  # "log", "logs", not "Login"
    with pytest.raises(InputError, match="no document says the term 'orvex'"):
        read_scene(str(zorvex_collection), ["orvex"])


def test_figures_are_those_of_the_vectors(tiny_model, zorvex_collection, monkeypatch):
    scene = read_scene(str(zorvex_collection), ["zorvex", "database"])
    model = SparseEncoder.load(tiny_model)
    shares = iter([[0.1, 0.2, 0.3], [0.5, 0.4, 0.9]])
    monkeypatch.setattr(scorecard, "function_share", lambda *arguments: np.array(next(shares)))
    monkeypatch.setattr("sparse_adapt.retrieve.activity.BACKGROUND_TEXTS", 2_000)
    figures = measure(model, scene)[0]
    vectors = encode(
        model, [document.full_text for document in read_documents(zorvex_collection)], "document"
    ).toarray()

    pieces, whole = figures["terms"]
    assert (pieces["single_token"], whole["single_token"]) == (False, True)
    ids = model.tokenizer(" zorvex", add_special_tokens=False)["input_ids"]
    assert pieces["weights"]["d06"] == pytest.approx(float(vectors[5, ids].min()))
    token = model.tokenizer.get_vocab()["database"]
    assert list(whole["weights"]) == ["d02", "d03"]
    assert whole["weights"]["d03"] == pytest.approx(float(vectors[2, token]))
    others = [row for row in range(12) if row not in (1, 2)]
    assert whole["others_largest"] == pytest.approx(float(vectors[others, token].max()))
    assert figures["nonzero_document"] == pytest.approx(float((vectors > 0).sum(axis=1).mean()))
    background = encode(model, background_queries(), "document").toarray()
    active = (background[:, ids] > 0).all(axis=1) | (background[:, token] > 0)
    assert 0 < active.mean() < 1
    assert figures["general"]["background texts"]["false_activations"] == pytest.approx(active.mean())
    control = [
        query.text for split in scene.splits.values() for query in split.queries if query.kind == "control"
    ]
    vectors = encode(model, control, "query").toarray()
    active = (vectors[:, ids].min(axis=1) > 0) | (vectors[:, token] > 0)
    assert figures["control_active"] == pytest.approx(active.mean())
    assert figures["function_share"] == pytest.approx(
        {
            "control": 0.3,
            "explicit": 0.3,
            "semantic": 0.6,
        }  # means over both splits: q1 and q4, q2 and q5, ...
    )


def test_ranks_of_the_hard_query(tiny_model, zorvex_collection):
    scene = read_scene(str(zorvex_collection), ["zorvex"])
    model = SparseEncoder.load(tiny_model)
    documents = encode(model, [document.full_text for document in scene.documents], "document").toarray()
    scores = documents @ encode(model, [scene.hard_queries[0].text], "query").toarray()[0]
    place = {scene.documents[row].document_id: rank for rank, row in enumerate(np.argsort(-scores), start=1)}
    figures = measure(model, scene)[0]["hard_queries"]["q3"]
    assert figures["ranks"] == {name: place[name] for name in ("d05", "d06", "d07")}
    assert figures["all_on_top"] == (sorted(figures["ranks"].values()) == [1, 2, 3])


def test_function_share_by_hand(tiny_model):
    model = SparseEncoder.load(tiny_model)

    def vectors(*texts):
        rows = np.zeros((len(texts), model.vocabulary_size), dtype=np.float32)
        for row, weights in zip(rows, texts, strict=True):
            row[model.tokenizer.convert_tokens_to_ids(list(weights))] = list(weights.values())
        return csr_matrix(rows)

    queries = vectors({"the": 1.0, "server": 2.0}, {"server": 1.0}, {"z": 1.0})
    documents = vectors({"the": 3.0, "server": 1.0}, {"server": 1.0, ",": 5.0}, {"the": 0.5})
    # first query: scores 3 + 2, 2 and 0.5, of which 3, 0 and 0.5 come from "the"
    assert function_share(model, queries, documents).tolist() == pytest.approx([3.5 / 7.5, 0.0, 0.0])
    assert function_share(model, queries, documents, top=1).tolist() == pytest.approx([3 / 5, 0.0, 0.0])


# -- the table and the pictures -------------------------------------------------------------------


@pytest.mark.plugins("pages")
def test_the_page_draws_the_share_of_queries_that_activate_a_term(done):
    from sparse_adapt.plugins.pages.stages import before_after

    (column,) = (copy.deepcopy(each) for each in done.report["demo"]["columns"] if each["name"] == "distill")
    column["general"]["background texts"]["false_activations"] = 0.4
    column["general"]["general"]["false_activations"], column["control_active"] = 0.2, 0.1
    by_mistake = before_after([column])[2].description
    assert (
        "distill control queries 10; distill background queries 40; distill general questions 20"
        in by_mistake
    )


def test_ten_rows_decide_and_the_whole_table_holds_their_figures(done):
    short, whole = (tabulate_demo(done.report, full=full) for full in (False, True))
    assert len(short.rows) == 10
    assert "--full" in short.note and "--full" not in whole.note
    ours = {row["figure"].strip(): row["distill"] for row in short.rows}
    theirs = {row["figure"].strip(): row["distill"] for row in whole.rows}
    last = done.report["demo"]["columns"][-1]
    meant = list(last["terms"][0]["meant"].values())
    assert ours["weight of zorvex where meant"] == theirs["where meant, mean"] == f"{np.mean(meant):.2f}"
    assert ours["weights a document"] == theirs["a document"]
    assert ours["general questions that activate it"] == theirs["general questions that activate it"]
    ranks = last["hard_queries"]["q3"]["ranks"].values()
    assert ours["hard query: ranks of its 3 documents"] == f"{min(ranks)} to {max(ranks)}"


@pytest.mark.plugins("pages")
def test_one_quantity_has_one_figure_in_table_picture_and_page(done):
    """The weight where a term is meant, and how many background queries activate one."""
    from sparse_adapt.plugins.pages.stages import before_after
    from sparse_adapt.plugins.pages.subject import read_subject
    from sparse_adapt.plugins.pages.terms import find_terms

    last, subject = done.report["demo"]["columns"][-1], read_subject(done.folder)
    (found,) = find_terms(subject)
    meant = float(np.mean(list(last["terms"][0]["meant"].values())))
    assert found.meaning_weight == pytest.approx(meant)
    assert f"distill where meant {meant:.3g}" in before_after(done.report["demo"]["columns"])[1].description
    share = last["general"]["background texts"]["false_activations"]
    assert found.background == pytest.approx(share)
    assert done.report["retention"]["background texts"]["model"]["false_activations"] == share


# -- the whole demo ---------------------------------------------------------------------------------

NAMES = ["base", "alone", "extend", "warmup", "dictionary", "distill"]


def test_every_model_is_a_column(plan, done):
    columns = done.report["demo"]["columns"]
    assert [column["name"] for column in columns] == NAMES
    folders = ["distill-alone", "1-extend", "2-warmup", "3-dictionary", "4-distill"]
    assert [column["model"] for column in columns] == [
        plan.model,
        *(f"./{name}" for name in folders),
    ]
    scene = read_scene(plan.corpus, ["zorvex"])
    again = measure(SparseEncoder.load(done.model), scene)[0]
    assert json.loads(json.dumps(again)) == {
        name: value for name, value in columns[-1].items() if name not in ("name", "model")
    }
    assert columns[1]["terms"][0]["single_token"] is False
    assert columns[2]["terms"][0]["single_token"] is True
    for column in columns:
        assert set(column["general"]) == {
            "general",
            "general, mixed index",
            *(f"{kind}, mixed index" for kind in scorecard.KINDS),
            "known items",
            "background texts",
        }

    table = to_json(tabulate_demo(done.report))
    rows = {row["figure"].strip(): row for row in table}
    assert [rows["d06"][name] for name in NAMES] == [
        str(column["hard_queries"]["q3"]["ranks"]["d06"] or "-") for column in columns
    ]
    assert rows["a document"]["distill"] == f"{columns[-1]['nonzero_document']:.0f}"


def test_fine_tuning_alone_is_distill_on_the_base_model(tmp_path, plan, done):
    alone = make_plan(plan.corpus, model=plan.model, stages=["distill"], overrides=QUICK)
    other = run(alone, Place(tmp_path / "alone"))
    first, second = (
        (folder / "model.safetensors").read_bytes() for folder in (done.folder / "distill-alone", other.model)
    )
    assert first == second


def test_a_demo_goes_on_where_it_stopped(tmp_path, plan, done, monkeypatch):
    def broken(model, queries, documents):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(scorecard, "function_share", broken)
        with pytest.raises(KeyboardInterrupt):
            run_demo(plan, Place(tmp_path / "run"))
    resumed = run_demo(plan, Place(tmp_path / "run", resume=True)).report
    shown = done.report["demo"]
    others = [column for column in shown["columns"] if column["name"] != "alone"]
    assert resumed["demo"] == {**shown, "columns": others}
    assert [stage["message"] for stage in resumed["stages"]] == ["done before"] * 4
    assert "alone" not in to_json(tabulate_demo(resumed))[0]
    with pytest.raises(ConfigError, match="finished without fine-tuning alone"):
        run_demo(plan, Place(tmp_path / "run", resume=True), alone=True)


def test_a_run_that_isnt_a_demo_is_no_demo_to_go_on_with(tmp_path, tiny_run):
    shutil.copytree(tiny_run, tmp_path / "run")
    plan = read_plan(tmp_path / "run" / "run.toml")
    with pytest.raises(ConfigError, match="a run that isn't the demo's"):
        run_demo(plan, Place(tmp_path / "run", resume=True))


def test_a_corpus_without_semantic_queries_is_refused_before_training(
    tmp_path, zorvex_collection, tiny_model
):
    folder = tmp_path / "mine"
    (folder / "qrels").mkdir(parents=True)
    for path in zorvex_collection.rglob("*"):
        if path.is_file():
            text = path.read_text().replace('"kind": "semantic"', '"kind": "control"')
            (folder / path.relative_to(zorvex_collection)).write_text(text)
    plan = make_plan(str(folder), model=str(tiny_model), overrides=QUICK)
    with pytest.raises(InputError, match='no query of kind "semantic"'):
        run_demo(plan, Place(tmp_path / "run"))
    assert not list(tmp_path.glob("run*"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "slack", [0.05, pytest.param(0.0, marks=pytest.mark.nightly)], ids=["short", "whole"]
)
def test_the_adapted_model_finds_what_is_meant_and_keeps_the_rest(demo_run, slack):
    """The bundled corpus and the real model; bounds leave room for another processor's rounding, and fewer steps."""
    report = json.loads((demo_run / "report.json").read_text())
    columns = {column["name"]: column for column in report["demo"]["columns"]}
    base, final = columns["base"], columns["distill"]
    hidden = {name: column["ndcg@10"]["test"]["semantic"] for name, column in columns.items()}
    assert hidden["distill"] >= 0.85
    assert hidden["warmup"] >= hidden["extend"] + 0.2 - slack
    assert final["ndcg@10"]["train"]["semantic"] >= 0.95 - slack
    lost = 0.03 if slack else 0.02  # forty queries: the standard error of a difference is .02
    for split in ("train", "test"):
        assert final["ndcg@10"][split]["control"] >= base["ndcg@10"][split]["control"] - lost
    (term,) = final["terms"]
    assert term["heaviest_in"] >= 4
    assert term["others_largest"] == 0.0
    assert final["general"]["background texts"]["false_activations"] <= 0.6, (
        "half of them; without a floor, seven in ten"
    )
    assert min(term["hard_queries"].values()) >= 1.0
    assert final["nonzero_document"] <= 1.25 * base["nonzero_document"]
    assert final["function_share"]["semantic"] <= 0.05 < base["function_share"]["semantic"]
    for kind in ("control", "explicit"):
        assert final["function_share"][kind] <= max(0.05, base["function_share"][kind])


@pytest.mark.nightly
def test_new_vocabulary_is_what_helps(demo_run, tmp_path):
    report = json.loads((demo_run / "report.json").read_text())
    final = report["demo"]["columns"][-1]
    plan = make_plan("gatrocraptic", stages=["distill"])
    done = run(plan, Place(tmp_path / "alone"))
    alone = measure(SparseEncoder.load(done.model), read_scene(plan.corpus, ["gatrocraptic"]))[0]
    semantic, without = (figures["ndcg@10"]["test"]["semantic"] for figures in (final, alone))
    assert semantic >= without + 0.2
    assert final["ndcg@10"]["train"]["semantic"] >= 0.95 > without
