"""How far a long piece of work is: bars in a terminal, a line a minute where nobody sees bars.

The time that remains follows from the pace of this run: work that was done before counts as done, not towards the pace.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType
from typing import Protocol, Self, TypeVar

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.progress import (
    Progress as RichProgress,
)
from rich.text import Text

from sparse_adapt.report.messages import messages, say

T = TypeVar("T")
LONG = 60.0  # seconds that are worth a warning
SEEN = 10.0  # seconds of work before an estimate is one: the first steps are slower than the others
UNDRAWN = TaskID(-1)
PREPARING = "preparing"
A_MINUTE = 60.0  # seconds between two lines where nobody sees bars
SOON = 1.0  # seconds before bars are drawn: what is done by then leaves nothing in a terminal or a notebook


Progress = Callable[[int], None]
"""Hears how many more are done."""

ProgressFor = Callable[[str, int | None], Progress]
"""What is counted, and how many there are where that is known -> who hears of it."""


class Before(int):
    """So many that were done before: they count as done, and say nothing of how fast the work goes."""


def no_progress(more: int) -> None:
    """Nobody waits."""


def no_progress_for(what: str, total: int | None = None) -> Progress:
    """Nobody hears."""
    return no_progress


def passing(what: str, total: int) -> Progress:
    """A bar of the command that runs, until so many are done: for work too deep within it to be handed a bar."""
    bars = _RUNNING.get()
    return no_progress if bars is None else bars.passing(what, total)


def remark(text: str) -> None:
    """A line of words of the command that runs, where anybody hears it: for work too deep in it to hold bars."""
    bars = _RUNNING.get()
    if bars is not None:
        bars.say(text)


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def progress_bars(progress: bool | None = None) -> "Bars":
    """The bars of one call: shown if `progress` says so; by default in a terminal and in a notebook."""
    return Bars(shown=is_interactive() if progress is None else progress)


def is_interactive() -> bool:
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
    def message(self) -> str:
        """What was done, in words."""

    @property
    def epochs(self) -> Sequence[str]:
        """A line for each pass over the texts."""


class Bars:
    """The bars of one command or call. As a listener of a run it has one for each stage.

    shown: whether anybody sees bars and hears what is said.
    """

    def __init__(self, *, shown: bool = True) -> None:
        self.shown = shown
        self.drawn = shown and is_interactive() and _can_draw()
        self.bars = RichProgress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            _Remaining(),
            TextColumn("{task.fields[note]}", markup=False),
            console=messages(),
            disable=not self.drawn,
        )
        self.begun = time.monotonic()
        self.works: list[_Work] = []
        self.ended, self.starting = Event(), Lock()
        self.before: Bars | None = None

    def say(self, text: str) -> None:
        """One line of words, where anybody hears it."""
        if self.shown:
            say(text)

    def __enter__(self) -> Self:
        self.before = _RUNNING.get()
        _RUNNING.set(self)
        if self.shown:
            Thread(target=self._draw if self.drawn else self._tell, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self.starting:
            self.ended.set()
        self.bars.stop()
        _RUNNING.set(self.before)

    def begin(self, stage: str) -> Callable[[int, int, Mapping[str, float]], None]:
        """A bar for a stage; what is returned takes each step, the number of steps, and the loss terms."""
        work = self._add(stage, None, PREPARING)

        def step(number: int, steps: int, values: Mapping[str, float]) -> None:
            if work.total is None:  # a resumed stage begins in its middle
                work.total = steps
                work.hear(Before(number - 1))
                self.bars.reset(work.task, total=steps, completed=number - 1)
            work.note = f"loss {values['loss']:.3g}" if "loss" in values else ""
            self._hear(work, number - work.done)

        return step

    def end(self, stage: str, outcome: Ended) -> None:
        """What a stage did, where its bar was if it had no steps."""
        for work in [each for each in self.works if each.what == stage and each.total is None]:
            self._remove(work)
        for each in (*outcome.epochs, outcome.message):
            self.say(f"{outcome.folder.name}: {each}")

    def count(self, what: str, total: int | None = None) -> Progress:
        """A bar for things of one kind; what is returned takes how many more are done."""
        work = self._add(what, total)
        return lambda number: self._hear(work, number)

    def passing(self, what: str, total: int) -> Progress:
        """The same, which leaves no bar once all of them are done, and has none for nothing."""
        if not total:
            return no_progress
        work = self._add(what, total)

        def advance(number: int) -> None:
            self._hear(work, number)
            if work.done == total:
                self._remove(work)
                self._prepared(f"{total:,} {what}")

        return advance

    def counted(self, items: Iterable[T], what: str) -> Iterator[T]:
        """The items as they come, counted."""
        more = self.count(what)
        for item in items:
            yield item
            more(1)

    def _add(self, what: str, total: int | None, note: str = "") -> "_Work":
        work = _Work(what, total, note)
        work.task = self.bars.add_task(what, total=total, note=note, work=work)
        self.works.append(work)
        return work

    def _remove(self, work: "_Work") -> None:
        self.works.remove(work)
        self.bars.remove_task(work.task)

    def _prepared(self, what: str) -> None:
        """What a stage that is still preparing has behind it."""
        for work in self.works:
            if work.note.startswith(PREPARING):
                work.note = f"{PREPARING}: {what}"
                self.bars.update(work.task, note=work.note)

    def _hear(self, work: "_Work", number: int) -> None:
        """More of a piece of work is done; what takes long is said once, as soon as that can be told."""
        work.hear(number)
        self.bars.update(work.task, completed=work.done, note=work.note)
        remaining = work.remaining()
        if remaining is not None and not work.announced:
            work.announced = True
            if remaining > LONG:
                self.say(f"{work.what}: about {max(2, round(remaining / 60))} minutes to go")

    def _draw(self) -> None:
        """Start to draw the bars, once the work has taken a while."""
        self.ended.wait(SOON)
        with self.starting:
            if not self.ended.is_set():
                self.bars.start()

    def _tell(self) -> None:
        """Say every minute how far the work is."""
        while not self.ended.wait(A_MINUTE):
            self.say(self.line())

    def line(self) -> str:
        """How far the work is, in a line: its latest part, how much of it, how long it took and takes still."""
        open_works = [work for work in self.works if work.done != work.total]
        if not open_works:
            return f"working, {duration(time.monotonic() - self.begun)} so far"
        return max(open_works, key=lambda work: work.advance).line()


_RUNNING: ContextVar[Bars | None] = ContextVar("running", default=None)


@dataclass(slots=True)
class _Work:
    """One piece of work: how much of it is done, and how fast that went in this run."""

    what: str
    total: int | None
    note: str = ""
    done: int = 0
    announced: bool = False  # whether it was said how long it takes
    begun: float = field(default_factory=lambda: time.monotonic())
    advance: float = field(default_factory=lambda: time.monotonic())
    first: tuple[float, int] | None = (
        None  # when work of this run was first heard of, and how much was done then
    )
    task: TaskID = UNDRAWN

    def hear(self, number: int) -> None:
        """Note that so many more are done."""
        self.done += number
        if isinstance(number, Before):
            return
        self.advance = time.monotonic()
        if self.first is None:
            self.first = self.advance, self.done

    def remaining(self) -> float | None:
        """Seconds until all is done, by the pace of this run; None where that can't be told yet."""
        if self.total is None or self.first is None:
            return None
        since, before = self.first
        spent = self.advance - since
        if spent < SEEN or self.done <= before:
            return None
        left = spent * (self.total - self.done) / (self.done - before)
        return max(0.0, left - (time.monotonic() - self.advance))

    def line(self) -> str:
        """What it is, how much of it is done, since when, how long it takes still, and what else is known."""
        parts = [f"{duration(time.monotonic() - self.begun)} so far"]
        remaining = self.remaining()
        if remaining is not None:
            parts.append(f"about {duration(remaining)} to go")
        if self.note:
            parts.append(self.note)
        if self.total is None:
            much = f"{self.done:,}, " if self.done else ""
            return f"{self.what}: {much}{', '.join(parts)}"
        share = self.done / max(1, self.total)
        return f"{self.what}: {self.done:,} of {self.total:,} ({share:.0%}), {', '.join(parts)}"


class _Remaining(ProgressColumn):
    """The time that remains, by the pace of this run."""

    def render(self, task: Task) -> Text:
        """Hours, minutes and seconds."""
        remaining = task.fields["work"].remaining()
        if remaining is None:
            return Text("-:--:--", style="progress.remaining")
        minutes, seconds = divmod(round(remaining), 60)
        return Text(f"{minutes // 60}:{minutes % 60:02}:{seconds:02}", style="progress.remaining")
