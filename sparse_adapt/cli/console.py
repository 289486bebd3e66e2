"""Where a command's words go: data to standard output, the rest to standard error.

Nothing is markup, and nothing that a file holds can steer the terminal.
"""

import json
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from sparse_adapt.files.processes import is_main
from sparse_adapt.report.printable import CONTROL, printable, printable_json, printable_line

if TYPE_CHECKING:
    from sparse_adapt.report.tables import Table

PIPE_WIDTH = 120  # of a table that no terminal shows


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


def show(renderable: RenderableType) -> None:
    """Data for people."""
    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    console = SafeConsole(highlight=False, markup=False, emoji=False, width=wide, quiet=not is_main())
    if isinstance(renderable, str):
        console.print(Text(printable(renderable)), soft_wrap=True)
    else:
        console.print(renderable)


def show_table(table: "Table") -> None:
    """A table for people."""
    from sparse_adapt.report.tables import to_rich

    show(to_rich(table))


def show_json(content: object) -> None:
    """Data for programs."""
    if is_main():
        text = json.dumps(content, indent=2, ensure_ascii=False, default=_plain)
        sys.stdout.write(printable_json(text) + "\n")


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever a result holds
    return value.item() if hasattr(value, "item") else str(value)


def wrote(path: Path, what: str) -> None:
    """What a command left behind."""
    say(f"wrote {path} ({what})")


def then_measure(model: Path, corpus: str, baseline: str, vectors: str) -> None:
    """What to run after a stage: measure its model, and export a sparse one's vectors to a folder beside it."""
    from sparse_adapt.model.layout import is_dense

    measured = ["evaluate", "--model", str(model), "--collection", corpus, "--baseline", baseline]
    exported = ["export", "anserini", "--model", str(model), "--corpus", corpus, "-o", vectors]
    then(*[measured] if is_dense(model) else [measured, exported])


def then(*commands: Iterable[str]) -> None:
    """What to run next, ready to be copied."""
    say("next:")
    for command in commands:
        say(f"  {shlex.join(['sparse-adapt', *command])}")
