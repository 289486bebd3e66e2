"""Loose texts as documents: what a reader sees of HTML, PDF, Markdown and plain text, in a folder or a field."""

import logging
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.lines import read_lines, say_taken
from sparse_adapt.errors import InputError, MissingExtraError, SparseAdaptError, first_line

PAGES = (".html", ".htm", ".xhtml")
PDF = ".pdf"
ENDINGS = (".txt", ".md", ".markdown", ".rst", PDF, *PAGES)
ELEMENT = re.compile(
    r"</(?:a|article|b|body|code|div|em|font|h[1-6]|head|html|i|li|ol|p|pre|section|span|strong|table|td|th|tr|u|ul)\s*>"
    r"|<(?:br|hr|p|img|input|link|meta|div|span|a|table)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
WITHIN_LINES = frozenset(
    {"a", "abbr", "b", "code", "em", "font", "i", "small", "span", "strong", "sub", "sup", "u"}
)
UNSEEN = frozenset({"script", "style", "head", "template", "noscript"})
HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*")


class LooseText(NamedTuple):
    """A text and its title, where it has one; a scanned page has no text."""

    title: str
    text: str


def loose_files(folder: Path) -> list[Path]:
    """The files of a folder, and of folders within, that hold texts; hidden ones don't count."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())
    return sorted(path for path in found if not _is_hidden(path.relative_to(folder)))


def read_loose(folder: Path) -> Iterator[tuple[str, LooseText]]:
    """Every text of a folder under its path in it. How many PDF files hold no text, being scanned, is said."""
    scanned = 0
    for path in loose_files(folder):
        name, ending = path.relative_to(folder).as_posix(), path.suffix.lower()
        if ending == PDF:
            page = read_pdf(path)
            scanned += not page.text
        else:
            page = _loose_text(ending, [text for _, text in read_lines(path)])
        yield name, page
    if scanned:
        say_taken(
            str(folder), f"{scanned:,} PDF files hold no text; scanned pages have to be recognised first"
        )


def _loose_text(ending: str, lines: list[str]) -> LooseText:
    """A text by its lines: of a page what a reader sees, of anything but plain text its first heading as title."""
    if ending in PAGES:
        return text_of_page("\n".join(lines))
    first = next((line for line in lines if line.strip()), "")
    heading = HEADING.fullmatch(first.strip()) if ending != ".txt" else None
    body = lines[lines.index(first) + 1 :] if heading else lines
    return LooseText(heading[1] if heading else "", "\n".join(body).strip())


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def is_page(text: str) -> bool:
    """Whether a text is HTML: it opens and ends with tags, or holds three tags that only HTML has."""
    if "<" not in text or ">" not in text:
        return False
    found = sum(1 for _ in ELEMENT.finditer(text))
    stripped = text.strip()
    return found >= 3 or (found >= 1 and stripped.startswith("<") and stripped.endswith(">"))


def text_of_page(markup: str) -> LooseText:
    """What a reader sees of a page or a part of one, in single spaces."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return LooseText(" ".join("".join(reader.title).split()), " ".join("".join(reader.parts).split()))


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


def read_pdf(path: Path) -> LooseText:
    """The text of a file's pages, a line each as they are printed.

    Raises InputError for a file that is broken or locked by a password, MissingExtraError without pypdf.
    """
    try:
        import pypdf
    except ImportError as error:
        raise MissingExtraError("pypdf", "files") from error
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it tells of every small fault that it mends
    try:
        reader = pypdf.PdfReader(path)
        if reader.is_encrypted and not reader.decrypt(""):
            raise InputError(path, "is locked by a password; save it without one")
        title = (reader.metadata.title if reader.metadata is not None else None) or ""
        text = "\n".join(page.extract_text() for page in reader.pages)
    except SparseAdaptError:
        raise
    except Exception as error:  # pypdf raises errors of all kinds for a file that isn't one
        raise InputError(path, f"broken PDF ({first_line(error)}); print it to PDF again") from error
    return LooseText(_unicode(str(title)).strip(), _unicode(text).strip())


def _unicode(text: str) -> str:
    """A text without halves of surrogate pairs, which fonts without a table of signs give."""
    return text.encode("utf-8", "ignore").decode()
