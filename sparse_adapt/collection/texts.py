"""A folder as documents: loose texts (text, Markdown, HTML and PDF files), or the parts of one corpus.

The end of a name says which it is. Parts are files of records (JSON lines, tables), all of one ending.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.lines import JSON, JsonLine, ending_of, read_whole, say_taken
from sparse_adapt.errors import InputError
from sparse_adapt.registry import registry

OF_PARTS = (*JSON, ".csv", ".tsv", ".parquet")
BESIDE = ("readme", "license", "licence")  # texts about a corpus, beside its parts
NO_PARTS = re.compile(
    "queries|qrels|candidates|pairs|triplets|labelled|dictionary|terms|entries|glossary|groups|manifest|"
    r".*\.answers|(?:config|choice|report|request|stage|retention|tokenizer|history|sparse-adapt).*"
)  # names of files that hold something else than documents, without their ending


class LooseText(NamedTuple):
    """A text and its title, where it has one; a scanned page has no text."""

    title: str
    text: str


def loose_files(folder: Path) -> list[Path]:
    """The files of a folder, and of folders within, that hold texts; hidden ones don't count.

    Raises InputError for a link that leads out of the folder, or nowhere: whoever made it chose what is read.
    """
    endings = kinds()
    return [path for path in _files(folder) if path.suffix.lower() in endings]


def parts_in(folder: Path) -> list[Path]:
    """The files of a folder that are the parts of one corpus, in the order of their names; none where it has none.

    There are none beside loose texts, but for those about the corpus, nor beside files of something else.
    """
    if not any(ending_of(path) in OF_PARTS for path in folder.iterdir()):
        return []
    parts = [path for path in _files(folder) if path.parent == folder and ending_of(path) in OF_PARTS]
    alike = len({ending_of(path) for path in parts}) == 1
    others = any(NO_PARTS.fullmatch(path.name[: path.name.lower().rindex(ending_of(path))]) for path in parts)
    texts = [path for path in loose_files(folder) if path.stem.lower() not in BESIDE]
    return [] if others or texts or not alike else parts


def documents_in(folder: Path) -> list[Path]:
    """The files of a folder of documents: its parts, or its loose texts."""
    return parts_in(folder) or loose_files(folder)


def read_loose(folder: Path) -> Iterator[JsonLine]:
    """Every text of a folder under its path in it, with its title.

    How many files are of other kinds is said, and how many PDF files hold no text, being scanned.
    """
    scanned, others = 0, Counter[str]()
    number, readers = 0, kinds()
    for path in _files(folder):
        ending = path.suffix.lower()
        if ending not in readers:
            others[ending or "no ending"] += 1
            continue
        page, number = readers[ending](path), number + 1
        scanned += ending == ".pdf" and not page.text
        name = path.relative_to(folder).as_posix()
        yield JsonLine(path, number, {"_id": name, "title": page.title, "text": page.text})
    if others:
        endings = ", ".join(f"{count:,} {ending}" for ending, count in others.most_common(5))
        say_taken(str(folder), f"{others.total():,} files of other kinds are left out ({endings})")
    if scanned:
        say_taken(
            str(folder), f"{scanned:,} PDF files hold no text; scanned pages have to be recognised first"
        )


def _files(folder: Path) -> list[Path]:
    """Every file of a folder and of folders within, sorted, but hidden ones. Raises InputError for a link out of it."""
    files, inside = list[Path](), folder.resolve()
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for path in (Path(place, name) for name in (*folders, *names) if not name.startswith(".")):
            if path.is_symlink() and not (path.exists() and path.resolve().is_relative_to(inside)):
                problem = (
                    "a link that leads out of the folder, or nowhere; copy the file there, or remove the link"
                )
                raise InputError(path, problem)
            files += [path] if path.is_file() else []
    return sorted(files)


# -- kinds ---------------------------------------------------------------------------------------


def read_plain(path: Path) -> LooseText:
    """A text as it is."""
    return LooseText("", read_whole(path).strip())


def kinds() -> dict[str, Callable[[Path], LooseText]]:
    """What reads a file of a folder of loose texts, by the end of its name."""
    readers: dict[str, Callable[[Path], LooseText]] = {".txt": read_plain, ".rst": read_plain}
    return readers | {ending: partial(_by_plugin, ending) for ending in registry().all_of("readers.texts")}


def _by_plugin(ending: str, path: Path) -> LooseText:
    text: LooseText = registry().find("readers.texts", ending)(path)
    return text
