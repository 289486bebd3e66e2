import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from sparse_adapt.errors import ConfigError, InputError, OutputError
from sparse_adapt.files import folders
from sparse_adapt.files.place import Place
from sparse_adapt.files.writing import write_json
from sparse_adapt.pipeline import run as pipeline_run
from sparse_adapt.pipeline.plan import make_plan
from sparse_adapt.pipeline.run import latest_run, read_finished, run
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.stages import record as stage_record
from sparse_adapt.stages.record import extended_from, read_before
from sparse_adapt.stages.runner import carry_out_stage

QUICK = {"steps": 4, "batch_size": 4, "checkpoint_every": 1, "device": "cpu", "labeller": "none"}


class Interrupted(Exception):
    """What a test throws into a run."""


class Watcher:
    """Notes what a run does, and breaks it off at one step of one stage."""

    def __init__(self, stage: str = "", step: int = 0) -> None:
        self.stage, self.step = stage, step
        self.messages: list[tuple[str, str]] = []
        self.steps: list[tuple[str, int]] = []

    def begin(self, stage):
        def progress(step, steps, values):
            self.steps.append((stage, step))
            if (stage, step) == (self.stage, self.step):
                raise Interrupted

        return progress

    def end(self, stage, outcome):
        self.messages.append((stage, outcome.message))


@pytest.fixture(scope="module")
def plan(tiny_model, zorvex_collection):
    return make_plan(str(zorvex_collection), model=str(tiny_model), overrides=QUICK)


@pytest.fixture(scope="module")
def whole(plan, tmp_path_factory):
    """A whole run. Read only."""
    return run(plan, Place(tmp_path_factory.mktemp("whole") / "run"))


@pytest.fixture
def done(plan, whole, tmp_path):
    """A copy of a whole run."""
    shutil.copytree(whole.folder, tmp_path / "run")
    return run(plan, Place(tmp_path / "run", resume=True))


@pytest.fixture(scope="module")
def stopped_once(plan, tmp_path_factory):
    place = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.raises(Interrupted):
        run(plan, Place(place), Watcher("distill", 2))
    return place.with_name("run.partial")


@pytest.fixture
def stopped(stopped_once, tmp_path):
    """What a run leaves that was broken off in its last stage."""
    return shutil.copytree(stopped_once, tmp_path / "run.partial")


def weights(model: Path) -> bytes:
    return (model / "model.safetensors").read_bytes()


def test_every_stage_reads_the_model_before_it(tmp_path, plan, done):
    folders = ["1-extend", "2-warmup", "3-dictionary", "4-distill"]
    assert done.model == tmp_path / "run" / "4-distill"
    records = [json.loads((tmp_path / "run" / name / "stage.json").read_text()) for name in folders]
    assert [record["model"]["path"] for record in records] == [
        plan.model,
        *(f"../{name}" for name in folders[:-1]),
    ]
    assert len({weights(tmp_path / "run" / name) for name in folders}) == 4
    assert [(stage["folder"], stage["stage"]) for stage in done.report["stages"]] == [
        (name, name[2:]) for name in folders
    ]
    assert [stage.get("steps") for stage in done.report["stages"]] == [None, 4, 4, 4]
    assert {"model", "baseline", "difference"} <= done.report["retention"]["general"].keys()
    assert not list(tmp_path.glob("*.partial"))
    written = [path.read_text() for path in (tmp_path / "run").rglob("*.json")]
    assert not any(".partial" in text for text in written)


@pytest.mark.parametrize(
    ("stage", "step"),
    [
        ("dictionary", 3),
        *(
            pytest.param(*each, marks=pytest.mark.nightly)
            for each in (("warmup", 1), ("distill", 2), ("distill", 4))
        ),
    ],
)
def test_a_run_broken_off_anywhere_ends_the_same(tmp_path, plan, whole, stage, step):
    with pytest.raises(Interrupted):
        run(plan, Place(tmp_path / "run"), Watcher(stage, step))
    assert not (tmp_path / "run").exists()
    watcher = Watcher()
    resumed = run(plan, Place(tmp_path / "run", resume=True), watcher)
    assert weights(resumed.model) == weights(whole.model)
    before = ["extend", "warmup", "dictionary", "distill"].index(stage)
    assert [said for _, said in watcher.messages[:before]] == ["done before"] * before
    assert "done before" not in [said for _, said in watcher.messages[before:]]
    assert [number for name, number in watcher.steps if name == stage] == [*range(step + 1, 5)]
    history = (resumed.model / "history.jsonl").read_text()
    assert history == (whole.model / "history.jsonl").read_text()


def test_any_sequence_of_stages(tmp_path, done, tiny_model, zorvex_collection):
    corpus = str(zorvex_collection)
    extended = str(done.folder / "1-extend")
    warm = run(
        make_plan(corpus, model=extended, stages=["warmup"], overrides=QUICK), Place(tmp_path / "warm")
    )
    assert warm.model == tmp_path / "warm" / "1-warmup"
    assert weights(warm.model) == weights(done.folder / "2-warmup")
    alone = make_plan(corpus, model=str(tiny_model), stages=["distill", "distill"], overrides=QUICK)
    twice = run(alone, Place(tmp_path / "alone"))
    assert twice.model.name == "2-distill"
    assert weights(twice.model) != weights(twice.folder / "1-distill")


def test_resuming_a_whole_run_changes_nothing(tmp_path, plan, done):
    before = weights(done.model)
    watcher = Watcher()
    again = run(plan, Place(tmp_path / "run", resume=True), watcher)
    assert (again.report, weights(again.model)) == (done.report, before)
    assert watcher.messages == []


def test_resuming_a_whole_run_of_another_plan_is_refused(tmp_path, done, zorvex_collection, tiny_model):
    corpus, model = str(zorvex_collection), str(tiny_model)
    again = Place(tmp_path / "run", resume=True)
    with pytest.raises(ConfigError, match=r"2-warmup: made with other settings \(seed\)"):
        run(make_plan(corpus, model=model, overrides={**QUICK, "seed": 5}), again)
    with pytest.raises(ConfigError, match="a run of more stages"):
        run(make_plan(corpus, model=model, stages=["extend", "warmup"], overrides=QUICK), again)
    with pytest.raises(ConfigError, match=r"a run of other stages \(no 1-distill\)"):
        run(make_plan(corpus, model=model, stages=["distill"], overrides=QUICK), again)


def test_overwriting_and_resuming_goes_on_with_the_successor(tmp_path, plan, done):
    """The old run stays until the new one is whole, however often that is broken off."""
    old = done
    stamp = (old.folder / "report.json").stat().st_mtime_ns
    with pytest.raises(Interrupted):
        run(plan, Place(tmp_path / "run", overwrite=True), Watcher("distill", 2))
    assert (old.folder / "report.json").stat().st_mtime_ns == stamp
    watcher = Watcher()
    new = run(plan, Place(tmp_path / "run", overwrite=True, resume=True), watcher)
    assert [said for _, said in watcher.messages[:3]] == ["done before"] * 3
    assert (new.folder / "report.json").stat().st_mtime_ns > stamp


def test_a_run_goes_on_only_with_what_it_was_begun_with(tmp_path, stopped, zorvex_collection, tiny_model):
    other = make_plan(
        str(zorvex_collection), model=str(tiny_model), overrides={**QUICK, "learning_rate": 1e-3}
    )
    with pytest.raises(ConfigError, match=r"2-warmup: made with other settings \(learning_rate\)"):
        run(other, Place(tmp_path / "run", resume=True))


def test_a_file_that_changed_since_stops_a_resumed_run(tmp_path, zorvex_collection, tiny_model):
    folder = tmp_path / "mine"
    folder.mkdir()
    for path in zorvex_collection.iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    plan = make_plan(str(folder), model=str(tiny_model), overrides=QUICK)
    with pytest.raises(Interrupted):
        run(plan, Place(tmp_path / "run"), Watcher("warmup", 2))
    (folder / "terms.json").write_text('{"coined": ["zorvex", "kubectl"]}')
    with pytest.raises(ConfigError, match=r"1-extend: made with the terms .*, which changed since"):
        run(plan, Place(tmp_path / "run", resume=True))


def test_a_run_that_was_renamed_or_copied_is_a_run_still(tmp_path, plan, done):
    shutil.copytree(done.folder, tmp_path / "copy")
    done.folder.rename(tmp_path / "renamed")
    for name in ("copy", "renamed"):
        again = run(plan, Place(tmp_path / name, resume=True))
        assert again.report == done.report
        assert extended_from(str(again.model)) == plan.model
        assert read_before(str(again.model)).keys() == {"candidates", "corpus", "dictionary"}
    unfinished = (tmp_path / "copy").rename(tmp_path / "other.partial")
    (unfinished / "report.json").unlink()
    watcher = Watcher()
    again = run(plan, Place(tmp_path / "other", resume=True), watcher)
    assert [said for _, said in watcher.messages] == ["done before"] * 4
    assert again.folder == tmp_path / "other"


@pytest.mark.parametrize("module", [pipeline_run, stage_record])
def test_a_disk_that_is_full_at_the_very_end_loses_nothing(
    tmp_path, plan, whole, stopped, monkeypatch, module
):
    """No space for the report, or for the last record of the last stage: nothing is learnt again."""

    def full(path: Path, content: dict[str, Any]) -> None:
        if path.name == "report.json" or (content["stage"] == "distill" and "steps" in content):
            raise OSError(errno.ENOSPC, "No space left on device")
        write_json(path, content)

    monkeypatch.setattr(module, "write_json", full)
    with pytest.raises(OutputError, match=r"the disk is full.*pass --resume"):
        run(plan, Place(tmp_path / "run", resume=True))
    monkeypatch.undo()
    assert not (tmp_path / "run").exists()
    watcher = Watcher()
    resumed = run(plan, Place(tmp_path / "run", resume=True), watcher)
    assert watcher.steps == []
    assert weights(resumed.model) == weights(whole.model)


def test_a_stage_that_is_whole_but_for_its_renaming_is_not_taught_again(
    tmp_path, plan, whole, stopped, monkeypatch
):

    def killed(partial: Path, place: Path, **options: object) -> None:
        if place.name == "4-distill":
            raise KeyboardInterrupt
        publish(partial, place, **options)

    publish = folders._publish
    monkeypatch.setattr(folders, "_publish", killed)
    with pytest.raises(KeyboardInterrupt):
        run(plan, Place(tmp_path / "run", resume=True))
    monkeypatch.undo()
    watcher = Watcher()
    resumed = run(plan, Place(tmp_path / "run", resume=True), watcher)
    assert watcher.steps == [] and watcher.messages[-1][1].startswith("4 steps in ")
    for name in ("model.safetensors", "history.jsonl"):
        assert (resumed.model / name).read_bytes() == (whole.model / name).read_bytes()


def test_a_stage_never_replaces_the_model_that_it_begins_with(tmp_path, plan, done, zorvex_collection):
    """Its record would lead back to itself, and whoever asks what was extended would ask for ever."""
    model, corpus = str(done.folder / "1-extend"), {"corpus": str(zorvex_collection)}
    before = weights(done.folder / "1-extend")
    with pytest.raises(OutputError, match="1-extend: is what this command reads"):
        carry_out_stage("warmup", model, corpus, Place(Path(model), overwrite=True), plan.settings["warmup"])
    assert weights(done.folder / "1-extend") == before
    record = json.loads((done.model / "stage.json").read_text())
    (done.model / "stage.json").write_text(json.dumps({**record, "model": {"path": "."}}))
    (done.folder / "2-warmup" / "stage.json").write_text(
        json.dumps({**record, "model": {"path": "../4-distill"}})
    )
    (done.model / "stage.json").write_text(json.dumps({**record, "model": {"path": "../2-warmup"}}))
    with pytest.raises(ConfigError, match="its record says that it was made from itself"):
        carry_out_stage("preserve", str(done.model), corpus, Place(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_damaged_record_is_one_line(tmp_path, plan, done):
    for content in ("", "{", "[]", "null", '{"stage": 3, "model": "m"}', '{"stage": "warmup"}', "\ud800"):
        (done.model / "stage.json").write_bytes(content.encode("utf-8", "surrogatepass"))
        with pytest.raises(InputError, match=r"4-distill/stage\.json: not a file that this version reads"):
            run(plan, Place(tmp_path / "run", resume=True))


def test_a_model_that_was_replaced_since_stops_a_resumed_run(tmp_path, plan, tiny_model):
    shutil.copytree(tiny_model, tmp_path / "model")
    own = replace(plan, model=str(tmp_path / "model"))
    with pytest.raises(Interrupted):
        run(own, Place(tmp_path / "run"), Watcher("warmup", 2))
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (tmp_path / "model" / name).write_bytes((tiny_model / name).read_bytes() + b"\n")
        with pytest.raises(ConfigError, match=r"1-extend: made with the model .*, which changed since"):
            run(own, Place(tmp_path / "run", resume=True))
        shutil.copy(tiny_model / name, tmp_path / "model")


def test_a_taken_folder_is_left_alone(tmp_path, plan):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "mine.txt").write_text("keep")
    with pytest.raises(OutputError, match="already there"):
        run(plan, Place(tmp_path / "run"))
    assert (tmp_path / "run" / "mine.txt").read_text() == "keep"
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_mistake_in_the_last_file_shows_before_the_first_stage(tmp_path, plan, zorvex_collection):
    bad = tmp_path / "candidates.jsonl"
    lines = (zorvex_collection / "candidates.jsonl").read_text().splitlines()
    bad.write_text("\n".join([*lines[:-1], lines[-1].replace('"d05"', '"nowhere"')]) + "\n")
    file = tmp_path / "run.toml"
    file.write_text(
        f'model = "{plan.model}"\ncorpus = "{zorvex_collection}"\n[distill]\ncandidates = "{bad}"\n'
    )
    watcher = Watcher()
    with pytest.raises(InputError, match=r'candidates.jsonl:3: document "nowhere" is not in the corpus'):
        run(read_plan(file), Place(tmp_path / "run"), watcher)
    assert watcher.messages == []
    assert not list(tmp_path.glob("run*/"))


# -- runs that are there ----------------------------------------------------------------------------


def report(folder: Path, **fields) -> Path:
    (folder / "2-distill").mkdir(parents=True)
    content = {"final": "2-distill", "corpus": "gatrocraptic", **fields}
    (folder / "report.json").write_text(json.dumps(content))
    return folder


def test_the_latest_run_is_the_one_finished_last(tmp_path):
    assert latest_run(tmp_path) is None
    new, old = report(tmp_path / "a-new"), report(tmp_path / "b-old")
    os.utime(old / "report.json", (1, 1))
    (tmp_path / "c.partial").mkdir()
    found = latest_run(tmp_path)
    assert found is not None
    assert (found.folder, found.model, found.corpus) == (new, new / "2-distill", "gatrocraptic")


def test_a_time_to_come_is_no_time(tmp_path):
    """A clock that went wrong once doesn't keep a run the latest for ever, by its report or by its file."""
    now = report(tmp_path / "now", written=time.strftime("%Y-%m-%dT%H:%M:%S%z"))
    report(tmp_path / "ahead", written="2199-01-01T00:00:00+0000")
    os.utime(report(tmp_path / "touched") / "report.json", (2**33, 2**33))
    report(tmp_path / "before", written="2020-01-01T00:00:00+0000")
    (report(tmp_path / "damaged") / "report.json").write_text("{")
    os.utime(now / "report.json", (1, 1))
    found = latest_run(tmp_path)
    assert found is not None and found.folder == now


def test_a_run_without_a_corpus_or_a_model_is_passed_over(tmp_path):
    report(tmp_path / "extended-only", corpus=None)
    (report(tmp_path / "emptied") / "2-distill").rmdir()
    assert latest_run(tmp_path) is None


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"final": 3}',
        "null",
        '{"final": "../x", "corpus": null}',
        '{"final": "x", "corpus": 3}',
        "\x00",
    ],
)
def test_a_report_that_isnt_one_is_named(tmp_path, text):
    (tmp_path / "report.json").write_text(text)
    with pytest.raises(InputError, match=r"report\.json: not the report of a run"):
        read_finished(tmp_path)


# -- killed -----------------------------------------------------------------------------------------

COMMAND = [sys.executable, "-c", "from sparse_adapt.cli import main; main()", "run"]
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


def kill_in(stage: str, folder: Path, *words: str) -> None:
    """Start a run and kill it as soon as a stage has saved its state."""
    state = folder.with_name(f"{folder.name}.partial") / f"{stage}.partial" / "state.safetensors"
    process = subprocess.Popen(
        [*COMMAND, *words, "-o", str(folder)], env=ONE_THREAD, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + 240
    while not state.is_file():
        assert process.poll() is None, "the run ended before it could be killed"
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


@pytest.mark.nightly
def test_a_run_killed_twice_ends_bit_identical_on_the_real_model(tmp_path):
    """SIGKILL in the middle of two stages; what `--resume` makes equals an undisturbed run in every bit."""
    stages = ("warmup", "dictionary", "distill")
    tables = "".join(f'[{name}]\nsteps = 8\ncheckpoint_every = 3\nlabeller = "none"\n' for name in stages)
    file = tmp_path / "run.toml"
    file.write_text(f'corpus = "gatrocraptic"\n{tables}')
    whole, folder = tmp_path / "whole", tmp_path / "run"
    quiet = {"check": True, "env": ONE_THREAD, "stderr": subprocess.DEVNULL}
    subprocess.run([*COMMAND, str(file), "-o", str(whole)], **quiet)

    kill_in("2-warmup", folder, str(file))
    assert not folder.exists()
    again = [*COMMAND, str(file), "-o", str(folder)]
    told = subprocess.run(again, env=ONE_THREAD, stderr=subprocess.PIPE, text=True, check=False)
    assert told.returncode == 2
    assert "pass --resume to continue it or --overwrite" in told.stderr
    kill_in("4-distill", folder, str(file), "--resume")
    assert not folder.exists()
    subprocess.run([*again, "--resume"], **quiet)
    for name in ("1-extend", "2-warmup", "3-dictionary", "4-distill"):
        assert weights(folder / name) == weights(whole / name), name


def test_a_text_is_remembered_alike_whatever_was_asked_before():
    """A resumed run asks for texts in another order; beside others, their last bits would differ."""
    from sparse_adapt.collection.readers import read_documents
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.objectives.texts import Remembered

    encoder = SparseEncoder.load("splade-tiny")
    token_ids = encoder.tokenize([document.full_text for document in read_documents("gatrocraptic")])
    rows = range(len(token_ids))
    together = Remembered(encoder, token_ids).weights(rows)
    for before in ([0], [7, 2], [1, 2, 3, 4, 5]):
        remembered = Remembered(encoder, token_ids)
        remembered.weights(before)
        assert torch.equal(remembered.weights(rows), together)
