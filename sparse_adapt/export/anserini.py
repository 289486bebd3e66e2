r"""Impacts for Lucene: an Anserini JsonVectorCollection, and queries as its impact search reads them.

    FOLDER/documents/part-00000.jsonl    {"id": ..., "contents": "", "vector": {"token": impact, ...}}
    FOLDER/queries.tsv                   query_id <TAB> each token, repeated as often as its impact says
    FOLDER/tokens.json, manifest.json

`documents` is what `-input` takes. Anserini writes each token `impact` times, a space after each, and Lucene
splits that text at white space: tokens keep their case, `##`, brackets, dots and accents, but one with white
space inside would fall apart. Such tokens are written with `\uXXXX` in place of the offending characters.
Documents without an impact stand in the collection, but Anserini doesn't index them. Dimensions: V vocabulary.
"""

import json
import shlex
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from sparse_adapt.errors import InputError
from sparse_adapt.export.parts import (
    Manifest,
    begin,
    breaks_words,
    escape_token,
    finish,
    write_documents,
    write_queries,
)
from sparse_adapt.export.quantise import Entries, Quantisation
from sparse_adapt.files.folders import output_folder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors

QUERIES_FILE = "queries.tsv"
LONGEST_NAME = 255  # UTF-16 units; Lucene's WhitespaceAnalyzer cuts what is longer in two


def write(
    vectors: Vectors,
    folder: Path,
    *,
    queries: EncodedBatch | None = None,
    quantisation: Quantisation | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Write a collection, block by block, into a new folder; nothing stays there if it fails.

    Raises InputError for a token or a query id that the format can't hold, before the first document.
    """
    with output_folder(folder, overwrite=overwrite, resumable=False) as work:
        return write_into(work, vectors, queries=queries, quantisation=quantisation)


def write_into(
    work: Path,
    vectors: Vectors,
    *,
    queries: EncodedBatch | None = None,
    quantisation: Quantisation | None = None,
) -> Manifest:
    """The same into a folder that is there and empty."""
    names = [token_name(token) for token in vectors.tokens]
    manifest = begin("anserini", vectors, quantisation)
    if queries is not None:
        _check_query_ids(queries)
        manifest = write_queries(work, manifest, queries, QUERIES_FILE, partial(_query_lines, names))
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    manifest = write_documents(work, manifest, vectors.blocks, partial(_document_lines, keys))
    return finish(work, manifest, vectors.tokens)


def loading(folder: Path, manifest: Manifest) -> str:
    """The commands that index and search it."""
    index = f"{folder}-index"
    return "\n".join(
        shlex.join(["sparse-adapt", *command])
        for command in (
            ["index", "--vectors", str(folder), "-o", index],
            ["search", "QUERY", "--model", manifest.model.name or "MODEL", "--index", index],
        )
    )


def token_name(token: str) -> str:
    """A token as Lucene will keep it whole (`parts.escape_token`). Raises InputError for one that is too long."""
    name = escape_token(token)
    if not 0 < len(name.encode("utf-16-le")) // 2 <= LONGEST_NAME:
        raise InputError(
            repr(token[:40]), f"this token has {len(token)} characters, Lucene takes 1 to {LONGEST_NAME}"
        )
    return name


def _document_lines(keys: Sequence[str], impacts: Entries) -> Iterator[str]:
    for document_id, columns, values in impacts.rows():
        vector = ", ".join(f"{keys[column]}: {value}" for column, value in zip(columns, values, strict=True))
        key = json.dumps(document_id, ensure_ascii=False)
        yield f'{{"id": {key}, "contents": "", "vector": {{{vector}}}}}\n'


def _check_query_ids(queries: EncodedBatch) -> None:
    for query_id in queries.ids:
        if query_id.strip() != query_id or not query_id or any(map(breaks_words, query_id.replace(" ", ""))):
            raise InputError(
                repr(query_id), "this query id can't stand in a TSV file; give it a name without tabs"
            )


def _query_lines(names: Sequence[str], impacts: Entries) -> Iterator[str]:
    """One line a query that has an impact left; Anserini stops at a line without a text."""
    for query_id, columns, values in impacts.rows():
        words = (
            name for column, value in zip(columns, values, strict=True) for name in [names[column]] * value
        )
        if columns:
            yield f"{query_id}\t{' '.join(words)}\n"
