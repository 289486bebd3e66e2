"""Postings as a table in Parquet, a row a weight, which DuckDB, pandas, Spark and others read; searched here by SQL.

    FOLDER/documents/part-00000.parquet    document_id and token, texts; weight, float32
    FOLDER/queries.jsonl                   {"query_id": ..., "token": ..., "weight": ...}, a line a weight
    FOLDER/search.sql                      the scores of all documents for the queries, for DuckDB in that folder
    FOLDER/tokens.json, manifest.json

Each block of vectors is a file. A document without an entry has no row, and no search finds it.
Dimensions: V vocabulary.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sparse_adapt.collection.readers import Run
from sparse_adapt.plugins.engines.engine import FloatEngine, engine_errors
from sparse_adapt.plugins.engines.layout import ExportLayout, ExportSource, StoredText, json_string
from sparse_adapt.plugins.engines.manifest import DOCUMENTS_FOLDER, ExportFolder, ExportManifest, file_there
from sparse_adapt.plugins.engines.quantise import Entries
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

if TYPE_CHECKING:  # an export is listed without both
    import duckdb
    import pyarrow

QUERIES_A_BATCH = 64
QUERIES = "read_json('queries.jsonl', columns = {query_id: 'VARCHAR', token: 'VARCHAR', weight: 'FLOAT'})"
SCORES = """\
SELECT query_id, document_id, sum(queries.weight::DOUBLE * documents.weight) AS score
FROM {queries} AS queries JOIN {documents} AS documents USING (token)
GROUP BY query_id, document_id"""
BEST = " QUALIFY row_number() OVER (PARTITION BY query_id ORDER BY score DESC, document_id) <= {k}"
IN_ORDER = "\nORDER BY query_id, score DESC, document_id"


# -- the files ------------------------------------------------------------------------------------


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: tables, and a search through them."""
    tokens = source.vectors.tokens
    scores = SCORES.format(queries=QUERIES, documents=f"'{DOCUMENTS_FOLDER}/*.parquet'")
    return ExportLayout(
        documents=partial(_write_tables, tokens),
        query_line=partial(_query_lines, [json_string(token) for token in tokens]),
        settings={"search.sql": f"{scores}{IN_ORDER};\n"},
    )


def how_to_load(export: ExportFolder) -> str:
    """Lines of Python that ask an export which tokens most documents have."""
    files = str(export.path / DOCUMENTS_FOLDER / "*.parquet").replace("'", "''")
    ask = f"SELECT token, count(*) AS documents, max(weight) AS heaviest FROM '{files}'"
    return f"import duckdb\nduckdb.sql({json.dumps(f'{ask} GROUP BY token ORDER BY documents DESC')}).show()"


def _write_tables(
    tokens: list[str], work: Path, manifest: ExportManifest, blocks: Iterable[EncodedBatch]
) -> ExportManifest:
    from pyarrow import parquet

    (work / DOCUMENTS_FOLDER).mkdir()
    for number, block in enumerate(blocks):
        entries, path = manifest.take(block), f"{DOCUMENTS_FOLDER}/part-{number:05d}.parquet"
        content = BytesIO()
        parquet.write_table(_table(entries, "document_id", tokens), content, compression="zstd")
        (work / path).write_bytes(content.getvalue())
        manifest = manifest.counting(entries).holding(file_there(work, path, len(entries.ids)))
    return manifest


def _table(entries: Entries, name: str, tokens: list[str]) -> "pyarrow.Table":
    """A row for each entry: the text's id in the column `name`, its token (of V), and the weight."""
    import pyarrow

    vectors = entries.vectors
    rows = np.repeat(np.arange(len(entries.ids), dtype=np.int32), vectors.getnnz(axis=1))
    of_text = pyarrow.DictionaryArray.from_arrays(rows, pyarrow.array(entries.ids, pyarrow.string()))
    columns = vectors.indices.astype(np.int32)
    of_token = pyarrow.DictionaryArray.from_arrays(columns, pyarrow.array(tokens, pyarrow.string()))
    weights = pyarrow.array(vectors.data, pyarrow.float32())
    return pyarrow.table({name: of_text, "token": of_token, "weight": weights})


def _query_lines(keys: list[str], text: StoredText) -> str:
    query = json_string(text.text_id)
    pairs = zip(text.columns, text.weights, strict=True)
    return "".join(
        f'{{"query_id": {query}, "token": {keys[c]}, "weight": {weight}}}\n' for c, weight in pairs
    )


# -- the engine -----------------------------------------------------------------------------------


class DuckDB(FloatEngine):
    """A table in memory that holds one export."""

    def __init__(self, connection: "duckdb.DuckDBPyConnection", export: ExportFolder) -> None:
        super().__init__(export.manifest)
        self.name, self._connection, self._tokens = f"DuckDB {version('duckdb')}", connection, export.tokens
        files = [str(export.path / file.path) for file in export.manifest.document_files]
        connection.execute("SET enable_progress_bar = false")
        connection.execute("CREATE TABLE postings AS SELECT * FROM read_parquet(?)", [files])

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents, best first."""
        run: Run = {query_id: {} for query_id in queries.ids}
        search = SCORES.format(queries="asked", documents="postings") + BEST.format(k=k) + IN_ORDER
        for first in range(0, len(queries.ids), QUERIES_A_BATCH):
            inside = slice(first, first + QUERIES_A_BATCH)
            some = self.manifest.take(EncodedBatch(queries.ids[inside], queries.vectors[inside]))
            self._connection.register("asked", _table(some, "query_id", self._tokens))
            for query_id, document_id, score in self._connection.execute(search).fetchall():
                run[query_id][document_id] = score
        return run


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> Iterator[DuckDB]:
    """DuckDB in this process, with an export in a table in memory."""
    import duckdb

    with engine_errors(str(export.path), "DuckDB", duckdb.Error), duckdb.connect(":memory:") as connection:
        yield DuckDB(connection, export)
