"""The best documents of a query, searched exactly in memory: `search`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, overload

from rich.console import Group, RenderableType
from scipy.sparse import csr_matrix

from sparse_adapt.api.models import Model, ModelGiven, load_sparse
from sparse_adapt.collection.given import Corpus, DocumentsGiven, QueriesGiven, queries_of
from sparse_adapt.collection.readers import Document, Query, Run
from sparse_adapt.engines.lucene import CARD_FILE, LuceneIndex, look_up
from sparse_adapt.errors import InputError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.progress import watching
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Column, Row, Table, to_rich
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.results import snippet
from sparse_adapt.retrieve.search import best_of_blocks
from sparse_adapt.retrieve.vectors.folder import open_vectors
from sparse_adapt.retrieve.vectors.manifest import MANIFEST_FILE, read_format, stamp


@dataclass(frozen=True, slots=True)
class Hit:
    """One document of a query; title and text are empty where no documents were given.

    `impact` is the score in whole numbers by which an index ranks.
    """

    query: str
    rank: int
    document_id: str
    score: float
    title: str = ""
    text: str = ""
    impact: int | None = None

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
        """Each query with its documents, best first; titles and beginnings where texts are known."""
        return {"queries": [self._of(query) for query in self.queries]}

    def _of(self, query: Query) -> dict[str, Any]:
        hits = self._hits(query)
        return {
            "query_id": query.query_id,
            "query": query.text,
            "results": [self._plain(hit) for hit in hits],
        }

    def _plain(self, hit: Hit) -> dict[str, Any]:
        impact = {} if hit.impact is None else {"impact": hit.impact}
        known = {"title": hit.title, "snippet": hit.snippet} if self.shows_texts else {}
        return {"rank": hit.rank, "document_id": hit.document_id, "score": hit.score, **impact, **known}

    def _hits(self, query: Query) -> list[Hit]:
        place = self.queries.index(query)
        before = sum(len(self.run[each.query_id]) for each in self.queries[:place])
        return list(self.hits[before : before + len(self.run[query.query_id])])

    @property
    def shows_texts(self) -> bool:
        """Whether titles and texts of the documents are known."""
        return any(hit.title or hit.text for hit in self.hits)

    def rows(self) -> list[Row]:
        """A row for each document."""
        return [asdict(hit) for hit in self.hits]

    def renderable(self) -> RenderableType:
        """A table for each query: its documents, how they begin, and the impact where an index ranked by it."""
        columns = [
            Column("rank", "rank"),
            Column("document_id", "document", "text"),
            Column("score", "score", decimals=3, bar=not self.shows_texts),
        ]
        if any(hit.impact is not None for hit in self.hits):
            columns.append(Column("impact", "impact"))
        if self.shows_texts:
            columns.append(Column("snippet", "text", "text"))
        tables = []
        for query in self.queries:
            rows: list[Row] = [{**asdict(hit), "snippet": hit.snippet} for hit in self._hits(query)]
            tables.append(to_rich(Table(query.text, tuple(columns), rows)))
        return Group(*tables)


Rankings = list[list[tuple[str, float, int | None]]]
"""Of each query the documents, best first: id, score, and the impact in an index."""


def search(
    model: ModelGiven,
    corpus: DocumentsGiven,
    query: QueriesGiven,
    *,
    top: int = 10,
    texts: DocumentsGiven | None = None,
    device: str = "auto",
    progress: bool | None = None,
) -> Found:
    """The `top` best documents of a query, by the exact product of sparse vectors; none with a score of zero.

    corpus: a place, documents in memory, vectors that `sparse-adapt encode` wrote, or a Lucene index that
    `sparse-adapt index` wrote, which ranks by whole numbers. query: one query in words, or several: a list of texts, a
    dictionary from ids to texts, a `Path` of a file of queries. texts: beside vectors or an index, the documents that
    were encoded, to show how they begin. A `Model` keeps the vectors of the last corpus, so that further searches of it
    are quick. Raises InputError for an empty query, and for vectors of another model.

    >>> import sparse_adapt as sa
    >>> found = sa.search("splade-tiny", ["a bird sings", "we save money"], "saving", device="cpu")
    >>> found[0].document_id, found[0].text
    ('2', 'we save money')
    """
    queries = _queries(query)
    held, encoder = load_sparse(model, device)
    asked = [each.text for each in queries]
    if isinstance(corpus, str | Path) and is_vectors(corpus):
        return _found(queries, _in_vectors(held, encoder, asked, Path(corpus), top), texts)
    if isinstance(corpus, str | Path) and is_index(corpus):
        return _found(queries, _in_index(encoder, asked, Path(corpus), top), texts)
    documents = list(Corpus.of(corpus).read())
    with watching(progress) as bars:
        vectors = held.encode_documents(documents, bars.count("documents", len(documents)))
    block = [each.document_id for each in documents], vectors
    return _found(queries, _exactly(encoder, asked, [block], top), documents)


def _in_vectors(
    held: Model, encoder: SparseEncoder, asked: Sequence[str], folder: Path, top: int
) -> Rankings:
    opened = open_vectors(folder)
    if not opened.model.fits(stamp(encoder)):
        raise InputError(folder, f"was encoded by another model ({opened.model.name}), not by {held.source}")
    return _exactly(encoder, asked, opened.blocks, top)


def _exactly(
    encoder: SparseEncoder, asked: Sequence[str], blocks: Iterable[tuple[Sequence[str], csr_matrix]], top: int
) -> Rankings:
    best = best_of_blocks(encode(encoder, list(asked), "query"), blocks, top)
    return [[(document_id, score, None) for document_id, score in of_query] for of_query in best]


def _in_index(encoder: SparseEncoder, asked: Sequence[str], folder: Path, top: int) -> Rankings:
    with LuceneIndex(folder) as opened:
        found = [look_up(text, encoder, opened, top) for text in asked]
    return [[(hit.document_id, hit.score, hit.impact) for hit in hits] for hits in found]


def is_index(place: str | Path) -> bool:
    """Whether a place is a Lucene index that `sparse-adapt index` wrote."""
    return (Path(place) / CARD_FILE).is_file()


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


def _found(queries: Sequence[Query], rankings: Rankings, texts: DocumentsGiven | None) -> Found:
    wanted = {document_id for ranking in rankings for document_id, _, _ in ranking}
    read = () if texts is None else Corpus.of(texts).read()
    known = {each.document_id: each for each in read if each.document_id in wanted}
    hits, run = [], {}
    for query, ranking in zip(queries, rankings, strict=True):
        run[query.query_id] = {document_id: score for document_id, score, _ in ranking}
        for rank, (document_id, score, impact) in enumerate(ranking, start=1):
            document = known.get(document_id, Document(document_id, ""))
            hits.append(Hit(query.text, rank, document_id, score, document.title, document.text, impact))
    return Found(tuple(queries), tuple(hits), run)
