"""Progress bars with the time that remains, and a line of warning before anything that takes minutes."""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self, TypeVar

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from sparse_adapt.report.messages import messages, say
from sparse_adapt.report.watching import Heard

T = TypeVar("T")
LONG = 60.0  # seconds that are worth a warning
SEEN = 3.0  # seconds of work before an estimate is one


def watching(progress: bool | None = None) -> "Bars":
    """The bars of one call: shown if `progress` says so; by default in a terminal and in a notebook."""
    return Bars(shown=is_watched() if progress is None else progress)


def is_watched() -> bool:
    """Whether somebody looks on: in a terminal, or in a notebook."""
    return messages().is_terminal or messages().is_jupyter


def _can_draw() -> bool:
    """Whether bars can move; a notebook needs ipywidgets for them, and has lines of words without."""
    return not messages().is_jupyter or find_spec("ipywidgets") is not None


class Ended(Protocol):
    """What a stage has done: where its model is, and a sentence about it."""

    @property
    def folder(self) -> Path:
        """The folder of the model."""

    @property
    def said(self) -> str:
        """What was done, in words."""


class Bars:
    """The bars of one command or call. As a listener of a run it has one for each stage.

    shown: whether anybody sees bars and hears what is said.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self.shown = shown
        self.bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=messages(),
            disable=not (shown and _can_draw()),
        )

    def say(self, text: str) -> None:
        """One line of words, where anybody hears it."""
        if self.shown:
            say(text)

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def begin(self, stage: str) -> Callable[[int, int, Mapping[str, float]], None]:
        """A bar for a stage; what is returned takes each step, the number of steps, and the loss terms."""
        task = self.bars.add_task(stage, total=None, note="preparing")
        estimate = _Estimate(stage, self.say)
        started = False

        def step(number: int, steps: int, values: Mapping[str, float]) -> None:
            nonlocal started
            if not started:  # a resumed stage begins in its middle
                self.bars.reset(task, total=steps, completed=number - 1, note="")
                started = True
            note = f"loss {values['loss']:.3g}" if "loss" in values else ""
            self.bars.update(task, completed=number, note=note)
            estimate.hear(number, steps)

        return step

    def end(self, stage: str, outcome: Ended) -> None:
        """What a stage did, where its bar was if it had no steps."""
        for task in self.bars.tasks:
            if task.description == stage and task.total is None:
                self.bars.remove_task(task.id)
        self.say(f"{outcome.folder.name}: {outcome.said}")

    def count(self, what: str, total: int | None = None) -> Heard:
        """A bar for things of one kind; what is returned takes how many more are done."""
        task = self.bars.add_task(what, total=total, note="")
        estimate = _Estimate(what, self.say)
        done = 0

        def more(number: int) -> None:
            nonlocal done
            done += number
            self.bars.update(task, completed=done)
            if total is not None:
                estimate.hear(done, total)

        return more

    def watch(self, items: Iterable[T], what: str) -> Iterator[T]:
        """The items as they come, counted."""
        more = self.count(what)
        for item in items:
            yield item
            more(1)


class _Estimate:
    """How long something takes, said once if it is long, as soon as that can be told."""

    def __init__(self, what: str, said: Callable[[str], None]) -> None:
        self.what, self.said = what, said
        self.first: tuple[float, int] | None = None
        self.told = False

    def hear(self, done: int, total: int) -> None:
        """Note that so much is done."""
        now = time.monotonic()
        if self.first is None:
            self.first = now, done
        started, before = self.first
        if self.told or now - started < SEEN or done <= before:
            return
        self.told = True
        remaining = (now - started) * (total - done) / (done - before)
        if remaining > LONG:
            self.said(f"{self.what}: about {max(2, round(remaining / 60))} minutes to go")
