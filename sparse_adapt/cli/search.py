"""Commands around an index: encode a corpus, index it with Lucene, search the index, or the vectors themselves."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from sparse_adapt.cli.checks import a_corpus, a_folder, check_free_file, check_output, checked, some_queries
from sparse_adapt.cli.console import say, show_json, show_table, wrote
from sparse_adapt.cli.following import a_query, free, then
from sparse_adapt.cli.options import Corpus, Device, Json, Model, OptionalModel, Out, Overwrite, Resume, Scale
from sparse_adapt.cli.subject import Subject, subject_of
from sparse_adapt.errors import ConfigError, InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sparse_adapt.collection.readers import Document, Query
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.report.tables import Row, Table


WORKPLACES = ("local", "ray")


def encode(
    model: Model,
    corpus: Corpus,
    out: Out,
    device: Device = "auto",
    overwrite: Overwrite = False,
    resume: Resume = False,
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="NAME",
            help="Where to encode: local, or ray for all machines of a Ray cluster.",
        ),
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, help="Shards that Ray encodes at once.", show_default="one for each processor"
        ),
    ] = None,
    shard: Annotated[
        int,
        typer.Option(
            "--shard", min=1, help="Documents in a shard. A stopped run loses the shard that it was at."
        ),
    ] = 4096,
) -> None:
    """Turn a corpus into sparse vectors.

    They are written in shards, so that a stopped run can go on.
    """
    if engine not in WORKPLACES:
        raise ConfigError(f"--engine {engine}: choose {' or '.join(WORKPLACES)}")
    check_output(out, overwrite=overwrite, resume=resume)
    from contextlib import nullcontext

    from sparse_adapt.cli.devices import load
    from sparse_adapt.collection.readers import count_documents, documents_at, read_documents
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.retrieve.vectors.cluster import connected, on_cluster
    from sparse_adapt.retrieve.vectors.shards import encode_corpus

    total = count_documents(corpus)
    encoder = load(model, device)
    with connected(workers) if engine == "ray" else nullcontext() as cluster, Bars() as bars:
        progress = bars.count("documents", total)
        manifest = encode_corpus(
            encoder,
            read_documents(corpus),
            out,
            model_name=model,
            documents_a_shard=shard,
            progress=progress,
            resume=resume,
            overwrite=overwrite,
            reads=[documents_at(corpus), model],
            work=None if cluster is None else on_cluster(cluster, model, progress=progress),
        )
    mean = manifest.nonzeros / manifest.rows
    wrote(out, f"{manifest.rows:,} vectors with {mean:.0f} entries each on average")
    then(
        ["index", "--vectors", str(out), "-o", free(f"{out}-index")],
        ["export", "opensearch", "--vectors", str(out), "-o", free(f"{out}-opensearch")],
    )


def index(
    vectors: Annotated[
        Path,
        typer.Option(
            "--vectors",
            metavar="DIR",
            help="A folder that `encode` or `export anserini` wrote.",
            callback=checked(a_folder),
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="INDEX", help="Index folder to write.")],
    scale: Scale = None,
    threads: Annotated[
        int | None,
        typer.Option("--threads", min=1, help="Threads that build the index.", show_default="all processors"),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Build a Lucene index from sparse vectors.

    Anserini builds it; weights become whole numbers.
    """
    from sparse_adapt.engines.lucene_building import build_index
    from sparse_adapt.engines.manifest import read_export_manifest
    from sparse_adapt.engines.quantise import Quantisation
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.retrieve.vectors.folder import read_manifest
    from sparse_adapt.retrieve.vectors.manifest import read_format
    from sparse_adapt.stages.record import read_before

    is_vectors = read_format(vectors) == "vectors"
    total = read_manifest(vectors).rows if is_vectors else read_export_manifest(vectors, "anserini").documents
    with Bars() as bars:
        card = build_index(
            vectors,
            out,
            threads=threads,
            quantisation=None if scale is None else Quantisation.of(scale),
            overwrite=overwrite,
            progress=bars.count("documents", total),
        )
    wrote(out, f"{card.documents - card.empty_documents:,} documents, {card.engine}")
    query = a_query(read_before(card.model.name).get("corpus")) if card.model.name else None
    if query is not None:
        then(["search", query, "--model", card.model.name, "--index", str(out)])


def search(
    query: Annotated[str | None, typer.Argument(metavar="QUERY", help="What to look for, in words.")] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            help="Search for many queries: a file, or a collection that has some.",
            callback=checked(some_queries),
        ),
    ] = None,
    model: OptionalModel = None,
    index: Annotated[
        Path | None,
        typer.Option(
            "--index",
            metavar="INDEX",
            help="Search a Lucene index that `index` wrote.",
            callback=checked(a_folder),
        ),
    ] = None,
    vectors: Annotated[
        Path | None,
        typer.Option(
            "--vectors",
            metavar="DIR",
            help="Search vectors that `encode` wrote, exactly.",
            callback=checked(a_folder),
        ),
    ] = None,
    corpus: Annotated[
        str | None,
        typer.Option(
            "--corpus",
            metavar="CORPUS",
            help="Search a corpus. Beside --index or --vectors: the corpus whose titles and texts are shown.",
            callback=checked(a_corpus),
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Check every file of the index before it is searched.")
    ] = False,
    top: Annotated[int, typer.Option("--top", min=1, help="Documents to show for each query.")] = 10,
    run: Annotated[
        Path | None,
        typer.Option("--run", metavar="FILE", help="Write a TREC run to FILE instead of showing documents."),
    ] = None,
    json: Json = False,
) -> None:
    """Search an index, a folder of vectors or a corpus.

    Without --model and a place to search, the latest run and its corpus are taken.
    """
    if (query is None) == (queries is None):
        raise ConfigError("name what to look for: QUERY, or --queries FILE")
    if index is not None and vectors is not None:
        raise ConfigError("name one place to search: --index INDEX or --vectors DIR")
    _verify(index, wanted=verify)
    check_free_file(run, "results", overwrite=True, reads=[queries])
    asked = _queries(query, queries)
    subject = subject_of(model, corpus)
    from sparse_adapt.retrieve.results import documents_of
    from sparse_adapt.stages.record import read_before

    found = _found(asked, subject, index, vectors, top)
    if run is not None:
        _write_run(run, found)
    shown = corpus or (subject.corpus if index is None and vectors is None else None)
    texts = {} if shown is None else documents_of(shown, found)
    results = [_result(each, found[each.query_id], texts) for each in asked]
    if json:
        show_json(results[0] if queries is None else {"queries": results})
    elif run is None:
        for result in results:
            show_table(_table(result))
    for each in asked:
        if not found[each.query_id]:
            say(f"no document shares a token with the query {each.text!r}")
    known = shown or read_before(subject.model).get("corpus")
    if known is not None:
        then(["explain", asked[0].text, "--model", subject.model, "--corpus", known])


def _queries(query: str | None, queries: str | None) -> "list[Query]":
    from sparse_adapt.collection.readers import Query, read_queries

    if queries is not None:
        return list(read_queries(queries))
    assert query is not None, "checked before"
    if not query.strip():
        raise InputError("QUERY", "is empty; say what to look for")
    return [Query("1", query)]


def _found(
    queries: "Sequence[Query]", subject: Subject, index: Path | None, vectors: Path | None, top: int
) -> "dict[str, list[Row]]":
    """Rows with document, score and perhaps impact, by the id of their query."""
    from sparse_adapt.model.sparse import SparseEncoder

    encoder = SparseEncoder.load(subject.model)
    if index is not None:
        return _in_index(queries, encoder, index, top)
    return _exactly(queries, encoder, subject, vectors, top)


def _verify(index: Path | None, *, wanted: bool) -> None:
    """Say that an index is as it was written, or raise."""
    if not wanted:
        return
    if index is None:
        raise ConfigError("--verify checks an index; name one with --index INDEX")
    from sparse_adapt.engines.lucene import verify_index

    say(f"{index}: all {verify_index(index):,} files are as they were written")


def _in_index(
    queries: "Sequence[Query]", encoder: "SparseEncoder", index: Path, top: int
) -> "dict[str, list[Row]]":
    from sparse_adapt.engines.lucene import LuceneIndex, look_up

    with LuceneIndex(index) as opened:
        found = {query.query_id: look_up(query.text, encoder, opened, top) for query in queries}
    return {
        query_id: [
            {"document_id": each.document_id, "score": each.score, "impact": each.impact} for each in hits
        ]
        for query_id, hits in found.items()
    }


def _exactly(
    queries: "Sequence[Query]", encoder: "SparseEncoder", subject: Subject, vectors: Path | None, top: int
) -> "dict[str, list[Row]]":
    from sparse_adapt.collection.readers import count_documents, read_documents
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.retrieve.encode import encode
    from sparse_adapt.retrieve.search import best_of_blocks
    from sparse_adapt.retrieve.vectors.folder import open_vectors
    from sparse_adapt.retrieve.vectors.manifest import stamp
    from sparse_adapt.retrieve.vectors.shards import encode_vectors

    if vectors is not None:
        opened = open_vectors(vectors)
        if not opened.model.fits(stamp(encoder)):
            raise InputError(
                vectors, f"was encoded by another model ({opened.model.name}), not by {subject.model}"
            )
        found = best_of_blocks(
            encode(encoder, [query.text for query in queries], "query"), opened.blocks, top
        )
    else:
        total = count_documents(subject.corpus)
        with Bars() as bars:
            progress = bars.count("documents", total)
            opened = encode_vectors(encoder, read_documents(subject.corpus), progress=progress)
            found = best_of_blocks(
                encode(encoder, [query.text for query in queries], "query"), opened.blocks, top
            )
    return {
        query.query_id: [{"document_id": document_id, "score": score} for document_id, score in best]
        for query, best in zip(queries, found, strict=True)
    }


def _write_run(path: Path, found: "dict[str, list[Row]]") -> None:
    from sparse_adapt.collection.readers import write_run

    run = {
        query_id: {str(row["document_id"]): float(cast(float, row["score"])) for row in rows}
        for query_id, rows in found.items()
    }
    wrote(path, f"a TREC run of {write_run(path, run):,} results")


def _result(query: "Query", rows: "Sequence[Row]", texts: "Mapping[str, Document]") -> dict[str, Any]:
    """One query with its documents: rank, id, score, perhaps impact, and title and beginning where they are known."""
    from sparse_adapt.retrieve.results import snippet

    ranked: list[dict[str, Any]] = []
    for rank, row in enumerate(rows, start=1):
        document = texts.get(str(row["document_id"]))
        known = {} if document is None else {"title": document.title, "snippet": snippet(document)}
        ranked.append({"rank": rank, **row, **known})
    return {"query_id": query.query_id, "query": query.text, "results": ranked}


def _table(result: dict[str, Any]) -> "Table":
    """Rank, document, score and beginning; the impact too where the engine ranked by whole numbers."""
    from sparse_adapt.report.tables import Column, Table

    rows = result["results"]
    columns = [
        Column("rank", "rank"),
        Column("document_id", "document", "text"),
        Column("score", "score", decimals=3, bar=not any("snippet" in row for row in rows)),
    ]
    if any("impact" in row for row in rows):
        columns.append(Column("impact", "impact"))
    if any("snippet" in row for row in rows):
        columns.append(Column("snippet", "text", "text"))
    return Table(result["query"], tuple(columns), rows)
