"""Suites: settings and their mistakes, tests by hand, costs, what changed, tables, and going on after a kill."""

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix

from sparse_adapt.errors import ConfigError, InputError, ModelError, OutputError
from sparse_adapt.files.place import Place
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.pages.html import png_file
from sparse_adapt.plugins.research.groups import GroupedText, measure_groups
from sparse_adapt.plugins.research.suite.measure import TrainingCost, run_suite, training_of
from sparse_adapt.plugins.research.suite.rankers import Sparse, costs
from sparse_adapt.plugins.research.suite.settings import read_suite
from sparse_adapt.plugins.research.suite.tables import (
    averages_table,
    clusters_table,
    plot_suite,
    suite_object,
    suite_tables,
    write_results,
)
from sparse_adapt.retrieve.significance import holm

SUITE = """
baseline = "base"

[rows]
base = {{ model = "{tiny}" }}
weighed = {{ model = "{tiny}", scale = "sqrt-idf" }}
bm25 = {{ bm25 = true }}
both = {{ sum = ["weighed", "bm25"] }}

[collections]
ours = {{ path = "{ours}" }}
control = {{ path = "{ours}", split = "train", control = true, loses_at_most = {tolerance} }}
"""


@pytest.fixture
def write_suite(tmp_path, tiny_model, zorvex_collection):
    """Put a suite.toml somewhere, one string in it replaced by another."""

    def write(old="", new="", tolerance=1.0):
        text = SUITE.format(tiny=tiny_model, ours=zorvex_collection, tolerance=tolerance)
        assert old in text
        path = tmp_path / "suite.toml"
        path.write_text(text.replace(old, new, 1) if old else text)
        return path

    return write


@pytest.fixture(scope="module")
def outcome(tmp_path_factory, tiny_model, zorvex_collection):
    """The whole suite, measured once; its folder beside it. Read only."""
    folder = tmp_path_factory.mktemp("suite")
    text = SUITE.format(tiny=tiny_model, ours=zorvex_collection, tolerance=0.0)
    (folder / "suite.toml").write_text(text)
    suite = read_suite(folder / "suite.toml")
    return run_suite(suite, Place(folder / "out"), explain=True, finish=write_results), folder / "out"


# -- figures --------------------------------------------------------------------------------------


def test_holm_by_hand():
    # sorted .01 .02 .04: times 3, 2, 1; the last may not be smaller than the one before it
    assert holm([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.03, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.04])
    assert holm([0.6, 0.7]) == [1.0, 1.0] and holm([]) == [] and holm([0.2]) == [0.2]


def test_costs_by_hand():
    documents = csr_matrix(np.array([[1, 2, 0], [3, 0, 0]], np.float32))
    queries = csr_matrix(np.array([[1, 0, 5]], np.float32))
    # shares of documents 1, 1/2, 0 and of queries 1, 0, 1: products 1 + 0 + 0
    assert costs(Sparse(queries, documents, "abc")) == (1.5, 2.0, 1.0, 2)
    assert costs(None) is None


def test_every_row_is_measured_on_every_collection(outcome):
    measured, _ = outcome
    assert [(each.row, each.collection) for each in measured.reached] == [
        (row, name) for name in ("ours", "control") for row in ("base", "weighed", "bm25", "both")
    ]
    assert measured.at("bm25", "ours").measured.query_ids == ("q4", "q5", "q6")
    assert measured.at("bm25", "ours").measured.means["mrr@10"] > 0.6  # two of the three say words of theirs
    assert len(measured.differences) == 6
    for each in measured.differences:
        assert each.value.low <= each.value.value <= each.value.high
        assert each.p_value <= each.adjusted <= 1
        gap = measured.at(each.row, each.collection).measured.means["ndcg@10"]
        gap -= measured.at("base", each.collection).measured.means["ndcg@10"]
        assert each.value.value == pytest.approx(gap)
        assert each.holds is (gap >= 0 if each.collection == "control" else None)


def test_several_models_make_one_row_by_their_mean(write_suite, tiny_model, tmp_path):
    other = SparseEncoder.load(tiny_model)
    with torch.no_grad():
        other.masked_lm.get_output_embeddings().weight.mul_(torch.linspace(0.5, 2.0, 16))
    other.save(tmp_path / "other")
    both = f'seeds = {{ model = ["{tiny_model}", "{tmp_path / "other"}"] }}\n'
    both += f'other = {{ model = "{tmp_path / "other"}" }}\n'
    measured = run_suite(read_suite(write_suite("[collections]", f"{both}[collections]")), None, explain=True)
    base, one, mean = (
        measured.at(row, "ours").measured.values["ndcg@10"] for row in ("base", "other", "seeds")
    )
    assert mean == pytest.approx((base + one) / 2)
    reached = measured.at("seeds", "ours")
    assert reached.spread == pytest.approx(abs(base.mean() - one.mean()) / np.sqrt(2))  # of two: gap / root 2
    assert measured.at("other", "ours").spread is None
    assert reached.costs is not None
    table = next(suite_tables(measured))
    assert "spread: standard deviation of ndcg@10" in table.note
    with pytest.raises(ConfigError, match="'seeds' stands for several models"):
        read_suite(write_suite("[collections]", f'{both}all = {{ sum = ["seeds", "bm25"] }}\n[collections]'))


def test_averages_and_queries_at_zero(outcome, tmp_path):
    measured, folder = outcome
    table = averages_table(measured)
    assert table.title == "Average of 2 collections"
    for row in table.rows:
        parts = [measured.at(row["row"], name).measured for name in ("ours", "control")]
        assert row["average"] == pytest.approx(np.mean([part.means["ndcg@10"] for part in parts]))
        values = np.concatenate([part.values["ndcg@10"] for part in parts])
        assert row["at_zero"] == pytest.approx((values == 0).mean())
        assert row["zero in ours"] == pytest.approx((parts[0].values["ndcg@10"] == 0).mean())
    assert (folder / "suite-queries.png").read_bytes().startswith(b"\x89PNG")


def test_one_collection_has_its_queries_at_zero(outcome):
    measured = outcome[0]
    one = measured.suite.model_copy(update={"collections": {"ours": measured.suite.collections["ours"]}})
    table = averages_table(measured._replace(suite=one))
    assert (table.title, table.note) == ("Queries at zero", "")
    assert [set(row) for row in table.rows] == [{"row", "zero in ours"}] * 4


def test_clusters_of_every_row_are_held_against_groups(write_suite, tmp_path, tiny_model):
    members = [
        GroupedText(group, f"{text} {number}")
        for number, (group, text) in enumerate((("a", "the plan"), ("b", "a saw"), ("c", "zorvex")) * 3)
    ]
    lines = [json.dumps({"group": each.group, "text": each.text}) for each in members]
    (tmp_path / "ours.jsonl").write_text("\n".join(lines))
    (tmp_path / "half.jsonl").write_text("\n".join(lines[:5]))
    tables = '[groups]\nwhole = { path = "ours.jsonl" }\nhalf = { path = "half.jsonl" }\n'
    seeds = f'seeds = {{ model = ["{tiny_model}", "{tiny_model}"] }}\n'
    suite = read_suite(write_suite("[collections]", f"{seeds}{tables}[collections]"))
    measured = run_suite(suite, Place(tmp_path / "out"), finish=write_results)
    table = clusters_table(measured)
    assert [row["row"] for row in table.rows] == ["base", "weighed", "bm25", "seeds"]  # a sum has no vectors
    expected = measure_groups(load_encoder(tiny_model), members).v_measure
    for row in table.rows:
        assert row["average"] == pytest.approx((row["groups whole"] + row["groups half"]) / 2)
        if row["row"] != "bm25":
            assert row["groups whole"] == pytest.approx(expected)
    assert json.loads((tmp_path / "out" / "suite.json").read_text())["clusters"] == [
        each._asdict() for each in measured.clusters
    ]
    assert "## Clusters" in (tmp_path / "out" / "suite.md").read_text()


def test_measures_by_kind_of_query(outcome):
    measured, _ = outcome
    kinds = measured.kinds["ours"]
    table = next(each for each in suite_tables(measured) if each.title == "ours: ndcg@10 by kind of query")
    values = measured.at("bm25", "ours").measured.values["ndcg@10"]
    row = next(row for row in table.rows if row["row"] == "bm25")
    for kind in set(kinds):
        assert row[kind] == pytest.approx(values[[each == kind for each in kinds]].mean())


def test_what_changed_is_named_with_the_tokens_that_did_it(outcome):
    measured, _ = outcome
    changed = [change for change in measured.changes if change.row == "bm25" and change.collection == "ours"]
    assert changed and changed[0].after > changed[0].before
    for change in changed:
        assert (change.rank_before, change.rank_after) != (None, None)
        assert all(token.before != token.after for token in change.tokens)
    assert any(change.tokens for change in changed)
    assert all(change.tokens == () for change in measured.changes if change.row == "both")


def test_results_are_written_in_every_form(outcome):
    measured, folder = outcome
    content = json.loads((folder / "suite.json").read_text())
    assert content == json.loads(json.dumps(suite_object(measured)))
    assert {row["row"] for row in content["results"]["ours"]} == {"base", "weighed", "bm25", "both"}
    assert content["costs"][0]["nonzero_document"] > 0
    page = (folder / "suite.md").read_text()
    assert "## control: 3 queries of train, control" in page and "| bm25 |" in page
    assert (folder / "suite.svg").read_text().startswith("<svg ")
    assert (folder / "suite.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "suite.pdf").read_bytes().startswith(b"%PDF")
    assert (folder / "suite.tex").read_text().count(r"\begin{tabular}") == len(list(suite_tables(measured)))
    assert {table.title for table in suite_tables(measured)} >= {"Costs", "ours: 3 queries of test"}


def test_a_name_with_signs_of_formulas_is_plotted_as_it_is(outcome):
    measured = outcome[0]
    odd = measured.suite.model_copy(update={"rows": {"$\\frac{": measured.suite.rows["base"]}})
    one = SimpleNamespace(suite=odd, at=lambda row, place: measured.at("base", place))
    assert png_file(plot_suite(one)).startswith(b"\x89PNG")


def test_a_killed_suite_goes_on_from_what_it_had_encoded(write_suite, tmp_path, monkeypatch, outcome):
    suite = read_suite(write_suite())
    out = tmp_path / "out"

    def killed(outcome, folder):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_suite(suite, Place(out), finish=killed)
    assert not out.exists() and list((tmp_path / "out.partial" / "vectors").iterdir())
    with pytest.raises(OutputError, match="unfinished run"):
        run_suite(suite, Place(out))

    def encoded_again(*_, **__):
        raise AssertionError("encoded again")

    monkeypatch.setattr("sparse_adapt.plugins.research.suite.rankers.encode", encoded_again)
    again = run_suite(suite, Place(out, resume=True), finish=write_results)
    assert again.at("base", "ours").measured.means == outcome[0].at("base", "ours").measured.means
    run_suite(
        suite, Place(out, overwrite=True), finish=write_results
    )  # and a finished one from its predecessor


def test_what_a_run_folder_tells_of_training(tmp_path):
    (tmp_path / "2-model").mkdir()
    assert training_of(str(tmp_path / "2-model")) == TrainingCost(None, None)
    (tmp_path / "2-model" / "stage.json").write_text('{"seconds": 3.5}')
    assert training_of(str(tmp_path / "2-model")) == TrainingCost(3.5, None)
    (tmp_path / "report.json").write_text('{"seconds": 60, "peak_memory": 5000}')
    assert training_of(str(tmp_path / "2-model")) == TrainingCost(60.0, 5000)
    (tmp_path / "report.json").write_text('{"seconds": 60, "adapt": {"seconds": 90.5, "peak_memory": 7000}}')
    assert training_of(str(tmp_path / "2-model")) == TrainingCost(90.5, 7000)


def test_without_a_baseline_the_first_row_is_one(write_suite):
    assert read_suite(write_suite('baseline = "base"', "")).top.baseline == "base"


# -- mistakes -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('baseline = "base"', 'baselin = "base"', r"unknown key 'baselin'; did you mean 'baseline'"),
        ('baseline = "base"', 'baseline = "bas"', r"unknown baseline 'bas'; did you mean 'base'"),
        ('baseline = "base"', 'baseline = "base"\nmeasure = "ndcg"', r":3: unknown measure 'ndcg'"),
        ("bm25 = true", "bm52 = true", r":7: \[rows\.bm25\] unknown key 'bm52'; did you mean 'bm25'"),
        ("bm25 = true", "bm25 = 3", r"bm25 should be a valid boolean \(found: 3\)"),
        ("bm25 = true", "", r"needs one of model, bm25, dense, sum \(found: none\)"),
        ("bm25 = true", 'bm25 = true, dense = "x"', r"needs one of .* \(found: bm25, dense\)"),
        ("bm25 = true", 'bm25 = true, scale = "sqrt-idf"', "scale is for a model"),
        ('["weighed", "bm25"]', '["weighed", "bm"]', "sum names 'bm', which is no row; there are base"),
        ('["weighed", "bm25"]', '["weighed", "both"]', "'both' is a sum itself"),
        ("control = true", "contrl = true", r"unknown key 'contrl'; did you mean 'control'"),
        ("control = true", 'coined_from = "mine"', "coined_from names no collection: 'mine'"),
        ("control = true", 'pat = "x"', r"unknown key 'pat'; did you mean 'path'"),
        ("[collections]", "[groups.more]\n[collections]", r'needs path = "FILE"'),
        (
            "[collections]",
            '[groups]\nx = {paht = "y"}\n[collections]',
            r"unknown key 'paht'; did you mean 'path'",
        ),
        ("[rows]", "[row]", r"unknown key 'row'; did you mean 'rows'"),
        ("[collections]", "[rows.more]", r"needs a table \[collections\] with at least one entry"),
    ],
)
def test_a_mistake_in_a_suite_names_its_line(write_suite, old, new, problem):
    with pytest.raises(ConfigError, match=problem):
        read_suite(write_suite(old, new))


def test_everything_is_looked_at_before_anything_is_encoded(write_suite, tmp_path, monkeypatch):
    def encoded(*_, **__):
        raise AssertionError("encoded")

    monkeypatch.setattr("sparse_adapt.plugins.research.suite.rankers.encode", encoded)
    for old, new, kind, problem in (
        ("bm25 = true", 'model = "./nowhere"', ModelError, "nowhere: no such model folder"),
        ("bm25 = true", 'dense = "./nowhere"', ModelError, "no such model folder"),
        ('split = "train"', 'split = "dev"', InputError, 'no split "dev"; there are test, train'),
        ('split = "train"', 'queries = "no.jsonl"', InputError, "no such file"),
        (
            "[collections]",
            '[groups]\nx = { path = "no.jsonl" }\n[collections]',
            InputError,
            "no.jsonl: can't be read",
        ),
        ('split = "train"', 'coined_from = "ours"', ConfigError, "wasn't coined from ours"),
    ):
        with pytest.raises(kind, match=problem):
            run_suite(read_suite(write_suite(old, new)), Place(tmp_path / "out"))
        assert not (tmp_path / "out").exists() and not (tmp_path / "out.partial").exists()


def test_a_suite_draws_what_it_can_and_names_the_extras_of_the_rest(
    write_suite, tmp_path, sparse_adapt, monkeypatch
):
    """A plain install has neither package."""
    for package in ("vl_convert", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, package, None)
    ran = sparse_adapt("evaluate", "--suite", write_suite(), "-o", tmp_path / "out", "--device", "cpu")
    assert ran.status == 0, ran.err
    assert {path.name for path in (tmp_path / "out").glob("suite*")} == {
        *(f"suite.{form}" for form in ("json", "md", "tex", "svg"))
    }
    assert (tmp_path / "out" / "suite.svg").read_text().startswith("<svg ")
    lacking = (
        "suite.png, suite.pdf, suite-queries.png: not drawn without pip install 'sparse-adapt[pages,plot]'"
    )
    assert lacking in ran.messages


def test_a_suite_as_a_command(write_suite, tmp_path, sparse_adapt):
    path, out = write_suite(), tmp_path / "out"
    status, shown, said = sparse_adapt("evaluate", "--suite", path, "-o", out, "--device", "cpu")
    assert status == 0, said
    assert "control: 3 queries of train, control" in shown and "longest list" in shown
    assert f"sparse-adapt evaluate --suite {path} -o {out} --overwrite --explain" in said
    for words, problem in (
        (("--suite", path, "-o", out), "already there"),
        (("--suite", path, "--model", "splade-tiny"), "--suite names its own models"),
        (("--model", "splade-tiny", "--collection", "gatrocraptic", "--explain"), "are for a suite"),
        (("--suite", tmp_path / "none.toml"), "no such file"),
    ):
        ran = sparse_adapt("evaluate", *words)
        assert (ran.status, ran.out) == (2, "")
        (line,) = ran.errors
        assert problem in line
