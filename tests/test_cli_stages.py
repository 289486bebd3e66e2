"""Commands of stages: made from the rows of the table, with an option for each input and each setting."""

import json
import sys

import pytest
from conftest import refused

from sparse_adapt.api.following import flag_of
from sparse_adapt.cli import stages
from sparse_adapt.settings import Settings, setting
from sparse_adapt.stages import table
from sparse_adapt.stages.inputs import CORPUS, PAIRS, beside
from sparse_adapt.stages.stage import Stage
from sparse_adapt.training.settings import Training


def shown(sparse_adapt, monkeypatch, command: str) -> str:
    monkeypatch.setenv("COLUMNS", "300")
    return " ".join(sparse_adapt(command, "--help").out.split())


@pytest.mark.parametrize("name", table.stage_names())
def test_a_stage_takes_all_that_it_reads_and_all_its_settings(sparse_adapt, monkeypatch, name):
    text, stage = shown(sparse_adapt, monkeypatch, name), table.find_stage(name)
    for each in stage.reads:
        assert flag_of(each.key) in text
    for key, field in stage.settings.model_fields.items() if stage.trains else ():
        assert f"--{key.replace('_', '-')}" in text, key
        assert " ".join(str(field.description).split()) in text, key
        if isinstance(field.default, int | float | str) and not isinstance(field.default, bool):
            assert f"[default: {field.default}]" in text, key
    assert ("--preset" in text) == bool(stage.presets)


def test_settings_reach_the_stage(sparse_adapt, tmp_path, extended, zorvex_collection):
    files = ["--model", extended, "--corpus", zorvex_collection, "-o", tmp_path / "x", "--device", "cpu"]
    first, second, *_ = table.find_stage("warmup").settings.model_fields["weights"].default.model_dump()
    words = ["--steps", "2", "--weights", f"{first}=0.5", f"--weights={second}=3"]
    words += ["--targets", "mention=9", "--no-raw-logits"]
    done = sparse_adapt("warmup", *files, *words)
    assert done.status == 0, done.err
    record = json.loads((tmp_path / "x" / "stage.json").read_text())
    settings, defaults = record["settings"], table.find_stage("warmup").settings().model_dump(mode="json")
    assert record["steps"] == 2
    assert settings["weights"] == defaults["weights"] | {first: 0.5, second: 3.0}
    assert (settings["targets"]["mention"], settings["targets"]["slope"]) == (9.0, 40.0)
    assert settings["raw_logits"] is False
    changed = {"steps", "weights", "targets", "raw_logits", "device"}
    assert {key for key in settings if settings[key] != defaults[key]} == changed


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--weights", "anchor"], "--weights anchor: write KEY=VALUE"),
        (["--weights", "mlm=much"], "--weights mlm=much: 'much' is no number"),
        (["--weights", "mml=1"], "unknown key 'mml'; did you mean 'mlm'?"),
        (["--targets", "mentoin=1"], "unknown key 'mentoin'; did you mean 'mention'?"),
        (["--steps", "0"], "steps should be greater than or equal to 1"),
        (["--softmax", "none"], "softmax should be 'domain' or 'full'"),
        (["--preset", "publishd"], "did you mean 'published'?"),
        (["--labeller", "./nowhere"], "./nowhere: no such model folder"),
    ],
)
def test_a_wrong_setting_is_one_line_and_leaves_nothing(
    sparse_adapt, tmp_path, extended, zorvex_collection, words, problem
):
    files = ["--model", extended, "--corpus", zorvex_collection, "-o", tmp_path / "x"]
    assert problem in refused(sparse_adapt("warmup", *files, *words))
    assert not list(tmp_path.iterdir())


class Rubbed(Training):
    """Rub the weights until they shine."""

    shine: float = setting(2.0, "How much they shine.", unit="candela", gt=0)
    colour: str = setting("red", "In which colour.")
    twice: bool = setting(False, "Whether it is done again.")


class Nothing(Settings):
    """Nothing is learnt."""


RUBBED = Stage("rubbed", Rubbed, (CORPUS, beside(PAIRS)), lambda *_: None)  # type: ignore[arg-type,return-value]


def test_a_new_stage_has_a_command_by_its_row_alone(monkeypatch):
    row = table.StageRow("rubbed", f"{__name__}:RUBBED", "Rub the weights.")
    monkeypatch.setattr(table, "STAGES", (*table.STAGES, row))
    monkeypatch.setitem(sys.modules, __name__, sys.modules[__name__])
    command = stages.stage_command(row)
    options = {each.name: each for each in command.params}
    assert command.help == "Rub the weights.\n\nRub the weights until they shine."
    assert {"model", "corpus", "pairs", "out", "overwrite", "resume", *Rubbed.model_fields} <= set(options)
    assert (options["shine"].default, options["pairs"].default) == (2.0, None)
    assert options["corpus"].required and not options["pairs"].required
