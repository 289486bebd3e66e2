"""What a reader sees of HTML: its title, and its text without tags, scripts and the names of signs."""

import re
from html.parser import HTMLParser
from typing import NamedTuple

ELEMENT = re.compile(
    r"</(?:a|article|b|body|code|div|em|font|h[1-6]|head|html|i|li|ol|p|pre|section|span|strong|table|td|th|tr|u|ul)\s*>"
    r"|<(?:br|hr|p|img|input|link|meta|div|span|a|table)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
WITHIN_LINES = frozenset(
    {"a", "abbr", "b", "code", "em", "font", "i", "small", "span", "strong", "sub", "sup", "u"}
)
UNSEEN = frozenset({"script", "style", "head", "template", "noscript"})


class Page(NamedTuple):
    """Title and text."""

    title: str
    text: str


def is_page(text: str) -> bool:
    """Whether a text is HTML: it opens and ends with tags, or holds three tags that only HTML has."""
    if "<" not in text or ">" not in text:
        return False
    found = sum(1 for _ in ELEMENT.finditer(text))
    stripped = text.strip()
    return found >= 3 or (found >= 1 and stripped.startswith("<") and stripped.endswith(">"))


def text_of_page(markup: str) -> Page:
    """What a reader sees of a page or a part of one, in single spaces."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return Page(" ".join("".join(reader.title).split()), " ".join("".join(reader.parts).split()))


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.title: list[str] = []
        self.parts: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag in UNSEEN or tag == "title":
            self.open.append(tag)
        self._part(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self.open:
            del self.open[self.open.index(tag) :]
        self._part(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "title":
            self.title.append(data)
        elif not self.open:
            self.parts.append(data)

    def _part(self, tag: str) -> None:
        """Words of two blocks are two words."""
        if tag not in WITHIN_LINES:
            self.parts.append(" ")
