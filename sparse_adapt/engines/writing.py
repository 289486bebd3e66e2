"""Writing an export: the one way by which every engine's files come into a folder, with their manifest.

    FOLDER/documents/part-00000.*    the documents, in as many files as the engine takes, or one file
    FOLDER/queries.*                 the queries, where there are any
    FOLDER/tokens.json, manifest.json

What differs from engine to engine is its `layout.ExportLayout`. A folder appears whole or not at all.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sparse_adapt.collection.readers import Document
from sparse_adapt.engines.formats import EngineRow, check_takes, find_engine, module_of
from sparse_adapt.engines.layout import ExportLayout, ExportSource, Lines, WriteDocuments
from sparse_adapt.engines.lines import ExportBatch, LineSize, small_batches, text_fields
from sparse_adapt.engines.manifest import (
    DOCUMENTS_FOLDER,
    ExportFile,
    ExportFolder,
    ExportManifest,
    file_there,
)
from sparse_adapt.engines.quantise import Quantisation
from sparse_adapt.errors import InputError
from sparse_adapt.files.folders import output_folder, write_json, write_text
from sparse_adapt.files.place import Place, Reads
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.retrieve.vectors.manifest import MANIFEST_FILE, write_tokens
from sparse_adapt.retrieve.vectors.shards import DOCUMENTS_A_SHARD

CheckId = Callable[[str], None]
"""Raises InputError for the id of a text that the engine can't hold."""


@dataclass(frozen=True, kw_only=True)
class ExportOptions:
    """How an export is written.

    `quantisation`: of weights, for engines that keep whole impacts. `overwrite`: whether a finished export may be
    replaced, but never what the command `reads`. `resume`: whether a killed export is gone on with. `with_texts`:
    whether title and text of each document go along, for engines that store them. `documents_a_shard`: how many are
    encoded before they are kept.
    """

    quantisation: Quantisation | None = None
    overwrite: bool = False
    resume: bool = False
    with_texts: bool = False
    documents_a_shard: int = DOCUMENTS_A_SHARD
    reads: Reads = ()


AS_A_RULE = ExportOptions()


def write_export(
    name: str, source: ExportSource, folder: Path, options: ExportOptions = AS_A_RULE
) -> ExportFolder:
    """Write an export for the engine of that name into a new folder, block by block; nothing stays if it fails.

    Raises ConfigError for a name that isn't in the table, and for what the engine can't take; MissingExtraError
    without a package that the engine's files need; InputError for a token, an id or a weight that it can't hold.
    """
    row = find_engine(name)
    check_takes(
        row,
        queries=source.queries is not None,
        texts=source.texts is not None,
        scaled=options.quantisation is not None,
    )
    with output_folder(
        Place(folder, overwrite=options.overwrite, resumable=False, reads=options.reads)
    ) as work:
        manifest = write_into(work, row, source, options.quantisation)
    return ExportFolder(folder, manifest, source.vectors.tokens)


def write_into(
    work: Path, row: EngineRow, source: ExportSource, quantisation: Quantisation | None = None
) -> ExportManifest:
    """Write an export into a folder that is there and empty."""
    begun = _begin(row, source, quantisation)
    layout = module_of(row).layout(source)
    manifest = begun.model_copy(update={"largest_weight": layout.largest_weight, "facts": dict(layout.facts)})
    if source.queries is not None:
        manifest = _write_queries(work, manifest, layout, source.queries)
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


def id_of_bytes(title: str, most: int) -> CheckId:
    """The check that a document's id has 1 to `most` bytes, for the engine that people call `title`."""

    def check(document_id: str) -> None:
        found = len(document_id.encode())
        if not 0 < found <= most:
            raise InputError(
                repr(document_id[:40]), f"this document id has {found:,} bytes, {title} takes 1 to {most:,}"
            )

    return check


def in_parts(
    lines: Lines,
    *,
    suffix: str = "jsonl",
    requests: LineSize | None = None,
    check_id: CheckId | None = None,
    texts: Iterable[Document] | None = None,
) -> WriteDocuments:
    """Documents in a file a block, `documents/part-00000.SUFFIX`; with `requests` no file is too large for one.

    `texts`: the documents themselves, whose titles and texts the lines are to hold.
    """

    def write_parts(work: Path, manifest: ExportManifest, blocks: Iterable[EncodedBatch]) -> ExportManifest:
        (work / DOCUMENTS_FOLDER).mkdir()
        checked = blocks if check_id is None else _checked(blocks, check_id)
        batches = _without_texts(checked) if texts is None else _with_texts(checked, texts)
        for number, batch in enumerate(batches if requests is None else small_batches(batches, requests)):
            entries = manifest.take(EncodedBatch(batch.ids, batch.vectors))._replace(fields=batch.fields)
            path = f"{DOCUMENTS_FOLDER}/part-{number:05d}.{suffix}"
            digest = _write_lines(work / path, lines(entries))[1]
            part = ExportFile(path=path, rows=len(batch.ids), sha256=digest)
            manifest = manifest.counting(entries).holding(part)
        return manifest

    return write_parts


def in_one_file(lines: Lines, path: str) -> WriteDocuments:
    """Documents in one file, for an engine that takes no more."""

    def write_file(work: Path, manifest: ExportManifest, blocks: Iterable[EncodedBatch]) -> ExportManifest:
        taken = [manifest]

        def all_lines() -> Iterator[str]:
            for block in blocks:
                entries = manifest.take(block)
                taken.append(taken.pop().counting(entries))
                yield from lines(entries)

        rows, digest = _write_lines(work / path, all_lines())
        return taken[0].holding(ExportFile(path=path, rows=rows, sha256=digest))

    return write_file


def _begin(row: EngineRow, source: ExportSource, quantisation: Quantisation | None) -> ExportManifest:
    """The manifest of an export that has nothing in it yet."""
    stamp = source.vectors.model
    if row.weights == "floats":
        return ExportManifest(format=row.name, model=stamp)
    scale = quantisation or Quantisation()
    return ExportManifest(format=row.name, model=stamp, quantisation=scale, rounding="nearest, ties to even")


def _write_queries(
    work: Path, manifest: ExportManifest, layout: ExportLayout, queries: EncodedBatch
) -> ExportManifest:
    """Write the queries that have an entry left, as many lines as the engine wants, into one file."""
    assert layout.query_lines is not None, manifest.format
    entries = manifest.take(queries)
    rows, digest = _write_lines(work / layout.queries_file, layout.query_lines(entries))
    return manifest.model_copy(
        update={
            "queries": rows,
            "empty_queries": int((entries.vectors.getnnz(axis=1) == 0).sum()),
            "queries_file": ExportFile(path=layout.queries_file, rows=rows, sha256=digest),
        }
    )


def _checked(blocks: Iterable[EncodedBatch], check_id: CheckId) -> Iterator[EncodedBatch]:
    for block in blocks:
        for text_id in block.ids:
            check_id(text_id)
        yield block


def _without_texts(blocks: Iterable[EncodedBatch]) -> Iterator[ExportBatch]:
    for block in blocks:
        yield ExportBatch(block.ids, block.vectors)


def _with_texts(blocks: Iterable[EncodedBatch], texts: Iterable[Document]) -> Iterator[ExportBatch]:
    """Each block with the titles and texts of its documents. Raises InputError where they are of other documents."""
    stream = iter(texts)
    for block in blocks:
        documents = list(islice(stream, len(block.ids)))
        if [document.document_id for document in documents] != block.ids:
            raise InputError(block.ids[0], "isn't followed by the same documents in the corpus; name its own")
        yield ExportBatch(block.ids, block.vectors, [text_fields(document) for document in documents])
    if next(stream, None) is not None:
        raise InputError("the corpus", "has more documents than the vectors; encode it again")


def _write_lines(path: Path, lines: Iterator[str]) -> tuple[int, str]:
    """How many lines, and their SHA-256."""
    digest, rows = hashlib.sha256(), 0
    with path.open("wb") as file:
        for line in lines:
            content = line.encode()
            digest.update(content)
            file.write(content)
            rows += 1
    return rows, digest.hexdigest()
