"""A corpus' place, entered once: the documents of a small corpus are parsed once, however many parts ask for them."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from sparse_adapt.collection.readers import Document, read_documents

HELD = 20_000  # documents of a corpus that is held in memory


class CorpusFolder:
    """A corpus as a user named it, whose documents stay in memory where it has at most `HELD`.

    As a string it is the name that the user gave, as errors repeat it.
    """

    def __init__(self, source: str | Path) -> None:
        self.source = str(source)
        self._count: int | None = None
        self._held: tuple[Document, ...] | None = None

    @classmethod
    def of(cls, source: "str | Path | CorpusFolder") -> "CorpusFolder":
        """The corpus of a name, or one that is entered already."""
        return source if isinstance(source, CorpusFolder) else cls(source)

    def __str__(self) -> str:
        return self.source

    def read(self) -> Iterator[Document]:
        """Every document in its order. Raises InputError for the first thing that is wrong with a file."""
        return self._noted(read_documents(self.source)) if self._held is None else iter(self._held)

    @property
    def count(self) -> int:
        """The number of documents; the corpus is read for it where nobody has read it to its end."""
        if self._count is None:
            deque(self.read(), maxlen=0)
        assert self._count is not None, "read to its end"
        return self._count

    def _noted(self, documents: Iterator[Document]) -> Iterator[Document]:
        held, number = list[Document](), 0
        for number, document in enumerate(documents, start=1):
            if number <= HELD:
                held.append(document)
            yield document
        self._count, self._held = number, tuple(held) if number <= HELD else None
