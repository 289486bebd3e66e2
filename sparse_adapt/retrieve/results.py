"""What was found, as people read it: the documents by their ids, and how each begins."""

from collections.abc import Iterable, Mapping
from typing import Any

from sparse_adapt.collection.readers import Document, read_documents

SHOWN = 90  # characters of a document


def snippet(document: Document) -> str:
    """How a document begins, in one line: its title, and as much of its text as fits."""
    words = " ".join(
        f"{document.title}: {document.text}".split() if document.title else document.text.split()
    )
    return words if len(words) <= SHOWN else f"{words[: SHOWN - 3].rstrip()}..."


def documents_of(corpus: str, found: Mapping[str, Iterable[Mapping[str, Any]]]) -> dict[str, Document]:
    """The documents that rows of results name, by id; one pass over the corpus."""
    wanted = {str(row["document_id"]) for rows in found.values() for row in rows}
    return {each.document_id: each for each in read_documents(corpus) if each.document_id in wanted}
