"""What a call of the Python API gives back: an object that shows itself, and turns into a data frame or plain values.

Every result has these: `repr` in one line, `print` and a notebook show what the command prints, `to_dict()` gives
plain values for programs, `to_frame()` a data frame of pandas.
"""

import io
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sparse_adapt.errors import MissingPackageError
from sparse_adapt.registry import registry
from sparse_adapt.report.sections import Section, WebPage
from sparse_adapt.report.tables import Row

if TYPE_CHECKING:
    from pandas import DataFrame
    from rich.console import RenderableType

WIDTH = 100  # characters of a result that is printed


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
    def to_dict(self) -> dict[str, object]:
        """Everything that was found, as plain objects, lists and numbers."""

    @abstractmethod
    def sections(self) -> Sequence[Section]:
        """The result as a person reads it: the one description that a terminal, a page and a notebook show."""

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
