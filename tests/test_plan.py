import json
from pathlib import Path

import pytest

from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.pipeline.plan import make_plan, plan_text, settings_for
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.stages.dictionary import Dictionary
from sparse_adapt.stages.distill import Distill
from sparse_adapt.stages.extend import Extend
from sparse_adapt.stages.warmup import Warmup


@pytest.fixture
def run_file(tmp_path):
    def write(text: str) -> Path:
        path = tmp_path / "run.toml"
        path.write_text(text, encoding="utf-8")
        return path

    return write


def test_a_corpus_folder_brings_its_files(run_file, zorvex_collection):
    plan = read_plan(run_file(f'corpus = "{zorvex_collection}"\n'))
    assert plan.stages == ("extend", "warmup", "dictionary", "distill")
    assert plan.model == "splade-tiny"
    assert plan.files == {
        "terms": str(zorvex_collection / "terms.json"),
        "dictionary": str(zorvex_collection / "dictionary.jsonl"),
        "candidates": str(zorvex_collection / "candidates.jsonl"),
    }
    assert {name: type(settings) for name, settings in plan.settings.items()} == {
        "extend": Extend,
        "warmup": Warmup,
        "dictionary": Dictionary,
        "distill": Distill,
    }


def test_paths_are_relative_to_the_run_file(tmp_path, run_file, zorvex_collection, monkeypatch):
    (tmp_path / "mine").symlink_to(zorvex_collection)
    (tmp_path / "words.json").write_text('{"x": ["zorvex"]}')
    (tmp_path / "elsewhere").mkdir()
    path = run_file('corpus = "mine"\nmodel = "mine"\n[extend]\nterms = "words.json"\n')
    monkeypatch.chdir(tmp_path / "elsewhere")
    plan = read_plan(Path("..") / path.name)
    assert Path(plan.corpus).samefile(zorvex_collection)
    assert Path(plan.model).samefile(zorvex_collection)
    assert Path(plan.files["terms"]).samefile(tmp_path / "words.json")


def test_names_of_models_corpora_and_data_sets_stay_names(run_file):
    plan = read_plan(run_file('corpus = "gatrocraptic"\nmodel = "someone/splade"\nstages = ["warmup"]\n'))
    assert (plan.corpus, plan.model) == ("gatrocraptic", "someone/splade")


def test_a_seed_is_for_every_stage_and_a_table_goes_before_it(run_file):
    plan = read_plan(run_file('corpus = "gatrocraptic"\nseed = 7\n[distill]\nseed = 9\n'))
    assert [settings.seed for settings in plan.trained.values()] == [7, 7, 9]


def test_the_command_line_goes_before_the_file(run_file):
    path = run_file('corpus = "gatrocraptic"\n[distill]\nseed = 9\n')
    assert [settings.seed for settings in read_plan(path, {"seed": 3}).trained.values()] == [3, 3, 3]


def test_one_loss_weight_leaves_the_others(run_file):
    plan = read_plan(run_file('corpus = "gatrocraptic"\n[distill]\nweights = { kd = 0.125 }\n'))
    usual = settings_for("distill").weights.model_dump()
    assert plan.settings["distill"].weights.model_dump() == {**usual, "kd": 0.125}


@pytest.mark.plugins("research")
@pytest.mark.parametrize(
    "text",
    [
        'corpus = "gatrocraptic"\n',
        'corpus = "coined"\nstages = ["warmup", "published", "published"]\nseed = 5\npreset = "published"\n',
        'stages = ["extend"]\nmodel = "a/b"\n[extend]\nterms = "tërms \\"1\\".json"\n',
        'corpus = "gatrocraptic"\n[warmup]\nepochs = 2.5\ntensorboard = true\nweights = { mlm = 0.5 }\n',
    ],
)
def test_what_is_written_reads_back_as_the_same_plan(tmp_path, run_file, text):
    (tmp_path / 'tërms "1".json').write_text('{"x": ["zorvex"]}')
    plan = read_plan(run_file(text))
    again = read_plan(run_file(plan_text(plan)))
    assert again == plan
    assert plan_text(again) == plan_text(plan)


def test_a_written_plan_holds_every_setting(run_file):
    text = plan_text(make_plan("gatrocraptic"))
    for stage in ("warmup", "dictionary", "distill"):
        table = text.split(f"[{stage}]")[1].split("\n[")[0]
        named = {line.split(" = ")[0] for line in table.splitlines() if " = " in line}
        optional = {name for name, value in settings_for(stage).model_dump().items() if value is None}
        assert set(settings_for(stage).model_dump()) - optional <= named


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('modle = "x"\n', ":1: unknown key 'modle'; did you mean 'model'?"),
        ('corpus = "gatrocraptic"\n[distil]\n', ":2: unknown key 'distil'; did you mean 'distill'?"),
        ('corpus = "gatrocraptic"\n\n[warmup]\n# steps\nstepz = 3\n', ":5: [warmup] unknown key 'stepz'"),
        (
            'corpus = "gatrocraptic"\n[distill]\nweights = { kd = 1, rnak = 2 }\n',
            ":3: [distill.weights] unknown key 'rnak'; did you mean 'rank'?",
        ),
        (
            'corpus = "gatrocraptic"\n[distill.weights]\nkd = -1\n',
            ":3: [distill.weights] kd should be greater than or equal to 0 (found: -1)",
        ),
        (
            'corpus = "gatrocraptic"\n[distill]\nweights.kd = "a"\n',
            ":3: [distill.weights] kd should be a valid",
        ),
        (
            'corpus = "gatrocraptic"\n[warmup]\nsteps = "many"\n',
            ":3: [warmup] steps should be a valid integer",
        ),
        ('corpus = "gatrocraptic"\nwarmup = 3\n', ":2: needs a table [warmup] (found: 3)"),
        ('corpus = "gatrocraptic"\n[extend]\nterm = "x"\n', ":3: [extend] unknown key 'term'"),
        (
            'corpus = "gatrocraptic"\n[extend]\nterms = 3\n',
            ":3: [extend] terms needs a path in quotes (found: 3)",
        ),
        (
            'corpus = "gatrocraptic"\n[dictionary]\ndictionry = "x"\n',
            ":3: [dictionary] unknown key 'dictionry'; did you mean 'dictionary'?",
        ),
        (
            'corpus = "gatrocraptic"\nstages = ["extnd"]\n',
            ":2: unknown stage 'extnd'; did you mean 'extend'?",
        ),
        ('corpus = "gatrocraptic"\nstages = []\n', ":2: no stages; there are extend, preserve, warmup"),
        (
            'preset = "publishd"\ncorpus = "gatrocraptic"\n',
            ":1: unknown preset 'publishd'; did you mean 'published'?",
        ),
        (
            'corpus = "gatrocraptic"\nstages = ["extend", "distill"]\npreset = "published"\n',
            ":3: the stage distill has no preset 'published'; it would take its defaults",
        ),
        ('seed = -1\ncorpus = "gatrocraptic"\n', ":1: seed should be greater than or equal to 0"),
        ('stages = ["distill"]\n', ": the stage distill needs candidates, and no corpus is named"),
        ('stages = ["warmup"]\n', ": the stage warmup needs a corpus"),
        ('corpus = "no.jsonl"\nstages = ["extend"]\n', "no.jsonl is no folder with terms.json"),
    ],
)
def test_a_wrong_run_file_is_named_with_its_line(run_file, text, problem):
    path = run_file(text)
    with pytest.raises(ConfigError) as caught:
        read_plan(path)
    assert str(caught.value).startswith(str(path))
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line"),
    [('corpus = "a"\nseed =\n', 2), ("\n\nseed == 3\n", 3), ('corpus = "a\n', 1), ("[warmup", 1)],
)
def test_broken_toml_is_named_with_its_line(run_file, text, line):
    with pytest.raises(InputError) as caught:
        read_plan(run_file(text))
    assert caught.value.line == line
    assert "broken TOML" in str(caught.value)


def test_a_missing_run_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_plan(tmp_path / "run.toml")


def test_a_preset_is_where_settings_start_from():
    plain = settings_for("warmup", "published", {"mask_rate": 0.3})
    assert plain == settings_for("warmup", "published").model_copy(update={"mask_rate": 0.3})
    assert (plain.softmax, plain.epochs) == ("full", 50)
    assert plain != settings_for("warmup", "default", {"mask_rate": 0.3})


def test_settings_that_mean_nothing_are_refused():
    with pytest.raises(ConfigError, match="warmup: learning_rate should be greater than 0"):
        settings_for("warmup", "default", {"learning_rate": -1.0})
    with pytest.raises(ConfigError, match="unknown preset 'x'"):
        settings_for("warmup", "x")


def test_records_and_run_files_agree_on_settings(run_file):
    """stage.json holds settings as JSON; a resumed run compares them with those of its run file."""
    settings = read_plan(run_file(plan_text(make_plan("gatrocraptic")))).settings["distill"]
    stored = json.loads(json.dumps(settings_for("distill").model_dump(mode="json")))
    assert settings.model_dump(mode="json") == stored


def test_a_run_file_may_name_the_model_that_a_stage_compares_with(run_file, tmp_path):
    path = run_file('corpus = "gatrocraptic"\nstages = ["preserve"]\n[preserve]\nbefore = "splade-tiny"\n')
    plan = read_plan(path)
    assert plan.files_of("preserve") == {"corpus": "gatrocraptic", "before": "splade-tiny"}
    (tmp_path / "again.toml").write_text(plan_text(plan), encoding="utf-8")
    assert read_plan(tmp_path / "again.toml") == plan
