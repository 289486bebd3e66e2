"""sentence-transformers loads an export's model and documents, and ranks as exact search does."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from odd import with_factors

from sparse_adapt.collection.readers import Query
from sparse_adapt.engines.layout import ExportSource
from sparse_adapt.engines.opening import open_engine
from sparse_adapt.engines.parity import check_engine
from sparse_adapt.engines.quantise import Quantisation
from sparse_adapt.engines.sentence_transformers import how_to_load
from sparse_adapt.engines.writing import ExportOptions, write_export
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.marker import strangers
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.vectors.folder import join_blocks
from sparse_adapt.retrieve.vectors.shards import encode_queries, encode_vectors


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> SparseEncoder:
    return with_factors(tiny_model)


ASKED = [Query("q1", "a backup of the database"), Query("q2", "zorvex reports"), Query("q3", "the server")]


def test_sentence_transformers_loads_model_and_documents(model, twelve_documents, tmp_path):
    queries = encode_queries(model, ASKED)
    source = ExportSource(encode_vectors(model, twelve_documents, documents_a_block=5), queries, model)
    done = write_export("sentence-transformers", source, tmp_path / "out")
    assert (done.manifest.documents, done.manifest.queries) == (12, 3)
    documents = encode_queries(model, [Query(each.document_id, each.full_text) for each in twelve_documents])
    with open_engine("sentence-transformers", tmp_path / "out") as engine:
        parity = check_engine(engine, documents, queries, texts=[query.text for query in ASKED])
    assert (parity.faults, parity.kinds["rounding"]) == ((), 0)
    assert parity.encoding_difference is not None and parity.encoding_difference < 1e-5
    snippet = how_to_load(done).replace("QUERY", ASKED[0].text)
    done = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, check=True)
    found = [line.split()[0] for line in done.stdout.splitlines()]
    with open_engine("sentence-transformers", tmp_path / "out") as engine:
        assert found == list(engine.search_all(queries, 10)["q1"])
    with pytest.raises(ConfigError, match="sentence-transformers keeps weights as they are"):
        write_export(
            "sentence-transformers", source, tmp_path / "no", ExportOptions(quantisation=Quantisation())
        )
    assert not (tmp_path / "no").exists()


def test_an_id_with_a_line_separator_stays_whole(model, twelve_documents, tmp_path):
    odd = [replace(each, document_id=f"{each.document_id}\u2028\x85") for each in twelve_documents]
    source = ExportSource(encode_vectors(model, odd, documents_a_block=5), encoder=model)
    write_export("sentence-transformers", source, tmp_path / "out")
    assert strangers(tmp_path / "out") == []  # so that it may be replaced
    documents = join_blocks(encode_vectors(model, odd).blocks)
    with open_engine("sentence-transformers", tmp_path / "out") as engine:
        assert check_engine(engine, documents, encode_queries(model, ASKED)).faults == ()
