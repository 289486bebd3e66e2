"""Which documents have another vector once a model has some tokens more, or fewer, and everything else as it was.

A document is touched that says such a token, for it is then cut into other tokens, or that activates one. The vectors
of all others are the same. A term beside its pieces changes those alone that activate it. Dimensions: B texts.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from sparse_adapt.collection.readers import Document
from sparse_adapt.files.folders import write_text
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.activity import Activity, Bools

DOCUMENTS_AT_ONCE = 512
REENCODE_FILE = "reencode.txt"  # ids of documents to be encoded again, one a line


def write_ids(folder: Path, ids: Sequence[str]) -> None:
    """Write the ids of documents to be encoded again into a folder."""
    write_text(folder / REENCODE_FILE, "".join(f"{each}\n" for each in ids))


def ids_saying(encoder: SparseEncoder, documents: Iterable[Document], tokens: Iterable[int]) -> list[str]:
    """The ids of documents that say one of some tokens where the model reads them."""
    wanted = list(tokens)
    return _ids(documents, lambda texts: _activity(encoder, texts, wanted).says_any, no_progress)


def touched_by(
    models: Sequence[tuple[SparseEncoder, Sequence[int]]],
    documents: Iterable[Document],
    progress: Progress = no_progress,
) -> list[str]:
    """The ids of documents that say or activate one of some tokens of any of these models, in their order."""

    def touched(texts: Sequence[str]) -> Bools:
        return np.asarray(np.any([touches(encoder, texts, tokens) for encoder, tokens in models], axis=0))

    return _ids(documents, touched, progress)


def touches(encoder: SparseEncoder, texts: Sequence[str], tokens: Sequence[int]) -> Bools:
    """Which texts (B) say or activate one of some tokens, read as documents."""
    activity = _activity(encoder, texts, tokens)
    return activity.says_any | np.asarray((activity.logits > 0).any(axis=1))


def _activity(encoder: SparseEncoder, texts: Sequence[str], tokens: Sequence[int]) -> Activity:
    return Activity.of(encoder, texts, "document", tokens=tokens)


def _ids(
    documents: Iterable[Document], marks: Callable[[Sequence[str]], Bools], progress: Progress
) -> list[str]:
    """The ids of the documents whose text is marked."""
    names = list[str]()
    for part in _parts(documents):
        marked = marks([document.full_text for document in part])
        names += [document.document_id for document, each in zip(part, marked, strict=True) if each]
        progress(len(part))
    return names


def _parts(documents: Iterable[Document]) -> Iterator[list[Document]]:
    part = list[Document]()
    for document in documents:
        part.append(document)
        if len(part) == DOCUMENTS_AT_ONCE:
            yield part
            part = []
    if part:
        yield part
