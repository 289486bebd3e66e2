"""A corpus as vectors in the files of a search engine, and the engine beside exact search: `export`, `check_export`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sparse_adapt.api.checks import a_corpus_or_vectors, a_file_or_folder, a_folder, check_output
from sparse_adapt.api.indexing import MANIFEST, is_vectors, vectors_at
from sparse_adapt.api.options import (
    CORPUS_HELP,
    MODEL_HELP,
    Columns,
    Device,
    Model,
    Option,
    Out,
    Overwrite,
    Queries,
    Reads,
    Resume,
    Scale,
    SomeQueries,
    Split,
    Vectors,
    corpus_option,
    declared,
    model_option,
)
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.place import Place
from sparse_adapt.plugins.engines.formats import (
    check_opening,
    check_takes,
    engines,
    find_engine,
    module_of,
    open_engine,
)
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.report.results import Result
from sparse_adapt.report.sections import CommandText

if TYPE_CHECKING:
    from sparse_adapt.api.models import ModelLike
    from sparse_adapt.collection.arguments import DocumentsLike, JudgementsLike, QueriesLike
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.plugins.engines.formats import EngineRow
    from sparse_adapt.plugins.engines.manifest import ExportManifest
    from sparse_adapt.plugins.engines.quantise import Quantisation
    from sparse_adapt.retrieve.vectors.folder import Vectors as EncodedVectors

FAULTS_SHOWN = 10
ONE_SOURCE = "name the documents once: with --corpus CORPUS, or with --vectors DIR that `encode` wrote"


@declared
def export(
    format: Annotated[
        str,
        Option(f"The engine: {', '.join(row.name for row in engines())}.", metavar="FORMAT", place=True),
    ],
    model: Annotated["ModelLike | None", model_option(f"{MODEL_HELP} Vectors alone need none.")],
    corpus: Annotated[
        "DocumentsLike | None", Option(CORPUS_HELP, metavar="CORPUS", check=a_corpus_or_vectors)
    ],
    out: Out,
    *,
    vectors: Vectors = None,
    queries: SomeQueries = None,
    scale: Scale = None,
    largest: Annotated[
        int | None,
        Option("Largest whole number of a weight, to which larger ones are cut: 255 fits into 8 bits."),
    ] = None,
    texts: Annotated[
        "bool | DocumentsLike",
        Option("Write titles and texts too (OpenSearch, Elasticsearch)."),
    ] = False,
    columns: Columns = (),
    device: Device = "auto",
    overwrite: Overwrite = False,
    resume: Resume = False,
    progress: bool | None = None,
    **reading: Reads,
) -> Result:
    """Write a corpus in the format of a search engine.

    The documents come from a corpus, or from vectors that `sparse-adapt encode` wrote.

    Vectors need no model; formats that hold the encoder alone need no corpus. Engines that keep whole impacts have the
    weight x `scale`, rounded, at most `largest`. Beside vectors, `texts` are the documents that have them. Raises
    ConfigError for what the format can't take, MissingExtraError without a package that it needs, OutputError for a
    place that is taken.

    >>> import tempfile, sparse_adapt as sa
    >>> folder = tempfile.mkdtemp() + "/export"
    >>> made = sa.export("opensearch", "splade-tiny", ["a bird sings", "we save money"], folder, device="cpu")
    >>> made.manifest.documents
    2
    """
    row, place = find_engine(format), Path(out)
    with_texts = texts is not False
    scaled = scale is not None or largest is not None
    check_takes(row, queries=queries is not None, texts=with_texts, scaled=scaled)
    corpus, texts = _documents(row, corpus, vectors, texts)
    ready = isinstance(corpus, str | Path) and is_vectors(corpus)
    if vectors is not None and not ready:
        raise InputError(vectors, "holds no vectors: no manifest.json here of `encode`")
    if ready and texts is True:
        raise ConfigError("vectors hold no texts; name the documents that have them: --corpus CORPUS")
    if model is None and (not ready or queries is not None or row.holds == "encoder"):
        raise ConfigError("--model: name the model that made the vectors; only vectors alone need none")
    where = Place(place, overwrite, resume)
    check_output(where)
    from sparse_adapt.api.models import load_sparse
    from sparse_adapt.collection.arguments import Corpus, queries_of, with_columns
    from sparse_adapt.plugins.engines.layout import ExportSource
    from sparse_adapt.plugins.engines.writing import export_corpus, write_export
    from sparse_adapt.retrieve.vectors.shards import encode_queries

    test_queries = None if queries is None else queries_of(queries, columns)
    sparse_model, encoder = (None, None) if model is None else load_sparse(model, device, **reading)
    name = "" if sparse_model is None else sparse_model.source
    encoded = None if test_queries is None or encoder is None else encode_queries(encoder, test_queries)
    named = (each for each in (name, queries) if isinstance(each, str | Path) and each)
    reads = (*_read_of(corpus, texts), *named)
    where, quantisation = where.reading(reads), _quantisation(scale, largest)
    texts = texts if isinstance(texts, bool) else with_columns(texts, columns)
    if ready or corpus is None or encoder is None:
        given = None if isinstance(texts, bool) else Corpus.of(texts).read()
        source = ExportSource(_ready(encoder, name, corpus), encoded, encoder, given)
        done = write_export(format, source, where, quantisation)
    else:
        documents = Corpus.of(corpus, columns)
        with progress_bars(progress) as bars:
            done = export_corpus(
                format,
                encoder,
                documents.read,
                where,
                model_name=name,
                queries=encoded,
                quantisation=quantisation,
                with_texts=with_texts,
                progress=bars.count("documents", documents.count()),
            )
    return _exported(done.path, done.manifest, module_of(row).how_to_load(done))


def _exported(folder: Path, made: "ExportManifest", loading: str) -> Result:
    """What was written, how weights are stored and which were left out, and how the export is loaded."""
    from sparse_adapt.plugins.engines.manifest import remarks

    contents = (
        f"{made.documents:,} documents with {made.entries:,} weights" if made.documents else "the encoder"
    )
    contents += f", {made.queries:,} queries" if made.documents and made.queries else ""
    headline, notes = f"{made.format} in {folder}: {contents}", tuple(remarks(made))
    files = (*made.parts, *filter(None, [made.queries_file]))
    return Result(
        headline,
        {"folder": str(folder), "loading": loading, **made.model_dump(mode="json")},
        [headline, *notes, "", CommandText(loading)],
        [(folder, contents)],
        loading.split("\n"),
        rows=[{"file": file.path, "rows": file.rows, "sha256": file.sha256} for file in files],
        notes=notes,
        quiet=True,
        folder=folder,
        manifest=made,
    )


def _documents(
    row: "EngineRow",
    corpus: "DocumentsLike | None",
    vectors: str | Path | None,
    texts: "bool | DocumentsLike",
) -> "tuple[DocumentsLike | None, bool | DocumentsLike]":
    """What is exported, and the documents whose texts stand beside it. Raises ConfigError for both or none."""
    if row.holds == "encoder":
        if corpus is not None or vectors is not None:
            raise ConfigError(f"{row.name} holds the encoder alone; leave out --corpus and --vectors")
        return None, texts
    if vectors is None:
        if corpus is None:
            raise ConfigError(f"{row.name} holds documents: {ONE_SOURCE}")
        return corpus, texts
    if corpus is None and texts is True:
        raise ConfigError("--texts: name the corpus that holds the texts with --corpus")
    if corpus is None:
        return vectors, texts
    if texts is not True:
        raise ConfigError(ONE_SOURCE)
    return vectors, corpus


def _read_of(*given: object) -> list[str | Path]:
    """Where corpora lie that are named: folders of vectors, or the files that hold documents."""
    from sparse_adapt.collection.readers import documents_at

    named = [each for each in given if isinstance(each, str | Path) and str(each)]
    places = [each if is_vectors(each) else documents_at(each) for each in named]
    return [place for place in places if place is not None]


def _quantisation(scale: float | None, largest: int | None) -> "Quantisation | None":
    from sparse_adapt.plugins.engines.quantise import DEFAULT_LARGEST, DEFAULT_SCALE, Quantisation

    if scale is None and largest is None:
        return None
    return Quantisation.of(
        DEFAULT_SCALE if scale is None else scale, DEFAULT_LARGEST if largest is None else largest
    )


def _ready(encoder: "SparseEncoder | None", name: str, corpus: "DocumentsLike | None") -> "EncodedVectors":
    """Vectors that were encoded before, or none of them and who would have made them."""
    from sparse_adapt.retrieve.vectors.folder import Vectors as EncodedVectors
    from sparse_adapt.retrieve.vectors.manifest import stamp_of_model, token_names

    if corpus is None:
        assert encoder is not None, "checked before"
        return EncodedVectors(stamp_of_model(encoder, name), token_names(encoder), ())
    assert isinstance(corpus, str | Path), "checked before"
    return vectors_at(Path(corpus), encoder, name)


# -- the engine itself ------------------------------------------------------------------------------


@declared
def check_export(
    folder: Annotated[
        str | Path, Option("A folder that `export` wrote.", metavar="DIR", place=True, check=a_folder)
    ],
    model: Model,
    queries: Queries,
    *,
    corpus: Annotated[
        "DocumentsLike | None",
        corpus_option(f"The documents of the export; by default those beside the queries. {CORPUS_HELP}"),
    ] = None,
    vectors: Vectors = None,
    qrels: Annotated[
        "JudgementsLike | None",
        Option("Judgements: a BEIR folder, TSV or TREC qrels.", metavar="FILE", check=a_file_or_folder),
    ] = None,
    split: Split = "test",
    top: Annotated[int, Option("Documents to compare for each query.", ge=1)] = 10,
    url: Annotated[str, Option("Address of an engine that is a server.", metavar="URL")] = "",
    columns: Columns = (),
    device: Device = "auto",
    progress: bool | None = None,
    **reading: Reads,
) -> Result:
    """Load an export into its engine and compare the rankings.

    Every ranking is compared with exact search. Exit status 1 if a difference is neither a tie nor due to rounding.

    >>> import tempfile, sparse_adapt as sa
    >>> folder, birds = tempfile.mkdtemp() + "/export", ["a bird sings", "we save money"]
    >>> _ = sa.export("parquet", "splade-tiny", birds, folder, device="cpu")
    >>> len(sa.check_export(folder, "splade-tiny", ["which birds sing"], corpus=birds, device="cpu").parity.faults)
    0
    """
    place = Path(folder)
    if not (place / MANIFEST).is_file():
        raise InputError(folder, f"holds no export: no {MANIFEST} here; make one with: sparse-adapt export")
    if corpus is None and vectors is None:
        corpus = _beside(queries)
    if (corpus is None) == (vectors is None):
        raise ConfigError(ONE_SOURCE)
    from sparse_adapt.api.models import load_sparse
    from sparse_adapt.collection.arguments import judgements_of, queries_of, with_columns
    from sparse_adapt.plugins.engines.manifest import read_export
    from sparse_adapt.plugins.engines.parity import check_engine, headline, tables
    from sparse_adapt.retrieve.vectors.folder import join_blocks
    from sparse_adapt.retrieve.vectors.manifest import stamp_of_model
    from sparse_adapt.retrieve.vectors.shards import encode_queries

    export, test_queries = read_export(place), queries_of(queries, columns)
    manifest = export.manifest
    check_opening(manifest.format, url)  # before anything is encoded
    judged = None if qrels is None else judgements_of(qrels, split)
    sparse_model, encoder = load_sparse(model, device, **reading)
    if not manifest.model.fits(stamp_of_model(encoder)):
        raise InputError(
            folder, f"was made by another model ({manifest.model.name}), not by {sparse_model.source}"
        )
    if vectors is not None:
        encoded = vectors_at(Path(vectors), encoder, sparse_model.source)
        if encoded.tokens != export.tokens:
            raise InputError(
                vectors, f"holds other words than {folder}, so it is of other documents; name its own"
            )
        documents = join_blocks(encoded.blocks)
    else:
        assert corpus is not None, "checked before"
        corpus = with_columns(corpus, columns)
        encoded = _encoded(encoder, sparse_model.source, corpus, progress)
        documents = export.aligned(join_blocks(encoded.blocks))
    if manifest.documents not in (0, len(documents.ids)):
        difference = f"{manifest.documents:,} documents, not {len(documents.ids):,}"
        raise InputError(folder, f"holds {difference}; name its own corpus")
    with open_engine(manifest.format, place, url=url, documents=documents) as engine:
        parity = check_engine(
            engine,
            documents,
            export.aligned(encode_queries(encoder, test_queries)),
            k=top,
            judgements=judged,
            texts=[query.text for query in test_queries],
        )
    differ = f"{len(parity.faults):,} of {parity.queries:,} rankings differ by more than ties and rounding"
    agree = f"{parity.queries:,} rankings are those of exact search, but for ties and rounding"
    faults = [f"fault: {fault.query_id}: {fault.words}" for fault in parity.faults[:FAULTS_SHOWN]]
    return Result(
        headline(parity),
        {"export": str(folder), "format": manifest.format, **parity.as_json()},
        [headline(parity), *tables(parity)],
        notes=faults or [agree],
        failed=f"{folder}: {differ}; load the export again" if faults else "",
        parity=parity,
    )


def _beside(queries: "QueriesLike") -> str | None:
    """The collection that a place of queries is, or lies in, where that has documents."""
    from sparse_adapt.collection.readers import DOCUMENT_FILES
    from sparse_adapt.collection.sources import bundled, file_beside

    if not isinstance(queries, str | Path):
        return None
    there = any(file_beside(queries, name) for name in DOCUMENT_FILES)
    folder = bundled(queries) if bundled(queries).is_dir() else Path(queries).parent
    return str(folder) if there else None


def _encoded(
    encoder: "SparseEncoder", name: str, corpus: "DocumentsLike", progress: bool | None
) -> "EncodedVectors":
    """The vectors of a corpus, all of which were encoded."""
    from sparse_adapt.collection.arguments import Corpus
    from sparse_adapt.retrieve.vectors.shards import encode_vectors

    source = Corpus.of(corpus)
    with progress_bars(progress) as bars:
        advance = bars.count("documents", source.count())
        encoded = encode_vectors(encoder, source.read(), model_name=name, progress=advance)
        return encoded._replace(blocks=list(encoded.blocks))
