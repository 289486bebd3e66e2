"""A folder of loose texts as documents: plain text, Markdown and HTML, each file one document under its path."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.lines import read_lines
from sparse_adapt.collection.pages import text_of_page

PAGES = (".html", ".htm", ".xhtml")
ENDINGS = (".txt", ".md", ".markdown", ".rst", *PAGES)
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
    """Every text of a folder, by path."""
    for path in texts_in(folder):
        name = path.relative_to(folder).as_posix()
        lines = [text for _, text in read_lines(path)]
        if path.suffix.lower() in PAGES:
            page = text_of_page("\n".join(lines))
            yield LooseText(name, page.title, page.text)
            continue
        first = next((line for line in lines if line.strip()), "")
        heading = HEADING.fullmatch(first.strip()) if path.suffix.lower() != ".txt" else None
        body = lines[lines.index(first) + 1 :] if heading else lines
        yield LooseText(name, heading[1] if heading else "", "\n".join(body).strip())


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
