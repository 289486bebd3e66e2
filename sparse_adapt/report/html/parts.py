"""What a page is made of. Every string is data: the template escapes all of it, pictures alone are drawn here.

A page can be read without a script and without another file. Widths and shades are classes of the style sheet, so a
page that forbids inline styles shows the same.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from sparse_adapt.report.printable import printable
from sparse_adapt.report.tables import Table, formatted

Tone = Literal["", "good", "bad", "quiet", "title"]
SHADES = 10  # of a heat map
WIDTHS = 100  # of a bar
LONG = 24  # characters of a bar's name that stand beside it
GOES_ON = "##"


@dataclass(frozen=True, slots=True)
class Prose:
    """A paragraph."""

    kind: ClassVar[str] = "prose"
    text: str
    tone: Tone = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """Sentences in a list."""

    kind: ClassVar[str] = "listing"
    lines: Sequence[Prose]


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with what they stand for."""

    kind: ClassVar[str] = "facts"
    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Rows:
    """A table. `links`: for the key of a column, the key of the row's field that holds where its cell leads."""

    kind: ClassVar[str] = "rows"
    table: Table
    links: Mapping[str, str] = field(default_factory=dict)

    def cells(self) -> list[list[tuple[str, bool, str]]]:
        """Each row's cells: what is shown, whether it is a number, and where it leads."""
        columns = self.table.columns
        return [
            [
                (
                    formatted(row.get(each.key), each),
                    each.kind not in ("text", "token"),
                    str(row.get(self.links.get(each.key, ""), "") or ""),
                )
                for each in columns
            ]
            for row in self.table.rows
        ]


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing by `pictures`, and the same in words."""

    kind: ClassVar[str] = "picture"
    svg: str
    told: str


@dataclass(frozen=True, slots=True)
class Pictures:
    """Drawings side by side, as many in a row as there is room for."""

    kind: ClassVar[str] = "pictures"
    each: Sequence[Picture]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Warm:
    """One token of a text, how warm it is from 0 to 1, and what its figure says."""

    text: str
    warmth: float
    figure: str = ""
    marked: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether it is a piece that goes on the word before it, as WordPiece marks it."""
        return self.text.startswith(GOES_ON) and len(self.text) > len(GOES_ON)

    @property
    def shown(self) -> str:
        """The text without that mark."""
        return self.text.removeprefix(GOES_ON) if self.goes_on else self.text

    @property
    def shade(self) -> int:
        """The shade of the style sheet."""
        return round(SHADES * min(1.0, max(0.0, self.warmth)))


@dataclass(frozen=True, slots=True)
class Heat:
    """A text whose tokens are as dark as they count; the figure of a warm one stands behind it."""

    kind: ClassVar[str] = "heat"
    title: str
    tokens: Sequence[Warm]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A name, a figure, and its share from 0 to 1 of the longest bar."""

    name: str
    figure: str
    share: float
    note: str = ""
    new: bool = False
    link: str = ""

    @property
    def width(self) -> int:
        """The width of the style sheet."""
        return round(WIDTHS * min(1.0, max(0.0, self.share)))


@dataclass(frozen=True, slots=True)
class Bars:
    """Names with bars."""

    kind: ClassVar[str] = "bars"
    title: str
    bars: Sequence[Bar]
    note: str = ""

    @property
    def long(self) -> bool:
        """Whether the names need lines of their own: all of them where one does."""
        return any(len(bar.name) > LONG for bar in self.bars)


@dataclass(frozen=True, slots=True)
class Found:
    """One document of a ranking: its parts are the tokens that it shares with the query."""

    name: str
    title: str
    score: str
    relevant: bool | None
    bars: Sequence[Bar]
    link: str = ""
    rest: str = ""
    open: bool = False

    @property
    def shared(self) -> Bars:
        """The tokens as bars."""
        return Bars("", self.bars, self.rest)


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one model finds for a query."""

    name: str
    found: Sequence[Found]
    said: str = ""


@dataclass(frozen=True, slots=True)
class Rankings:
    """Two rankings, side by side where there is room."""

    kind: ClassVar[str] = "rankings"
    each: Sequence[Ranking]


@dataclass(frozen=True, slots=True)
class Command:
    """A command line or a file, to be copied."""

    kind: ClassVar[str] = "command"
    text: str


@dataclass(frozen=True, slots=True)
class Beside:
    """Parts side by side where there is room, else one below the other."""

    kind: ClassVar[str] = "beside"
    parts: "Sequence[Part]"


@dataclass(frozen=True, slots=True)
class Fold:
    """Parts that are shown when their line is opened, and on paper."""

    kind: ClassVar[str] = "fold"
    summary: str
    parts: "Sequence[Part]"
    open: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a form."""

    name: str
    label: str
    value: str = ""
    range: tuple[float, float, float] | None = None  # of a slider: least, most, step
    hidden: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """Fields and a button; `action` is where they are sent, as a question or, with `posts`, as an order."""

    kind: ClassVar[str] = "form"
    action: str
    fields: Sequence[Field]
    button: str
    posts: bool = False


Part = (
    Prose
    | Listing
    | Facts
    | Rows
    | Picture
    | Pictures
    | Heat
    | Bars
    | Rankings
    | Command
    | Beside
    | Fold
    | Form
)


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a page under a heading of its own; `name` is the anchor that leads to it."""

    name: str
    title: str
    parts: Sequence[Part]
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page. `links` lead to other pages, by their names."""

    title: str
    sections: Sequence[Section]
    lead: str = ""
    foot: str = ""
    links: Sequence[tuple[str, str]] = ()


def spelt(value: object) -> str:
    """Any value as a page may show it: signs that turn text around are spelt out."""
    return printable(str(value))
