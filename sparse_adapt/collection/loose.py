"""A folder of loose texts as documents: plain text, Markdown, HTML and PDF, each file one document under its path."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.lines import read_lines
from sparse_adapt.collection.names import say_taken
from sparse_adapt.collection.pages import text_of_page
from sparse_adapt.collection.pdf import read_pdf

PAGES = (".html", ".htm", ".xhtml")
PDF = ".pdf"
ENDINGS = (".txt", ".md", ".markdown", ".rst", PDF, *PAGES)
HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*")


class LooseText(NamedTuple):
    """A file: its path in the folder, its title, if it has one, and its text."""

    name: str
    title: str
    text: str


def texts_in(folder: Path) -> list[Path]:
    """The files of a folder, and of folders within, that hold texts; hidden ones don't count."""
    found = (path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS and path.is_file())
    return sorted(path for path in found if not _is_hidden(path.relative_to(folder)))


def read_loose(folder: Path) -> Iterator[LooseText]:
    """Every text of a folder, by path. How many PDF files hold no text, being scanned, is said."""
    scanned = 0
    for path in texts_in(folder):
        name, ending = path.relative_to(folder).as_posix(), path.suffix.lower()
        if ending == PDF:
            printed = read_pdf(path)
            scanned += not printed.text
            yield LooseText(name, printed.title, printed.text)
        else:
            yield _loose_text(name, ending, [text for _, text in read_lines(path)])
    if scanned:
        say_taken(
            str(folder), f"{scanned:,} PDF files hold no text; scanned pages have to be recognised first"
        )


def _loose_text(name: str, ending: str, lines: list[str]) -> LooseText:
    """A text by its lines: of a page what a reader sees, of anything but plain text its first heading as title."""
    if ending in PAGES:
        return LooseText(name, *text_of_page("\n".join(lines)))
    first = next((line for line in lines if line.strip()), "")
    heading = HEADING.fullmatch(first.strip()) if ending != ".txt" else None
    body = lines[lines.index(first) + 1 :] if heading else lines
    return LooseText(name, heading[1] if heading else "", "\n".join(body).strip())


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
