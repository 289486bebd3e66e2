"""The manifest of an export: what the folder holds, what the format cost, and a checksum of every file."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from sparse_adapt.collection.lines import read_lines
from sparse_adapt.errors import InputError
from sparse_adapt.files.records import JsonObject, Record, read_record
from sparse_adapt.plugins.engines.quantise import Entries, Quantisation, as_floats
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.retrieve.vectors.manifest import (
    MANIFEST_FILE,
    ModelStamp,
    aligned,
    check_file,
    numbers_of,
    read_tokens,
)

DOCUMENTS_FOLDER = "documents"

Fact = str | int | float | bool | None


class ExportFile(Record):
    """One file of an export, by its path inside the folder; `rows` of texts, where it holds any."""

    path: str
    rows: int
    sha256: str


class ExportManifest(Record):
    """What an export holds, and what the format cost: weights that became nothing or were clipped.

    `quantisation` is None where weights stay floats; `largest_weight` is then the most that the format holds.
    `empty_documents` and `empty_queries` have no entry left. `facts` are those of one format only.
    """

    format: str
    format_version: Literal[2] = 2
    model: ModelStamp
    quantisation: Quantisation | None = None
    rounding: Literal["nearest, ties to even"] | None = None
    largest_weight: float | None = None
    documents: int = 0
    empty_documents: int = 0
    entries: int = 0
    dropped: int = 0
    clipped: int = 0
    queries: int = 0
    empty_queries: int = 0
    parts: tuple[ExportFile, ...] = ()
    queries_file: ExportFile | None = None
    facts: Mapping[str, Fact] = {}

    @property
    def document_files(self) -> list[ExportFile]:
        """The files that hold documents, not settings."""
        return [file for file in self.parts if file.path.startswith(f"{DOCUMENTS_FOLDER}/")]

    def take(self, block: EncodedBatch) -> Entries:
        """A block as this format holds it. Raises InputError for a weight that is negative or no number."""
        if self.quantisation is not None:
            return self.quantisation.impacts(block)
        return as_floats(block) if self.largest_weight is None else as_floats(block, self.largest_weight)

    def counting(self, entries: Entries) -> "ExportManifest":
        """The manifest with the documents of one more block."""
        lengths = entries.vectors.getnnz(axis=1)
        return self.model_copy(
            update={
                "documents": self.documents + len(entries.ids),
                "empty_documents": self.empty_documents + int((lengths == 0).sum()),
                "entries": self.entries + int(lengths.sum()),
                "dropped": self.dropped + entries.dropped,
                "clipped": self.clipped + entries.clipped,
            }
        )

    def holding(self, *files: ExportFile, **facts: Fact) -> "ExportManifest":
        """The manifest with further files, and with facts that it states for its format alone."""
        return self.model_copy(update={"parts": (*self.parts, *files), "facts": {**self.facts, **facts}})


class ExportFolder(NamedTuple):
    """A finished export on the disk: where it lies, its manifest, the names of its tokens and exact words."""

    path: Path
    manifest: ExportManifest
    tokens: list[str]

    @property
    def numbers(self) -> list[int] | None:
        """The number of each dimension, where it isn't its place."""
        return numbers_of(self.tokens, self.manifest.model)

    def aligned(self, block: EncodedBatch) -> EncodedBatch:
        """Vectors as the model gives them in the dimensions that the export names."""
        return block._replace(vectors=aligned(block.vectors, self.tokens, self.manifest.model))

    def document_lines(self) -> Iterator[JsonObject]:
        """What each line of the files of documents holds, as JSON."""
        for file in self.manifest.document_files:
            yield from json_lines(self.path / file.path)

    def check_holds_weights(self, title: str) -> None:
        """Raise InputError where no document has a weight, of which the engine called `title` makes no index."""
        if self.manifest.entries == 0:
            kind = "weights" if self.manifest.quantisation is None else "impacts"
            raise InputError(
                self.path, f"holds no {kind}, of which {title} makes no index; export other documents"
            )


def file_there(folder: Path, path: str, rows: int = 0) -> ExportFile:
    """A file that lies in the folder already, with its checksum."""
    with (folder / path).open("rb") as file:
        return ExportFile(path=path, rows=rows, sha256=hashlib.file_digest(file, "sha256").hexdigest())


def json_lines(path: Path) -> Iterator[JsonObject]:
    """What each line of a file holds. Raises InputError with the line that isn't JSON."""
    for number, line in read_lines(path):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(path, f"isn't JSON ({error}); export again", line=number) from error


def read_export_manifest(folder: Path, format: str | None = None) -> ExportManifest:
    """The manifest of an export. Raises InputError unless it is of that format and every file is as written."""
    manifest = read_record(folder / MANIFEST_FILE, ExportManifest)
    if format is not None and manifest.format != format:
        raise InputError(
            folder, f"holds an export for {manifest.format}, not {format}; export again for {format}"
        )
    for file in (*manifest.parts, *filter(None, [manifest.queries_file])):
        check_file(folder / file.path, file.sha256)
    return manifest


def read_export(folder: Path, format: str | None = None) -> ExportFolder:
    """An export of a format, vouched for by its manifest. Raises InputError where it is another, or has changed."""
    manifest = read_export_manifest(folder, format)
    return ExportFolder(folder, manifest, read_tokens(folder, manifest.model))


# -- in words -------------------------------------------------------------------------------------


def remarks(manifest: ExportManifest) -> Iterator[str]:
    """What its maker should know of an export, a line each: how weights are stored, and what no search will find."""
    if "largest_difference" in manifest.facts:  # the encoder alone
        difference, bound = manifest.facts["largest_difference"], manifest.facts["bound"]
        yield f"weights differ from PyTorch's by {difference:.2g} at most; {bound:g} is allowed"
        if manifest.facts.get("renamed_tokens"):
            renamed = f"{manifest.facts['renamed_tokens']:,} tokens have another name there than in an export"
            yield f"{renamed} of vectors; fill an index from one of the two"
        if manifest.facts.get("cut_tokens"):
            yield f"{manifest.facts['cut_tokens']:,} tokens fall apart in Anserini, which has the vocabulary alone"
        return
    stored = manifest.quantisation
    smallest, largest = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)
    if stored is None:
        yield "weights are stored as they are"
        largest = largest if manifest.largest_weight is None else manifest.largest_weight
    else:
        yield f"weights are stored as whole numbers: weight x {stored.scale:g}, rounded"
        smallest, largest = 0.5 / stored.scale, stored.largest / stored.scale
    yield from _of_one_format(manifest.facts)
    weights = f"{manifest.entries + manifest.dropped:,} weights"
    if manifest.dropped:
        yield f"left out, because they are below {smallest:.3g}: {manifest.dropped:,} of {weights}"
    if manifest.clipped:
        yield f"cut to {largest:,g}, the largest that is stored: {manifest.clipped:,} of {weights}"
    if manifest.empty_documents:
        empty, documents = manifest.empty_documents, f"{manifest.documents:,} documents"
        yield f"found by no search, because no weight is left: {empty:,} of {documents}"
    if manifest.empty_queries:
        empty, queries = manifest.empty_queries, f"{manifest.queries + manifest.empty_queries:,} queries"
        yield f"left out, because no weight is left: {empty:,} of {queries}"


def _of_one_format(facts: Mapping[str, Fact]) -> Iterator[str]:
    """What one format alone may cost, by its facts."""
    if facts.get("renumbered_tokens"):
        yield f"tokens have other numbers than in the model: {facts['renumbered_tokens']:,} in numbers.json"
    if facts.get("cut_documents"):
        cut = f"{facts['cut_weights']:,} weights of {facts['cut_documents']:,} documents"
        yield f"left out, the lightest, because a document keeps {facts['most_weights']:,}: {cut}"
    if facts.get("hnsw") is False:
        yield f"no HNSW index, because a document has {facts['most_weights']:,} weights: searches are exact"
