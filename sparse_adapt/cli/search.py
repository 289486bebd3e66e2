"""Commands around an index: encode a corpus, index it with Lucene, search the index, or the vectors themselves."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparse_adapt.api.checks import a_corpus, a_folder, check_free_file, check_output, some_queries
from sparse_adapt.api.following import a_query, free
from sparse_adapt.api.runs import subject_of
from sparse_adapt.cli.console import say, show, show_json, then, wrote
from sparse_adapt.cli.options import (
    Corpus,
    Device,
    Json,
    Model,
    OptionalModel,
    Out,
    Overwrite,
    Resume,
    Scale,
    checked,
    encodes,
)
from sparse_adapt.errors import ConfigError, InputError

if TYPE_CHECKING:
    from sparse_adapt.collection.readers import Query
    from sparse_adapt.model.reading import Reading


MOST_IN_A_SHARD = 1_000_000  # documents, which memory has to hold
WORKPLACES = ("local", "ray")


@encodes
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
            "--shard",
            min=1,
            max=MOST_IN_A_SHARD,
            help="Documents in a shard. A stopped run loses the shard that it was at.",
        ),
    ] = 4096,
    *,
    reading: "Reading",
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
    encoder = load(model, device, reading)
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
            work=None if cluster is None else on_cluster(cluster, model, reading, progress=progress),
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
    from sparse_adapt.engines.lucene import build_index
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


@encodes
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
    *,
    reading: "Reading",
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
    from sparse_adapt.api.searching import search as search_now
    from sparse_adapt.cli.devices import load_to_read
    from sparse_adapt.collection.readers import write_run
    from sparse_adapt.stages.record import read_before

    place = index or vectors
    _check_kind(index, vectors)
    found = search_now(
        load_to_read(subject.model, "cpu", reading),
        place or subject.corpus,
        {each.query_id: each.text for each in asked},
        top=top,
        texts=corpus if place is not None else None,
        device="cpu",
        progress=True,
    )
    results = found.to_dict()["queries"]
    if run is not None:
        wrote(run, f"a TREC run of {write_run(run, found.run):,} results")
    if json:
        show_json(results[0] if queries is None else {"queries": results})
    elif run is None:
        show(found.renderable())
    for each in results:
        if not each["results"]:
            say(f"no document shares a token with the query {each['query']!r}")
    known = corpus or (read_before(subject.model).get("corpus") if place is not None else subject.corpus)
    if known is not None:
        then(["explain", asked[0].text, "--model", subject.model, "--corpus", known])


def _check_kind(index: Path | None, vectors: Path | None) -> None:
    """Raise InputError for a folder that isn't what its option says, which would be taken for a corpus."""
    from sparse_adapt.engines.lucene import read_card
    from sparse_adapt.retrieve.vectors.folder import read_manifest

    if index is not None:
        read_card(index)
    if vectors is not None:
        read_manifest(vectors)


def _queries(query: str | None, queries: str | None) -> "list[Query]":
    from sparse_adapt.collection.readers import Query, read_queries

    if queries is not None:
        return list(read_queries(queries))
    assert query is not None, "checked before"
    if not query.strip():
        raise InputError("QUERY", "is empty; say what to look for")
    return [Query("1", query)]


def _verify(index: Path | None, *, wanted: bool) -> None:
    """Say that an index is as it was written, or raise."""
    if not wanted:
        return
    if index is None:
        raise ConfigError("--verify checks an index; name one with --index INDEX")
    from sparse_adapt.engines.lucene import verify_index

    say(f"{index}: all {verify_index(index):,} files are as they were written")
