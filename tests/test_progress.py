from pathlib import Path

import pytest

from sparse_adapt.report import progress
from sparse_adapt.report.progress import Bars
from sparse_adapt.stages.runner import Outcome


@pytest.fixture
def clock(monkeypatch):
    """Seconds since some time, moved by hand."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def said(monkeypatch):
    lines = []
    monkeypatch.setattr(progress, "say", lines.append)
    return lines


def test_a_stage_says_that_it_prepares_and_then_its_loss():
    bars = Bars()
    step = bars.begin("warmup")
    (task,) = bars.bars.tasks
    assert (task.description, task.total, task.fields["note"]) == ("warmup", None, "preparing")
    step(1, 20, {"loss": 2.5})
    assert (task.completed, task.total, task.fields["note"]) == (1, 20, "loss 2.5")
    step(2, 20, {})
    assert (task.completed, task.fields["note"]) == (2, "")


def test_a_resumed_stage_goes_on_in_its_middle():
    bars = Bars()
    bars.begin("warmup")(11, 20, {})
    (task,) = bars.bars.tasks
    assert (task.completed, task.total) == (11, 20)


def test_a_stage_without_steps_leaves_no_bar(said):
    bars = Bars()
    bars.begin("extend")
    bars.begin("warmup")(1, 2, {})
    bars.end("extend", Outcome(Path("run/1-extend"), "2 new tokens", {}))
    bars.end("warmup", Outcome(Path("run/2-warmup"), "2 steps", {}))
    assert [task.description for task in bars.bars.tasks] == ["warmup"]
    assert said == ["1-extend: 2 new tokens", "2-warmup: 2 steps"]


@pytest.mark.parametrize(("each", "told"), [(1.0, ["warmup: about 3 minutes to go"]), (0.25, [])])
def test_what_takes_minutes_says_so_once(clock, said, each, told):
    step = Bars().begin("warmup")
    for number in range(1, 61):
        step(number, 200, {})
        clock[0] += each
    assert said == told


def test_things_are_counted_as_they_come(clock, said):
    bars = Bars()
    assert list(bars.watch("abc", "letters")) == ["a", "b", "c"]
    (task,) = bars.bars.tasks
    assert (task.description, task.completed, task.total) == ("letters", 3, None)
    more = bars.count("pages", 1000)
    for _ in range(10):
        more(10)
        clock[0] += 10.0
    assert said == ["pages: about 16 minutes to go"]
