"""kill -9 at random moments of what trains for long, again and again, then resumed: the same bytes as without."""

import os
import random
import signal
import time

import pytest
import torch
from commands import COMMANDS, inputs, ran
from forking import fork
from killing import State, content, restore, state_of
from killing import no_clock as no_clock

pytestmark = [pytest.mark.nightly, pytest.mark.usefixtures("no_clock")]
MOMENTS = 30
LINES = {
    "run": COMMANDS["run"],
    "adapt": COMMANDS["adapt"],
    "adapt to words": "adapt {corpus} --model {model} --device cpu",
    "demo": "demo {zorvex} --model {model} --preset published --epochs 0.05 --batch-size 4 --device cpu",
    "words": "words {model} {corpus} --device cpu",
}


@pytest.fixture
def few_texts(monkeypatch):
    """General knowledge is asked by few texts, so that a moment is more likely in what is written."""
    monkeypatch.setattr("sparse_adapt.selection.questions.MOST", 20)
    monkeypatch.setattr("sparse_adapt.pipeline.demo.SOME", 20)
    monkeypatch.setattr("sparse_adapt.retrieve.activity.BACKGROUND_TEXTS", 80)


def at_place(state: State) -> set[str]:
    """What of a folder lies in the result."""
    return {path for path in state if path.startswith("whole/")}


@pytest.mark.usefixtures("few_texts")
@pytest.mark.parametrize("name", LINES)
def test_kills_at_random_moments_leave_no_trace(
    name, tiny_model, zorvex_collection, tmp_path_factory, tmp_path
):
    """A command that writes at once has no `--resume`: a kill leaves nothing at its place, and it begins anew."""
    torch.set_num_threads(1)
    words = inputs(tmp_path_factory.mktemp("inputs"), tiny_model) | {"zorvex": str(zorvex_collection)}
    line = [*LINES[name].format(**words).split(), "-o", str(tmp_path / "whole")]
    resumed = [] if name == "words" else ["--resume"]
    assert ran(*line)[0] == 0  # compiles what is compiled
    restore(tmp_path, {})
    started = time.perf_counter()
    assert ran(*line)[0] == 0
    longest, expected, chance = time.perf_counter() - started, content(tmp_path), random.Random(name)
    hits = 0
    moments = min(MOMENTS, 10) if name == "adapt to words" else MOMENTS  # a minute each
    for moment in range(moments):
        restore(tmp_path, {})
        for again in range(1 + moment % 3):  # killed again while it goes on
            work = fork(lambda again=again: ran(*line, *(resumed if again else [])))
            time.sleep(chance.uniform(0.0, longest / (1 + again)))
            os.kill(work.process, signal.SIGKILL)
            killed = work.wait().status == -signal.SIGKILL
            hits += killed
            if killed and not resumed:
                assert at_place(state_of(tmp_path)) in (set(), at_place(expected))
        status, said = ran(*line, *resumed)
        assert status == 0 or "already there" in said, said
        now = content(tmp_path)
        assert not [path for path in {**now, **expected} if now.get(path, 0) != expected.get(path, 0)]
    assert hits > moments // 3
