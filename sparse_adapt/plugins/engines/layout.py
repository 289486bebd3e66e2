"""The files of an export: what an engine says of them, and how documents and queries come into them.

    FOLDER/documents/part-00000.*    the documents, in as many files as the engine takes, or one file
    FOLDER/queries.*                 the queries, where there are any
    FOLDER/tokens.json, manifest.json

Dimensions: V vocabulary.
"""

import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import InputError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines.manifest import (
    DOCUMENTS_FOLDER,
    ExportFile,
    ExportManifest,
    Fact,
    file_there,
)
from sparse_adapt.plugins.engines.quantise import Entries
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors

QUERIES_FILE = "queries.jsonl"
PART_BYTES = 8_000_000  # hosted engines take 10 MB at most a request, others 16 to 100 MB
LONGEST_DECIMAL = 16  # characters of a float32, such as 1.17549435e-38


class StoredText(NamedTuple):
    """A text on its way into a file: its id, its token ids, their weights or impacts in JSON, and further fields.

    A weight is the shortest decimal of its float32. `fields`: what else is stored, in JSON, or nothing.
    """

    text_id: str
    columns: list[int]
    weights: list[str]
    fields: str = ""


Line = Callable[[StoredText], str]
"""What a file holds of a text: a line or several, or nothing where the text is left out."""

WriteDocuments = Callable[[Path, ExportManifest, Iterable[EncodedBatch]], ExportManifest]
"""Writes documents into a folder, block by block; the manifest with their counts and their files."""

CheckId = Callable[[str], None]
"""Raises InputError for the id of a text that the engine can't hold."""


class ExportSource(NamedTuple):
    """What is exported: documents as vectors, queries where there are any, the encoder for engines that hold it.

    `texts`: the documents themselves, in the order of their vectors, where the engine is to store title and text.
    """

    vectors: Vectors
    queries: EncodedBatch | None = None
    encoder: SparseEncoder | None = None
    texts: Iterable[Document] | None = None


@dataclass(frozen=True, kw_only=True)
class ExportLayout:
    """The files of an export, as one engine reads them.

    `documents` writes those of the documents. `query_line` is the line of `queries_file` that holds a query.
    `settings`: texts, or JSON, by the path of further files. `largest_weight`: the largest that the engine keeps,
    where it keeps floats. `numbers`: of an engine that goes by numbers, the number of each dimension (V), where it
    isn't its place. `facts`: what the manifest says of this engine alone.
    """

    documents: WriteDocuments
    query_line: Line | None = None
    queries_file: str = QUERIES_FILE
    settings: Mapping[str, object] = field(default_factory=dict)
    largest_weight: float | None = None
    numbers: Sequence[int] | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)


# -- files ----------------------------------------------------------------------------------------


def in_parts(
    line: Line,
    *,
    suffix: str = "jsonl",
    join: Callable[[list[bytes]], bytes] = b"".join,
    check_id: CheckId = lambda document_id: None,
    rounded: Callable[[csr_matrix], csr_matrix] | None = None,
    texts: Iterable[Document] | None = None,
    numbers: Sequence[int] | None = None,
) -> WriteDocuments:
    """Documents in `documents/part-00000.SUFFIX` and further files, none too large for one request.

    Each block of vectors begins a file. `join` makes the content of a file of its lines. `rounded`: weights (rows, V)
    as the files hold them. `texts`: the documents themselves, whose titles and texts the lines are to hold. `numbers`:
    the number of each dimension, where it isn't its place.
    """

    def write_parts(work: Path, manifest: ExportManifest, blocks: Iterable[EncodedBatch]) -> ExportManifest:
        (work / DOCUMENTS_FOLDER).mkdir()
        for block, fields in _with_fields(blocks, texts):
            for document_id in block.ids:
                check_id(document_id)
            entries = manifest.take(block)
            manifest = manifest.counting(entries)
            if rounded is not None:
                entries = entries._replace(vectors=rounded(entries.vectors))
            for lines in _of_one_request(
                line(text).encode() for text in stored_texts(entries, fields, numbers)
            ):
                path = f"{DOCUMENTS_FOLDER}/part-{len(manifest.parts):05d}.{suffix}"
                manifest = manifest.holding(_write(work, path, join(lines), len(lines)))
        return manifest

    return write_parts


def in_one_file(line: Line, path: str) -> WriteDocuments:
    """Documents in one file, for an engine that takes no more."""

    def write_file(work: Path, manifest: ExportManifest, blocks: Iterable[EncodedBatch]) -> ExportManifest:
        rows = 0
        with (work / path).open("wb") as file:
            for block in blocks:
                entries = manifest.take(block)
                manifest = manifest.counting(entries)
                for content in filter(None, map(line, stored_texts(entries))):
                    file.write(content.encode())
                    rows += 1
        return manifest.holding(file_there(work, path, rows))

    return write_file


def write_query_file(
    work: Path, manifest: ExportManifest, layout: ExportLayout, queries: EncodedBatch
) -> ExportManifest:
    """Write the queries that have an entry left into one file."""
    assert layout.query_line is not None, manifest.format
    entries = manifest.take(queries)
    texts = (text for text in stored_texts(entries, numbers=layout.numbers) if text.columns)
    lines = [line.encode() for line in map(layout.query_line, texts) if line]
    written = _write(work, layout.queries_file, b"".join(lines), len(lines))
    empty = len(entries.ids) - len(lines)
    return manifest.model_copy(
        update={"queries": len(lines), "empty_queries": empty, "queries_file": written}
    )


def stored_texts(
    entries: Entries, fields: Sequence[str] = (), numbers: Sequence[int] | None = None
) -> Iterator[StoredText]:
    """The texts of a block. `fields`: what else is stored with each, in JSON; nothing where there are none."""
    decimals = entries.vectors.data.astype(f"U{LONGEST_DECIMAL}").tolist()
    bounds = entries.vectors.indptr.tolist()
    for row, text_id in enumerate(entries.ids):
        inside = slice(bounds[row], bounds[row + 1])
        columns = entries.vectors.indices[inside].tolist()
        if numbers is not None:
            columns = [numbers[column] for column in columns]
        yield StoredText(text_id, columns, decimals[inside], fields[row] if fields else "")


def _of_one_request(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The lines in lists of at most PART_BYTES, be it only one line that has more."""
    part: list[bytes] = []
    filled = 0
    for line in lines:
        if part and filled + len(line) > PART_BYTES:
            yield part
            part, filled = [], 0
        part.append(line)
        filled += len(line)
    yield part


def _write(work: Path, path: str, content: bytes, rows: int) -> ExportFile:
    (work / path).write_bytes(content)
    return ExportFile(path=path, rows=rows, sha256=hashlib.sha256(content).hexdigest())


def _with_fields(
    blocks: Iterable[EncodedBatch], texts: Iterable[Document] | None
) -> Iterator[tuple[EncodedBatch, list[str]]]:
    """Each block with the titles and texts of its documents. Raises InputError where they are of other documents."""
    stream = iter(texts or ())
    for block in blocks:
        documents = [] if texts is None else list(islice(stream, len(block.ids)))
        if texts is not None and [document.document_id for document in documents] != block.ids:
            raise InputError(block.ids[0], "isn't followed by the same documents in the corpus; name its own")
        yield block, [_text_fields(document) for document in documents]
    if next(stream, None) is not None:
        raise InputError("the corpus", "has more documents than the vectors; encode it again")


def _text_fields(document: Document) -> str:
    title = f'"title": {json_string(document.title)}, ' if document.title else ""
    return f'{title}"text": {json_string(document.text)}'


# -- lines ----------------------------------------------------------------------------------------


def json_string(text: str) -> str:
    """A string in JSON, its letters as they are."""
    return json.dumps(text, ensure_ascii=False)


def json_object(keys: Sequence[str], text: StoredText) -> str:
    """The weights of a text by token. keys: (V) the names of all tokens, in JSON already."""
    pairs = zip(text.columns, text.weights, strict=True)
    return f"{{{', '.join(f'{keys[column]}: {weight}' for column, weight in pairs)}}}"


def vector_line(names: Sequence[str]) -> Line:
    """{"id": ..., "vector": {token: weight, ...}} for each text that has an entry. names: (V) of the tokens."""
    keys = [json_string(name) for name in names]

    def line(text: StoredText) -> str:
        if not text.columns:
            return ""
        return f'{{"id": {json_string(text.text_id)}, "vector": {json_object(keys, text)}}}\n'

    return line


# -- names ----------------------------------------------------------------------------------------

_ESCAPED = re.compile(r"\\u([0-9a-f]{6})")


def id_of_bytes(title: str, most: int) -> CheckId:
    """The check that a document's id has 1 to `most` bytes, for the engine that people call `title`."""

    def check(document_id: str) -> None:
        size = len(document_id.encode())
        if not 0 < size <= most:
            raise InputError(
                repr(document_id[:40]), f"this document id has {size:,} bytes, {title} takes 1 to {most:,}"
            )

    return check


def breaks_words(character: str) -> bool:
    """Whether a character is white space for Python or Java, or a control character."""
    return character.isspace() or unicodedata.category(character) == "Cc"


def escape_token(token: str, offends: Callable[[str], bool] = breaks_words) -> str:
    r"""A token as an engine will keep it whole: itself, unless it holds characters that offend the engine.

    Then each of those, and each backslash, becomes a backslash, `u` and six hexadecimal digits. A token that
    looks escaped already is escaped too, so that no two tokens share a name; `unescape_token` goes back.
    """
    if not _ESCAPED.search(token) and not any(map(offends, token)):
        return token
    return "".join(
        f"\\u{ord(character):06x}" if character == "\\" or offends(character) else character
        for character in token
    )


def unescape_token(name: str) -> str:
    """The token that `escape_token` made a name of."""
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), name)
