"""The published experiments as run files, and the page that tells of them."""

import json
import tomllib
from types import SimpleNamespace

import pytest

import corpora
from benchmarks import ladder
from benchmarks.tables import RESULTS
from sparse_adapt.pipeline.runfile import read_plan

SEED = {
    "experiment": "H4",
    "seed": 0,
    "mean_logit": 5.5,
    "largest_logit": 7.25,
    "weight": 2.11,
    "rank": 1,
    "nonzero": 90,
    "query_weight": 1.2,
    "decoy_rank": 6,
    "on_top": 5,
    "relevant": 5,
    "semantic": 0.9,
    "control": 0.7,
}
DONE = ("experiment", "seed")


@pytest.mark.parametrize("name", corpora.RUN_FILES)
def test_each_experiment_is_a_run_file_that_reads(name):
    plan = read_plan(corpora.run_file(name))
    assert plan.stages == (*("extend", "warmup", "dictionary")[: int(name[1]) - 1], "published")
    assert plan.settings["published"].epochs == (50 if name == "H4" else 3)
    assert (plan.settings["published"].batch_size, plan.settings["published"].learning_rate) == (2, 1e-5)
    for stage in plan.stages[1:-1]:
        held = plan.settings[stage]
        assert (held.epochs, held.batch_size, held.learning_rate, held.ramp) == (50, 4, 5e-5, 0.0)
    assert plan.corpus == "gatrocraptic"


def test_an_experiment_is_known_by_its_name(sparse_adapt, tmp_path, monkeypatch):
    printed = sparse_adapt("run", "--template", "H2")
    assert printed.status == 0
    assert tomllib.loads(printed.out)["stages"] == ["extend", "published"]
    assert "no such file" in sparse_adapt("run", "H5").errors[0]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "H2").write_text('corpus = "coined"\nstages = ["extend"]\n')
    assert tomllib.loads(sparse_adapt("run", "--template", "H2").out)["corpus"] == "coined"
    with pytest.raises(KeyError, match="there are H1, H2, H3, H4"):
        corpora.run_file("H5")


def test_the_page_has_the_published_figures_beside_ours():
    lines = ladder.table([SEED, {**SEED, "seed": 1, "weight": 2.5, "rank": None}]).splitlines()
    assert lines[0].count("published") == 4
    assert next(line for line in lines if line.startswith("| its weight there")).endswith(
        "| 2.33 | 2.11, 2.50 |"
    )
    assert "1 of 90, none |" in next(line for line in lines if "rank among" in line)


def test_each_expectation_stands_beside_what_is_and_its_status():
    seeds = [SEED, {**SEED, "seed": 1, "rank": 3}, {**SEED, "experiment": "H2", "mean_logit": 0.5}]
    lines = ladder.statuses(seeds).splitlines()
    assert "| H4 | the heaviest token of its document | 1, 3 | holds for 1 of 2 seeds |" in lines
    assert "| H4 | weight in the hard query | 1.20, 1.20 | holds |" in lines
    assert "| H2 | a negative logit where the term stands | 0.50 | differs |" in lines
    assert {each.experiment for each in ladder.EXPECTED} == set(corpora.RUN_FILES)


def test_the_drawing_has_a_dot_for_each_seed():
    drawn = ladder.drawing([SEED, {**SEED, "seed": 1}])
    assert drawn.count("<circle") == 2 * 2 + 1  # two panels, and the key
    assert drawn.count('class="barm"') == 6 + 1


def test_a_try_leaves_the_published_figures_alone(tmp_path, monkeypatch, capsys):
    before, plans = ladder.DRAWN.read_bytes(), []

    def carried_out(plan, folder, listener):
        plans.append(plan)
        return [SimpleNamespace(folder=folder)]

    monkeypatch.setattr(ladder, "run_stages", carried_out)
    monkeypatch.setattr(ladder.SparseEncoder, "load", lambda folder: folder)
    monkeypatch.setattr(ladder, "measure", lambda _: {key: SEED[key] for key in SEED if key not in DONE})
    monkeypatch.setattr("sys.argv", ["ladder", "--epochs", "1", "--seeds", "2", "--runs", str(tmp_path)])
    ladder.main()
    assert len(plans) == 2 * len(corpora.RUN_FILES)
    assert {held.epochs for plan in plans for name, held in plan.settings.items() if name != "extend"} == {
        1.0
    }
    assert sorted(path.name for path in tmp_path.glob("*.*")) == ["ladder.json", "ladder.md", "ladder.svg"]
    assert (tmp_path / "ladder.md").read_text() in capsys.readouterr().out
    assert ladder.DRAWN.read_bytes() == before
    ladder.main()  # which has nothing left to do
    assert len(plans) == 2 * len(corpora.RUN_FILES)
    other = tmp_path / "other"
    monkeypatch.setattr("sys.argv", ["ladder", "--model", "runs/mine", "--seeds", "1", "--runs", str(other)])
    ladder.main()
    assert {plan.model for plan in plans[2 * len(corpora.RUN_FILES) :]} == {"runs/mine"}
    assert (other / "ladder.json").is_file()
    assert ladder.DRAWN.read_bytes() == before


def test_the_page_shows_what_was_measured():
    found = json.loads((RESULTS / "ladder.json").read_text())
    page = (RESULTS.parents[1] / "docs" / "published.md").read_text()
    assert ladder.table(found) in page
    assert ladder.statuses(found) in page
    assert ladder.drawing(found) == ladder.DRAWN.read_text()
