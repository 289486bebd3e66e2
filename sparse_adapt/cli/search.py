"""Commands around an index: encode a corpus, index it with Lucene, search the index, or the vectors themselves."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparse_adapt.cli.console import say, show_json, show_table, then, wrote
from sparse_adapt.cli.options import Corpus, Device, Json, Model, Out, Overwrite, Resume, Scale
from sparse_adapt.errors import ConfigError, InputError

if TYPE_CHECKING:
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.report.tables import Row, Table


ENGINES = ("local", "ray")


def encode(
    model: Model,
    corpus: Corpus,
    out: Out,
    device: Device = "auto",
    overwrite: Overwrite = False,
    resume: Resume = False,
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="local, or ray: on all machines of a Ray cluster.")
    ] = "local",
    workers: Annotated[
        int | None,
        typer.Option("--workers", min=1, help="Shards at once on Ray; by default one a processor."),
    ] = None,
    shard: Annotated[int, typer.Option("--shard", min=1, help="Documents a shard.")] = 4096,
) -> None:
    """Turn a corpus into sparse vectors.

    They are written in shards, so that a stopped run can go on.
    """
    from contextlib import nullcontext

    from sparse_adapt.cli.devices import load
    from sparse_adapt.collection.readers import count_documents, read_documents
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.retrieve.vectors.cluster import connected, on_cluster
    from sparse_adapt.retrieve.vectors.shards import encode_corpus

    if engine not in ENGINES:
        raise ConfigError(f"--engine {engine}: choose {' or '.join(ENGINES)}")
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
            work=None if cluster is None else on_cluster(cluster, model, progress=progress),
        )
    mean = manifest.nonzeros / manifest.rows
    wrote(out, f"{manifest.rows:,} vectors with {mean:.0f} non-zeros on average")
    index = str(out.with_name(f"{out.name}-index"))
    then(
        ["index", "--vectors", str(out), "-o", index], ["search", "QUERY", "--model", model, "--index", index]
    )


def index(
    vectors: Annotated[
        Path, typer.Option("--vectors", metavar="DIR", help="What encode or export anserini wrote.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", metavar="INDEX", help="Index folder to write.")],
    scale: Scale = None,
    threads: Annotated[int | None, typer.Option("--threads", min=1, help="By default all cores.")] = None,
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
    then(["search", "QUERY", "--model", card.model.name or "MODEL", "--index", str(out)])


def search(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for, in words.")],
    model: Model,
    index: Annotated[
        Path | None, typer.Option("--index", metavar="INDEX", help="A Lucene index that index wrote.")
    ] = None,
    vectors: Annotated[
        Path | None, typer.Option("--vectors", metavar="DIR", help="Or what encode wrote, searched exactly.")
    ] = None,
    corpus: Annotated[
        str | None, typer.Option("--corpus", metavar="CORPUS", help="Or a corpus, encoded on the way.")
    ] = None,
    top: Annotated[int, typer.Option("--top", min=1, help="Documents to show.")] = 10,
    json: Json = False,
) -> None:
    """Search an index, a folder of vectors or a corpus."""
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.stages.record import read_before

    if not query.strip():
        raise InputError("QUERY", "is empty; say what to look for")
    if sum(each is not None for each in (index, vectors, corpus)) != 1:
        raise ConfigError("name what to search once: --index INDEX, --vectors DIR or --corpus CORPUS")
    if index is not None:
        found = _in_index(query, model, index, top)
    else:
        found = _exactly(query, SparseEncoder.load(model), model, vectors, corpus, top)
    table = _found_table(query, found)
    if json:
        show_json({"query": query, "results": [dict(row) for row in table.rows]})
    else:
        show_table(table)
    if not found:
        say("no document shares a token with this query")
    corpus = corpus or read_before(model).get("corpus", "CORPUS")
    then(["explain", query, "--model", model, "--corpus", corpus])


def _in_index(query: str, model: str, index: Path, top: int) -> "list[Row]":
    from sparse_adapt.engines.lucene import LuceneIndex, look_up
    from sparse_adapt.model.sparse import SparseEncoder

    with LuceneIndex(index) as opened:
        found = look_up(query, SparseEncoder.load(model), opened, top)
    return [{"document_id": each.document_id, "score": each.score, "impact": each.impact} for each in found]


def _exactly(
    query: str, encoder: "SparseEncoder", name: str, vectors: Path | None, corpus: str | None, top: int
) -> "list[Row]":
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
            raise InputError(vectors, f"was encoded by another model ({opened.model.name}), not by {name}")
        found = best_of_blocks(encode(encoder, [query]), opened.blocks, top)
    else:
        assert corpus is not None, "checked before"
        total = count_documents(corpus)
        with Bars() as bars:
            opened = encode_vectors(encoder, read_documents(corpus), progress=bars.count("documents", total))
            found = best_of_blocks(encode(encoder, [query]), opened.blocks, top)
    return [{"document_id": document_id, "score": score} for document_id, score in found]


def _found_table(query: str, found: "list[Row]") -> "Table":
    """Rank, document and score; the impact too where the engine ranked by whole numbers."""
    from sparse_adapt.report.tables import Column, Table

    columns = [
        Column("rank", "rank"),
        Column("document_id", "document", "text"),
        Column("score", "score", decimals=3, bar=True),
    ]
    if not found or "impact" in found[0]:
        columns.append(Column("impact", "impact"))
    return Table(query, tuple(columns), [{"rank": rank, **row} for rank, row in enumerate(found, start=1)])
