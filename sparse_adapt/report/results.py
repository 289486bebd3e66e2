"""What a call gives back: an object that shows itself, and turns into a data frame or plain values.

Every result has these: `repr` in one line, `print` and a notebook show what the command prints, `to_dict()` gives
plain values for programs, `to_frame()` a data frame of pandas. It also holds what its command says after it.
"""

import io
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparse_adapt.errors import MissingPackageError
from sparse_adapt.registry import registry
from sparse_adapt.report.sections import Part, Section, WebPage, untitled
from sparse_adapt.report.tables import Row, Table

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import RenderableType

WIDTH = 100  # characters of a result that is printed


class Shown(ABC):
    """What shows itself, and what a command says after it on standard error.

    wrote: each place with what it holds. then: commands or lines of Python that go on from here. notes: what the owner
    should know. run_folder: of a run whose page is written. heading, lead: of a page that shows it. failed: why
    the command ends with status 1. quiet: whether what was written says all, and nothing goes to standard output.
    """

    __slots__ = ()
    wrote: Sequence[tuple[Path, str]] = ()
    then: Sequence[str] = ()
    notes: Sequence[str] = ()
    run_folder: Path | None = None
    heading: str = ""
    lead: str = ""
    failed: str = ""
    quiet: bool = False

    @property
    @abstractmethod
    def headline(self) -> str:
        """The result in one line."""

    @abstractmethod
    def rows(self) -> Sequence[Row]:
        """The rows of its data frame, each with the same keys."""

    @abstractmethod
    def to_dict(self) -> dict[str, object]:
        """Everything that was found, as plain objects, lists and numbers."""

    @abstractmethod
    def sections(self) -> Sequence[Section]:
        """The result as a person reads it: the one description that a terminal, a page and a notebook show."""

    def printed(self) -> object:
        """What a command prints with --json."""
        return self.to_dict()

    def renderable(self) -> "RenderableType":
        """What the command prints of it."""
        from sparse_adapt.report.terminal import rendered

        return rendered(self.sections())

    def page(self, title: str, lead: str = "") -> str:
        """The result as a page that needs no network and no script."""
        page: str = registry().find("renderers", "page")(
            WebPage(title, self.sections(), lead or self.headline)
        )
        return page

    def to_frame(self) -> "DataFrame":
        """The rows as a data frame of pandas. Raises MissingPackageError, with its pip line, without pandas."""
        try:
            import pandas
        except ImportError as error:
            raise MissingPackageError("pandas") from error
        return pandas.DataFrame([dict(row) for row in self.rows()])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline}>"

    def __str__(self) -> str:
        from sparse_adapt.report.messages import SafeConsole

        console = SafeConsole(
            file=io.StringIO(),
            width=WIDTH,
            force_jupyter=False,  # or a notebook shows an empty box beside it, and gets signs for colours
            highlight=False,
            markup=False,
            emoji=False,
        )
        with console.capture() as captured:
            console.print(self.renderable(), crop=False)
        return "\n".join(line.rstrip() for line in captured.get().rstrip().split("\n"))

    def _repr_html_(self) -> str:
        fragment: str = registry().find("renderers", "fragment")(self.sections())
        return fragment


class Result(Shown):
    """What a command found or wrote: `Result(headline, data, shown, wrote, then)`.

    The entries of its data, and further `fields` that a function names, are attributes: `made.path`. A field that is a
    `partial` is called when it is asked for. shown: sections, or the parts of one; by default the headline. rows: of
    the data frame; by default the data. as_json: what --json prints, where that is less than the data.
    """

    def __init__(
        self,
        headline: str,
        data: Any,  # noqa: ANN401 - what JSON holds
        shown: Iterable[Section | Part | Table | str] = (),
        wrote: Sequence[tuple[Path, str]] = (),
        then: Sequence[str] = (),
        *,
        rows: Sequence[Row] | None = None,
        as_json: Any = None,  # noqa: ANN401 - what JSON holds
        notes: Sequence[str] = (),
        run_folder: Path | None = None,
        heading: str = "",
        lead: str = "",
        failed: str = "",
        quiet: bool = False,
        **fields: object,
    ) -> None:
        self._headline, self._data, self._shown = headline, data, tuple(shown) or (headline,)
        self._rows, self._json, self._fields = rows, as_json, fields
        self.wrote, self.then, self.notes, self.run_folder = wrote, then, notes, run_folder
        self.heading, self.lead, self.failed, self.quiet = heading, lead, failed, quiet

    @property
    def headline(self) -> str:
        """The result in one line."""
        return self._headline

    def to_dict(self) -> Any:  # noqa: ANN401 - what JSON holds
        """Everything that was found, as plain objects, lists and numbers."""
        return self._data

    def rows(self) -> Sequence[Row]:
        """The rows of its data frame."""
        if self._rows is not None:
            return self._rows
        return self._data if isinstance(self._data, list) else [self._data]

    def sections(self) -> Sequence[Section]:
        """The result as a person reads it."""
        sections = [each for each in self._shown if isinstance(each, Section)]
        return sections or untitled(*(each for each in self._shown if not isinstance(each, Section)))

    def printed(self) -> object:
        """What a command prints with --json."""
        return self._data if self._json is None else self._json

    def renderable(self) -> "RenderableType":
        """What the command prints of it; a text of several lines, such as a file to fill in, keeps them."""
        alone = self._shown[0] if len(self._shown) == 1 else None
        return alone if isinstance(alone, str) and "\n" in alone else super().renderable()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of any field
        known = {} if name.startswith("_") else self._known()
        if name not in known:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = known[name]
        return value() if isinstance(value, partial) else value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._known()})

    def _known(self) -> dict[str, Any]:
        return {**(self._data if isinstance(self._data, Mapping) else {}), **self._fields}


def written(path: Path, contents: str, then: Sequence[str] = (), **figures: object) -> Result:
    """A file or folder that a call wrote, with what it holds in words; a command prints it as JSON alone."""
    data = {"path": str(path), "contents": contents, **figures}
    wrote = [(path, contents)]
    return Result(f"{path}: {contents}", data, (), wrote, then, quiet=True, path=path, figures=figures)
