"""Two processes train as one does: the same losses, nearly the same weights, one writer."""

import json
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from accelerate import PartialState
from forking import forked, forked_by
from safetensors.torch import load_file

from sparse_adapt.errors import ConfigError, OutputError
from sparse_adapt.files import processes
from sparse_adapt.files.place import Place
from sparse_adapt.files.processes import common_folder
from sparse_adapt.stages.dictionary import Dictionary
from sparse_adapt.stages.distill import Distill
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.stages.warmup import Warmup
from sparse_adapt.synthetic import labelled
from sparse_adapt.synthetic.background import like_queries
from sparse_adapt.training.loop import device_of
from sparse_adapt.training.sharing import own_share, shared_out, sharing, summed_over_processes

STAGES = ("warmup", "dictionary", "distill")
GIVEN = {"device": "cpu", "steps": 6, "checkpoint_every": 4, "batch_size": 3, "learning_rate": 1e-3}
DISTILL = Distill.model_validate({**GIVEN, "labeller": "none"})


def shares(rank: int) -> None:
    """Shares come back in their order, with the gradient of the whole."""
    PartialState(cpu=True)
    for count in range(6):
        items = list(range(1, count + 1))
        factor = torch.tensor(2.0, requires_grad=True)
        rows = shared_out(
            lambda share, factor=factor: torch.tensor(share, dtype=torch.float32).unsqueeze(1) * factor, items
        )
        assert rows.flatten().tolist() == [2.0 * item for item in items], rows
        if count:
            (rows.sum() ** 2).backward()  # (2 s)^2, so its derivative by the factor is 2 (2 s) s in all
            whole = torch.tensor(0.0) if factor.grad is None else factor.grad.clone()
            torch.distributed.all_reduce(whole)
            assert whole.item() == 4.0 * sum(items) ** 2, (count, whole)
    part = torch.tensor(float(rank + 1), requires_grad=True)
    summed = summed_over_processes(part * part)
    assert summed.item() == 1.0 + 4.0
    summed.backward()
    assert part.grad.item() == 2.0 * (rank + 1)


def three_stages(model: Path, collection: Path, out: Path, before: Path | None = None) -> None:
    """Extend, and each training stage for a few steps, from a model folder to model folders in `out`.

    `before`: where the models lie that the stages begin with, `out` without. A last bit of a model chooses among
    synthetic texts, so only stages that begin with the same one are alike.
    """
    before = before or out
    source = str(collection)
    labelled.POOL, labelled.WORDS = (
        300,
        2_000,
    )  # what is labelled takes minutes, and is the same in every process
    labelled.like_queries = lambda: like_queries()[::10]  # type: ignore[assignment]
    carry_out_stage("extend", str(model), {"terms": source + "/terms.json"}, Place(out / "extend"))
    warmup = Warmup.model_validate(GIVEN)
    carry_out_stage("warmup", str(before / "extend"), {"corpus": source}, Place(out / "warmup"), warmup)
    dictionary = Dictionary.model_validate({**GIVEN, "gradient_accumulation": 2})
    named = {"dictionary": source, "candidates": source, "corpus": source}
    carry_out_stage("dictionary", str(before / "warmup"), named, Place(out / "dictionary"), dictionary)
    carry_out_stage("distill", str(before / "dictionary"), named, Place(out / "distill"), DISTILL)


def distill_again(_: Path, collection: Path, out: Path, before: Path) -> None:
    """The last stage once more, stopped at its fifth step and resumed from the fourth."""

    def stop(step: int, *_: object) -> None:
        if step == 5:
            raise KeyboardInterrupt

    named = {"candidates": collection, "corpus": collection}
    given = "distill", str(before / "dictionary"), named
    with suppress(KeyboardInterrupt):
        carry_out_stage(*given, Place(out / "stopped"), DISTILL, stop)
    assert (out / "stopped.partial" / "state.safetensors").is_file()
    carry_out_stage(*given, Place(out / "stopped", resume=True), DISTILL)


def history(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


def test_two_processes_share_out_and_sum():
    for ended in forked_by(2, shares):
        assert ended.status == 0, ended.messages


@pytest.mark.nightly
def test_two_processes_train_every_stage_as_one_does(tiny_model, zorvex_collection, tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = tmp_path / "one", tmp_path / "two"

    def together(_: int) -> None:
        three_stages(tiny_model, zorvex_collection, two, one)
        distill_again(tiny_model, zorvex_collection, two, one)

    for ended in (forked(lambda: three_stages(tiny_model, zorvex_collection, one)), *forked_by(2, together)):
        assert ended.status == 0, ended.messages
    for stage in STAGES:
        one, two = history(tmp_path / "one" / stage), history(tmp_path / "two" / stage)
        assert len(one) == len(two) == 6
        for alone, together in zip(one, two, strict=True):
            assert together == pytest.approx(alone, rel=2e-4, abs=2e-5), stage
        first, second = (load_file(tmp_path / name / stage / "model.safetensors") for name in ("one", "two"))
        for name, weights in first.items():
            # Adam makes whole steps of gradients that are nearly nothing; hence the mean
            assert (second[name] - weights).abs().mean() < 1e-5, (stage, name)
        written = sorted(path.name for path in (tmp_path / "two" / stage).iterdir())
        assert written == sorted(path.name for path in (tmp_path / "one" / stage).iterdir())
    for name in ("history.jsonl", "model.safetensors"):
        stopped = tmp_path / "two" / "stopped" / name
        assert stopped.read_bytes() == (tmp_path / "two" / "distill" / name).read_bytes()


@pytest.mark.nightly
def test_a_launched_command_speaks_and_writes_once(tiny_model, zorvex_collection, tmp_path):
    carry_out_stage(
        "extend", str(tiny_model), {"terms": zorvex_collection / "terms.json"}, Place(tmp_path / "extend")
    )
    command = [sys.executable, "-m", "accelerate.commands.launch", "--cpu", "--num_processes", "2"]
    command += ["--main_process_port", str(20_001 + os.getpid() % 20_000)]
    command += ["-m", "launched", "distill", "--model", str(tmp_path / "extend"), "--device", "cpu"]
    command += ["--labeller", "none"]
    command += ["--candidates", str(zorvex_collection), "--corpus", str(zorvex_collection), "--epochs", "8"]
    (tmp_path / "launched.py").write_text("from sparse_adapt.cli import main\nmain()\n")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(tmp_path)}

    def launch(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *more], env=environment, cwd=tmp_path, capture_output=True, text=True
        )

    done = launch("-o", "distill")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("wrote distill") == 1
    taken = launch("-o", "distill")
    assert taken.returncode != 0
    assert taken.stderr.count("error: distill: already there") == 1
    assert not list(tmp_path.glob("*.partial"))


def test_alone_nothing_is_shared_out(tmp_path):
    items = [3.0, 1.0, 2.0]
    assert own_share(items) == items
    assert shared_out(lambda share: torch.tensor(share), items).tolist() == items
    value = torch.tensor(2.0)
    assert summed_over_processes(value) is value
    encoder = object()
    assert sharing(encoder) is encoder  # type: ignore[arg-type]
    assert processes.is_main() and not processes.several()
    with common_folder(Place(tmp_path / "out")) as folder:
        (folder / "file").write_text("content")
    assert (tmp_path / "out" / "file").read_text() == "content"


def test_a_follower_takes_over_the_first_ones_error(tmp_path, monkeypatch):
    """What the first process says is all that the others know of the folder."""
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("MASTER_ADDR", "127.0.0.1")
    monkeypatch.setenv("MASTER_PORT", "29500")
    assert processes.several() and not processes.is_main()
    monkeypatch.setattr(processes, "from_first", lambda _: (Path(), "out: already there"))
    with pytest.raises(OutputError, match="out: already there"), common_folder(Place(tmp_path / "out")):
        raise AssertionError
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "left",
    [
        {"RANK": "1"},
        {"RANK": "1", "WORLD_SIZE": "2"},
        {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "2"},  # but nobody whom to meet, and where
        {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
        {"RANK": "1", "LOCAL_RANK": "1", "WORLD_SIZE": "abc", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"},
    ],
)
def test_what_a_launcher_left_in_the_environment_silences_nobody(monkeypatch, left):
    for name, value in left.items():
        monkeypatch.setenv(name, value)
    assert processes.is_main() and not processes.several()


@pytest.mark.parametrize("name", ["WORLD_SIZE", "RANK", "LOCAL_RANK"])
def test_a_variable_that_is_no_number_is_one_line(monkeypatch, name):
    monkeypatch.setenv(name, "abc")
    with pytest.raises(ConfigError, match=f"{name}=abc: isn't a whole number; unset it"):
        device_of(DISTILL)
