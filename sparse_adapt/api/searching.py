"""The best documents of a query, searched exactly in memory: `search`."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, overload

from rich.console import RenderableType
from scipy.sparse import csr_matrix

from sparse_adapt.api.models import ModelGiven, load_sparse
from sparse_adapt.collection.given import Corpus, DocumentsGiven, QueriesGiven, queries_of
from sparse_adapt.collection.readers import Document, Query, Run
from sparse_adapt.errors import InputError
from sparse_adapt.report.progress import watching
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Column, Row, Table, to_rich
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.results import snippet
from sparse_adapt.retrieve.search import top_k
from sparse_adapt.retrieve.vectors.folder import open_vectors, read_vectors
from sparse_adapt.retrieve.vectors.manifest import MANIFEST_FILE, read_format, stamp


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of a query; title and text are empty where only vectors were searched."""

    query: str
    rank: int
    document_id: str
    score: float
    title: str = ""
    text: str = ""

    @property
    def snippet(self) -> str:
        """How the document begins, in one line."""
        return snippet(Document(self.document_id, self.text, self.title))


@dataclass(frozen=True, repr=False)
class Found(Result, Sequence[Hit]):
    """The documents of one query or of several, query after query, best first; a sequence of `Hit`."""

    queries: tuple[Query, ...]
    hits: tuple[Hit, ...]
    run: Run  # query id -> document id -> score, as `write_run` takes it

    def __len__(self) -> int:
        return len(self.hits)

    @overload
    def __getitem__(self, place: int) -> Hit: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Hit, ...]: ...

    def __getitem__(self, place: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[place]

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    @property
    def headline(self) -> str:
        """How many documents, and the best."""
        if len(self.queries) != 1:
            return f"{len(self.hits):,} documents of {len(self.queries):,} queries"
        best = f", best {self.hits[0].document_id}" if self.hits else ""
        return f"{self.queries[0].text!r}, {len(self.hits):,} documents{best}"

    def to_dict(self) -> dict[str, Any]:
        """Each query with its documents."""
        return {
            "queries": [
                {
                    "query_id": query.query_id,
                    "query": query.text,
                    "results": [{"document_id": name, "score": score} for name, score in found.items()],
                }
                for query in self.queries
                for found in (self.run.get(query.query_id, {}),)
            ]
        }

    def rows(self) -> list[Row]:
        """A row for each document."""
        return [asdict(hit) for hit in self.hits]

    def renderable(self) -> RenderableType:
        """The documents with how they begin; of several queries under each other."""
        columns = [
            Column("rank", "rank"),
            Column("document_id", "document", "text"),
            Column("score", "score", decimals=3, bar=True),
            Column("snippet", "text", "text"),
        ]
        if len(self.queries) > 1:
            columns.insert(0, Column("query", "query", "text"))
        rows: list[Row] = [{**asdict(hit), "snippet": hit.snippet} for hit in self.hits]
        title = self.queries[0].text if len(self.queries) == 1 else ""
        return to_rich(Table(title, tuple(columns), rows))


def search(
    model: ModelGiven,
    corpus: DocumentsGiven,
    query: QueriesGiven,
    *,
    top: int = 10,
    device: str = "auto",
    progress: bool | None = None,
) -> Found:
    """The `top` best documents of a query, by the exact product of sparse vectors; none with a score of zero.

    corpus: a place, documents in memory, or the folder that `sparse-adapt encode` wrote. query: one query in words, or
    several: a list of texts, a dictionary from ids to texts, a `Path` of a file of queries. A `Model` keeps the vectors
    of the last corpus, so that further searches of it are quick. Raises InputError for an empty query, and for vectors
    of another model.

    >>> import sparse_adapt as sa
    >>> found = sa.search("splade-tiny", ["a bird sings", "we save money"], "saving", device="cpu")
    >>> found[0].document_id, found[0].text
    ('2', 'we save money')
    """
    queries = _queries(query)
    held, encoder = load_sparse(model, device)
    if isinstance(corpus, str | Path) and is_vectors(corpus):
        opened = open_vectors(Path(corpus))
        if not opened.model.fits(stamp(encoder)):
            raise InputError(
                corpus, f"was encoded by another model ({opened.model.name}), not by {held.source}"
            )
        ids, vectors = read_vectors(Path(corpus))
        documents = [Document(document_id, "") for document_id in ids]
    else:
        documents = list(Corpus.of(corpus).read())
        with watching(progress) as bars:
            vectors = held.encode_documents(documents, bars.count("documents", len(documents)))
    asked = encode(encoder, [each.text for each in queries], "query")
    return _found(queries, documents, asked, vectors, top)


def is_vectors(place: str | Path) -> bool:
    """Whether a place is a folder of vectors that `sparse-adapt encode` wrote."""
    return (Path(place) / MANIFEST_FILE).is_file() and read_format(Path(place)) == "vectors"


def _queries(given: QueriesGiven) -> list[Query]:
    """One query in words, or several."""
    if isinstance(given, str):
        if not given.strip():
            raise InputError("query", "is empty; say what to look for")
        return [Query("1", given)]
    return queries_of(given)


def _found(
    queries: Sequence[Query], documents: Sequence[Document], asked: csr_matrix, vectors: csr_matrix, top: int
) -> Found:
    hits, run = [], {}
    for query, (rows, scores) in zip(queries, top_k(asked, vectors, top), strict=True):
        named = [documents[int(row)] for row in rows]
        run[query.query_id] = {
            document.document_id: float(score) for document, score in zip(named, scores, strict=True)
        }
        hits += [
            Hit(query.text, rank, document.document_id, float(score), document.title, document.text)
            for rank, (document, score) in enumerate(zip(named, scores, strict=True), start=1)
        ]
    return Found(tuple(queries), tuple(hits), run)
