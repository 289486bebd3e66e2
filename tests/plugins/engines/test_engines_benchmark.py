"""The benchmark of engines: its page, and what it counts of an engine."""

import numpy as np
from odd import TOKENS, vectors_of
from scipy.sparse import csr_matrix

from benchmarks.engines import bytes_in, latencies, opened, page
from sparse_adapt.plugins.engines.layout import ExportSource
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

TIMES = {"top 1": 0.001, "top 10": 0.0025, "top 100": 0.0101}


def test_the_page_has_a_table_for_each_number_of_documents():
    entries = [
        {"engine": "exact search", "documents": 1_000, "build": 0.5, **TIMES},
        {"engine": "one-1.0", "documents": 1_000, "export": 2_000_000, "index": 0, "build": 2.0, **TIMES},
        {"engine": "one-1.0", "documents": 50, "export": 900_000, "index": 3_400_000, "build": 2.0, **TIMES},
    ]
    assert [line for line in page(entries).splitlines() if "ms" in line or "documents" in line] == [
        "50 documents",
        "| one-1.0 | 1 MB | 3 MB | 2.0 s | 1 ms | 2.5 ms | 10 ms |",
        "1,000 documents",
        "| exact search |  |  | 0.5 s | 1 ms | 2.5 ms | 10 ms |",
        "| one-1.0 | 2 MB |  | 2.0 s | 1 ms | 2.5 ms | 10 ms |",
    ]


def test_write_ahead_logs_are_no_part_of_an_index(tmp_path):
    (tmp_path / "pg_wal").mkdir()
    (tmp_path / "pg_wal" / "log").write_bytes(b"x" * 9)
    (tmp_path / "table").write_bytes(b"x" * 5)
    assert bytes_in(tmp_path) == 5


def test_an_engine_is_opened_and_asked_query_by_query():
    block = EncodedBatch(["d1", "d2"], csr_matrix(np.array([[1, 2, 0], [0, 1, 3]], np.float32)))
    with opened("qdrant", ExportSource(vectors_of(TOKENS, block))) as engine:
        found = latencies(engine["search"], block, 2)
    assert engine["engine"].startswith("qdrant-edge") and engine["index"] > engine["export"] > 0
    assert found.keys() == {"top 1", "top 10", "top 100"} and min(found.values()) > 0
