"""Building a Lucene index of impacts through Anserini, from an export for it or from vectors."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from threading import Thread
from typing import Any

from sparse_adapt.engines.formats import find_engine
from sparse_adapt.engines.java import (
    anserini_jar,
    detach,
    forget_errors,
    java_class,
    java_error,
    logged_error,
    reason,
)
from sparse_adapt.engines.layout import ExportSource
from sparse_adapt.engines.lucene import CARD_FILE, IndexCard
from sparse_adapt.engines.manifest import DOCUMENTS_FOLDER, ExportManifest, read_export_manifest
from sparse_adapt.engines.quantise import Quantisation
from sparse_adapt.engines.writing import write_into
from sparse_adapt.errors import ConfigError, OutputError
from sparse_adapt.files.folders import output_folder, write_json
from sparse_adapt.files.place import Place
from sparse_adapt.report.watching import Heard, silent
from sparse_adapt.retrieve.vectors.folder import open_vectors
from sparse_adapt.retrieve.vectors.manifest import read_format, read_tokens, write_tokens

BUFFER_MEGABYTES = 256  # that Lucene fills before it writes a segment
SECONDS_A_LOOK = 0.2


def build_index(
    vectors: Path,
    index: Path,
    *,
    threads: int | None = None,
    quantisation: Quantisation | None = None,
    overwrite: bool = False,
    progress: Heard = silent,
) -> IndexCard:
    """Index what `encode` or `export anserini` wrote; the former is quantised on the way, by default x 100.

    Documents without an impact are left out, since nothing can find them. `progress` hears how many more
    documents are in. What a killed call left is begun anew. Raises InputError for a folder that its manifest doesn't
    vouch for, OutputError when Anserini fails; nothing stays at `index` then.
    """
    java_class("io.anserini.index.IndexCollection")  # a missing extra shows before anything is written
    with output_folder(Place(index, overwrite=overwrite, resumable=False, reads=[vectors])) as work:
        with _collection(vectors, work / "collection", quantisation) as (folder, manifest):
            assert manifest.quantisation is not None, manifest.format
            tokens = read_tokens(folder, manifest.model)
            parallel = min(threads or os.cpu_count() or 1, len(manifest.parts))
            problem = _run_indexer(folder / DOCUMENTS_FOLDER, work, parallel, progress)
        indexed, expected = _count(work), manifest.documents - manifest.empty_documents
        if indexed != expected:
            advice = f"{problem or 'Anserini gives no reason'}; nothing was kept"
            raise OutputError(f"{index}: Lucene holds {indexed:,} of {expected:,} documents ({advice})")
        card = IndexCard(
            engine=anserini_jar().stem.removesuffix("-fatjar"),
            model=manifest.model,
            quantisation=manifest.quantisation,
            documents=manifest.documents,
            empty_documents=manifest.empty_documents,
        )
        write_tokens(work, tokens)
        write_json(work / CARD_FILE, card.model_dump())
    return card


@contextmanager
def _collection(
    vectors: Path, scratch: Path, quantisation: Quantisation | None
) -> Iterator[tuple[Path, ExportManifest]]:
    """A folder in Anserini's layout: the given one, or one made from shards for the while."""
    if read_format(vectors) == "vectors":
        scratch.mkdir()
        source = ExportSource(open_vectors(vectors))
        yield scratch, write_into(scratch, find_engine("anserini"), source, quantisation)
        rmtree(scratch)
        return
    manifest = read_export_manifest(vectors, "anserini")
    stored = manifest.quantisation
    if stored is not None and quantisation not in (None, stored):
        raise ConfigError(f"{vectors}: quantised already, x {stored.scale:g}; export it again")
    yield vectors, manifest


def _run_indexer(documents: Path, index: Path, threads: int, progress: Heard) -> str:
    """Have Anserini index a folder; what it says went wrong, if it says so.

    It runs in a thread of its own, so that Ctrl-C is heard. Its own counts are no proof: they rise before
    the index is on the disk, and an error while it is written is only logged.
    """
    settings = java_class("io.anserini.index.IndexCollection$Args")()
    settings.collectionClass, settings.input, settings.index = (
        "JsonVectorCollection",
        str(documents),
        str(index),
    )
    settings.impact = settings.pretokenized = settings.optimize = settings.quiet = True
    settings.threads, settings.memoryBuffer = max(1, threads), BUFFER_MEGABYTES
    problems: list[str] = []
    forget_errors()
    try:
        indexer = java_class("io.anserini.index.IndexCollection")(settings)
    except java_error() as error:
        return reason(error)
    worker = Thread(target=_run_java, args=(indexer, problems), daemon=True)
    worker.start()
    done = 0
    while worker.is_alive():
        worker.join(SECONDS_A_LOOK)
        indexed = int(indexer.getCounters().indexed.get())
        if indexed > done:
            progress(indexed - done)
        done = indexed
    (index / "write.lock").unlink(missing_ok=True)
    return problems[0] if problems else logged_error()


def _count(index: Path) -> int:
    """Documents in an index as it lies on the disk; 0 where there is none that opens."""
    try:
        searcher = java_class("io.anserini.search.SimpleImpactSearcher")(str(index))
    except java_error():
        return 0
    documents = int(searcher.get_total_num_docs())
    searcher.close()
    return documents


def _run_java(runnable: Any, problems: list[str]) -> None:  # noqa: ANN401 - a Java object
    try:
        runnable.run()
    except java_error() as error:
        problems.append(reason(error))
    finally:
        detach()
