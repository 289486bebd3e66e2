"""The best documents of a query, searched exactly in memory, in vectors on the disk or in an index: `search`."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, overload

from sparse_adapt.api.checks import a_corpus_or_vectors, a_folder, check_free_file, some_queries, some_words
from sparse_adapt.api.following import line
from sparse_adapt.api.indexing import is_index, is_vectors, vectors_at
from sparse_adapt.api.options import Columns, LatestModel, OnCpu, Option, Reads, declared
from sparse_adapt.api.runs import subject_of
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.registry import registry
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.report.results import Shown
from sparse_adapt.report.sections import Section, untitled
from sparse_adapt.report.tables import Column, Row, Table

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from sparse_adapt.api.models import ModelLike
    from sparse_adapt.collection.arguments import DocumentsLike, QueriesLike
    from sparse_adapt.collection.columns import ColumnsLike
    from sparse_adapt.collection.readers import Query, Run

BEGINNING = 90  # characters of a document that are shown


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
        """How the document begins, in one line: its title, and as much of its text as fits."""
        words = " ".join((f"{self.title}: {self.text}" if self.title else self.text).split())
        return words if len(words) <= BEGINNING else f"{words[: BEGINNING - 3].rstrip()}..."


@dataclass(frozen=True, repr=False)
class SearchResults(Shown, Sequence[Hit]):
    """The documents of one query or of several, query after query, best first; a sequence of `Hit`."""

    queries: tuple["Query", ...]
    hits: tuple[Hit, ...]
    run: "Run"  # query id -> document id -> score, as `write_run` takes it
    alone: bool = False  # whether there is one query, in words
    wrote: Sequence[tuple[Path, str]] = ()
    then: Sequence[str] = ()
    notes: Sequence[str] = ()
    quiet: bool = False

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

    def to_dict(self) -> dict[str, object]:
        """Each query with its documents, best first; titles and beginnings where texts are known."""
        return {"queries": [self._of(query) for query in self.queries]}

    def printed(self) -> dict[str, object]:
        """The documents of the one query, or each query with its documents."""
        return self._of(self.queries[0]) if self.alone else self.to_dict()

    def _of(self, query: "Query") -> dict[str, object]:
        hits = self._hits(query)
        return {
            "query_id": query.query_id,
            "query": query.text,
            "results": [self._plain(hit) for hit in hits],
        }

    def _plain(self, hit: Hit) -> dict[str, object]:
        impact = {} if hit.impact is None else {"impact": hit.impact}
        known = {"title": hit.title, "snippet": hit.snippet} if self.shows_texts else {}
        return {"rank": hit.rank, "document_id": hit.document_id, "score": hit.score, **impact, **known}

    def _hits(self, query: "Query") -> list[Hit]:
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

    def sections(self) -> Sequence[Section]:
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
            tables.append(Table(query.text, tuple(columns), rows))
        return untitled(*tables)


Rankings = list[list[tuple[str, float, int | None]]]
"""Of each query the documents, best first: id, score, and the impact in an index."""


@declared
def search(
    model: LatestModel,
    corpus: Annotated[
        "DocumentsLike | None",
        Option(
            "Search a corpus. Beside --index or --vectors: the corpus whose titles and texts are shown.",
            metavar="CORPUS",
            check=a_corpus_or_vectors,
        ),
    ],
    query: Annotated[
        "QueriesLike | None",
        Option("What to look for, in words.", metavar="QUERY", place=True, check=some_words),
    ],
    *,
    queries: Annotated[
        "QueriesLike | None",
        Option(
            "Search for many queries: a file, or a collection that has some.",
            metavar="FILE",
            check=some_queries,
        ),
    ] = None,
    index: Annotated[
        str | Path | None,
        Option("Search a Lucene index that `index` wrote.", metavar="INDEX", check=a_folder),
    ] = None,
    vectors: Annotated[
        str | Path | None,
        Option("Search vectors that `encode` wrote, exactly.", metavar="DIR", check=a_folder),
    ] = None,
    verify: Annotated[bool, Option("Check every file of the index before it is searched.")] = False,
    top: Annotated[int, Option("Documents to show for each query.", ge=1)] = 10,
    run: Annotated[
        str | Path | None,
        Option("Write a TREC run to FILE instead of showing documents.", metavar="FILE"),
    ] = None,
    columns: Columns = (),
    texts: "DocumentsLike | None" = None,
    device: OnCpu = "auto",
    progress: bool | None = None,
    **reading: Reads,
) -> SearchResults:
    """Search an index, a folder of vectors or a corpus.

    Without --model and a place to search, the latest run and its corpus are taken.

    Each query has its `top` best documents, by the exact product of sparse vectors; none with a score of zero. A corpus
    may also be vectors or an index, which ranks by whole numbers. A query is one in words; a list, a dictionary from
    ids to texts and a `Path` are several. texts: beside vectors or an index, the documents that were encoded, to show
    how they begin. A `Model` keeps the vectors of the last corpus, so that further searches of it are quick. Raises
    InputError for an empty query, and for vectors of another model.

    >>> import sparse_adapt as sa
    >>> found = sa.search("splade-tiny", ["a bird sings", "we save money"], "saving", device="cpu")
    >>> found[0].document_id, found[0].text
    ('2', 'we save money')
    """
    if (query is None) == (queries is None):
        raise ConfigError("name what to look for: QUERY, or --queries FILE")
    if index is not None and vectors is not None:
        raise ConfigError("name one place to search: --index INDEX or --vectors DIR")
    place = None if run is None else Path(run)
    if place is not None:
        reads = [queries if isinstance(queries, str | Path) else None]
        check_free_file(Place(place, overwrite=True, reads=reads), "results")
    notes = _verified(index, wanted=verify)
    from sparse_adapt.collection.readers import write_run

    chosen_queries = _queries(query, queries, columns)
    model, searched, texts, about = _searched(model, corpus, index, vectors, texts)
    if columns:
        searched, texts = _by_columns(searched, texts, columns)
    found, name = _ranked(chosen_queries, model, searched, texts, top, device, progress, reading)
    inactive = [each.text for each in chosen_queries if not found.run[each.query_id]]
    asked = [each.text for each in chosen_queries[:1]]
    return replace(
        found,
        alone=isinstance(query, str),
        wrote=[] if place is None else [(place, f"a TREC run of {write_run(place, found.run):,} results")],
        then=[
            line("explain", text, "--model", name, "--corpus", about) for text in asked if about is not None
        ],
        notes=[*notes, *(f"no document shares a token with the query {text!r}" for text in inactive)],
        quiet=place is not None,
    )


def _searched(
    model: "ModelLike | None",
    corpus: "DocumentsLike | None",
    index: str | Path | None,
    vectors: str | Path | None,
    texts: "DocumentsLike | None",
) -> "tuple[ModelLike, DocumentsLike, DocumentsLike | None, str | None]":
    """The model, what it searches, the documents that are shown, and the corpus that a query is explained by."""
    from sparse_adapt.stages.record import read_before

    place = index or vectors
    if place is not None:
        _check_kind(index, vectors)
        texts, corpus = texts or corpus, place
    if model is None:
        subject = subject_of(None, corpus if isinstance(corpus, str) and place is None else None)
        model, corpus = subject.model, corpus or subject.corpus
    elif corpus is None:
        corpus = subject_of(str(model), None).corpus
    shown = texts if place is not None else corpus
    about = str(shown) if isinstance(shown, str | Path) else None
    if place is not None and texts is None and isinstance(model, str | Path):
        about = read_before(str(model)).get("corpus")
    return model, corpus, texts, about


def _ranked(
    queries: "Sequence[Query]",
    model: "ModelLike",
    corpus: "DocumentsLike",
    texts: "DocumentsLike | None",
    top: int,
    device: str,
    progress: bool | None,
    reading: "Mapping[str, int | None]",
) -> tuple[SearchResults, str]:
    """The documents of each query, and the model's name."""
    from sparse_adapt.api.models import encoded_documents, load_sparse
    from sparse_adapt.collection.arguments import Corpus
    from sparse_adapt.retrieve.hybrid import query_vectors
    from sparse_adapt.retrieve.vectors.manifest import aligned

    sparse_model, encoder = load_sparse(model, device, **reading)
    query_texts = [each.text for each in queries]
    if isinstance(corpus, str | Path) and is_vectors(corpus):
        opened = vectors_at(Path(corpus), encoder, sparse_model.source)
        asked = aligned(query_vectors(encoder, query_texts), opened.tokens, opened.model)
        return _found(queries, _exactly(asked, opened.blocks, top), texts), sparse_model.source
    if isinstance(corpus, str | Path) and is_index(corpus):
        return _found(queries, _index_at(corpus).best(encoder, query_texts, top), texts), sparse_model.source
    documents = list(Corpus.of(corpus).read())
    with progress_bars(progress) as bars:
        encoded = encoded_documents(sparse_model, documents, bars.count("documents", len(documents)))
    block = [each.document_id for each in documents], encoded
    asked = query_vectors(encoder, query_texts)
    return _found(queries, _exactly(asked, [block], top), documents), sparse_model.source


def _check_kind(index: str | Path | None, vectors: str | Path | None) -> None:
    """Raise InputError for a folder that isn't what its option says, which would be taken for a corpus."""
    if index is not None:
        _index_at(index).check()
    if vectors is not None:
        from sparse_adapt.retrieve.vectors.folder import read_manifest

        read_manifest(Path(vectors))


def _verified(index: str | Path | None, *, wanted: bool) -> tuple[str, ...]:
    """That an index is as it was written, in words. Raises InputError where it isn't."""
    if not wanted:
        return ()
    if index is None:
        raise ConfigError("--verify checks an index; name one with --index INDEX")
    return (f"{index}: all {_index_at(index).verify():,} files are as they were written",)


def _index_at(folder: str | Path) -> Any:  # noqa: ANN401 - of a plug-in
    """An index by its folder: it can be checked, verified and searched. Raises MissingPluginError without a reader."""
    return registry().find("readers.indexes", "lucene")(Path(folder))


def _exactly(
    queries: "csr_matrix", blocks: "Iterable[tuple[Sequence[str], csr_matrix]]", top: int
) -> Rankings:
    """Exact search of queries (Q, V) in blocks of documents, each their ids and vectors (documents, V)."""
    from sparse_adapt.retrieve.search import best_of_blocks

    best = best_of_blocks(queries, blocks, top)
    return [[(document_id, score, None) for document_id, score in of_query] for of_query in best]


def _by_columns(
    searched: "DocumentsLike", texts: "DocumentsLike | None", columns: "ColumnsLike"
) -> "tuple[DocumentsLike, DocumentsLike | None]":
    """What is searched, where that is documents, and the documents that are shown, both by the columns named."""
    from sparse_adapt.collection.arguments import with_columns

    ready = isinstance(searched, str | Path) and (is_vectors(searched) or is_index(searched))
    texts = None if texts is None else with_columns(texts, columns)
    return (searched if ready else with_columns(searched, columns)), texts


def _queries(
    query: "QueriesLike | None", queries: "QueriesLike | None", columns: "ColumnsLike"
) -> "list[Query]":
    """One query in words, or several."""
    from sparse_adapt.collection.arguments import queries_of
    from sparse_adapt.collection.readers import Query

    if isinstance(query, str):
        return [Query("1", query)]
    source = queries if query is None else query
    assert source is not None, "checked before"
    return queries_of(source, columns)


def _found(queries: "Sequence[Query]", rankings: Rankings, texts: "DocumentsLike | None") -> SearchResults:
    from sparse_adapt.collection.arguments import Corpus
    from sparse_adapt.collection.readers import Document

    wanted = {document_id for ranking in rankings for document_id, _, _ in ranking}
    read = () if texts is None else Corpus.of(texts).read()
    known = {each.document_id: each for each in read if each.document_id in wanted}
    hits, run = [], {}
    for query, ranking in zip(queries, rankings, strict=True):
        run[query.query_id] = {document_id: score for document_id, score, _ in ranking}
        for rank, (document_id, score, impact) in enumerate(ranking, start=1):
            document = known.get(document_id, Document(document_id, ""))
            hits.append(Hit(query.text, rank, document_id, score, document.title, document.text, impact))
    return SearchResults(tuple(queries), tuple(hits), run)
