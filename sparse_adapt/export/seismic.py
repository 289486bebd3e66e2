"""Weights for Seismic: the JSON lines that its index is built from (Bruch et al. 2024, arXiv:2404.18812).

    FOLDER/documents.jsonl    {"id": ..., "vector": {"token": weight, ...}}
    FOLDER/queries.jsonl      the same
    FOLDER/tokens.json, manifest.json

Seismic reads one file, compares names of up to 100 characters and keeps weights as float16: the largest is
65,504, and larger ones are clipped. Texts without an entry are left out, since nothing finds them. More than
65,536 tokens need its index for large vocabularies, which `loading` names where it must. Dimensions: V vocabulary.
"""

from functools import partial
from pathlib import Path

from sparse_adapt.errors import InputError
from sparse_adapt.export.parts import Manifest, begin, finish, vector_lines, write_one_file, write_queries
from sparse_adapt.export.quantise import Quantisation
from sparse_adapt.export.rows import json_string
from sparse_adapt.files.folders import output_folder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors

DOCUMENTS_FILE = "documents.jsonl"
QUERIES_FILE = "queries.jsonl"
LARGEST_WEIGHT = 65_504.0  # of float16
LONGEST_NAME = 100  # characters; Seismic cuts what is longer, and tokens would meet
MOST_TOKENS = 2**16  # of its usual index


def write(
    vectors: Vectors,
    folder: Path,
    *,
    queries: EncodedBatch | None = None,
    quantisation: Quantisation | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Write the lines into a new folder; nothing stays there if it fails.

    Raises InputError for a token that is longer than Seismic can tell apart, before the first document.
    """
    with output_folder(folder, overwrite=overwrite, resumable=False) as work:
        keys = [json_string(_checked(token)) for token in vectors.tokens]
        manifest = begin("seismic", vectors, quantisation, largest_weight=LARGEST_WEIGHT)
        manifest = manifest.model_copy(update={"facts": {"index": index_class(len(keys))}})
        if queries is not None:
            manifest = write_queries(work, manifest, queries, QUERIES_FILE, partial(vector_lines, keys))
        lines = partial(vector_lines, keys)
        manifest = write_one_file(work, manifest, vectors.blocks, lines, DOCUMENTS_FILE)
        return finish(work, manifest, vectors.tokens)


def loading(folder: Path, manifest: Manifest) -> str:
    """Python that builds the index."""
    name = index_class(manifest.model.vocabulary_size)
    return (
        f"from seismic import {name}\n"
        f"index = {name}.build({str(folder / DOCUMENTS_FILE)!r}, load_content=False)\n"
        f"index.save({str(folder)!r})"
    )


def index_class(tokens: int) -> str:
    """Which of Seismic's indexes holds so many tokens."""
    return "SeismicIndex" if tokens <= MOST_TOKENS else "SeismicIndexLV"


def _checked(token: str) -> str:
    if not 0 < len(token) <= LONGEST_NAME or "\0" in token:
        raise InputError(
            repr(token[:40]),
            f"this token has {len(token):,} characters; Seismic takes 1 to {LONGEST_NAME}, none of them NUL",
        )
    return token
