"""Writing an export: the one way by which every engine's files come into a folder, with their manifest.

What differs from engine to engine is its `layout.ExportLayout`. A folder appears whole or not at all. A corpus is
encoded shard by shard before; the shards are kept beside the export until it is whole, since encoding is what takes
long: a killed export goes on from those that are there.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import OutputError
from sparse_adapt.files.folders import check_free, discard, output_folder, write_json, write_text
from sparse_adapt.files.marker import marker_of
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines.formats import EngineRow, check_takes, find_engine, module_of
from sparse_adapt.plugins.engines.layout import ExportSource, write_query_file
from sparse_adapt.plugins.engines.manifest import ExportFolder, ExportManifest, file_there
from sparse_adapt.plugins.engines.quantise import Quantisation
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors, open_vectors
from sparse_adapt.retrieve.vectors.manifest import MANIFEST_FILE, stamp_of_model, token_names, write_tokens
from sparse_adapt.retrieve.vectors.shards import DOCUMENTS_A_SHARD, check_encoded, encode_corpus

ReadDocuments = Callable[[], Iterable[Document]]
"""Reads a corpus from its beginning, as often as it is called."""


def write_export(
    name: str, source: ExportSource, place: Place, quantisation: Quantisation | None = None
) -> ExportFolder:
    """Write an export for the engine of that name into a new folder, block by block; nothing stays if it fails.

    `quantisation`: of weights, for engines that keep whole impacts. Raises ConfigError for a name that isn't in the
    table, and for what the engine can't take; MissingExtraError without a package that the engine's files need;
    InputError for a token, an id or a weight that it can't hold.
    """
    row = find_engine(name)
    check_takes(
        row,
        queries=source.queries is not None,
        texts=source.texts is not None,
        scaled=quantisation is not None,
    )
    with output_folder(replace(place, resume=False, resumable=False)) as work:
        manifest = write_into(work, row, source, quantisation)
    return ExportFolder(place.folder, manifest, source.vectors.tokens)


def write_into(
    work: Path, row: EngineRow, source: ExportSource, quantisation: Quantisation | None = None
) -> ExportManifest:
    """Write an export into a folder that is there and empty. Queries are in the model's columns."""
    if source.queries is not None:
        source = source._replace(queries=source.vectors.aligned(source.queries))
    layout = module_of(row).layout(source)
    impacts = row.weights == "impacts"
    manifest = ExportManifest(
        format=row.name,
        model=source.vectors.model,
        quantisation=quantisation or Quantisation() if impacts else None,
        rounding="nearest, ties to even" if impacts else None,
        largest_weight=layout.largest_weight,
        facts=dict(layout.facts),
    )
    if source.queries is not None:
        manifest = write_query_file(work, manifest, layout, source.queries)
    manifest = layout.documents(work, manifest, source.vectors.blocks)
    for path, content in layout.settings.items():
        if isinstance(content, str):
            write_text(work / path, content)
        else:
            write_json(work / path, content)
        manifest = manifest.holding(file_there(work, path))
    write_tokens(work, source.vectors.tokens)
    write_json(work / MANIFEST_FILE, manifest.model_dump())
    return manifest


# -- a corpus -------------------------------------------------------------------------------------


def export_corpus(
    name: str,
    encoder: SparseEncoder,
    read: ReadDocuments,
    place: Place,
    *,
    model_name: str = "",
    queries: EncodedBatch | None = None,
    quantisation: Quantisation | None = None,
    with_texts: bool = False,
    documents_a_shard: int = DOCUMENTS_A_SHARD,
    progress: Progress = no_progress,
) -> ExportFolder:
    """Encode a corpus and write it for the engine of that name into a new folder. `progress` hears of documents.

    `with_texts`: whether title and text of each document go along. Raises, before anything is encoded, ConfigError for
    what the engine can't take, InputError for a token that it can't hold and for shards of a killed export that are of
    another model or corpus, OutputError for a place that is taken.
    """
    row, made_by = find_engine(name), stamp_of_model(encoder, model_name)
    check_takes(row, queries=queries is not None, texts=with_texts, scaled=quantisation is not None)
    module_of(row).layout(ExportSource(Vectors(made_by, token_names(encoder), ()), queries, encoder))
    with _interim_shards(place) as shards:
        if place.resume and shards.is_dir():
            check_encoded(shards, made_by, read(), progress=progress)
        else:
            encode_corpus(
                encoder,
                read(),
                replace(place, folder=shards),
                model_name=model_name,
                documents_a_shard=documents_a_shard,
                progress=progress,
            )
        source = ExportSource(open_vectors(shards), queries, encoder, read() if with_texts else None)
        return write_export(name, source, place, quantisation)


def interim_folder(folder: Path) -> Path:
    """Where the vectors of an export lie while it isn't whole: under a name that nobody gives vectors of their own."""
    return folder.with_name(f".{folder.name}.vectors")


@contextmanager
def _interim_shards(place: Place) -> Iterator[Path]:
    """The folder of shards beside an export, which goes once the block, which writes the export, ends well.

    Raises OutputError for a place that is taken, before anything is encoded.
    """
    shards = interim_folder(place.folder)
    if place.resume and marker_of(place.folder) is not None:
        discard(shards)  # the export was whole when it was killed
    check_free(replace(place, resume=False, resumable=False))
    if marker_of(shards) is not None and not (place.resume or place.overwrite):
        advice = "pass --resume to continue it or --overwrite to start again"
        raise OutputError(f"{place.folder}: an unfinished export is in {shards}; {advice}")
    yield shards
    discard(shards)
