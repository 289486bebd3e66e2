"""Where words and progress go: standard error, of the first process where there are several.

Nothing is markup, and nothing that a file holds can steer the terminal.
"""

from collections.abc import Iterator
from functools import cache

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from sparse_adapt.files.processes import is_main
from sparse_adapt.report.printable import CONTROL, printable, printable_line


class SafeConsole(Console):
    """A console on which no text from a file can steer the terminal; see `sparse_adapt.report.printable`."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        """Segments of what is shown, with control signs spelt out. Rich's own control codes stay."""
        if isinstance(renderable, Text):
            renderable = _printable_text(renderable)  # before it is laid out, so that lines are broken right
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def _printable_text(text: Text) -> Text:
    """The same with control signs spelt out, each in the style of its place."""
    found = list(CONTROL.finditer(text.plain))
    if not found:
        return text
    parts = text.divide(sorted({place for sign in found for place in sign.span()}))
    spelt = text.blank_copy()
    for part in parts:
        shown = part.copy()
        if CONTROL.fullmatch(part.plain):
            style = part.spans[-1].style if part.spans else part.style
            shown = Text(printable(part.plain), style=style)
        spelt.append_text(shown)
    return spelt


@cache
def messages() -> Console:
    """For words and progress: standard error, of the first process where there are several."""
    return SafeConsole(stderr=True, highlight=False, markup=False, emoji=False, quiet=not is_main())


def say(text: str) -> None:
    """One line of words, never broken: a path in it can be copied."""
    messages().print(Text(printable_line(text)), soft_wrap=True)
