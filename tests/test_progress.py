"""Bars, lines where nobody sees bars, and how long work takes still."""

import time
from pathlib import Path
from threading import Event

import pytest

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.objectives.texts import vectors
from sparse_adapt.report import progress
from sparse_adapt.report.progress import Bars, Before
from sparse_adapt.stages.runner import Outcome


@pytest.fixture
def clock(monkeypatch):
    """Seconds since some time, moved by hand."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def messages(monkeypatch):
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


def test_a_stage_without_steps_leaves_no_bar(messages):
    bars = Bars()
    bars.begin("extend")
    bars.begin("warmup")(1, 2, {})
    bars.end("extend", Outcome(Path("run/1-extend"), "2 new tokens", {}))
    bars.end("warmup", Outcome(Path("run/2-warmup"), "2 steps", {}))
    assert [task.description for task in bars.bars.tasks] == ["warmup"]
    assert messages == ["1-extend: 2 new tokens", "2-warmup: 2 steps"]


@pytest.mark.parametrize(("each", "told"), [(1.0, ["warmup: about 3 minutes to go"]), (0.25, [])])
def test_what_takes_minutes_says_so_once(clock, messages, each, told):
    step = Bars().begin("warmup")
    for number in range(1, 61):
        step(number, 200, {})
        clock[0] += each
    assert messages == told


def test_things_are_counted_as_they_come(clock, messages):
    bars = Bars()
    assert list(bars.counted("abc", "letters")) == ["a", "b", "c"]
    (task,) = bars.bars.tasks
    assert (task.description, task.completed, task.total) == ("letters", 3, None)
    more = bars.count("pages", 1000)
    for _ in range(10):
        more(10)
        clock[0] += 10.0
    assert messages == ["pages: about 16 minutes to go"]


# -- by the pace of this run ------------------------------------------------------------------------


def remaining(bars: Bars) -> float | None:
    (work,) = bars.works
    return work.remaining()


def test_work_deep_within_a_command_has_a_bar_until_it_is_done(clock, messages):
    progress.passing("texts", 4)(4)  # nobody hears without a command
    with Bars() as bars:
        bars.begin("dictionary")
        clock[0] += 1
        advance = progress.passing("texts", 4)
        advance(1)
        assert bars.line().startswith("texts: 1 of 4 (25%)")
        advance(3)
        assert [task.description for task in bars.bars.tasks] == ["dictionary"]
        assert bars.line().startswith("dictionary: ")
    progress.passing("texts", 4)(4)
    assert [task.description for task in bars.bars.tasks] == ["dictionary"]


def test_bars_are_drawn_once_the_work_takes_a_while(monkeypatch):
    """What is done at once leaves neither bars nor an empty line, in a terminal and beside a notebook's cell."""
    monkeypatch.setattr(progress, "is_interactive", lambda: True)
    monkeypatch.setattr(progress.RichProgress, "start", lambda bars: started.set())
    for soon, drawn in ((0.3, False), (0.01, True)):
        started = Event()
        monkeypatch.setattr(progress, "SOON", soon)
        with Bars() as bars:
            bars.count("texts", 2)(1)
            started.wait(30 * drawn)
        time.sleep(2 * soon)  # nor is anything drawn later
        assert started.is_set() is drawn


def test_texts_that_are_read_before_the_first_step_are_counted(clock, messages, monkeypatch, tiny_model):
    model, seen = SparseEncoder.load(tiny_model), []
    texts = model.tokenize(["a log of the server"] * 100)
    with Bars() as bars:
        bars.begin("rank")
        read = model.weights

        def weights(rows):
            seen.append(bars.line())
            clock[0] += 1
            return read(rows)

        monkeypatch.setattr(model, "weights", weights)
        assert vectors(model, texts).shape[0] == 100
        assert seen[1].startswith("texts read before the first step: 64 of 100 (64%)")
        assert bars.line().startswith("rank: ")
        vectors(model, [])
        assert bars.line().startswith("rank: "), "no texts leave no bar"


def test_a_resumed_stage_takes_as_long_as_its_own_steps_say(clock, messages):
    """900 of 1,000 steps were done before, and one takes 10 s: with them counted, it would take no time at all."""
    bars = Bars()
    step = bars.begin("distill")
    clock[0] += 500.0  # preparing
    for number in (901, 902, 903):
        step(number, 1000, {})
        clock[0] += 10.0
    step(904, 1000, {})
    assert remaining(bars) == pytest.approx(960.0)
    assert messages == ["distill: about 16 minutes to go"]


def test_documents_that_were_encoded_before_do_not_count_towards_the_pace(clock, messages):
    bars = Bars()
    more = bars.count("documents", 100_000)
    for _ in range(9):
        more(Before(10_000))
        clock[0] += 0.1
    assert remaining(bars) is None
    for _ in range(11):
        more(10)
        clock[0] += 1.0
    assert remaining(bars) == pytest.approx((100_000 - 90_110) / 10 - 1, abs=0.01)
    assert bars.line() == "documents: 90,110 of 100,000 (90%), 12 s so far, about 16 min to go"


def test_time_that_remains_passes_while_nothing_is_heard(clock, messages):
    bars = Bars()
    more = bars.count("shards", 10)
    more(1)
    clock[0] += 100.0
    more(1)
    assert remaining(bars) == pytest.approx(800.0)
    clock[0] += 50.0
    assert remaining(bars) == pytest.approx(750.0)
    clock[0] += 5_000.0
    assert remaining(bars) == 0.0


# -- where nobody sees bars -------------------------------------------------------------------------


def test_a_line_says_what_is_done_how_far_and_how_long_still(clock, messages):
    bars = Bars()
    clock[0] += 130.0
    assert bars.line() == "working, 2 min so far"
    step = bars.begin("warmup")
    clock[0] += 61.0
    assert bars.line() == "warmup: 61 s so far, preparing"
    read = bars.passing("texts read", 1_000)
    read(10)
    assert bars.line() == "texts read: 10 of 1,000 (1%), 0 s so far"
    read(990)
    assert bars.line() == "warmup: 61 s so far, preparing: 1,000 texts read"
    step(1, 100, {"loss": 3.0})
    clock[0] += 60.0
    step(11, 100, {"loss": 2.0})
    assert bars.line() == "warmup: 11 of 100 (11%), 2 min so far, about 9 min to go, loss 2"
    step(100, 100, {"loss": 1.0})
    assert bars.line().startswith("working, ")
    bars.count("documents")(3)
    assert bars.line() == "documents: 3, 0 s so far"


def test_a_line_is_said_every_so_often_and_no_more_at_the_end(messages, monkeypatch):
    monkeypatch.setattr(progress, "A_MINUTE", 0.02)
    with Bars() as bars:
        bars.count("documents", 5)(2)
        time.sleep(0.2)
        heard = len(messages)
    assert heard >= 3
    assert set(messages) == {"documents: 2 of 5 (40%), 0 s so far"}
    time.sleep(0.1)
    assert len(messages) <= heard + 1


def test_nobody_hears_lines_of_a_call_that_is_not_shown(messages, monkeypatch):
    monkeypatch.setattr(progress, "A_MINUTE", 0.02)
    with Bars(shown=False) as bars:
        bars.count("documents", 5)(2)
        time.sleep(0.1)
    assert messages == []
