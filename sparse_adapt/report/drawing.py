"""A sheet on which pictures are drawn as SVG: marks and words in the colours of the page, and axes of round numbers.

Colours are variables of the style sheet, so one picture serves a light page and a dark one. Every string becomes text
of an element or of an attribute, never markup. Places are pixels of the picture's own size, from the upper left.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple
from unicodedata import east_asian_width
from xml.etree import ElementTree

from sparse_adapt.report.printable import printable_line

INK, QUIET, LINE, GOOD, BAD = (f"var(--{name})" for name in ("ink", "quiet", "line", "good", "bad"))
SERIES = tuple(f"var(--{name})" for name in ("first", "second", "third", "fourth"))
FONT, SMALL = 13, 12
NARROW, WIDE = 0.6, 1.0  # of a letter, in sizes of its font
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)  # of a round axis, times a power of ten
CUT = "…"


class Scale(NamedTuple):
    """Numbers from `low` to `high`, which are round, as places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float
    step: float

    @classmethod
    def of(cls, values: Sequence[float], start: float, end: float, parts: int = 4) -> "Scale":
        """A scale that holds all values and 0, in about so many parts: half a picture makes no small change large."""
        low, high = min([0.0, *values]), max([0.0, *values])
        step = _round_step((high - low) / parts) if high > low else 1.0
        first = math.floor(low / step + 1e-9) * step
        return cls(first, max(first + step, math.ceil(high / step - 1e-9) * step), start, end, step)

    def at(self, value: float) -> float:
        """The place of a number."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """The places that are named, and their numbers in characters."""
        count = round((self.high - self.low) / self.step)
        decimals = max(0, -math.floor(math.log10(self.step) + 1e-9)) + (
            self.step * 10 % 5 != 0 and self.step < 1
        )
        values = [self.low + place * self.step for place in range(count + 1)]
        return [(self.at(value), f"{value:,.{decimals}f}") for value in values]


def _round_step(least: float) -> float:
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1 - 1e-9))


def width_of(text: str, size: int = SMALL) -> float:
    """About how wide a text is; no font is read."""
    return size * sum(WIDE if east_asian_width(sign) in "WF" else NARROW for sign in text)


def cut(text: str, width: float, size: int = SMALL) -> str:
    """As much of a text as fits a width."""
    shown = printable_line(text)
    if width_of(shown, size) <= width:
        return shown
    while shown and width_of(shown + CUT, size) > width:
        shown = shown[:-1]
    return shown.rstrip() + CUT


class Sheet:
    """What is drawn, element by element."""

    def __init__(self, width: float) -> None:
        self.width = width
        self.root = ElementTree.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img"})

    def add(self, name: str, words: str = "", tip: str = "", /, **attributes: object) -> None:
        """An element with its words, and what is said of it where a pointer rests."""
        named = {key.replace("_", "-"): _number(value) for key, value in attributes.items()}
        element = ElementTree.SubElement(self.root, name, named)
        element.text = printable_line(words) or None
        if tip:
            ElementTree.SubElement(element, "title").text = printable_line(tip)

    def text(self, x: float, y: float, words: str, /, **more: object) -> None:
        """Words that begin at a place, or end there (`text_anchor`)."""
        self.add("text", words, **{"x": x, "y": y, "fill": INK, "font_size": SMALL, **more})

    def rule(self, x1: float, y1: float, x2: float, y2: float, /, **more: object) -> None:
        """A straight line."""
        self.add("line", **{"x1": x1, "y1": y1, "x2": x2, "y2": y2, "stroke": LINE, **more})

    def head(self, title: str, unit: str) -> float:
        """The title and the unit above all; the place below them."""
        if title:
            self.text(0, FONT, title, font_size=FONT, font_weight=600)
        top = FONT + 6 if title else 0
        if unit:
            self.text(0, top + SMALL, unit, fill=QUIET)
        return top + (SMALL + 10 if unit else 6)

    def written(self, height: float, description: str) -> str:
        """The whole as SVG, with the same in words for whoever can't see it."""
        for key, value in (("width", self.width), ("height", height)):
            self.root.set(key, _number(value))
        self.root.set("viewBox", f"0 0 {_number(self.width)} {_number(height)}")
        self.root.set("font-family", "system-ui, sans-serif")
        self.root.set("aria-label", printable_line(description))
        return ElementTree.tostring(self.root, encoding="unicode")


def _number(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
