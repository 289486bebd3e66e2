"""Exporting a corpus: it is encoded shard by shard, then written for an engine in one go.

Encoding is what takes long, and the files of every engine are written from the same shards. So the shards are kept
beside the export until it is whole: a killed export goes on from those that are there.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sparse_adapt.collection.readers import Document
from sparse_adapt.engines.formats import check_takes, find_engine, module_of
from sparse_adapt.engines.layout import ExportSource
from sparse_adapt.engines.manifest import ExportFolder
from sparse_adapt.engines.writing import AS_A_RULE, ExportOptions, write_export
from sparse_adapt.errors import OutputError
from sparse_adapt.files.folders import check_free, discard
from sparse_adapt.files.marker import marker_of
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.watching import Heard, silent
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors, open_vectors
from sparse_adapt.retrieve.vectors.manifest import stamp, token_names
from sparse_adapt.retrieve.vectors.shards import check_encoded, encode_corpus

ReadDocuments = Callable[[], Iterable[Document]]
"""Reads a corpus from its beginning, as often as it is called."""


def export_corpus(
    name: str,
    encoder: SparseEncoder,
    read: ReadDocuments,
    folder: Path,
    *,
    model_name: str = "",
    queries: EncodedBatch | None = None,
    options: ExportOptions = AS_A_RULE,
    progress: Heard = silent,
) -> ExportFolder:
    """Encode a corpus and write it for the engine of that name into a new folder. `progress` hears of documents.

    Raises, before anything is encoded, ConfigError for what the engine can't take, InputError for a token that it can't
    hold and for shards of a killed export that are of another model or corpus, OutputError for a place that is taken.
    """
    row, made_by = find_engine(name), stamp(encoder, model_name)
    check_takes(
        row,
        queries=queries is not None,
        texts=options.with_texts,
        scaled=options.quantisation is not None,
    )
    module_of(row).layout(ExportSource(Vectors(made_by, token_names(encoder), ()), queries, encoder))
    with interim_shards(folder, options) as shards:
        if options.resume and shards.is_dir():
            check_encoded(shards, made_by, read(), progress=progress)
        else:
            encode_corpus(
                encoder,
                read(),
                shards,
                model_name=model_name,
                documents_a_shard=options.documents_a_shard,
                progress=progress,
                resume=options.resume,
                overwrite=options.overwrite,
                reads=options.reads,
            )
        texts = read() if options.with_texts else None
        source = ExportSource(open_vectors(shards), queries, encoder, texts)
        return write_export(name, source, folder, options)


def interim_folder(folder: Path) -> Path:
    """Where the vectors of an export lie while it isn't whole: under a name that nobody gives vectors of their own."""
    return folder.with_name(f".{folder.name}.vectors")


@contextmanager
def interim_shards(folder: Path, options: ExportOptions) -> Iterator[Path]:
    """The folder of shards beside an export, which goes once the block, which writes the export, ends well.

    Raises OutputError for a place that is taken, before anything is encoded.
    """
    shards = interim_folder(folder)
    if options.resume and marker_of(folder) is not None:
        discard(shards)  # the export was whole when it was killed
    check_free(Place(folder, overwrite=options.overwrite, reads=options.reads, resumable=False))
    if marker_of(shards) is not None and not (options.resume or options.overwrite):
        advice = "pass --resume to continue it or --overwrite to start again"
        raise OutputError(f"{folder}: an unfinished export is in {shards}; {advice}")
    yield shards
    discard(shards)
