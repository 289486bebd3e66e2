"""One setting of a plan with several values: what is asked for, what is shared, what a kill leaves, the table."""

import json
from pathlib import Path

import pytest

from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.pipeline.plan import make_plan
from sparse_adapt.pipeline.run import verdict_of
from sparse_adapt.plugins.research.vary import measures_of, read_variation, times, vary
from sparse_adapt.selection.evidence import BACKGROUND, FALSE_ACTIVATIONS, RETAINED

QUICK = {"steps": 2, "batch_size": 4, "checkpoint_every": 1, "device": "cpu", "labeller": "none"}
STAGES = ("extend", "warmup", "dictionary")


class Interrupted(Exception):
    """What a test throws into a run."""


class Listener:
    """Notes which stages begin to train, and breaks off at one of them."""

    def __init__(self, breaks_off: str = "") -> None:
        self.breaks_off, self.trained = breaks_off, list[str]()

    def begin(self, stage):
        def progress(step, steps, values):
            if step == 1:
                self.trained.append(stage)
            if stage == self.breaks_off:
                raise Interrupted

        return progress

    def end(self, stage, outcome):
        pass


@pytest.fixture(scope="module")
def plan(tiny_model, zorvex_collection):
    return make_plan(str(zorvex_collection), model=str(tiny_model), stages=STAGES, overrides=QUICK)


@pytest.mark.parametrize(
    ("asked", "values"),
    [
        ("dictionary.steps=9, 2,9,1", ["2", "9", "1"]),  # its own first, each once
        ("dictionary.weights.mlm=0,.5", ["0.1", "0.0", "0.5"]),
        ("warmup.softmax=full", ["domain", "full"]),
        ("warmup.raw_logits=false", ["true", "false"]),
        ("warmup.samples=auto,8", ["auto", "8"]),
    ],
)
def test_values_are_those_of_a_run_file_and_the_plans_own_comes_first(plan, asked, values):
    assert [each.text for each in read_variation(asked, plan).values] == values


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("dictionary.steps", "needs STAGE.SETTING=VALUE,VALUE"),
        ("steps=1", "needs STAGE.SETTING=VALUE,VALUE"),
        ("distill.tau=1", "unknown stage that trains 'distill'"),
        ("extend.steps=1", "unknown stage that trains 'extend'"),
        ("warmup.stepz=1", "unknown key 'stepz'; did you mean 'steps'?"),
        ("warmup.weights.mml=1", "unknown key 'mml'; did you mean 'mlm'?"),
        ("warmup.weights=1", "weights is a table; name one of mlm, anchor, domain, recall behind a dot"),
        ("warmup.steps.mlm=1", "unknown key 'mlm'"),
        ("warmup.steps=1,many", "steps should be a valid integer"),
        ("warmup.mask_rate=2", "mask_rate should be less than 1"),
        ("warmup.steps=2", "the plan has this value; name another"),
    ],
)
def test_what_a_plan_cant_have_is_refused_in_a_line(plan, asked, said):
    with pytest.raises(ConfigError) as caught:
        read_variation(asked, plan)
    assert f"--vary {asked}: " in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_how_often_each_stage_is_carried_out(plan):
    found = times(plan, read_variation("warmup.steps=1,3", plan))
    assert [(stage, settings.steps, often) for stage, settings, often in found] == [
        ("warmup", 2, 1),
        ("warmup", 1, 1),
        ("warmup", 3, 1),
        ("dictionary", 2, 3),
    ]


def test_stages_before_are_shared_and_a_broken_off_variation_goes_on(plan, tmp_path):
    variation, broken, second = read_variation("dictionary.weights.mlm=1", plan), Listener(), Listener()
    broken.breaks_off = "dictionary, weights.mlm = 1.0"
    with pytest.raises(Interrupted):
        vary(plan, variation, Place(tmp_path / "out"), broken)
    assert broken.trained == ["warmup", "dictionary, weights.mlm = 0.1", "dictionary, weights.mlm = 1.0"]
    found = vary(plan, variation, Place(tmp_path / "out", resume=True), second)
    assert second.trained == []  # its first step was saved, and the others are done
    own, other = found["rows"]
    assert (own["value"], other["value"]) == ("0.1", "1.0")
    assert set(own["change"].values()) == {0.0}
    assert other["change"] == {key: other["measures"][key] - own["measures"][key] for key in own["measures"]}
    assert {"ndcg@10, all queries", "ndcg@10, general"} <= own["measures"].keys()
    assert json.loads((tmp_path / "out" / "vary.json").read_text()) == found
    again = vary(plan, variation, Place(tmp_path / "out", resume=True), Listener("none"))
    assert again == found
    with pytest.raises(ConfigError, match="made with"):
        vary(
            plan, read_variation("dictionary.steps=1", plan), Place(tmp_path / "out", resume=True), Listener()
        )
    models = {
        Path(row["model"]).parts[0]: (tmp_path / "out" / row["model"]).is_dir() for row in found["rows"]
    }
    assert models == {"value-0": True, "value-1": True}


def test_measures_are_those_of_a_report_without_the_base_model(plan, tiny_run, tmp_path):
    last = sorted(tiny_run.glob("[0-9]-*"))[-1]
    verdict = verdict_of(plan, last, tmp_path)
    expected = {f"ndcg@10, {row['kind']}": row["model"] for row in verdict["evidence"]["rows"]}
    for kind in (*RETAINED, FALSE_ACTIVATIONS, BACKGROUND):
        expected[f"{kind.measure}, {kind.name}"] = kind.figures(verdict["retention"])[1]
    assert dict(measures_of(plan, last, tmp_path)) == expected
    assert len(expected) == 10


@pytest.mark.nightly
def test_the_command_compares_values_on_the_real_model(sparse_adapt, tmp_path):
    (tmp_path / "run.toml").write_text(
        'corpus = "gatrocraptic"\nstages = ["extend", "warmup"]\n[warmup]\nsteps = 1\nlearning_rate = 1e-5\n'
    )
    asked = ("run", tmp_path / "run.toml", "--vary", "warmup.new_learning_rate=0.1", "-o", tmp_path / "out")
    ran = sparse_adapt(*asked, "--json", "--html", tmp_path / "page.html")
    assert ran.status == 0, ran.err
    assert "2 values, the first the plan's own; extend once; in all about " in ran.err
    found = json.loads(ran.out)
    assert [row["value"] for row in found["rows"]] == ["0.01", "0.1"]
    assert any(found["rows"][1]["change"].values())
    assert "Change against the plan" in (tmp_path / "page.html").read_text()
    assert "<svg" in (tmp_path / "page.html").read_text()
    again = sparse_adapt(*asked, "--resume")
    assert "0.01 (own)" in again.out
    assert "--html is for --vary" in sparse_adapt("run", tmp_path / "run.toml", "--html", "x.html").errors[0]
