"""What a call of the Python API gives back: an object that shows itself, and turns into a data frame or plain values.

Every result has these: `repr` in one line, `print` and a notebook show what the command prints, `to_dict()` gives
plain values for programs, `to_frame()` a data frame of pandas.
"""

import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sparse_adapt.errors import MissingPackageError
from sparse_adapt.report.html.page import fragment, written
from sparse_adapt.report.html.parts import Page, Part, Prose, Section
from sparse_adapt.report.messages import SafeConsole
from sparse_adapt.report.tables import Row

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import RenderableType

WIDTH = 100  # characters of a result that is printed or shown in a notebook
PAGE = (
    "<pre style=\"white-space:pre;overflow-x:auto;line-height:normal;font-family:Menlo,'DejaVu Sans Mono',"
    "consolas,'Courier New',monospace\">{code}</pre>"
)


class Result(ABC):
    """A result that shows itself."""

    __slots__ = ()

    @property
    @abstractmethod
    def headline(self) -> str:
        """The result in one line."""

    @abstractmethod
    def rows(self) -> Sequence[Row]:
        """The rows of its data frame, each with the same keys."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Everything that was found, as plain objects, lists and numbers."""

    @abstractmethod
    def renderable(self) -> "RenderableType":
        """What the command prints of it."""

    def sections(self) -> Sequence[Section]:
        """The result as sections of a page; none where it is shown as the command prints it."""
        return ()

    def page(self, title: str, lead: str = "") -> str:
        """The result as a page that needs no network and no script. Raises ValueError where it has no sections."""
        sections = self.sections()
        if not sections:
            raise ValueError(f"{type(self).__name__} has no page")
        return written(Page(title, sections, lead or self.headline))

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
        console = SafeConsole(
            file=io.StringIO(),
            width=WIDTH,
            force_jupyter=False,  # or a notebook shows an empty box beside it, and gets signs for colours
            highlight=False,
            markup=False,
            emoji=False,
        )
        with console.capture() as captured:
            console.print(self.renderable())
        return "\n".join(line.rstrip() for line in captured.get().rstrip().split("\n"))

    def _repr_html_(self) -> str:
        sections = self.sections()
        if sections:
            parts: list[Part] = []
            for section in sections:
                parts += [Prose(section.title, "title"), *section.parts]
            return fragment(parts)
        console = SafeConsole(
            file=io.StringIO(),
            width=WIDTH,
            record=True,
            force_terminal=True,  # or styles are dropped
            force_jupyter=False,
            color_system="truecolor",
            highlight=False,
            markup=False,
            emoji=False,
        )
        console.print(self.renderable())
        return console.export_html(inline_styles=True, code_format=PAGE)
