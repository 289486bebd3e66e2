"""Exact words wherever vectors are kept and searched: folders of vectors, engines, explanations, Python."""

import shutil
import tracemalloc

import numpy as np
import pytest

import sparse_adapt as sa
from diagnostics.figures import measure_cost
from diagnostics.matches import explain
from diagnostics.token import diagnose
from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.errors import InputError, ModelError
from sparse_adapt.files.place import Place
from sparse_adapt.model.exact.words import FIRST_WORD, column_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.words import WordOptions, add_exact_words
from sparse_adapt.plugins.engines.formats import engines, open_engine
from sparse_adapt.plugins.engines.manifest import read_export
from sparse_adapt.plugins.engines.parity import check_engine
from sparse_adapt.plugins.engines.writing import export_corpus
from sparse_adapt.retrieve.evaluate import evaluate_model, read_collection
from sparse_adapt.retrieve.hybrid import document_vectors, query_vectors
from sparse_adapt.retrieve.search import best_of_blocks, top_k
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, join_blocks, open_vectors, read_manifest
from sparse_adapt.retrieve.vectors.shards import encode_corpus, encode_queries

QUERIES = [
    Query("q1", "who owns zorvex"),
    Query("q2", "test the backup of a database"),
    Query("q3", "unheardof"),
]
SEEN = "has exact words; pass --update to take new statistics"
IN_PROCESS = [row.name for row in engines() if row.holds == "vectors" and row.in_process and row.opens]


@pytest.fixture(scope="module")
def hybrid(tiny_model, twelve_documents) -> SparseEncoder:
    model = SparseEncoder.load(str(tiny_model))
    add_exact_words(model, lambda: twelve_documents, WordOptions(heaviest=8))
    return model


@pytest.fixture(scope="module")
def saved(hybrid, tmp_path_factory):
    folder = tmp_path_factory.mktemp("words") / "model"
    hybrid.save(folder)
    return folder


def best_ids(hybrid, documents, text: str, k: int = 3) -> list[str]:
    rows, _ = top_k(query_vectors(hybrid, [text]), document_vectors(hybrid, documents), k)[0]
    return [documents[row].document_id for row in rows]


# -- folders of vectors -----------------------------------------------------------------------------


def test_a_folder_names_its_words_and_is_searched_as_memory_is(hybrid, twelve_documents, tmp_path):
    encode_corpus(hybrid, twelve_documents, Place(tmp_path / "v"), documents_a_shard=5)
    opened = open_vectors(tmp_path / "v")
    words = opened.tokens[hybrid.vocabulary_size :]
    assert "=zorvex" in words and len(set(words)) == len(words)
    assert opened.numbers[-1] == max(opened.numbers) and column_of("zorvex") in opened.numbers
    block = join_blocks(opened.blocks)
    assert block.vectors.shape == (12, len(opened.tokens))
    assert block.vectors.nnz == read_manifest(tmp_path / "v").nonzeros
    asked = opened.aligned(encode_queries(hybrid, QUERIES))
    found = best_of_blocks(asked.vectors, [(block.ids, block.vectors)], 3)
    assert [name for name, _ in found[0]] == best_ids(hybrid, twelve_documents, QUERIES[0].text)


def test_a_continued_run_names_the_same_words(hybrid, saved, twelve_documents, tmp_path):
    shards = {"documents_a_shard": 5, "model_name": "m"}
    encode_corpus(hybrid, twelve_documents, Place(tmp_path / "whole"), **shards)

    def stopped():
        yield from twelve_documents[:7]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode_corpus(hybrid, stopped(), Place(tmp_path / "again"), **shards)
    afresh = SparseEncoder.load(str(saved))  # no word was met yet
    encode_corpus(afresh, twelve_documents, Place(tmp_path / "again", resume=True), **shards)
    whole, again = (
        {path.name: path.read_bytes() for path in (tmp_path / each).iterdir()} for each in ("whole", "again")
    )
    assert whole == again


def test_vectors_without_words_are_refused_beside_a_model_with_them(
    saved, tiny_model, twelve_documents, tmp_path
):
    encode_corpus(SparseEncoder.load(str(tiny_model)), twelve_documents, Place(tmp_path / "v"))
    with pytest.raises(InputError, match="was encoded by another model"):
        sa.search(str(saved), str(tmp_path / "v"), "who owns zorvex")


def test_vectors_are_searched_after_new_statistics(saved, twelve_documents, tmp_path):
    sa.load(saved, device="cpu")
    encode_corpus(SparseEncoder.load(str(saved)), twelve_documents, Place(tmp_path / "v"))
    more = [*twelve_documents, Document("n", "gatrocraptic birds of the sea")]
    sa.add_words(str(saved), more, tmp_path / "later", update=True, device="cpu")
    found = sa.search(str(tmp_path / "later"), str(tmp_path / "v"), "who owns zorvex", device="cpu")
    assert found[0].document_id in ("d05", "d06", "d07")


# -- engines ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_PROCESS)
def test_every_engine_ranks_as_exact_search(name, hybrid, twelve_documents, tmp_path):
    queries = encode_queries(hybrid, QUERIES)
    export_corpus(name, hybrid, lambda: iter(twelve_documents), Place(tmp_path / "x"), queries=queries)
    export = read_export(tmp_path / "x", name)
    ids = [each.document_id for each in twelve_documents]
    documents = export.aligned(EncodedBatch(ids, document_vectors(hybrid, twelve_documents)))
    asked = export.aligned(queries)
    with open_engine(name, tmp_path / "x", documents=documents) as engine:
        parity = check_engine(engine, documents, asked, k=5)
    assert parity.faults == () and parity.kinds["same"] + parity.kinds["tie"] + parity.kinds["rounding"] == 3


@pytest.mark.parametrize("name", ["onnx", "anserini-onnx", "opensearch-model"])
def test_an_engine_that_holds_an_encoder_refuses_words(name, hybrid, twelve_documents, tmp_path):
    with pytest.raises(ModelError, match=r"has exact words, which .* can't read; export the model"):
        export_corpus(name, hybrid, lambda: iter(twelve_documents), Place(tmp_path / "x"))
    assert not (tmp_path / "x").exists()


def test_a_word_has_the_same_name_in_documents_and_queries(hybrid, twelve_documents, tmp_path):
    queries = encode_queries(hybrid, QUERIES)
    export_corpus(
        "opensearch", hybrid, lambda: iter(twelve_documents), Place(tmp_path / "x"), queries=queries
    )
    documents = (tmp_path / "x" / "documents" / "part-00000.ndjson").read_text(encoding="utf-8")
    asked = (tmp_path / "x" / "queries.jsonl").read_text(encoding="utf-8")
    assert '"=zorvex": ' in documents and '"=zorvex": ' in asked
    assert "unheardof" not in asked  # no document holds it


def test_an_engine_of_numbers_has_the_number_of_every_machine(hybrid, twelve_documents, tmp_path):
    export_corpus("qdrant", hybrid, lambda: iter(twelve_documents), Place(tmp_path / "x"))
    first = next(read_export(tmp_path / "x", "qdrant").document_lines())
    indices = first["vector"]["weights"]["indices"]
    expected = document_vectors(hybrid, twelve_documents[:1]).indices
    assert sorted(indices) == sorted(expected.tolist()) and max(indices) >= FIRST_WORD


# -- answers ----------------------------------------------------------------------------------------


def test_an_explanation_marks_words_and_sums_to_the_score(hybrid, twelve_documents):
    report = explain("who owns zorvex", hybrid, twelve_documents)
    best = report.matches[0]
    words = [part for part in best.contributions if part.word]
    assert [part.token for part in words if part.token == "=zorvex"] and 0 < best.word_share < 1
    assert sum(part.contribution for part in best.contributions) == pytest.approx(best.score, rel=1e-5)
    assert not any(part.expansion for part in words)
    text = str(report)
    assert "exact word" in text and "of the score" in text
    assert {token["word"] for token in report.to_dict()["tokens"] if "word" in token} == {True}


def test_a_diagnosis_shows_what_the_exact_words_of_a_term_weigh(hybrid, twelve_documents, tiny_model):
    report = diagnose("zorvex", hybrid, twelve_documents)
    (word,) = report.exact_words
    settings = hybrid.words.settings
    assert (word["word"], word["idf"]) == ("zorvex", settings.idf["zorvex"])
    assert word["query_weight"] == pytest.approx(
        hybrid.words.weight * word["idf"] * settings.pieces, rel=1e-5
    )
    assert 0 < word["document_weight"] <= 2
    below = str(report).split("Exact words")[1].split()
    assert [f"{each:.4f}" in below for each in (word["query_weight"], word["document_weight"])] == [
        True,
        True,
    ]
    assert f"{word['document_weight']:.4f}" in report.page("zorvex")
    plain = diagnose("zorvex", SparseEncoder.load(str(tiny_model)), twelve_documents)
    assert (
        plain.exact_words == [] and "exact_words" not in plain.to_dict() and "Exact words" not in str(plain)
    )


def test_words_find_what_the_model_does_not_know(saved, zorvex_collection):
    collection = read_collection(zorvex_collection, "test")
    result = evaluate_model(SparseEncoder.load(str(saved)), collection)
    assert result.values["ndcg@10"].mean() > 0
    assert result.values["nonzero_document"].max() <= 8 + 60


def test_words_in_python(tiny_model, twelve_documents, tmp_path):
    added = sa.add_words(str(tiny_model), twelve_documents, prune=0, device="cpu")
    model, vectors = added.model, added.model.encode_document(twelve_documents)
    assert vectors.shape == (12, added.model.encode_query("a").shape[1])
    names = [token for token, _ in model.decode(model.encode_query("who owns zorvex"))[0]]
    assert "=zorvex" in names
    scores = model.similarity(model.encode_query("who owns zorvex"), vectors)
    found = sa.search(model, twelve_documents, "who owns zorvex", device="cpu")
    assert scores.max() == pytest.approx(found[0].score, rel=1e-5)
    assert added.to_dict()["documents"] == 12 and "12 documents" in added.headline
    model.save(tmp_path / "m")
    assert sa.load(tmp_path / "m").encoder.words.settings == added.words.settings


def test_queries_by_a_table_need_no_model(tiny_model, twelve_documents, tmp_path, monkeypatch):
    out = tmp_path / "m"
    added = sa.add_words(str(tiny_model), twelve_documents, out, query_side="idf", share=1.0, device="cpu")
    table = added.model.encoder.query_side.weights
    assert table.min() == 0.0 < table.max() and not table[added.model.encoder.tokenizer.all_special_ids].any()
    loaded = sa.load(out, device="cpu")
    monkeypatch.setattr(loaded.encoder.masked_lm, "forward", None)  # asked by nobody
    names = [name for name, _ in loaded.decode(loaded.encode_query("who owns zorvex"))[0]]
    assert "=zorvex" in names and any(not name.startswith("=") for name in names)


def test_the_command_and_its_refusals(sparse_adapt, tiny_model, zorvex_collection, tmp_path):
    out = tmp_path / "m"
    done = sparse_adapt("words", tiny_model, zorvex_collection, "-o", out)
    assert done.status == 0 and any("exact words of 12 documents" in line for line in done.messages)
    assert any(line.strip().startswith("sparse-adapt evaluate") for line in done.messages)
    again = sparse_adapt("words", out, zorvex_collection, "-o", tmp_path / "n")
    assert (again.status, again.errors) == (2, [f"error: {out}: {SEEN}"])
    assert sparse_adapt("words", out, zorvex_collection, "-o", tmp_path / "n", "--update").status == 0
    first = sparse_adapt("words", tiny_model, zorvex_collection, "-o", tmp_path / "o", "--update")
    assert first.status == 2 and "has no exact words yet" in first.errors[0] and not (tmp_path / "o").exists()
    odd = sparse_adapt("words", tiny_model, zorvex_collection, "-o", tmp_path / "o", "--language", "xx")
    assert odd.status == 2 and not (tmp_path / "o").exists()
    shutil.rmtree(tmp_path / "n")


def test_the_cost_of_vectors_is_counted_in_little_memory(hybrid, twelve_documents):
    vectors, asked = document_vectors(hybrid, twelve_documents), query_vectors(hybrid, ["who owns zorvex"])
    tracemalloc.start()
    cost = measure_cost(vectors, hybrid, asked, lists=500)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 2**20  # half a billion columns take four billion bytes
    assert cost.tokens_used == len(set(vectors.indices)) == len(cost.longest)
    assert cost.postings_a_query == pytest.approx(np.isin(vectors.indices, asked.indices).sum())
    assert (
        sum(each.token.startswith("=") for each in cost.longest)
        == (np.unique(vectors.indices) >= FIRST_WORD).sum()
    )
