"""Commands around an index: encode a corpus, index it with Lucene, search the index."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparse_adapt.cli.console import say, show_json, show_table, then, wrote
from sparse_adapt.cli.options import Corpus, Device, Json, Model, Out, Overwrite, Resume, Scale
from sparse_adapt.errors import InputError

if TYPE_CHECKING:
    from sparse_adapt.engines.lucene import Found
    from sparse_adapt.report import Table


def encode(
    model: Model,
    corpus: Corpus,
    out: Out,
    device: Device = "auto",
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Turn a corpus into sparse vectors, shard by shard."""
    from sparse_adapt.cli.devices import load
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.corpus import read_documents
    from sparse_adapt.shards import encode_corpus

    total = sum(1 for _ in read_documents(corpus))
    encoder = load(model, device)
    with Bars() as bars:
        manifest = encode_corpus(
            encoder,
            read_documents(corpus),
            out,
            model_name=model,
            progress=bars.count("documents", total),
            resume=resume,
            overwrite=overwrite,
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
    """Build a Lucene index of impacts, through Anserini."""
    from sparse_adapt.cli.progress import Bars
    from sparse_adapt.engines.lucene import build_index
    from sparse_adapt.export import parts
    from sparse_adapt.export.quantise import Quantisation
    from sparse_adapt.manifest import read_format
    from sparse_adapt.shards import read_manifest

    is_vectors = read_format(vectors) == "vectors"
    total = read_manifest(vectors).rows if is_vectors else parts.read_manifest(vectors, "anserini").documents
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
    index: Annotated[Path, typer.Option("--index", metavar="INDEX", help="What index wrote.")],
    top: Annotated[int, typer.Option("--top", min=1, help="Documents to show.")] = 10,
    json: Json = False,
) -> None:
    """Search a Lucene index."""
    from sparse_adapt.engines.lucene import LuceneIndex
    from sparse_adapt.engines.lucene import search as look_up
    from sparse_adapt.model import SparseEncoder
    from sparse_adapt.stages.steps import inherited

    if not query.strip():
        raise InputError("QUERY", "is empty; say what to look for")
    with LuceneIndex(index) as opened:
        encoder = SparseEncoder.load(model)
        found = look_up(query, encoder, opened, top)
    table = _found_table(query, found)
    if json:
        show_json({"query": query, "results": [dict(row) for row in table.rows]})
    else:
        show_table(table)
    if not found:
        say("no document shares a token with this query")
    corpus = inherited(model).get("corpus", "CORPUS")
    then(["explain", query, "--model", model, "--corpus", corpus])


def _found_table(query: str, found: "list[Found]") -> "Table":
    from sparse_adapt.report import Column, Row, Table

    columns = (
        Column("rank", "rank"),
        Column("document_id", "document", "text"),
        Column("score", "score", decimals=3, bar=True),
        Column("impact", "impact"),
    )
    rows: list[Row] = [
        {"rank": rank, "document_id": each.document_id, "score": each.score, "impact": each.impact}
        for rank, each in enumerate(found, start=1)
    ]
    return Table(query, columns, rows)
