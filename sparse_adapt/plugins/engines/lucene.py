"""A Lucene index of impacts, built and searched by Anserini: the ranking that production will see.

A document's score is the sum over shared tokens of query impact x document impact, a whole number, exact in
Lucene's 32-bit floats up to 16,777,216. Documents of equal score come in the order of their ids.
Dimensions: V vocabulary.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from threading import Thread
from types import TracebackType
from typing import Literal, NamedTuple, Protocol

from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.errors import ConfigError, InputError, OutputError
from sparse_adapt.files.folders import output_folder, write_json
from sparse_adapt.files.marker import faults, marker_of
from sparse_adapt.files.place import Place
from sparse_adapt.files.records import Record, read_record
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines.engine import ImpactEngine
from sparse_adapt.plugins.engines.formats import find_engine
from sparse_adapt.plugins.engines.java import (
    anserini_jar,
    forget_errors,
    java_class,
    java_error,
    java_path,
    logged_error,
    reason,
)
from sparse_adapt.plugins.engines.layout import ExportSource, escape_token
from sparse_adapt.plugins.engines.lucene_features import ANY_NUMBER_OF_TOKENS
from sparse_adapt.plugins.engines.manifest import DOCUMENTS_FOLDER, ExportManifest, read_export_manifest
from sparse_adapt.plugins.engines.quantise import Quantisation
from sparse_adapt.plugins.engines.writing import write_into
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.hybrid import query_vectors
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, open_vectors
from sparse_adapt.retrieve.vectors.manifest import (
    ModelStamp,
    aligned,
    read_format,
    read_tokens,
    stamp_of_model,
    write_tokens,
)

CARD_FILE = "index.json"
LONGEST_WORD = 255  # UTF-16 units; Lucene's WhitespaceAnalyzer cuts what is longer in two
BUFFER_MEGABYTES = 256  # that Lucene fills before it writes a segment
SECONDS_A_LOOK = 0.2


class IndexCard(Record):
    """What an index was made from: the model that its queries must come from, the scale, the counts."""

    format: Literal["lucene"] = "lucene"
    format_version: Literal[1] = 1
    engine: str
    model: ModelStamp
    quantisation: Quantisation
    documents: int
    empty_documents: int


class LuceneHit(NamedTuple):
    """A document, its score in terms of weights, and the whole number that Lucene ranked it by."""

    document_id: str
    score: float
    impact: int


class LuceneIndex(ImpactEngine):
    """An index that `build_index` made, open for searching. Use it in a `with` block, or close it."""

    tolerance = 0.0

    def __init__(self, folder: Path) -> None:
        """Open the index in a folder. Raises InputError where there is none, or one that is damaged."""
        self.folder = folder
        self.card = read_card(folder)
        super().__init__(self.card.quantisation)
        self.tokens = read_tokens(folder, self.card.model)
        searcher = java_class("io.anserini.search.SimpleImpactSearcher")
        java_class("org.apache.lucene.search.IndexSearcher").setMaxClauseCount(ANY_NUMBER_OF_TOKENS)
        try:
            self._searcher = searcher(java_path(folder))
        except java_error() as error:
            raise InputError(
                folder, f"Lucene can't open this index ({reason(error)}); build it again"
            ) from error
        stored = self._searcher.get_total_num_docs()
        expected = self.card.documents - self.card.empty_documents
        if stored != expected:
            raise InputError(folder, f"holds {stored:,} documents, not {expected:,}; build it again")

    def __enter__(self) -> "LuceneIndex":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the index's files."""
        self._searcher.close()

    def check_model(self, model: ModelStamp) -> None:
        """Raise InputError unless a model's queries can be put to this index."""
        card = self.card.model
        if model.vocabulary_sha256 != card.vocabulary_sha256:
            sizes = f"{card.vocabulary_size:,} tokens there, {model.vocabulary_size:,} here"
            problem = f"was made with another vocabulary, that of {card.name} ({sizes})"
        elif not card.fits(model):
            problem = f"was made by other weights of the same vocabulary ({card.name})"
        else:
            return
        raise InputError(self.folder, f"{problem}; search with that model, or index again with {model.name}")

    def search(self, query: Mapping[str, int] | csr_matrix, k: int) -> list[LuceneHit]:
        """The k best documents for a query, best first, those without a shared token left out.

        query: tokens with their impacts, or one row (1, V) of weights, which is quantised like the documents.
        """
        if not isinstance(query, Mapping):
            return self.search(self._impacts(EncodedBatch(["query"], query))[0], k)
        words = java_class("java.util.HashMap")()
        integer = java_class("java.lang.Integer")
        for token, impact in query.items():
            words.put(lucene_name(token), integer(impact))
        results = self._searcher.search(words, k) if query and k > 0 else []
        impacts = [round(result.score) for result in results]  # Anserini takes a millionth off tied scores
        return [
            LuceneHit(result.docid, self.quantisation.score(impact), impact)
            for result, impact in zip(results, impacts, strict=True)
        ]

    @property
    def name(self) -> str:
        """Anserini with its version."""
        return self.card.engine

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """A run: for each query id its k best documents with their scores."""
        return {
            query_id: {hit.document_id: hit.score for hit in self.search(query, k)}
            for query_id, query in zip(queries.ids, self._impacts(queries), strict=True)
        }

    def _impacts(self, block: EncodedBatch) -> list[dict[str, int]]:
        """Each row as tokens with their impacts; a word that no document of the index holds is left out."""
        if block.vectors.shape[1] == self.card.model.width:
            block = block._replace(vectors=aligned(block.vectors, self.tokens, self.card.model))
        if block.vectors.shape[1] != len(self.tokens):
            raise InputError(
                self.folder, f"has {len(self.tokens):,} tokens, the query vector {block.vectors.shape[1]:,}"
            )
        impacts = self.quantisation.impacts(block)
        return [
            {self.tokens[column]: value for column, value in zip(columns, values, strict=True)}
            for _, columns, values in impacts.rows()
        ]


def lucene_name(token: str) -> str:
    """A token as Lucene will keep it whole (`escape_token`). Raises InputError for one that is too long."""
    name = escape_token(token)
    if not 0 < len(name.encode("utf-16-le")) // 2 <= LONGEST_WORD:
        raise InputError(
            repr(token[:40]), f"this token has {len(token)} characters, Lucene takes 1 to {LONGEST_WORD}"
        )
    return name


def read_card(folder: Path) -> IndexCard:
    """What an index was made from. Raises InputError where there is none."""
    path = folder / CARD_FILE
    if not path.is_file():
        raise InputError(folder, f"no {CARD_FILE} here; make an index with: sparse-adapt index")
    return read_record(path, IndexCard)


def verify_index(folder: Path) -> int:
    """How many files of an index are as they were written: all of them.

    Raises InputError for one that has changed or is gone, and for a folder that vouches for none.
    """
    marker = marker_of(folder)
    if marker is None or not marker.sha256:
        raise InputError(folder, "bears no checksums of its files; index again with this version")
    for fault in faults(folder):
        raise InputError(fault.path, f"{fault.problem}; index again")
    return len(marker.sha256)


def look_up(query: str, model: SparseEncoder, index: LuceneIndex, k: int = 10) -> list[LuceneHit]:
    """The k best documents for a query in words. Raises InputError when the index is of another model."""
    index.check_model(stamp_of_model(model))
    return index.search(query_vectors(model, [query]), k)


# -- building -------------------------------------------------------------------------------------


def build_index(
    vectors: Path,
    place: Place,
    *,
    threads: int | None = None,
    quantisation: Quantisation | None = None,
    progress: Progress = no_progress,
) -> IndexCard:
    """Index what `encode` or `export anserini` wrote; the former is quantised on the way, by default x 100.

    Documents without an impact are left out, since nothing can find them. `progress` hears how many more
    documents are in. What a killed call left is begun anew. Raises InputError for a folder that its manifest doesn't
    vouch for, OutputError when Anserini fails; nothing stays at the place then.
    """
    java_class("io.anserini.index.IndexCollection")  # a missing extra shows before anything is written
    with output_folder(replace(place, resumable=False, reads=[vectors])) as work:
        with _collection(vectors, work / "collection", quantisation) as (folder, manifest):
            assert manifest.quantisation is not None, manifest.format
            tokens = read_tokens(folder, manifest.model)
            parallel = min(threads or os.cpu_count() or 1, len(manifest.parts))
            problem = _run_indexer(folder / DOCUMENTS_FOLDER, work, parallel, progress)
        indexed, expected = _count(work), manifest.documents - manifest.empty_documents
        if indexed != expected:
            advice = f"{problem or 'Anserini gives no reason'}; nothing was kept"
            raise OutputError(
                f"{place.folder}: Lucene holds {indexed:,} of {expected:,} documents ({advice})"
            )
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


def _run_indexer(documents: Path, index: Path, threads: int, progress: Progress) -> str:
    """Have Anserini index a folder; what it says went wrong, if it says so.

    It runs in a thread of its own, so that Ctrl-C works. Its own counts are no proof: they rise before
    the index is on the disk, and an error while it is written is only logged.
    """
    settings = java_class("io.anserini.index.IndexCollection$Args")()
    settings.collectionClass = "JsonVectorCollection"
    settings.input, settings.index = java_path(documents), java_path(index)
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
        searcher = java_class("io.anserini.search.SimpleImpactSearcher")(java_path(index))
    except java_error():
        return 0
    documents = int(searcher.get_total_num_docs())
    searcher.close()
    return documents


class Runnable(Protocol):
    """A Java object that has something to do."""

    def run(self) -> object:
        """Do it."""


def _run_java(runnable: Runnable, problems: list[str]) -> None:
    import jnius

    try:
        runnable.run()
    except java_error() as error:
        problems.append(reason(error))
    finally:
        jnius.detach()
