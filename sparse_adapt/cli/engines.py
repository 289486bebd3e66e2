"""Commands for engines: write vectors in a layout, and check a loaded engine."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sparse_adapt.api.checks import a_corpus, a_file_or_folder, a_folder, a_model, check_output, some_queries
from sparse_adapt.cli.console import say, show, show_json, show_table, wrote
from sparse_adapt.cli.options import (
    CORPUS_HELP,
    MODEL_HELP,
    Device,
    Json,
    Model,
    Out,
    Overwrite,
    Resume,
    Scale,
    Split,
    checked,
    encodes,
)
from sparse_adapt.engines.formats import ENGINES
from sparse_adapt.errors import ConfigError, InputError

if TYPE_CHECKING:
    from sparse_adapt.engines.formats import EngineRow
    from sparse_adapt.engines.manifest import ExportManifest
    from sparse_adapt.model.reading import Reading
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors


FAULTS = 1  # exit status


FAULTS_SHOWN = 10


SomeCorpus = Annotated[
    str | None, typer.Option("--corpus", metavar="CORPUS", help=CORPUS_HELP, callback=checked(a_corpus))
]


SomeVectors = Annotated[
    Path | None,
    typer.Option(
        "--vectors",
        metavar="DIR",
        help="Vectors that `encode` wrote, instead of a corpus.",
        callback=checked(a_folder),
    ),
]


QUERIES = typer.Option(
    "--queries",
    metavar="FILE",
    help="Queries: a BEIR folder, JSONL, TSV or TREC topics.",
    callback=checked(some_queries),
)
Queries = Annotated[str | None, QUERIES]
QRELS = typer.Option(
    "--qrels",
    metavar="FILE",
    help="Judgements: a BEIR folder, TSV or TREC qrels.",
    callback=checked(a_file_or_folder),
)


@encodes
def export(
    format: Annotated[
        str, typer.Argument(metavar="FORMAT", help=f"The engine: {', '.join(row.name for row in ENGINES)}.")
    ],
    out: Out,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help=f"{MODEL_HELP} Vectors alone need none.",
            callback=checked(a_model),
        ),
    ] = None,
    corpus: SomeCorpus = None,
    vectors: SomeVectors = None,
    queries: Queries = None,
    scale: Scale = None,
    largest: Annotated[
        int | None,
        typer.Option(
            "--largest",
            help="Largest whole number of a weight, to which larger ones are cut: 255 fits into 8 bits.",
        ),
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Write titles and texts too (opensearch, elasticsearch).")
    ] = False,
    device: Device = "auto",
    overwrite: Overwrite = False,
    resume: Resume = False,
    *,
    reading: "Reading",
) -> None:
    """Write a corpus in the format of a search engine.

    The documents come from a corpus, or from vectors that `sparse-adapt encode` wrote.
    """
    from sparse_adapt.engines.formats import check_takes, find_engine

    row = find_engine(format)
    scaled = scale is not None or largest is not None
    check_takes(row, queries=queries is not None, texts=text, scaled=scaled)
    _check_sources(row, corpus, vectors, text)
    if model is None and (vectors is None or queries is not None or row.holds == "encoder"):
        raise ConfigError("--model: name the model that made the vectors; only vectors alone need none")
    check_output(out, overwrite=overwrite, resume=resume)
    from sparse_adapt.api.exporting import export as export_now
    from sparse_adapt.cli.devices import load_to_read
    from sparse_adapt.retrieve.vectors.folder import read_manifest

    if vectors is not None:
        read_manifest(vectors)  # a folder of something else is no corpus either
    made = export_now(
        format,
        None if model is None else load_to_read(model, device, reading),
        corpus if vectors is None else vectors,
        out,
        queries=queries,
        scale=scale,
        largest=largest,
        texts=corpus if text and vectors is not None and corpus is not None else text,
        device=device,
        overwrite=overwrite,
        resume=resume,
        progress=True,
    )
    for line in made.remarks:
        say(line)
    wrote(out, made.contents)
    say("next:")
    for line in made.loading.split("\n"):
        say(f"  {line}")


@encodes
def check_export(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="A folder that `export` wrote.", callback=checked(a_folder))
    ],
    model: Model,
    queries: Annotated[str, QUERIES],
    corpus: SomeCorpus = None,
    vectors: SomeVectors = None,
    qrels: Annotated[str | None, QRELS] = None,
    split: Split = "test",
    top: Annotated[int, typer.Option("--top", min=1, help="Documents to compare for each query.")] = 10,
    url: Annotated[
        str, typer.Option("--url", metavar="URL", help="Address of an engine that is a server.")
    ] = "",
    device: Device = "auto",
    json: Json = False,
    *,
    reading: "Reading",
) -> None:
    """Load an export into its engine and compare the rankings.

    Every ranking is compared with exact search. Exit status 1 if a difference is neither a tie nor due to
    rounding.
    """
    _one_source(corpus, vectors)
    from sparse_adapt.cli.devices import load
    from sparse_adapt.collection.readers import read_judgements, read_queries
    from sparse_adapt.engines.formats import open_engine
    from sparse_adapt.engines.manifest import read_export_manifest
    from sparse_adapt.engines.parity import check_engine, headline, tables
    from sparse_adapt.report.progress import Bars
    from sparse_adapt.retrieve.vectors.folder import join_blocks
    from sparse_adapt.retrieve.vectors.manifest import stamp
    from sparse_adapt.retrieve.vectors.shards import encode_queries

    manifest = read_export_manifest(folder)
    asked = list(read_queries(queries))
    judgements = None if qrels is None else read_judgements(qrels, split)
    encoder = load(model, device, reading)
    if not manifest.model.fits(stamp(encoder)):
        raise InputError(folder, f"was made by another model ({manifest.model.name}), not by {model}")
    with Bars() as bars:
        documents = join_blocks(read_vectors_of(encoder, model, corpus, vectors, bars).blocks)
    _same_number(folder, manifest, documents)
    with open_engine(manifest.format, folder, url=url, documents=documents) as engine:
        parity = check_engine(
            engine,
            documents,
            encode_queries(encoder, asked),
            k=top,
            judgements=judgements,
            texts=[query.text for query in asked],
        )
    if json:
        show_json({"export": str(folder), "format": manifest.format, **parity.as_json()})
    else:
        show(headline(parity))
        for table in tables(parity):
            show_table(table)
    for fault in parity.faults[:FAULTS_SHOWN]:
        say(f"fault: {fault.query_id}: {fault.words}")
    if parity.faults:
        say(
            f"error: {folder}: {len(parity.faults):,} of {parity.queries:,} rankings differ by more than ties and "
            "rounding; load the export again"
        )
        raise SystemExit(FAULTS)
    say(f"{parity.queries:,} rankings are those of exact search, but for ties and rounding")


def _one_source(corpus: str | None, vectors: Path | None) -> None:
    if (corpus is None) == (vectors is None):
        raise ConfigError(
            "name the documents once: with --corpus CORPUS, or with --vectors DIR that `encode` wrote"
        )


def _check_sources(row: "EngineRow", corpus: str | None, vectors: Path | None, text: bool) -> None:
    """Where documents come from, once; texts beside vectors come from the corpus that they were encoded from."""
    if row.holds == "encoder":
        if corpus is not None or vectors is not None:
            raise ConfigError(f"{row.name} holds the encoder alone; leave out --corpus and --vectors")
    elif not text:
        _one_source(corpus, vectors)
    elif corpus is None:
        raise ConfigError("--text: name the corpus that holds the texts with --corpus")


def read_vectors_of(
    encoder: "SparseEncoder | None", name: str | None, corpus: str | None, folder: Path | None, bars: "Bars"
) -> "Vectors":
    """The documents' vectors: encoded as they are taken, or read from shards of the same model."""
    from sparse_adapt.collection.readers import count_documents, read_documents
    from sparse_adapt.retrieve.vectors.folder import open_vectors
    from sparse_adapt.retrieve.vectors.manifest import stamp
    from sparse_adapt.retrieve.vectors.shards import encode_vectors

    _one_source(corpus, folder)
    if folder is not None:
        opened = open_vectors(folder)
        if encoder is not None and not opened.model.fits(stamp(encoder)):
            raise InputError(folder, f"was encoded by another model ({opened.model.name}), not by {name}")
        return opened
    assert corpus is not None and encoder is not None, "checked before"
    total = count_documents(corpus)
    return encode_vectors(
        encoder, read_documents(corpus), model_name=name or "", progress=bars.count("documents", total)
    )


def _same_number(folder: Path, manifest: "ExportManifest", documents: "EncodedBatch") -> None:
    if manifest.documents not in (0, len(documents.ids)):
        raise InputError(
            folder, f"holds {manifest.documents:,} documents, not {len(documents.ids):,}; name its own corpus"
        )
