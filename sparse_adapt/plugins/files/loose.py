"""Files of a folder of loose texts that need a library: Markdown, HTML and PDF."""

import logging
from pathlib import Path

from sparse_adapt.collection.lines import read_whole
from sparse_adapt.collection.texts import LooseText
from sparse_adapt.errors import InputError, MissingExtraError, SparseAdaptError, first_line
from sparse_adapt.plugins.files.markup import text_of_markdown, text_of_page


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
