"""What a call gives back that a command may carry out: the result, what it wrote, and what to run next."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparse_adapt.report.results import Result
from sparse_adapt.report.sections import Part, Section, untitled
from sparse_adapt.report.tables import Row, Table

if TYPE_CHECKING:
    from rich.console import RenderableType


@dataclass(frozen=True, slots=True, kw_only=True)
class After:
    """What a command says after its result, on standard error, and what a page of the result is called.

    notes: what its owner should know. wrote: each place with what it holds. run: a run's folder, whose page is written.
    next_steps: commands or lines of Python that go on from here. failed: why the command ends with status 1.
    shows: whether the result itself goes to standard output; where it doesn't, what was written says all.
    """

    notes: Sequence[str] = ()
    wrote: Sequence[tuple[Path, str]] = ()
    run: Path | None = None
    next_steps: Sequence[str] = ()
    title: str = ""
    lead: str = ""
    failed: str = ""
    shows: bool = True


class CommandResult(Result):
    """A result that also says what was written and what goes on from here."""

    __slots__ = ()

    def after(self) -> After:
        """What a command says after it."""
        return After()

    def data(self) -> object:
        """What a command prints with --json."""
        return self.to_dict()


@dataclass(frozen=True, repr=False)
class Written(CommandResult):
    """A file or folder that a call wrote, with what it holds in words; a command prints it as JSON alone."""

    path: Path
    contents: str
    next_steps: Sequence[str] = ()
    notes: Sequence[str] = ()
    figures: dict[str, object] = field(default_factory=dict)
    is_run: bool = False

    @property
    def headline(self) -> str:
        """The place, and what it holds."""
        return f"{self.path}: {self.contents}"

    def to_dict(self) -> dict[str, object]:
        """The place, what it holds, and figures."""
        return {"path": str(self.path), "contents": self.contents, **self.figures}

    def rows(self) -> Sequence[Row]:
        """One row."""
        return [self.to_dict()]

    def sections(self) -> Sequence[Section]:
        """What was written."""
        return untitled(self.headline)

    def after(self) -> After:
        """The place, what its owner should know, and what goes on from here."""
        run = self.path if self.is_run else None
        wrote = [(self.path, self.contents)]
        return After(notes=self.notes, wrote=wrote, run=run, next_steps=self.next_steps, shows=False)


@dataclass(frozen=True, repr=False)
class Tables(CommandResult):
    """Tables and lines beside the same as data, as commands show them that have no class of their own for it."""

    content: Any
    shown: Sequence[Part | Table | str]
    ending: After = After()
    heading: str = ""

    @property
    def headline(self) -> str:
        """What was looked at."""
        return self.heading

    def to_dict(self) -> Any:  # noqa: ANN401 - what JSON holds
        """The content as data."""
        return self.content

    def rows(self) -> Sequence[Row]:
        """The content as rows, where it is a list of them."""
        return self.content if isinstance(self.content, list) else [self.content]

    def sections(self) -> Sequence[Section]:
        """The tables, one below the other."""
        return untitled(*self.shown)

    def renderable(self) -> "RenderableType":
        """The same for a terminal; a text by itself, such as a file to fill in, keeps its lines."""
        alone = self.shown[0] if len(self.shown) == 1 else None
        return alone if isinstance(alone, str) else super().renderable()

    def after(self) -> After:
        """What was written, and what goes on from here."""
        return self.ending
