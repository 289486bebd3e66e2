"""OpenSearch's sparse vectors: no token has a number that the field mis-scores, and queries use the same numbers."""

import json

import numpy as np
import pytest
from odd import check_ranking, export, export_odd
from scipy.sparse import csr_matrix
from small_servers import BulkServer, served

from sparse_adapt.errors import InputError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines.formats import open_engine
from sparse_adapt.plugins.engines.layout import ExportSource
from sparse_adapt.plugins.engines.manifest import read_export, remarks
from sparse_adapt.plugins.engines.writing import write_export
from sparse_adapt.retrieve.search import search
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, open_vectors
from sparse_adapt.retrieve.vectors.shards import encode_corpus

NAME = "opensearch-seismic"
MANY = [f"t{token_id}" for token_id in range(70_000)]


def rows(*texts: dict[int, float]) -> csr_matrix:
    """Weights by token id as rows of a vocabulary of 70,000."""
    entries = [(row, token_id, weight) for row, text in enumerate(texts) for token_id, weight in text.items()]
    row, column, weight = zip(*entries, strict=True)
    return csr_matrix((np.array(weight, np.float32), (row, column)), shape=(len(texts), len(MANY)))


def test_an_export_ranks_as_exact_search(tmp_path):
    export_odd(NAME, tmp_path / "out")
    server = BulkServer("opensearch", "3.3.0")
    with served(server) as url, open_engine(NAME, tmp_path / "out", url=url) as engine:
        check_ranking(engine)
    assert (engine.name, server.indices) == ("opensearch-seismic-3.3.0", {})


def test_tokens_that_would_collide_are_numbered_by_use(tmp_path):
    documents = EncodedBatch(["d1", "d2", "d3"], rows({0: 1.0}, {65_536: 2.0}, {40_000: 0.5, 0: 0.25}))
    queries = EncodedBatch(["q1", "q2", "q3"], rows({0: 1.0, 9: 3.0}, {65_536: 1.0, 40_000: 1.0}, {7: 1.0}))
    manifest = export(NAME, tmp_path / "out", MANY, documents, queries=queries)
    assert json.loads((tmp_path / "out/numbers.json").read_text()) == {"t0": 0, "t40000": 1, "t65536": 2}
    lines = list(read_export(tmp_path / "out").document_lines())[1::2]
    assert [line["weights"] for line in lines] == [{"0": 1.0}, {"2": 2.0}, {"0": 0.25, "1": 0.5}]
    asked = [json.loads(line)["search"] for line in (tmp_path / "out/queries.jsonl").read_text().splitlines()]
    tokens = [each["query"]["neural_sparse"]["weights"]["query_tokens"] for each in asked]
    assert tokens == [{"0": 1.0}, {"1": 1.0, "2": 1.0}]  # no document has the token of the third
    assert (manifest.queries, manifest.empty_queries) == (2, 1)
    assert "tokens have other numbers than in the model: 3 in numbers.json" in remarks(manifest)
    with served(BulkServer("opensearch")) as url, open_engine(NAME, tmp_path / "out", url=url) as engine:
        runs = [engine.search_all(queries, 3)]
    with open_engine(NAME, tmp_path / "out") as engine:
        runs.append(engine.search_all(queries, 3))
    assert runs == 2 * [search(queries.vectors, queries.ids, documents.vectors, documents.ids, 3)]


def test_a_model_that_fits_keeps_its_ids(tiny_model, twelve_documents, tmp_path):
    encode_corpus(SparseEncoder.load(tiny_model), twelve_documents, Place(tmp_path / "vectors", resume=True))
    vectors = open_vectors(tmp_path / "vectors")
    done = write_export(NAME, ExportSource(vectors), Place(tmp_path / "out"))
    assert done.manifest.facts == {"renumbered_tokens": 0}
    numbers = json.loads((tmp_path / "out/numbers.json").read_text())
    assert numbers == {token: token_id for token_id, token in enumerate(vectors.tokens)}
    stored = [line["weights"] for line in list(done.document_lines())[1::2] if "weights" in line]
    used = {int(number) for weights in stored for number in weights}
    assert used == {token for block in vectors.blocks for token in block.vectors.indices.tolist()}


def test_the_largest_step_of_a_weight_is_the_largest_weight(tmp_path):
    export(NAME, tmp_path / "out", MANY, EncodedBatch(["d1", "d2"], rows({3: 2.5}, {4: 7.25})))
    index = json.loads((tmp_path / "out/index.json").read_text())
    method = index["mappings"]["properties"]["weights"]["method"]
    assert (index["settings"], method["parameters"]) == (
        {"index": {"sparse": True}},
        {"quantization_ceiling_ingest": 7.25},
    )


def test_more_tokens_than_the_field_tells_apart_are_refused(tmp_path):
    fitting, more = (dict.fromkeys(range(1, count + 1), 1.0) for count in (2**15, 2**15 + 1))
    with pytest.raises(InputError, match=r"documents have 32,769 tokens, .* tells 32,768 apart"):
        export(NAME, tmp_path / "out", MANY, EncodedBatch(["d1"], rows(more)))
    assert list(tmp_path.iterdir()) == []
    export(NAME, tmp_path / "out", MANY, EncodedBatch(["d1"], rows(fitting)))
    assert max(json.loads((tmp_path / "out/numbers.json").read_text()).values()) == 2**15 - 1
