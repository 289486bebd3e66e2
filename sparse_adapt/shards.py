"""A corpus as sparse vectors on disk: shard by shard, continued after a kill, vouched for by a manifest.

Beside `manifest.json` and `tokens.json` lie, for each shard, `shard-00000.safetensors` (a CSR matrix:
indptr int64, indices int32, data float32) and its document ids, one JSON string a line, in
`shard-00000.jsonl`. Memory never holds more than one shard. Dimensions: V vocabulary.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
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

    def with_shard(self, shard: Shard) -> "Manifest":
        """The manifest after one more shard."""
        rows, nonzeros = self.rows + shard.rows, self.nonzeros + shard.nonzeros
        return self.model_copy(update={"rows": rows, "nonzeros": nonzeros, "shards": (*self.shards, shard)})


class Block(NamedTuple):
    """Some texts as vectors: their ids and one CSR row each (rows, V), float32."""

    ids: list[str]
    vectors: csr_matrix


class Vectors(NamedTuple):
    """Vectors on their way somewhere: who made them, the name of each dimension, blocks to take in turn."""

    model: ModelStamp
    tokens: list[str]
    blocks: Iterable[Block]


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
) -> Manifest:
    """Encode documents into a folder of shards; a run that was killed continues after its last whole shard.

    The same documents give the same bytes, continued or not. `progress` hears how many more are done.
    Raises InputError when an unfinished run there was made by another model, from other documents or with
    another shard size, or when its shards are damaged.
    """
    with output_folder(folder, resume=resume, overwrite=overwrite) as work:
        manifest = _begun(work, stamp(model, model_name), documents_a_shard)
        stream = iter(documents)
        for shard in manifest.shards:
            _skip(stream, shard, work)
            if progress is not None:
                progress(shard.rows)
        while chunk := list(islice(stream, documents_a_shard)):
            vectors = encode(model, [document.full_text for document in chunk], progress=progress)
            manifest = manifest.with_shard(_write_shard(work, len(manifest.shards), chunk, vectors))
            write_json(work / MANIFEST_FILE, manifest.model_dump())
        if manifest.rows == 0:
            raise InputError(folder, "no documents to encode; check the corpus")
        write_tokens(work, token_names(model))
        manifest = manifest.model_copy(update={"complete": True})
        write_json(work / MANIFEST_FILE, manifest.model_dump())
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
    blocks = list(read_shards(folder))
    ids = [document_id for block in blocks for document_id in block.ids]
    return Block(ids, vstack([block.vectors for block in blocks], format="csr"))


# -- one shard ------------------------------------------------------------------------------------


def _write_shard(work: Path, number: int, documents: Sequence[Document], vectors: csr_matrix) -> Shard:
    name = f"shard-{number:05d}"
    tensors = {
        "indptr": vectors.indptr.astype(np.int64),
        "indices": vectors.indices.astype(np.int32),
        "data": vectors.data.astype(np.float32),
    }
    stored = save(tensors)
    ids = "".join(json.dumps(document.document_id, ensure_ascii=False) + "\n" for document in documents)
    _write_bytes(work / f"{name}.safetensors", stored)
    write_text(work / f"{name}.jsonl", ids)
    return Shard(
        name=name,
        rows=len(documents),
        nonzeros=int(vectors.nnz),
        sha256=checksum(stored),
        ids_sha256=checksum(ids.encode()),
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
    """The manifest to go on from: that of an unfinished run of the same model, or a new one."""
    path = work / MANIFEST_FILE
    if not path.is_file():
        return Manifest(model=model, documents_a_shard=documents_a_shard)
    manifest = read_record(path, Manifest).model_copy(update={"complete": False})
    advice = f"finish it with the same command as before, or delete {work}"
    if not manifest.model.fits(model) or manifest.model.max_tokens != model.max_tokens:
        raise InputError(path, f"the unfinished run is of another model ({manifest.model.name}); {advice}")
    if manifest.documents_a_shard != documents_a_shard:
        raise InputError(
            path, f"the unfinished run has {manifest.documents_a_shard} documents a shard; {advice}"
        )
    for shard in manifest.shards:
        _read_shard(work, shard, model.vocabulary_size)
    return manifest


def _skip(stream: Iterator[Document], shard: Shard, work: Path) -> None:
    documents = list(islice(stream, shard.rows))
    if _checksum_of_documents(documents) != shard.documents_sha256:
        raise InputError(
            work / f"{shard.name}.jsonl",
            f"the unfinished run encoded other documents; give it the same corpus, or delete {work}",
        )


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
