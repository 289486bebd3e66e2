r"""What every export has: parts of one block each, a manifest that counts and vouches for them, token names.

A format's module starts a manifest (`begin`), hands its lines to `write_documents` and `write_queries`, and
ends with `finish`. One whose files aren't lines adds its parts with `counted` and `file_part`.
Dimensions: V vocabulary.
"""

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.export.formats import find_format
from sparse_adapt.export.quantise import Entries, Quantisation, as_floats
from sparse_adapt.export.rows import json_object, json_string, rows
from sparse_adapt.files.folders import write_json
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors
from sparse_adapt.retrieve.vectors.manifest import (
    MANIFEST_FILE,
    ModelStamp,
    Record,
    check_file,
    read_record,
    write_tokens,
)

DOCUMENTS_FOLDER = "documents"

Lines = Callable[[Entries], Iterator[str]]
Fact = str | int | float | bool | None

_ESCAPED = re.compile(r"\\u([0-9a-f]{6})")


class Part(Record):
    """One file of an export, by its path inside the folder; `rows` of texts, where it holds any."""

    path: str
    rows: int
    sha256: str


class Manifest(Record):
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
    parts: tuple[Part, ...] = ()
    queries_file: Part | None = None
    facts: Mapping[str, Fact] = {}

    def take(self, block: EncodedBatch) -> Entries:
        """A block as this format holds it. Raises InputError for a weight that is negative or no number."""
        if self.quantisation is not None:
            return self.quantisation.impacts(block)
        return as_floats(block) if self.largest_weight is None else as_floats(block, self.largest_weight)

    def score(self, value: float) -> float:
        """What a sum of products of stored values stands for in terms of weights."""
        return value if self.quantisation is None else self.quantisation.score(value)


def begin(
    format: str, vectors: Vectors, quantisation: Quantisation | None, *, largest_weight: float | None = None
) -> Manifest:
    """The manifest of an export that has nothing in it yet.

    Raises ConfigError for a quantisation that the format has no use for, or whose impacts it can't hold.
    """
    row = find_format(format)
    if row.weights == "floats":
        if quantisation is not None:
            raise ConfigError(f"{format} keeps weights as they are; leave out --scale and --largest")
        return Manifest(format=format, model=vectors.model, largest_weight=largest_weight)
    return Manifest(
        format=format,
        model=vectors.model,
        quantisation=quantisation or Quantisation(),
        rounding="nearest, ties to even",
    )


def write_documents(
    work: Path, manifest: Manifest, blocks: Iterable[EncodedBatch], lines: Lines, suffix: str = "jsonl"
) -> Manifest:
    """Write each block as a part `documents/part-00000.SUFFIX`; the manifest with counts and parts."""
    (work / DOCUMENTS_FOLDER).mkdir()
    for number, block in enumerate(blocks):
        entries = manifest.take(block)
        path = f"{DOCUMENTS_FOLDER}/part-{number:05d}.{suffix}"
        digest = _write_lines(work / path, lines(entries))[1]
        part = Part(path=path, rows=len(block.ids), sha256=digest)
        manifest = counted(manifest, entries).model_copy(update={"parts": (*manifest.parts, part)})
    return manifest


def write_queries(work: Path, manifest: Manifest, queries: EncodedBatch, path: str, lines: Lines) -> Manifest:
    """Write the queries that have an entry left, as many lines as `lines` gives, into one file."""
    entries = manifest.take(queries)
    rows, digest = _write_lines(work / path, lines(entries))
    return manifest.model_copy(
        update={
            "queries": rows,
            "empty_queries": int((entries.vectors.getnnz(axis=1) == 0).sum()),
            "queries_file": Part(path=path, rows=rows, sha256=digest),
        }
    )


def write_one_file(
    work: Path, manifest: Manifest, blocks: Iterable[EncodedBatch], lines: Lines, path: str
) -> Manifest:
    """Write all blocks into one file, for engines that take no more; the manifest with counts and the part."""
    taken = [manifest]

    def all_lines() -> Iterator[str]:
        for block in blocks:
            entries = manifest.take(block)
            taken.append(counted(taken.pop(), entries))
            yield from lines(entries)

    rows, digest = _write_lines(work / path, all_lines())
    part = Part(path=path, rows=rows, sha256=digest)
    return taken[0].model_copy(update={"parts": (*manifest.parts, part)})


def vector_lines(keys: Sequence[str], entries: Entries) -> Iterator[str]:
    """Each text that has an entry as {"id": ..., "vector": {token: value, ...}}. keys: (V) names as JSON."""
    for text_id, columns, values in rows(entries):
        if columns:
            yield f'{{"id": {json_string(text_id)}, "vector": {json_object(keys, columns, values)}}}\n'


def counted(manifest: Manifest, entries: Entries) -> Manifest:
    """The manifest with the documents of one more block."""
    lengths = entries.vectors.getnnz(axis=1)
    return manifest.model_copy(
        update={
            "documents": manifest.documents + len(entries.ids),
            "empty_documents": manifest.empty_documents + int((lengths == 0).sum()),
            "entries": manifest.entries + int(lengths.sum()),
            "dropped": manifest.dropped + entries.dropped,
            "clipped": manifest.clipped + entries.clipped,
        }
    )


def file_part(work: Path, path: str, rows: int) -> Part:
    """A file that is already there, as a part."""
    with (work / path).open("rb") as file:
        return Part(path=path, rows=rows, sha256=hashlib.file_digest(file, "sha256").hexdigest())


def finish(work: Path, manifest: Manifest, tokens: list[str]) -> Manifest:
    """Write `tokens.json` and, last, the manifest."""
    write_tokens(work, tokens)
    write_json(work / MANIFEST_FILE, manifest.model_dump())
    return manifest


def read_manifest(folder: Path, format: str | None = None) -> Manifest:
    """The manifest of an export. Raises InputError unless it is of that format and every part is as written."""
    manifest = read_record(folder / MANIFEST_FILE, Manifest)
    if format is not None and manifest.format != format:
        raise InputError(
            folder, f"holds an export for {manifest.format}, not {format}; export again for {format}"
        )
    for part in (*manifest.parts, *filter(None, [manifest.queries_file])):
        check_file(folder / part.path, part.sha256)
    return manifest


# -- names of tokens ------------------------------------------------------------------------------


def breaks_words(character: str) -> bool:
    """White space for Python or Java, or a control character."""
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


# -- files ----------------------------------------------------------------------------------------


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
