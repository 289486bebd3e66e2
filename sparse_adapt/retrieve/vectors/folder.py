"""A corpus as sparse vectors on disk: shards, and the manifest that vouches for them.

Beside `manifest.json` and `tokens.json` lie, for each shard, `shard-00000.safetensors` (a CSR matrix:
indptr int64, indices int32, data float32) and its document ids, one JSON string a line, in
`shard-00000.jsonl`. Memory never holds more than the shards in work. Dimensions: V vocabulary.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from pydantic import Field
from safetensors import SafetensorError
from safetensors.numpy import load, save
from scipy.sparse import csr_matrix, vstack

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import InputError
from sparse_adapt.files.cache import sound_csr
from sparse_adapt.files.marker import checksum_of_bytes
from sparse_adapt.files.records import Record, read_record
from sparse_adapt.files.writing import write_bytes
from sparse_adapt.retrieve.vectors.manifest import (
    MANIFEST_FILE,
    ModelStamp,
    aligned,
    numbers_of,
    read_checked,
    read_tokens,
)


class Shard(Record):
    """One whole shard; `documents_sha256` covers the ids and texts it was made from."""

    name: str = Field(pattern=r"^shard-\d{5,}$")
    rows: int = Field(ge=0)
    nonzeros: int = Field(ge=0)
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


class EncodedBatch(NamedTuple):
    """Some texts as vectors: their ids and one CSR row each (rows, V), float32."""

    ids: list[str]
    vectors: csr_matrix


class Vectors(NamedTuple):
    """Vectors on their way somewhere: who made them, the name of each dimension, blocks to take in turn.

    Blocks from a folder are read anew whenever they are gone through. Those of a model with exact words have a
    dimension for each word of the folder.
    """

    model: ModelStamp
    tokens: list[str]
    blocks: Iterable[EncodedBatch]

    @property
    def numbers(self) -> list[int] | None:
        """The number of each dimension, where it isn't its place."""
        return numbers_of(self.tokens, self.model)

    def aligned(self, queries: EncodedBatch) -> EncodedBatch:
        """Queries in the dimensions of the blocks; a word that no document holds is left out."""
        return queries._replace(vectors=aligned(queries.vectors, self.tokens, self.model))


# -- from a folder --------------------------------------------------------------------------------


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a finished folder of vectors. Raises InputError where there is none."""
    path = folder / MANIFEST_FILE
    if not path.is_file():
        raise InputError(folder, f"no {MANIFEST_FILE} here; make one with: sparse-adapt encode")
    manifest = read_record(path, Manifest)
    if not manifest.complete:
        raise InputError(path, "the corpus isn't encoded to its end; run the same encode command again")
    if manifest != manifest.of_all(manifest.shards):
        raise InputError(path, "counts other vectors than its shards hold; encode again")
    if [shard.name for shard in manifest.shards] != [
        name_of(number) for number in range(len(manifest.shards))
    ]:
        raise InputError(path, "doesn't name each of its shards once; encode again")
    return manifest


def open_vectors(folder: Path) -> Vectors:
    """A finished folder of vectors, whose shards are read as they are taken."""
    manifest = read_manifest(folder)
    return Vectors(manifest.model, read_tokens(folder, manifest.model), Shards(folder))


@dataclass(frozen=True)
class Shards:
    """The shards of a folder, each read as it is taken."""

    folder: Path

    def __iter__(self) -> Iterator[EncodedBatch]:
        return read_shards(self.folder)


def read_shards(folder: Path) -> Iterator[EncodedBatch]:
    """Ids and vectors of each shard in turn. Raises InputError for one its manifest doesn't vouch for."""
    manifest = read_manifest(folder)
    tokens = read_tokens(folder, manifest.model)
    for shard in manifest.shards:
        block = read_shard(folder, shard, manifest.model)
        yield block._replace(vectors=aligned(block.vectors, tokens, manifest.model))


def join_blocks(blocks: Iterable[EncodedBatch]) -> EncodedBatch:
    """All ids and all vectors (rows, V) of some blocks as one."""
    listed = list(blocks)
    ids = [document_id for block in listed for document_id in block.ids]
    return EncodedBatch(ids, vstack([block.vectors for block in listed], format="csr"))


# -- one shard ------------------------------------------------------------------------------------


def name_of(number: int) -> str:
    """The name of a shard by its number."""
    return f"shard-{number:05d}"


def write_shard(folder: Path, number: int, documents: Sequence[Document], vectors: csr_matrix) -> Shard:
    """Put the vectors of some documents (rows, V) onto the disk, whole or not at all."""
    name = name_of(number)
    if not vectors.has_canonical_format:
        vectors = vectors.copy()
        vectors.sum_duplicates()
    tensors = {
        "indptr": vectors.indptr.astype(np.int64),
        "indices": vectors.indices.astype(np.int32),
        "data": vectors.data.astype(np.float32),
    }
    stored = save(tensors)
    ids = "".join(
        json.dumps(document.document_id, ensure_ascii=False) + "\n" for document in documents
    ).encode()
    write_bytes(folder / f"{name}.safetensors", stored)
    write_bytes(folder / f"{name}.jsonl", ids)
    return Shard(
        name=name,
        rows=len(documents),
        nonzeros=int(vectors.nnz),
        sha256=checksum_of_bytes(stored),
        ids_sha256=checksum_of_bytes(ids),
        documents_sha256=checksum_of_documents(documents),
    )


def read_shard(folder: Path, shard: Shard, model: ModelStamp) -> EncodedBatch:
    """One shard of a folder, in the model's columns. Raises InputError for one its manifest doesn't vouch for."""
    path = folder / f"{shard.name}.safetensors"
    stored = read_checked(path, shard.sha256)
    named = read_checked(folder / f"{shard.name}.jsonl", shard.ids_sha256)
    try:
        ids = [json.loads(line) for line in named.decode().split("\n")[:-1]]
        block = EncodedBatch(ids, sound_csr(load(stored), shard.rows, model.width))
    except (SafetensorError, ValueError, RecursionError) as error:
        raise InputError(path, f"isn't a shard of {shard.rows:,} vectors ({error}); encode again") from error
    if (len(ids), block.vectors.nnz) != (shard.rows, shard.nonzeros) or not all(
        isinstance(each, str) for each in ids
    ):
        raise InputError(path, f"isn't the {shard.rows:,} vectors that its manifest names; encode again")
    return block


def checksum_of_documents(documents: Iterable[Document]) -> str:
    """Of ids and texts, in their order."""
    return checksum_of_bytes(
        "\n".join(json.dumps([item.document_id, item.full_text]) for item in documents).encode()
    )
