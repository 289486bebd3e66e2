"""Runs, run files and settings of earlier versions: read as they are called now, or refused by one line."""

import json
import shutil
from pathlib import Path

import pytest

from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.pipeline.plan import make_plan, settings_for
from sparse_adapt.pipeline.run import run
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.stages.older import settings_now

RECORDED = Path(__file__).parent / "older"  # of a run as the first version left it
QUICK = {"steps": 3, "batch_size": 4, "device": "cpu"}


class Listener:
    """Notes what each stage of a run said."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}

    def begin(self, stage):
        return None

    def end(self, stage, outcome):
        self.said[stage] = outcome.said


@pytest.fixture
def older(tmp_path, tiny_model, zorvex_collection) -> Path:
    """A run of today with the records and the names of the first version."""
    plan = make_plan(
        str(zorvex_collection),
        model=str(tiny_model),
        stages=["extend", "behaviour", "imitate"],
        overrides=QUICK,
    )
    folder = run(plan, Place(tmp_path / "run")).folder
    (folder / "3-imitate").rename(folder / "3-distill")
    for path in RECORDED.iterdir():
        text = path.read_text(encoding="utf-8")
        for name, place in (("model", tiny_model), ("collection", zorvex_collection), ("run", folder)):
            text = text.replace(f"{{{name}}}", str(place))
        stage = folder / path.stem
        (stage / "stage.json" if stage.is_dir() else folder / path.name).write_text(text, encoding="utf-8")
    return folder


def test_a_whole_run_is_recognised(older):
    plan = read_plan(older / "run.toml")
    assert plan.stages == ("extend", "behaviour", "imitate")
    done = run(plan, Place(older, resume=True))
    assert done.model == older / "3-distill"


def test_an_unfinished_run_goes_on_behind_what_is_done(older, tmp_path):
    plan = read_plan(older / "run.toml")
    (older / "report.json").unlink()
    shutil.rmtree(older / "2-behaviour")
    (older / "3-distill").rename(tmp_path / "kept")
    older.rename(older.with_name("run.partial"))
    listener = Listener()
    done = run(plan, Place(older, resume=True), listener)
    assert listener.said["extend"] == "done before"
    assert [name for name, said in listener.said.items() if "3 steps" in said] == ["behaviour", "imitate"]
    assert done.model == older / "3-imitate"


def test_a_finished_stage_of_another_recipe_is_refused(older):
    plan = read_plan(older / "run.toml")
    path = older / "3-distill" / "stage.json"
    record = json.loads(path.read_text())
    record["settings"]["weights"]["rank"] = 0.5
    path.write_text(json.dumps(record))
    with pytest.raises(ConfigError) as caught:
        run(plan, Place(older, resume=True))
    assert str(caught.value) == (
        f"{older / '3-distill'}: weights.rank = 0.5 is of an earlier version; the stage distill learns so now; "
        "pass --overwrite without --resume to start again"
    )


@pytest.mark.parametrize(
    ("preset", "table", "problem"),
    [
        (
            "corpus",
            "weights = { rank = 0.5 }",
            "[distill.weights] weights.rank = 0.5 is of an earlier version",
        ),
        ("corpus", 'anchored = "corpus"', "[distill] anchored = 'corpus' is of an earlier version"),
        ("default", 'factors = "learnt"', "the stage imitate learns so now"),
        ("plain", "balanced = true", "balanced = True is of an earlier version"),
    ],
)
def test_a_setting_that_is_gone_is_refused_with_its_line(tmp_path, preset, table, problem):
    path = tmp_path / "run.toml"
    path.write_text(
        f'corpus = "gatrocraptic"\npreset = "{preset}"\nstages = ["distill"]\n[distill]\n{table}\n'
    )
    with pytest.raises(ConfigError) as caught:
        read_plan(path)
    assert str(caught.value).startswith(f"{path}:5: ")
    assert problem in str(caught.value)


def test_what_did_nothing_is_passed_over():
    table = {"anchored": "corpus", "factor_rate": 0.003, "balanced": False, "kd": "mse"}
    assert settings_now("distill", table) == ({"kd": "mse"}, None)
    weights = {"kd": 1.0, "rank": 0.0, "listwise": 0.0}
    assert settings_now("imitate", {"tau": 2.0, "weights": weights}) == ({"weights": {"kd": 1.0}}, None)


def test_a_renamed_setting_is_read(tmp_path):
    path = tmp_path / "run.toml"
    path.write_text('corpus = "gatrocraptic"\nstages = ["dictionary"]\n[dictionary]\nkindred = 0.5\n')
    assert read_plan(path).settings["dictionary"].shared_steps == 0.5


def test_the_preset_of_a_bare_corpus_is_the_stage_imitate(tmp_path, zorvex_collection, tiny_model):
    assert settings_for("distill", "corpus") == settings_for("imitate")
    assert make_plan(str(zorvex_collection), stages=["distill"], preset="corpus").stages == ("imitate",)
    assert AdaptSettings(stages=("extend", "distill")).stages == ("extend", "imitate")


def test_the_command_takes_the_preset(sparse_adapt, tmp_path, zorvex_collection, tiny_model):
    words = [
        "distill",
        "--model",
        tiny_model,
        "--candidates",
        zorvex_collection,
        "--corpus",
        zorvex_collection,
    ]
    out = tmp_path / "out"
    more = ["--preset", "corpus", "--judge", "none", "--steps", "2", "--batch-size", "2", "-o", out]
    done = sparse_adapt(*words, *more)
    assert done.status == 0, done.err
    assert json.loads((out / "stage.json").read_text())["stage"] == "imitate"
