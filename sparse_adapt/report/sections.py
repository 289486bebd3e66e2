"""The one description of a report: sections, each with parts, for a terminal, a page and a notebook alike.

`terminal` shows sections on a terminal, `html` writes them as a page. Every string but a picture's SVG is data: neither
takes one for markup. `charts` draws pictures; a terminal leaves them out.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

from sparse_adapt.report.tables import Column, Row, Table, cell, formatted

Tone = Literal["", "good", "bad", "quiet", "title"]
SHADES = 10  # of a heat map
WIDTHS = 100  # of a bar
LONG = 24  # characters of a bar's name that stand beside it
WORD = 12  # characters of a word that fit there unbroken
GOES_ON = "##"
HERE = "<- here"  # beside what a report is about, where no colour says so


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
    """Names, each with a value. `tones`: whether each is good or bad, where something says so."""

    kind: ClassVar[str] = "facts"
    pairs: Sequence[tuple[str, str]]
    tones: Sequence[Tone] = ()

    def toned(self) -> list[tuple[str, str, Tone]]:
        """Each name with its value and its tone."""
        tones: Sequence[Tone] = self.tones or [""] * len(self.pairs)
        return [(name, value, tone) for (name, value), tone in zip(self.pairs, tones, strict=True)]


class ShownCell(NamedTuple):
    """What a cell of a page shows, whether it is a number, where it leads, and whether it is part of a row above."""

    text: str
    number: bool
    link: str
    part: bool


@dataclass(frozen=True, slots=True)
class TableRows:
    """A table. `links`: for the key of a column, the key of the row's field that holds where its cell leads."""

    kind: ClassVar[str] = "rows"
    table: Table
    links: Mapping[str, str] = field(default_factory=dict)

    def cells(self) -> list[list[ShownCell]]:
        """Each row's cells; a name that begins with spaces is part of a row above."""
        return [[self._cell(row, each) for each in self.table.columns] for row in self.table.rows]

    def _cell(self, row: Row, column: Column) -> ShownCell:
        shown, number = formatted(cell(row, column), column), column.kind not in ("text", "token")
        link = str(row.get(self.links.get(column.key, ""), "") or "")
        return ShownCell(shown.strip(), number, link, not number and shown.startswith(" "))


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing as SVG, which `charts` makes of data, and the same in words; a terminal leaves it out."""

    kind: ClassVar[str] = "picture"
    svg: str
    description: str


@dataclass(frozen=True, slots=True)
class Pictures:
    """Drawings side by side, as many in a row as there is room for."""

    kind: ClassVar[str] = "pictures"
    each: Sequence[Picture]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Warm:
    """One token of a text, how warm it is from 0 to 1, and its figure; a token without warmth has it on terminals."""

    text: str
    warmth: float
    figure: str = ""
    marked: bool = False
    place: int | None = None  # in the text

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
    """A text whose tokens are as dark as they count; on a page the figure of a warm one stands behind it."""

    kind: ClassVar[str] = "heat"
    title: str
    tokens: Sequence[Warm]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Bar:
    """A name, a figure, and its share from 0 to 1 of the longest bar.

    `product`: what the figure is the product of, such as `1.5 x 2.0`. `rank`: a place before the name.
    """

    name: str
    figure: str
    share: float
    note: str = ""
    new: bool = False
    link: str = ""
    product: str = ""
    rank: int | None = None

    @property
    def width(self) -> int:
        """The width of the style sheet."""
        return round(WIDTHS * min(1.0, max(0.0, self.share)))

    @property
    def wide(self) -> bool:
        """Whether the name stands above the bar, because a word of it would break beside the bar."""
        return any(len(word) > WORD for word in self.name.split())


@dataclass(frozen=True, slots=True)
class BarList:
    """Names with bars. `total`: the score that their figures sum to, where they do."""

    kind: ClassVar[str] = "bars"
    title: str
    bars: Sequence[Bar]
    note: str = ""
    total: str = ""

    @property
    def long(self) -> bool:
        """Whether the names need lines of their own: all of them where one does."""
        return any(len(bar.name) > LONG for bar in self.bars)

    @property
    def sums(self) -> bool:
        """Whether figures stand there with the products that make them."""
        return any(bar.product for bar in self.bars)


@dataclass(frozen=True, slots=True)
class RankedDocument:
    """One document of a ranking: its parts are the tokens that it shares with the query."""

    name: str
    title: str
    score: str
    relevant: bool | None
    bars: Sequence[Bar]
    link: str = ""
    open: bool = False

    @property
    def shared(self) -> BarList:
        """The tokens as bars."""
        return BarList("", self.bars, total=self.score)


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one model finds for a query."""

    name: str
    documents: Sequence[RankedDocument]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Rankings:
    """Two rankings, side by side where there is room."""

    kind: ClassVar[str] = "rankings"
    each: Sequence[Ranking]


@dataclass(frozen=True, slots=True)
class CommandText:
    """A command line, or the lines of a file or of several commands, to be copied."""

    kind: ClassVar[str] = "command"
    text: str

    @property
    def pieces(self) -> list[str]:
        """The text in pieces: each second one is the name of an option, which stays on its line."""
        return re.split(r"(?<!\S)(--[\w-]+)", self.text)


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
    """One field of a form. `range`: least, most and step of a slider; `ends`: what its least and its most mean."""

    name: str
    label: str
    value: str = ""
    range: tuple[float, float, float] | None = None
    hidden: bool = False
    ends: tuple[str, str] = ("", "")


@dataclass(frozen=True, slots=True)
class WebForm:
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
    | TableRows
    | Picture
    | Pictures
    | Heat
    | BarList
    | Rankings
    | CommandText
    | Beside
    | Fold
    | WebForm
)


@dataclass(frozen=True, slots=True)
class Section:
    """Parts under a heading of their own, or under none. `name` is the anchor of a page that leads to it.

    `detail`: whether it goes further than a terminal should, and stands on pages and in notebooks alone.
    """

    name: str
    title: str
    parts: Sequence[Part]
    lead: str = ""
    detail: bool = False


@dataclass(frozen=True, slots=True)
class WebPage:
    """A whole page. `links` lead to other pages, by their names; `here` is the name of the one that it belongs to."""

    title: str
    sections: Sequence[Section]
    lead: str = ""
    foot: str = ""
    links: Sequence[tuple[str, str]] = ()
    here: str = ""


def untitled(*parts: Part | Table | str) -> tuple[Section, ...]:
    """A short report as one section without a heading: a string is a paragraph, a table its rows."""
    return (Section("report", "", [_part(each) for each in parts]),)


def _part(part: Part | Table | str) -> Part:
    if isinstance(part, str):
        return Prose(part)
    return TableRows(part) if isinstance(part, Table) else part
