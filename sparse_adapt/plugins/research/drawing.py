"""Pictures by matplotlib, and tables on a page of Markdown."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from sparse_adapt.errors import MissingExtraError
from sparse_adapt.report.tables import Table, to_markdown

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def empty_figure(width: float, height: float) -> "Figure":
    """A picture of so many inches to draw in. Raises MissingExtraError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("matplotlib", "plot") from error
    return Figure(figsize=(width, height), layout="constrained")


def markdown_of(tables: Iterable[Table]) -> str:
    """Each table under its title, with its note."""
    return "".join(
        f"## {table.title}\n\n{to_markdown(table)}\n{table.note}".rstrip() + "\n\n" for table in tables
    )
