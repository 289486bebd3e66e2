"""What was found, as people read it: how a document begins."""

from sparse_adapt.collection.readers import Document

SHOWN = 90  # characters of a document


def snippet(document: Document) -> str:
    """How a document begins, in one line: its title, and as much of its text as fits."""
    words = " ".join(
        f"{document.title}: {document.text}".split() if document.title else document.text.split()
    )
    return words if len(words) <= SHOWN else f"{words[: SHOWN - 3].rstrip()}..."
