"""Documents, queries, judgements and candidates, read from any of the usual layouts.

(interfaces only: to be filled)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Document:
    """One text to be found. `title` may be empty."""

    document_id: str
    text: str
    title: str = ""

    @property
    def full_text(self) -> str:
        """Title and text joined by one space: what is encoded."""
        return f"{self.title} {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Query:
    """One information need in words. `kind` groups queries in reports ("control", "hidden"), if the file says."""

    query_id: str
    text: str
    kind: str = ""


Judgements = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Candidates:
    """A query, documents for it, and how relevant a teacher finds each (any real number, higher is better)."""

    query_id: str
    query: str
    document_ids: tuple[str, ...]
    teacher_scores: tuple[float, ...]
    texts: tuple[str, ...] = ()


def read_documents(source: str | Path) -> Iterator[Document]:
    raise NotImplementedError


def read_queries(source: str | Path) -> Iterator[Query]:
    raise NotImplementedError


def read_judgements(source: str | Path, split: str = "test") -> Judgements:
    raise NotImplementedError


def read_candidates(path: str | Path) -> Iterator[Candidates]:
    raise NotImplementedError
