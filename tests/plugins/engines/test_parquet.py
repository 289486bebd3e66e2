"""Parquet: tables that other programs read, and DuckDB ranks them as exact search does."""

import os
import subprocess
import sys

import duckdb
import pyarrow.parquet
import pytest
from odd import (
    BLOCK,
    EMPTY_ROWS,
    ODD_IDS,
    ODD_TOKENS,
    QUERIES,
    TOKENS,
    check_exact,
    check_ranking,
    export,
    odd_documents,
    vouch_anew,
)

from sparse_adapt.errors import OutputError
from sparse_adapt.plugins.engines.formats import open_engine
from sparse_adapt.plugins.engines.manifest import read_export
from sparse_adapt.plugins.engines.parquet import how_to_load


def test_duckdb_ranks_as_exact_search(written):
    with open_engine("parquet", written) as engine:
        check_exact(engine)
        check_ranking(engine)
        asked = engine._connection.execute("SELECT current_setting('enable_progress_bar')")
        assert asked.fetchone() == (False,)  # a bar would show after two seconds
    assert engine.name.startswith("DuckDB ")


def test_a_row_is_a_weight(tmp_path):
    manifest = export("parquet", tmp_path / "out", TOKENS, BLOCK, BLOCK._replace(ids=["e1", "e2", "e3"]))
    first, second = (
        pyarrow.parquet.read_table(tmp_path / "out" / part.path) for part in manifest.document_files
    )
    rows = [tuple(row.values()) for row in first.to_pylist()]
    weights = BLOCK.vectors.toarray()
    assert rows == [("d1", "a", weights[0, 0]), ("d1", "supply chain", 2.0), ("d3", "node.js", weights[2, 1])]
    assert first.schema.names == ["document_id", "token", "weight"]
    assert second["document_id"].to_pylist() == ["e1", "e1", "e3"]


def test_pandas_reads_every_weight_as_it_is(written):
    frame = pyarrow.parquet.read_table(written / "documents").to_pandas()
    documents = odd_documents()
    expected = {
        (ODD_IDS[row], ODD_TOKENS[column]): weight
        for row, column, weight in zip(*documents.vectors.nonzero(), documents.vectors.data, strict=True)
    }
    found = zip(frame["document_id"], frame["token"], strict=True)
    assert dict(zip(found, frame["weight"], strict=True)) == expected
    assert set(ODD_IDS) - set(frame["document_id"]) == {ODD_IDS[row] for row in EMPTY_ROWS}


def test_the_search_of_an_export_runs_as_it_stands(tmp_path, monkeypatch):
    export("parquet", tmp_path / "out", TOKENS, BLOCK, queries=QUERIES)
    monkeypatch.chdir(tmp_path / "out")
    found = duckdb.sql((tmp_path / "out/search.sql").read_text()).fetchall()
    # q1 asks node.js at 1.5 and supply chain at .25; d1 has the latter at 2, d3 the former at 1/3
    assert {query_id for query_id, _, _ in found} == {"q1"}
    scores = {document_id: score for _, document_id, score in found}
    assert scores == pytest.approx({"d1": 0.5, "d3": 0.5}, rel=1e-6)


def test_the_lines_that_export_prints_run(written):
    lines = how_to_load(read_export(written))
    done = subprocess.run([sys.executable, "-c", lines], env=dict(os.environ), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "heaviest" in done.stdout


def test_a_table_of_something_else_is_one_line(written, tmp_path):
    export("parquet", tmp_path / "out", TOKENS, BLOCK)
    (tmp_path / "out/documents/part-00000.parquet").write_bytes(b"no table")
    vouch_anew(tmp_path / "out")
    with pytest.raises(OutputError, match="DuckDB gives an error") as caught:
        open_engine("parquet", tmp_path / "out").__enter__()
    assert "\n" not in str(caught.value)
