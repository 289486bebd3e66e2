"""The encoder for Anserini: read by Anserini's own encoder, and put to a real index by its own command."""

import subprocess

import numpy as np
import pytest

from sparse_adapt.collection.readers import Document
from sparse_adapt.errors import ModelError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines.anserini_onnx import SCALE, cut_tokens, how_to_load
from sparse_adapt.plugins.engines.formats import open_engine
from sparse_adapt.plugins.engines.java import anserini_jar, find_java
from sparse_adapt.plugins.engines.layout import ExportSource
from sparse_adapt.plugins.engines.lucene import build_index
from sparse_adapt.plugins.engines.manifest import remarks
from sparse_adapt.plugins.engines.writing import export_corpus, write_export
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors
from sparse_adapt.retrieve.vectors.manifest import stamp_of_model, token_names

QUERIES = {
    "q1": "which client does the server refuse?",
    "q2": "naïve T-cells",
    "q3": "a report of the team's plan",
}


def write(encoder, folder):
    vectors = Vectors(stamp_of_model(encoder, "by hand"), token_names(encoder), ())
    return write_export("anserini-onnx", ExportSource(vectors, encoder=encoder), Place(folder))


@pytest.fixture(scope="module")
def encoder():
    return SparseEncoder.load("splade-tiny")


@pytest.fixture(scope="module")
def written(encoder, tmp_path_factory):
    return write(encoder, tmp_path_factory.mktemp("home") / "it's here")


@pytest.mark.slow
def test_anserini_encodes_queries_as_the_model_does(encoder, written):
    texts, documents = list(QUERIES.values()), EncodedBatch(["d"], encode(encoder, ["a server"], "document"))
    with open_engine("anserini-onnx", written.path, documents=documents) as engine:
        found = engine.encode(texts)
        run = engine.search_all(EncodedBatch(list(QUERIES), found), 3)
    expected = np.rint(encode(encoder, texts, "query").toarray() * np.float32(SCALE))
    assert np.abs(found.toarray() * SCALE - expected).max() <= 1  # a half may go either way
    assert (np.abs(found.toarray() * SCALE - expected) > 0.5).sum() <= 1
    assert run["q1"].keys() == {"d"}


@pytest.mark.slow
def test_the_command_that_export_prints_ranks_an_index(encoder, written, twelve_documents, tmp_path):
    documents = [each for each in twelve_documents if isinstance(each, Document)]
    export_corpus("anserini", encoder, lambda: documents, Place(tmp_path / "impacts"))
    build_index(tmp_path / "impacts", Place(tmp_path / "index"))
    (tmp_path / "queries.tsv").write_text("".join(f"{name}\t{text}\n" for name, text in QUERIES.items()))
    lines = how_to_load(written).replace("anserini-fatjar.jar ", f"{anserini_jar()} ")
    places = {"PATH": f"{find_java().home / 'bin'}:/usr/bin:/bin"}
    done = subprocess.run(["bash", "-ec", lines], cwd=tmp_path, env=places, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, float]] = {name: {} for name in QUERIES}
    for line in (tmp_path / "run.txt").read_text().splitlines():
        query_id, _, document_id, _, score, _ = line.split()
        found[query_id][document_id] = float(score)
    kept = np.rint(encode(encoder, [each.full_text for each in documents], "document").toarray() * 100)
    asked = np.rint(encode(encoder, list(QUERIES.values()), "query").toarray() * np.float32(SCALE))
    for query_id, scores in zip(QUERIES, asked @ kept.T, strict=True):
        expected = {each.document_id: score for each, score in zip(documents, scores, strict=True) if score}
        assert found[query_id] == pytest.approx(expected, rel=1e-3)
        assert list(found[query_id]) == sorted(expected, key=lambda name: -found[query_id][name])


def test_tokens_that_fall_apart_are_counted(tiny_model):
    model = SparseEncoder.load(tiny_model)
    assert cut_tokens(model, token_names(model)) == 0
    model.tokenizer.add_tokens(["node.js", "zq-9"])
    model.masked_lm.resize_token_embeddings(len(model.tokenizer), mean_resizing=False)
    assert cut_tokens(model, token_names(model)) == 2


@pytest.mark.slow
def test_it_is_said_how_many_fall_apart(written):
    manifest = written.manifest.holding(cut_tokens=2)
    assert list(remarks(manifest))[-1] == "2 tokens fall apart in Anserini, which has the vocabulary alone"


def test_a_model_that_anserini_would_read_wrongly_is_refused(tiny_model, tmp_path):
    with pytest.raises(
        ModelError, match=r"Anserini leaves out ids 0, 101 and 102, which aren't special tokens"
    ):
        write(SparseEncoder.load(tiny_model), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []
