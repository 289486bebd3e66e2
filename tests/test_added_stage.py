"""A stage of one's own, in one file and one row, is carried out in every way that the others are."""

import json
import sys
from pathlib import Path

import pytest
from forking import forked

from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import make_plan, presets, settings_for
from sparse_adapt.pipeline.run import run
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.stages import table

ROW = table.StageRow("shorten", "added_stage:SHORTEN", "Train documents to be short.")
QUICK = {"steps": 3, "batch_size": 4, "device": "cpu", "learning_rate": 1e-3}


@pytest.fixture(autouse=True)
def added(monkeypatch):
    monkeypatch.setattr(table, "STAGES", (*table.STAGES, ROW))


def weight(model: Path, texts: list[str]) -> float:
    encoder = SparseEncoder.load(model)
    return float(encoder.weights(encoder.tokenize(texts)).detach().sum())


def test_it_runs_from_a_plan(tmp_path, tiny_model, zorvex_collection, twelve_documents):
    plan = make_plan(
        str(zorvex_collection), model=str(tiny_model), stages=["extend", "shorten"], overrides=QUICK
    )
    done = run(plan, Place(tmp_path / "run"))
    assert done.model.name == "2-shorten"
    texts = [document.full_text for document in twelve_documents]
    assert weight(done.model, texts) < weight(tmp_path / "run" / "1-extend", texts)
    history = (done.model / "history.jsonl").read_text().splitlines()
    assert json.loads(history[0]).keys() == {"step", "brevity", "loss", "gradient_norm", "learning_rate"}


def test_it_runs_from_a_run_file_with_its_own_settings(tmp_path, tiny_model, zorvex_collection):
    file = tmp_path / "run.toml"
    text = f'model = "{tiny_model}"\ncorpus = "{zorvex_collection}"\nstages = ["shorten"]\npreset = "hasty"\n'
    file.write_text(f'{text}[shorten]\ndevice = "cpu"\nweights = {{ brevity = 0.5 }}\n')
    plan = read_plan(file)
    assert plan.settings["shorten"].weights.brevity == 0.5
    assert run(plan, Place(tmp_path / "run")).report["stages"][0]["steps"] == 2
    file.write_text(f"{text}[shorten]\nweights = {{ brevty = 0.5 }}\n")
    with pytest.raises(ConfigError, match=r":6: \[shorten.weights\] unknown key 'brevty'; did you mean"):
        read_plan(file)


def test_its_presets_are_among_the_others():
    assert "hasty" in presets()
    assert settings_for("shorten", "hasty").steps == 2
    with pytest.raises(ConfigError, match="warmup: has no preset 'hasty'"):
        settings_for("warmup", "hasty")


def test_it_is_a_command(tmp_path, tiny_model, zorvex_collection):
    words = [
        "shorten",
        "--model",
        tiny_model,
        "--corpus",
        zorvex_collection,
        "--device",
        "cpu",
        "--steps",
        "2",
    ]

    def command():
        for name in [name for name in sys.modules if name.startswith("sparse_adapt.cli")]:
            del sys.modules[name]  # whose commands are made of the stages that were there
        from sparse_adapt.cli import main

        sys.argv = ["", *map(str, words), "--weights", "brevity=0.5", "-o", str(tmp_path / "short")]
        main()

    ended = forked(command)
    assert ended.status == 0, ended.messages
    record = json.loads((tmp_path / "short" / "stage.json").read_text())
    assert (record["stage"], record["steps"]) == ("shorten", 2)
    assert record["settings"]["weights"] == {"brevity": 0.5}
