"""Encoding a corpus into shards: a run that was killed continues with the shards that it lacks.

Until all are there, a journal says which are whole; they may come in any order.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from typing import NamedTuple

from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.errors import InputError
from sparse_adapt.files.folders import output_folder, write_json, write_text
from sparse_adapt.files.journal import note, noted
from sparse_adapt.files.place import Place
from sparse_adapt.files.records import parse_record, read_record
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.progress import Before, Progress, no_progress
from sparse_adapt.retrieve.hybrid import document_vectors, query_vectors
from sparse_adapt.retrieve.vectors.folder import (
    EncodedBatch,
    Manifest,
    Shard,
    Vectors,
    checksum_of_documents,
    read_manifest,
    read_shard,
    write_shard,
)
from sparse_adapt.retrieve.vectors.manifest import (
    MANIFEST_FILE,
    ModelStamp,
    stamp_of_model,
    token_names,
    write_tokens,
)
from sparse_adapt.retrieve.vectors.word_names import WordNames

DOCUMENTS_A_SHARD = 4096
JOURNAL_FILE = "shards.jsonl"


class Chunk(NamedTuple):
    """The documents of one shard, by its number."""

    number: int
    documents: list[Document]


class EncodedChunk(NamedTuple):
    """A chunk and its vectors (rows, V)."""

    chunk: Chunk
    vectors: csr_matrix


Work = Callable[[Iterator[Chunk]], Iterator[EncodedChunk]]


# -- from texts -----------------------------------------------------------------------------------


def encode_corpus(
    model: SparseEncoder,
    documents: Iterable[Document],
    place: Place,
    *,
    model_name: str = "",
    documents_a_shard: int = DOCUMENTS_A_SHARD,
    progress: Progress = no_progress,
    work: Work | None = None,
) -> Manifest:
    """Encode documents into a folder of shards; a run that was killed continues with the shards that it lacks.

    The same documents give the same bytes, continued or not. `progress` hears how many more are done. `work`
    encodes chunks elsewhere, in any order, and tells its own progress; by default `model` does so here.
    Raises InputError when an unfinished run there was made by another model, from other documents or with
    another shard size, or when its shards are damaged.
    """

    def here(chunks: Iterator[Chunk]) -> Iterator[EncodedChunk]:
        for chunk in chunks:
            yield EncodedChunk(chunk, document_vectors(model, chunk.documents, progress=progress))

    with output_folder(place) as folder:
        names = WordNames(model, model_name)
        manifest = _begun(folder, names.stamp, documents_a_shard)
        shards = {_number(shard): shard for shard in manifest.shards}
        missing = _missing(documents, manifest, folder, progress, names)
        for chunk, vectors in (work or here)(missing):
            if not shards:
                write_json(folder / MANIFEST_FILE, manifest.model_dump())
            names.meet(chunk.documents, vectors)
            shards[chunk.number] = write_shard(folder, chunk.number, chunk.documents, vectors)
            note(folder / JOURNAL_FILE, shards[chunk.number].model_dump_json())
            del chunk, vectors  # not beside the next ones
        if not shards:
            raise InputError(place.folder, "no documents to encode; check the corpus")
        write_tokens(folder, [*token_names(model), *names.listed])
        manifest = manifest.of_all([shards[number] for number in sorted(shards)])
        manifest = manifest.model_copy(update={"model": names.stamp})
        write_json(folder / MANIFEST_FILE, manifest.model_dump())
        _sweep(folder, manifest)
    return manifest


def check_encoded(
    folder: Path, model: ModelStamp, documents: Iterable[Document], *, progress: Progress = no_progress
) -> Manifest:
    """The manifest of a finished folder, once it's sure that it holds these documents as this model sees them.

    Raises InputError where it doesn't.
    """
    manifest = read_manifest(folder)
    _check_model(manifest, model, folder)
    for _ in _missing(documents, manifest, folder, progress):
        raise _of_others(folder)
    return manifest


def encode_vectors(
    model: SparseEncoder,
    documents: Iterable[Document],
    *,
    model_name: str = "",
    documents_a_block: int = DOCUMENTS_A_SHARD,
    progress: Progress = no_progress,
) -> Vectors:
    """The same vectors straight from the model, encoded block by block as they are taken.

    Those of a model with exact words are in the model's columns, of which tokens alone have names.
    """

    def blocks() -> Iterator[EncodedBatch]:
        stream = iter(documents)
        while chunk := list(islice(stream, documents_a_block)):
            ids = [document.document_id for document in chunk]
            yield EncodedBatch(ids, document_vectors(model, chunk, progress=progress))

    return Vectors(stamp_of_model(model, model_name), token_names(model), blocks())


def encode_queries(model: SparseEncoder, queries: Iterable[Query]) -> EncodedBatch:
    """All queries at once, in their order."""
    listed = list(queries)
    vectors = query_vectors(model, [query.text for query in listed])
    return EncodedBatch([query.query_id for query in listed], vectors)


# -- continuing -----------------------------------------------------------------------------------


def _begun(work: Path, model: ModelStamp, documents_a_shard: int) -> Manifest:
    """The manifest to go on from, with the shards that are whole: of an unfinished run of the same model, or new."""
    path = work / MANIFEST_FILE
    if not path.is_file():
        return Manifest(model=model, documents_a_shard=documents_a_shard)
    manifest = read_record(path, Manifest).model_copy(update={"complete": False})
    _check_model(manifest, model, work)
    if manifest.documents_a_shard != documents_a_shard:
        advice = f"finish it with the same command as before, or delete {work}"
        raise InputError(
            path, f"the unfinished run has {manifest.documents_a_shard} documents a shard; {advice}"
        )
    shards = {shard.name: shard for shard in (*manifest.shards, *_noted(work / JOURNAL_FILE))}
    for shard in shards.values():
        read_shard(work, shard, model)
    write_text(work / JOURNAL_FILE, "".join(f"{shard.model_dump_json()}\n" for shard in shards.values()))
    return manifest.model_copy(update={"shards": tuple(sorted(shards.values(), key=_number))})


def _noted(journal: Path) -> Iterator[Shard]:
    for number, line in enumerate(noted(journal), start=1):
        yield parse_record(line, journal, Shard, f"delete {journal.parent} or pass --overwrite", number)


def _check_model(manifest: Manifest, model: ModelStamp, folder: Path) -> None:
    if not manifest.model.fits(model) or not manifest.model.reads_as(model):
        run = "these vectors are" if manifest.complete else "the unfinished run is"
        advice = f"finish it with the same command as before, or delete {folder}"
        raise InputError(folder / MANIFEST_FILE, f"{run} of another model ({manifest.model.name}); {advice}")


def _missing(
    documents: Iterable[Document],
    manifest: Manifest,
    work: Path,
    progress: Progress,
    names: WordNames | None = None,
) -> Iterator[Chunk]:
    """The chunks that no shard holds, once it's sure that those between were made from these documents."""
    shards = {_number(shard): shard for shard in manifest.shards}
    stream = iter(documents)
    for number in count():
        chunk = list(islice(stream, manifest.documents_a_shard))
        shard = shards.pop(number, None)
        if shard is not None:
            if checksum_of_documents(chunk) != shard.documents_sha256:
                raise _of_others(work, f"{shard.name}.jsonl")
            if names is not None:
                names.meet(chunk)
            progress(Before(shard.rows))
        elif chunk:
            yield Chunk(number, chunk)
        else:
            break
    if shards:
        raise _of_others(work, f"{next(iter(shards.values())).name}.jsonl")


def _of_others(work: Path, name: str = MANIFEST_FILE) -> InputError:
    return InputError(
        work / name, f"the unfinished run encoded other documents; give it the same corpus, or delete {work}"
    )


def _number(shard: Shard) -> int:
    return int(shard.name.removeprefix("shard-"))


def _sweep(work: Path, manifest: Manifest) -> None:
    """Remove what the finished folder doesn't need: the journal, and shards that nothing names."""
    (work / JOURNAL_FILE).unlink(missing_ok=True)
    named = {shard.name for shard in manifest.shards}
    for path in work.glob("shard-*"):
        if path.stem not in named:
            path.unlink()
