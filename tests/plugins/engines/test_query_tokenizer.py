"""The export for OpenSearch of a model with a table: tokenizer and dictionary give the queries of the model."""

import json
import zipfile

import numpy as np
import pytest
from formed import PROMPTS, routed, written
from tokenizers import Tokenizer

import sparse_adapt as sa
from sparse_adapt.model.query_side import QuerySide
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.plugins.engines.opensearch import halving
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.terms.mining import Term

ASKED = ["who runs the server of zorvex?", "kubectl logs", "a backup a backup", "the word " * 90]


@pytest.fixture
def table_model(tiny_model, tmp_path):
    model = SparseEncoder.load(tiny_model)
    weights = np.random.default_rng(0).random(model.vocabulary_size).astype(np.float32) + 0.5
    weights[list(model.tokenizer.all_special_ids)] = 0.0
    model.query_side = QuerySide(weights, 40)
    extend(model, [Term("zorvex", "coined")])
    model.save(tmp_path / "model")
    return tmp_path / "model"


def asked_by(folder, text):
    """As the printed lines do."""
    table = json.loads((folder / "query" / "idf.json").read_text(encoding="utf-8"))
    tokenizer = Tokenizer.from_file(str(folder / "query" / "tokenizer.json"))
    return {each: table[each] for each in tokenizer.encode(text, add_special_tokens=False).tokens}


def test_tokenizer_and_dictionary_weigh_queries_as_the_model_does(table_model, twelve_documents, tmp_path):
    made = sa.export("opensearch", table_model, twelve_documents, tmp_path / "out", device="cpu")
    model = SparseEncoder.load(table_model)
    for text in ASKED:
        vector, names = encode(model, [text], "query"), model.tokens
        own = {names[column]: weight for column, weight in zip(vector.indices, vector.data, strict=True)}
        found = asked_by(tmp_path / "out", text)
        assert {name: weight for name, weight in found.items() if weight > 1e-5} == pytest.approx(
            own, abs=1e-5
        )
    assert "SPARSE_TOKENIZE" in (tmp_path / "out" / "query" / "model_config.json").read_text()
    assert "query_text" in made.loading and "Tokenizer.from_file" in made.loading
    with zipfile.ZipFile(tmp_path / "out" / "query" / "tokenizer.zip") as archive:
        assert archive.namelist() == ["tokenizer.json", "idf.json"]
        assert min(json.loads(archive.read("idf.json")).values()) > 0.0  # Lucene takes no weight of 0
    assert {file.path for file in made.manifest.parts} >= {"query/idf.json", "query/tokenizer.json"}


def test_weights_that_lucene_refuses_are_halved_together(table_model, twelve_documents, tmp_path):
    model = SparseEncoder.load(table_model)
    before = model.query_side.weights.copy()
    model.query_side = QuerySide(before * 100, 40)
    sa.export("opensearch", sa.api.models.Model(model, "m"), twelve_documents, tmp_path / "out", device="cpu")
    table = json.loads((tmp_path / "out" / "query" / "idf.json").read_text())
    assert max(table.values()) <= 64.0
    token = model.tokens.index("server")
    assert table["server"] == pytest.approx(
        before[token] * 100 * halving({"a": before.max() * 100}), rel=1e-4
    )


def test_others_hold_no_table(tiny_model, twelve_documents, tmp_path):
    sa.export("opensearch", tiny_model, twelve_documents, tmp_path / "whole", device="cpu")
    assert not (tmp_path / "whole" / "query").exists()
    prompted = written(routed(tiny_model, prompts=PROMPTS), tmp_path / "prompted")
    sa.export("opensearch", prompted, twelve_documents, tmp_path / "out", device="cpu")
    assert not (tmp_path / "out" / "query").exists()  # a tokenizer puts no prompt before a query
