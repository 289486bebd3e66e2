"""A corpus as sparse vectors on disk: shard by shard, continued after a kill, vouched for by a manifest.

Beside `manifest.json` and `tokens.json` lie, for each shard, `shard-00000.safetensors` (a CSR matrix:
indptr int64, indices int32, data float32) and its document ids, one JSON string a line, in
`shard-00000.jsonl`. Until all are there, a journal says which are whole; they may come in any order.
Memory never holds more than the shards in work. Dimensions: V vocabulary.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save
from scipy.sparse import csr_matrix, vstack

from sparse_adapt.corpus import Document, Query
from sparse_adapt.encode import encode
from sparse_adapt.errors import InputError
from sparse_adapt.folders import output_folder, write_json, write_text
from sparse_adapt.manifest import (
    MANIFEST_FILE,
    TOKENS_FILE,
    ModelStamp,
    Record,
    checksum,
    read_checked,
    read_record,
    read_tokens,
    stamp,
    token_names,
    write_tokens,
)
from sparse_adapt.model import SparseEncoder

DOCUMENTS_A_SHARD = 4096
JOURNAL_FILE = "shards.jsonl"

Progress = Callable[[int], None]


class Shard(Record):
    """One whole shard; `documents_sha256` covers the ids and texts it was made from."""

    name: str
    rows: int
    nonzeros: int
    sha256: str
    ids_sha256: str
    documents_sha256: str


class Manifest(Record):
    """What a folder of vectors holds; `complete` is false while the corpus is still being encoded."""

    format: Literal["vectors"] = "vectors"
    format_version: Literal[1] = 1
    complete: bool = False
    model: ModelStamp
    documents_a_shard: int
    rows: int = 0
    nonzeros: int = 0
    shards: tuple[Shard, ...] = ()

    def of_all(self, shards: Sequence[Shard]) -> "Manifest":
        """The manifest of the whole corpus."""
        rows, nonzeros = sum(shard.rows for shard in shards), sum(shard.nonzeros for shard in shards)
        whole = {"rows": rows, "nonzeros": nonzeros, "shards": tuple(shards), "complete": True}
        return self.model_copy(update=whole)


class Block(NamedTuple):
    """Some texts as vectors: their ids and one CSR row each (rows, V), float32."""

    ids: list[str]
    vectors: csr_matrix


class Vectors(NamedTuple):
    """Vectors on their way somewhere: who made them, the name of each dimension, blocks to take in turn."""

    model: ModelStamp
    tokens: list[str]
    blocks: Iterable[Block]


class Chunk(NamedTuple):
    """The documents of one shard, by its number."""

    number: int
    documents: list[Document]


class Encoded(NamedTuple):
    """A chunk and its vectors (rows, V)."""

    chunk: Chunk
    vectors: csr_matrix


Work = Callable[[Iterator[Chunk]], Iterator[Encoded]]


# -- from texts -----------------------------------------------------------------------------------


def encode_corpus(
    model: SparseEncoder,
    documents: Iterable[Document],
    folder: Path,
    *,
    model_name: str = "",
    documents_a_shard: int = DOCUMENTS_A_SHARD,
    progress: Progress | None = None,
    resume: bool = True,
    overwrite: bool = False,
    work: Work | None = None,
) -> Manifest:
    """Encode documents into a folder of shards; a run that was killed continues with the shards that it lacks.

    The same documents give the same bytes, continued or not. `progress` hears how many more are done. `work`
    encodes chunks elsewhere, in any order, and tells its own progress; by default `model` does so here.
    Raises InputError when an unfinished run there was made by another model, from other documents or with
    another shard size, or when its shards are damaged.
    """

    def here(chunks: Iterator[Chunk]) -> Iterator[Encoded]:
        for chunk in chunks:
            texts = [document.full_text for document in chunk.documents]
            yield Encoded(chunk, encode(model, texts, progress=progress))

    with output_folder(folder, resume=resume, overwrite=overwrite) as place:
        manifest = _begun(place, stamp(model, model_name), documents_a_shard)
        shards = {_number(shard): shard for shard in manifest.shards}
        missing = _missing(documents, manifest, place, progress)
        for chunk, vectors in (work or here)(missing):
            if not shards:
                write_json(place / MANIFEST_FILE, manifest.model_dump())
            shards[chunk.number] = _write_shard(place, chunk, vectors)
            _note(place, shards[chunk.number])
            del chunk, vectors  # not beside the next ones
        if not shards:
            raise InputError(folder, "no documents to encode; check the corpus")
        write_tokens(place, token_names(model))
        manifest = manifest.of_all([shards[number] for number in sorted(shards)])
        write_json(place / MANIFEST_FILE, manifest.model_dump())
        _sweep(place, manifest)
    return manifest


def check_encoded(
    folder: Path, model: ModelStamp, documents: Iterable[Document], *, progress: Progress | None = None
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
    progress: Progress | None = None,
) -> Vectors:
    """The same vectors straight from the model, encoded block by block as they are taken."""

    def blocks() -> Iterator[Block]:
        stream = iter(documents)
        while chunk := list(islice(stream, documents_a_block)):
            texts = [document.full_text for document in chunk]
            yield Block([document.document_id for document in chunk], encode(model, texts, progress=progress))

    return Vectors(stamp(model, model_name), token_names(model), blocks())


def encode_queries(model: SparseEncoder, queries: Iterable[Query]) -> Block:
    """All queries at once, in their order."""
    listed = list(queries)
    return Block([query.query_id for query in listed], encode(model, [query.text for query in listed]))


# -- from a folder --------------------------------------------------------------------------------


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a finished folder of vectors. Raises InputError where there is none."""
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise InputError(folder, f"no {MANIFEST_FILE} here; make one with: sparse-adapt encode")
    manifest = read_record(path, Manifest)
    if not manifest.complete:
        raise InputError(path, "the corpus isn't encoded to its end; run the same encode command again")
    return manifest


def open_vectors(folder: Path) -> Vectors:
    """A finished folder of vectors, whose shards are read as they are taken."""
    manifest = read_manifest(folder)
    return Vectors(manifest.model, read_tokens(folder, manifest.model), read_shards(folder))


def read_shards(folder: Path) -> Iterator[Block]:
    """Ids and vectors of each shard in turn. Raises InputError for one its manifest doesn't vouch for."""
    manifest = read_manifest(folder)
    for shard in manifest.shards:
        yield _read_shard(folder, shard, manifest.model.vocabulary_size)


def read_vectors(folder: Path) -> Block:
    """All ids and all vectors (rows, V) at once: memory for the whole corpus."""
    return join_blocks(read_shards(folder))


def join_blocks(blocks: Iterable[Block]) -> Block:
    """All ids and all vectors (rows, V) of some blocks as one."""
    listed = list(blocks)
    ids = [document_id for block in listed for document_id in block.ids]
    return Block(ids, vstack([block.vectors for block in listed], format="csr"))


# -- one shard ------------------------------------------------------------------------------------


def _write_shard(work: Path, chunk: Chunk, vectors: csr_matrix) -> Shard:
    name, documents = f"shard-{chunk.number:05d}", chunk.documents
    tensors = {
        "indptr": vectors.indptr.astype(np.int64),
        "indices": vectors.indices.astype(np.int32),
        "data": vectors.data.astype(np.float32),
    }
    stored = save(tensors)
    ids = "".join(
        json.dumps(document.document_id, ensure_ascii=False) + "\n" for document in documents
    ).encode()
    _write_bytes(work / f"{name}.safetensors", stored)
    _write_bytes(work / f"{name}.jsonl", ids)
    return Shard(
        name=name,
        rows=len(documents),
        nonzeros=int(vectors.nnz),
        sha256=checksum(stored),
        ids_sha256=checksum(ids),
        documents_sha256=_checksum_of_documents(documents),
    )


def _read_shard(folder: Path, shard: Shard, vocabulary_size: int) -> Block:
    path = folder / f"{shard.name}.safetensors"
    stored = read_checked(path, shard.sha256)
    lines = read_checked(folder / f"{shard.name}.jsonl", shard.ids_sha256).decode().split("\n")[:-1]
    try:
        tensors = load(stored)
        parts = (tensors["data"], tensors["indices"], tensors["indptr"])
        block = Block([json.loads(line) for line in lines], csr_matrix(parts, (shard.rows, vocabulary_size)))
    except (SafetensorError, KeyError, ValueError) as error:
        raise InputError(path, f"isn't a shard of {shard.rows:,} vectors ({error}); encode again") from error
    if (len(block.ids), block.vectors.nnz) != (shard.rows, shard.nonzeros):
        raise InputError(path, f"isn't the {shard.rows:,} vectors that its manifest names; encode again")
    return block


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
    shards = {shard.name: shard for shard in (*manifest.shards, *_noted(work))}
    for shard in shards.values():
        _read_shard(work, shard, model.vocabulary_size)
    write_text(work / JOURNAL_FILE, "".join(f"{shard.model_dump_json()}\n" for shard in shards.values()))
    return manifest.model_copy(update={"shards": tuple(sorted(shards.values(), key=_number))})


def _check_model(manifest: Manifest, model: ModelStamp, folder: Path) -> None:
    if not manifest.model.fits(model) or manifest.model.max_tokens != model.max_tokens:
        run = "these vectors are" if manifest.complete else "the unfinished run is"
        advice = f"finish it with the same command as before, or delete {folder}"
        raise InputError(folder / MANIFEST_FILE, f"{run} of another model ({manifest.model.name}); {advice}")


def _missing(
    documents: Iterable[Document], manifest: Manifest, work: Path, progress: Progress | None
) -> Iterator[Chunk]:
    """The chunks that no shard holds, once it's sure that those between were made from these documents."""
    shards = {_number(shard): shard for shard in manifest.shards}
    stream = iter(documents)
    for number in count():
        chunk = list(islice(stream, manifest.documents_a_shard))
        shard = shards.pop(number, None)
        if shard is not None:
            if _checksum_of_documents(chunk) != shard.documents_sha256:
                raise _of_others(work, f"{shard.name}.jsonl")
            if progress is not None:
                progress(shard.rows)
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


def _note(work: Path, shard: Shard) -> None:
    """Put a shard that is on the disk into the journal."""
    with (work / JOURNAL_FILE).open("ab") as file:
        file.write(f"{shard.model_dump_json()}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def _noted(work: Path) -> Iterator[Shard]:
    """The shards in the journal, but for a last line that a kill may have cut."""
    path = work / JOURNAL_FILE
    for line in path.read_bytes().splitlines(keepends=True) if path.is_file() else ():
        if line.endswith(b"\n"):
            yield Shard.model_validate_json(line)


def _sweep(work: Path, manifest: Manifest) -> None:
    """Remove what the finished folder doesn't need: the journal, and what a kill left behind."""
    kept = {f"{shard.name}.{kind}" for shard in manifest.shards for kind in ("safetensors", "jsonl")}
    for path in work.iterdir():
        if path.name not in kept | {MANIFEST_FILE, TOKENS_FILE}:
            path.unlink()


def _checksum_of_documents(documents: Iterable[Document]) -> str:
    return checksum("\n".join(json.dumps([item.document_id, item.full_text]) for item in documents).encode())


def _write_bytes(path: Path, content: bytes) -> None:
    """Whole or not at all, as `folders.write_text` does for text."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
