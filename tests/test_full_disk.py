"""Training on a full disk, and in a read-only folder: one line, and with more room it goes on to the same bytes."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from commands import COMMANDS, STAGES, inputs, ran
from killing import content
from killing import no_clock as no_clock

pytestmark = [
    pytest.mark.nightly,
    pytest.mark.usefixtures("no_clock", "few_texts"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a small disk"),
]
LINES = {
    **{name: COMMANDS[name] for name in ("run", "adapt", *STAGES)},
    "adapt to words": "adapt {corpus} --model {model} --device cpu",
    "demo": "demo {zorvex} --model {model} --preset published --epochs 0.05 --batch-size 4 --device cpu",
    "words": "words {model} {corpus} --device cpu",
}
ONCE = {"words", "extend"}  # which begin anew
LONG = {"adapt to words", "demo"}  # a minute each
FULL, READ_ONLY = "the disk is full", "Read-only file system"
Mount = Callable[[str], Path]


@pytest.fixture
def few_texts(monkeypatch):
    """General knowledge is asked by few texts, so that more of the time goes into what is written."""
    monkeypatch.setattr("sparse_adapt.selection.questions.MOST", 20)
    monkeypatch.setattr("sparse_adapt.pipeline.demo.QUESTIONS", 20)
    monkeypatch.setattr("sparse_adapt.retrieve.activity.BACKGROUND_TEXTS", 80)


@pytest.fixture
def disk(tmp_path) -> Iterator[Mount]:
    """A disk in memory: how it is mounted, `size=64k` or `ro`, each time again."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(how: str) -> Path:
        again = "remount," if os.path.ismount(place) else ""
        asked = ["mount", "-t", "tmpfs", "-o", f"{again}{how}", "tmpfs", str(place)]
        if subprocess.run(asked, capture_output=True, check=False).returncode:
            pytest.skip("no small disk can be mounted here")
        return place

    yield mount
    if os.path.ismount(place):
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture(scope="module")
def words(tiny_model, zorvex_collection, tmp_path_factory) -> dict[str, str]:
    """What stands for what in the commands' lines."""
    torch.set_num_threads(1)
    return inputs(tmp_path_factory.mktemp("inputs"), tiny_model) | {"zorvex": str(zorvex_collection)}


def emptied(place: Path) -> None:
    subprocess.run(["find", str(place), "-mindepth", "1", "-delete"], check=True)


def refused(status: int, said: str, why: str) -> None:
    errors = [line for line in said.splitlines() if line.startswith("error: ")]
    assert (status, errors) == (2, said.splitlines()[-1:]) and why in errors[0], said
    assert "Traceback" not in said


@pytest.mark.parametrize("name", LINES)
def test_a_disk_that_is_full_loses_nothing(name, words, disk):
    place = disk("size=1g")
    line = [*LINES[name].format(**words).split(), "-o", str(place / "whole")]
    for _ in range(2):  # the first compiles what is compiled
        emptied(place)
        status, said = ran(*line)
        assert status == 0, said
    expected = content(place)
    used = sum(path.stat().st_blocks for path in place.rglob("*")) // 2  # KiB
    moments = 4 if name in LONG else 12
    ends = {"whole": 0, "full": 0}
    for moment in range(moments):
        disk("size=1g")
        emptied(place)
        disk(f"size={4 + used * (moment + 1) // moments}k")
        status, said = ran(*line)
        if status == 0:
            ends["whole"] += 1
            continue
        ends["full"] += 1
        refused(status, said, FULL)
        assert not (place / "whole").exists() or name == "adapt to words", said
        disk("size=1g")
        resumed = ["--resume"] if (place / "whole.partial").exists() and name not in ONCE else []
        status, said = ran(*line, *resumed)
        assert status == 0, said
        now = content(place)
        assert not [path for path in {**now, **expected} if now.get(path, 0) != expected.get(path, 0)]
    assert ends["full"] >= moments // 2, ends


@pytest.mark.parametrize("name", [*LINES, "encode", "export", "index", "pack", "unpack", "terms", "queries"])
def test_a_folder_that_is_read_only_is_one_line(name, words, disk):
    place = disk("ro")
    line = {**COMMANDS, **LINES}[name].format(**words).split()
    for out in ("whole", "new/whole"):
        refused(*ran(*line, "-o", str(place / out)), READ_ONLY)
