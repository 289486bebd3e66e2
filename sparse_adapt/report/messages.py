"""Where words and progress go: standard error, of the first process where there are several.

What a command didn't read of its texts is said once, when it ends: ends of long texts, and texts that hold nothing.
Nothing is markup, and nothing that a file holds can steer the terminal.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
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
    signs = list(CONTROL.finditer(text.plain))
    if not signs:
        return text
    parts = text.divide(sorted({place for sign in signs for place in sign.span()}))
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


# -- what a command didn't read of its texts ------------------------------------------------------


@dataclass(slots=True)
class Unread:
    """Texts that were cut, by their hashes: how many tokens of each; how long a text may be; texts without a word.

    `told`: whether it was said beforehand how much of the texts is read, or exact words read them whole.
    """

    cut: dict[int, int] = field(default_factory=dict)
    longest: set[int] = field(default_factory=set)
    blank: int = 0
    told: bool = False

    def lines(self) -> list[str]:
        """What there is to say."""
        lines = []
        if self.cut and not self.told:
            texts = "1 text is" if len(self.cut) == 1 else f"{len(self.cut):,} texts are"
            limit = " or ".join(f"{each:,}" for each in sorted(self.longest))
            lines.append(
                f"{texts} longer than the {limit} tokens that the model reads: "
                f"{sum(self.cut.values()):,} tokens at their ends were left out"
            )
        if self.blank:
            texts = "1 text holds" if self.blank == 1 else f"{self.blank:,} texts hold"
            lines.append(f"{texts} no word, and so nothing finds {'it' if self.blank == 1 else 'them'}")
        return lines


_unread = Unread()


def note_cut(text: str, tokens: int, longest: int) -> None:
    """Note that so many tokens at a text's end aren't read. A text counts once, however often it is encoded."""
    _unread.cut[hash(text)] = tokens
    _unread.longest.add(longest)


def note_told() -> None:
    """Note that nothing has to be said of cut texts at the end: it was said before, or exact words read them whole."""
    _unread.told = True


def note_blank(texts: int) -> None:
    """Note that so many texts hold no word."""
    _unread.blank += texts


def tell_unread() -> None:
    """Say what was noted since the last time."""
    lines = _unread.lines()
    forget_unread()
    for line in lines:
        say(line)


def forget_unread() -> None:
    """Begin with nothing noted, whatever else this process did before."""
    _unread.cut.clear()
    _unread.longest.clear()
    _unread.told = False
    _unread.blank = 0
