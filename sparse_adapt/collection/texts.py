"""A folder as documents: loose texts (text, Markdown, HTML and PDF files), or the parts of one corpus.

The end of a name says which it is. Parts are files of records (JSON lines, tables), all of one ending.
"""

import logging
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from sparse_adapt.collection.lines import JSON, JsonLine, ending_of, read_whole, say_taken
from sparse_adapt.collection.markup import LooseText, text_of_markdown, text_of_page
from sparse_adapt.errors import InputError, MissingExtraError, SparseAdaptError, first_line

OF_PARTS = (*JSON, ".csv", ".tsv", ".parquet")
BESIDE = ("readme", "license", "licence")  # texts about a corpus, beside its parts
NO_PARTS = re.compile(
    "queries|qrels|candidates|pairs|triplets|labelled|dictionary|terms|entries|glossary|groups|manifest|"
    r".*\.answers|(?:config|choice|report|request|stage|retention|tokenizer|history|sparse-adapt).*"
)  # names of files that hold something else than documents, without their ending


def loose_files(folder: Path) -> list[Path]:
    """The files of a folder, and of folders within, that hold texts; hidden ones don't count.

    Raises InputError for a link that leads out of the folder, or nowhere: whoever made it chose what is read.
    """
    return [path for path in _files(folder) if path.suffix.lower() in KINDS]


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
    number = 0
    for path in _files(folder):
        ending = path.suffix.lower()
        if ending not in KINDS:
            others[ending or "no ending"] += 1
            continue
        page, number = KINDS[ending](path), number + 1
        scanned += ending == PDF and not page.text
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


def read_markdown(path: Path) -> LooseText:
    """What a reader sees of a Markdown file."""
    return text_of_markdown(read_whole(path), path)


def read_html(path: Path) -> LooseText:
    """What a reader sees of a page."""
    return text_of_page(read_whole(path), path, xml=path.suffix.lower() == ".xhtml")


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


PDF = ".pdf"
KINDS: dict[str, Callable[[Path], LooseText]] = {
    **dict.fromkeys((".txt", ".rst"), read_plain),
    **dict.fromkeys((".md", ".markdown"), read_markdown),
    **dict.fromkeys((".html", ".htm", ".xhtml"), read_html),
    PDF: read_pdf,
}
