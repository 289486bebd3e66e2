"""Where a command's words go: data to standard output, the rest to standard error.

Nothing is markup, and nothing that a file holds can steer the terminal.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.text import Text

from sparse_adapt.files.processes import is_main
from sparse_adapt.files.writing import plain_number
from sparse_adapt.report.messages import SafeConsole
from sparse_adapt.report.messages import say as say
from sparse_adapt.report.printable import printable, printable_json

if TYPE_CHECKING:
    pass

PIPE_WIDTH = 120  # of a table that no terminal shows


def show(renderable: RenderableType) -> None:
    """Data for people."""
    wide = None if sys.stdout.isatty() or "COLUMNS" in os.environ else PIPE_WIDTH
    console = SafeConsole(highlight=False, markup=False, emoji=False, width=wide, quiet=not is_main())
    if isinstance(renderable, str):
        console.print(Text(printable(renderable)), soft_wrap=True)
    else:
        console.print(renderable, crop=False)


def show_json(content: object) -> None:
    """Data for programs."""
    if is_main():
        ascii_alone = "utf" not in (sys.stdout.encoding or "").lower()
        text = json.dumps(content, indent=2, ensure_ascii=ascii_alone, default=_plain)
        sys.stdout.write(printable_json(text) + "\n")


def _plain(value: object) -> object:
    plain = plain_number(value)
    return str(value) if plain is value else plain


def wrote(path: Path, what: str) -> None:
    """What a command left behind."""
    say(f"wrote {path} ({what})")


def then(lines: Sequence[str]) -> None:
    """Say what to run next; nothing where there is nothing."""
    if lines:
        say("next:")
    for line in lines:
        say(f"  {line}")
