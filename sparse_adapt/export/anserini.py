r"""Impacts for Lucene: an Anserini JsonVectorCollection, and queries as its impact search reads them.

    FOLDER/documents/part-00000.jsonl    {"id": ..., "contents": "", "vector": {"token": impact, ...}}
    FOLDER/queries.tsv                   query_id <TAB> each token, repeated as often as its impact says
    FOLDER/tokens.json, manifest.json

`documents` is what `-input` takes. Anserini writes each token `impact` times, a space after each, and Lucene
splits that text at white space: tokens keep their case, `##`, brackets, dots and accents, but one with white
space inside would fall apart. Such tokens are written with `\uXXXX` in place of the offending characters.
Dimensions: V vocabulary.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from sparse_adapt.errors import InputError
from sparse_adapt.export.quantise import Impacts, Quantisation
from sparse_adapt.folders import output_folder, write_json
from sparse_adapt.manifest import MANIFEST_FILE, ModelStamp, Record, check_file, read_record, write_tokens
from sparse_adapt.shards import Block, Vectors

DOCUMENTS_FOLDER = "documents"
QUERIES_FILE = "queries.tsv"
LONGEST_NAME = 255  # UTF-16 units; Lucene's WhitespaceAnalyzer cuts what is longer in two

_ESCAPED = re.compile(r"\\u([0-9a-f]{6})")


class Part(Record):
    """One file of the collection, by its path inside the folder."""

    path: str
    rows: int
    sha256: str


class Manifest(Record):
    """What an export holds, and what quantising cost: weights that rounded to nothing or were clipped.

    `empty_documents` have no impact left; they stand in the collection, but Anserini doesn't index them.
    """

    format: Literal["anserini"] = "anserini"
    format_version: Literal[1] = 1
    model: ModelStamp
    quantisation: Quantisation
    rounding: Literal["nearest, ties to even"] = "nearest, ties to even"
    documents: int = 0
    empty_documents: int = 0
    impacts: int = 0
    dropped: int = 0
    clipped: int = 0
    queries: int = 0
    empty_queries: int = 0
    parts: tuple[Part, ...] = ()
    queries_file: Part | None = None


def write(
    vectors: Vectors,
    folder: Path,
    *,
    queries: Block | None = None,
    quantisation: Quantisation | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Write a collection, block by block, into a new folder; nothing stays there if it fails.

    Raises InputError for a token or a query id that the format can't hold, before the first document.
    """
    with output_folder(folder, overwrite=overwrite, resumable=False) as work:
        return write_into(work, vectors, queries=queries, quantisation=quantisation)


def write_into(
    work: Path, vectors: Vectors, *, queries: Block | None = None, quantisation: Quantisation | None = None
) -> Manifest:
    """The same into a folder that is there and empty."""
    names = [token_name(token) for token in vectors.tokens]
    manifest = Manifest(model=vectors.model, quantisation=quantisation or Quantisation())
    if queries is not None:
        manifest = _write_queries(work, manifest, queries, names)
    (work / DOCUMENTS_FOLDER).mkdir()
    keys = [json.dumps(name, ensure_ascii=False) for name in names]
    for number, block in enumerate(vectors.blocks):
        path = f"{DOCUMENTS_FOLDER}/part-{number:05d}.jsonl"
        manifest = _write_documents(work, path, manifest, block, keys)
    write_tokens(work, vectors.tokens)
    write_json(work / MANIFEST_FILE, manifest.model_dump())
    return manifest


def read_manifest(folder: Path) -> Manifest:
    """The manifest of an export. Raises InputError unless every part is there as it was written."""
    manifest = read_record(folder / MANIFEST_FILE, Manifest)
    for part in manifest.parts:
        check_file(folder / part.path, part.sha256)
    return manifest


def token_name(token: str) -> str:
    r"""A token as Lucene will keep it whole: itself, unless it holds white space or control characters.

    Then each of those, and each backslash, becomes a backslash, `u` and six hexadecimal digits. A token that
    looks escaped already is escaped too, so that no two tokens share a name; `token_of` goes back.
    Raises InputError for a name longer than Lucene takes.
    """
    name = token
    if _ESCAPED.search(token) or any(map(_splits, token)):
        name = "".join(
            f"\\u{ord(character):06x}" if character == "\\" or _splits(character) else character
            for character in token
        )
    if not 0 < len(name.encode("utf-16-le")) // 2 <= LONGEST_NAME:
        raise InputError(
            repr(token[:40]), f"this token has {len(token)} characters, Lucene takes 1 to {LONGEST_NAME}"
        )
    return name


def token_of(name: str) -> str:
    """The token that `token_name` made a name of."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name)


def _splits(character: str) -> bool:
    """White space for Python or Java, or a control character."""
    return character.isspace() or unicodedata.category(character) == "Cc"


# -- files ----------------------------------------------------------------------------------------


def _write_documents(
    work: Path, path: str, manifest: Manifest, block: Block, keys: Sequence[str]
) -> Manifest:
    impacts = manifest.quantisation.impacts(block)
    part = _write_lines(work, path, _document_lines(impacts, keys))
    lengths = impacts.vectors.getnnz(axis=1)
    return manifest.model_copy(
        update={
            "documents": manifest.documents + part.rows,
            "empty_documents": manifest.empty_documents + int((lengths == 0).sum()),
            "impacts": manifest.impacts + int(lengths.sum()),
            "dropped": manifest.dropped + impacts.dropped,
            "clipped": manifest.clipped + impacts.clipped,
            "parts": (*manifest.parts, part),
        }
    )


def _document_lines(impacts: Impacts, keys: Sequence[str]) -> Iterator[str]:
    for document_id, columns, values in impacts.rows():
        vector = ", ".join(f"{keys[column]}: {value}" for column, value in zip(columns, values, strict=True))
        key = json.dumps(document_id, ensure_ascii=False)
        yield f'{{"id": {key}, "contents": "", "vector": {{{vector}}}}}\n'


def _write_queries(work: Path, manifest: Manifest, queries: Block, names: Sequence[str]) -> Manifest:
    for query_id in queries.ids:
        if query_id.strip() != query_id or not query_id or any(map(_splits, query_id.replace(" ", ""))):
            raise InputError(
                repr(query_id), "this query id can't stand in a TSV file; give it a name without tabs"
            )
    impacts = manifest.quantisation.impacts(queries)
    part = _write_lines(work, QUERIES_FILE, _query_lines(impacts, names))
    empty = len(queries.ids) - part.rows
    return manifest.model_copy(update={"queries": part.rows, "empty_queries": empty, "queries_file": part})


def _query_lines(impacts: Impacts, names: Sequence[str]) -> Iterator[str]:
    """One line a query that has an impact left; Anserini stops at a line without a text."""
    for query_id, columns, values in impacts.rows():
        words = (
            name for column, value in zip(columns, values, strict=True) for name in [names[column]] * value
        )
        if columns:
            yield f"{query_id}\t{' '.join(words)}\n"


def _write_lines(work: Path, path: str, lines: Iterator[str]) -> Part:
    digest, rows = hashlib.sha256(), 0
    with (work / path).open("wb") as file:
        for line in lines:
            content = line.encode()
            digest.update(content)
            file.write(content)
            rows += 1
    return Part(path=path, rows=rows, sha256=digest.hexdigest())
