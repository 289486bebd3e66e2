"""Documents between `<DOC>` tags, as TREC has kept newswire and web pages since 1992."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.markup import fields_of, read_entries, unescaped
from sparse_adapt.collection.pages import is_page, text_of_page
from sparse_adapt.errors import InputError

NUMBER, HEADER = "docno", "dochdr"
TITLES = ("title", "headline", "head", "ttl", "hl", "ti")
PARTS = ("text", "leadpara", "abstract", "body", "content")


class TrecDocument(NamedTuple):
    """A document, and the line where it begins."""

    line: int
    document_id: str
    title: str
    text: str


def read_trec_documents(path: str | Path) -> Iterator[TrecDocument]:
    """Every document of a file. The text is what its fields for text hold, or all but number and header.

    Raises InputError for a document without a number or without an end.
    """
    for entry in read_entries(path, ("doc",), "document"):
        fields = fields_of(entry.body, (NUMBER, HEADER, *TITLES, *PARTS))
        document_id = unescaped(fields.pop(NUMBER, ""))
        if not document_id:
            found = ", ".join(filter(None, fields)) or "none"
            raise InputError(path, f"needs a <DOCNO> (found: {found})", line=entry.line)
        title = next((unescaped(fields[name]) for name in TITLES if name in fields), "")
        kept = [fields[name] for name in PARTS if name in fields] or [
            text for name, text in fields.items() if name != HEADER and name not in TITLES
        ]
        text = " ".join(kept)
        yield TrecDocument(
            entry.line, document_id, title, text_of_page(text).text if is_page(text) else unescaped(text)
        )
