"""Word statistics by hand, a real dense model, and their sum."""

import json
import math
import shutil

import numpy as np
import pytest
import torch
from dense_models import tiny_dense
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from transformers import BertModel

from sparse_adapt.errors import ModelError
from sparse_adapt.files.writing import write_json
from sparse_adapt.model.dense import DenseEncoder, fast_precision
from sparse_adapt.model.idf import of_mean, scaled, sqrt_idf
from sparse_adapt.teachers.bm25 import Bm25
from sparse_adapt.teachers.teacher import add_z_scores, z_scores

TEXTS = ["plasmids carry genes", "genes genes everywhere carry on", "an empty shelf", ""]


def test_a_score_by_hand():
    bm25 = Bm25.fit(TEXTS)
    # lengths without stop words 3, 4, 2, 0: 2.25 on average; "gene" is in 2 of 4 texts,
    # so its idf is ln(1 + (4 - 2 + .5) / (2 + .5)) = ln 2
    idf = math.log(2)
    first = idf * 1 / (1 + 0.9 * (1 - 0.4 + 0.4 * 3 / 2.25))
    second = idf * 2 / (2 + 0.9 * (1 - 0.4 + 0.4 * 4 / 2.25))
    assert bm25.scores(["gene"]) == pytest.approx(np.array([[first, second, 0, 0]]), rel=1e-5)


def test_a_word_said_twice_counts_twice_and_an_unknown_one_not_at_all():
    bm25 = Bm25.fit(TEXTS)
    once, twice, unknown = bm25.scores(["plasmid", "plasmid Plasmids zorvex", "zorvex"])
    assert twice == pytest.approx(2 * once)
    assert not unknown.any()


def test_the_best_stand_first_and_ties_in_document_order():
    bm25 = Bm25.fit(["same words", "same words", "other words", "nothing"])
    (rows, scores), (none, _) = bm25.top_k(["same words", "absent"], 3)
    assert rows.tolist() == [0, 1, 2]
    assert scores[0] == scores[1] > scores[2] > 0
    assert len(none) == 0


def test_texts_without_words_have_no_scores():
    bm25 = Bm25.fit(["", "  "])
    assert bm25.scores(["word"]).shape == (1, 2)
    assert len(bm25.top_k(["word"], 2)[0][0]) == 0


def test_top_k_agrees_with_the_scores():
    generator = np.random.default_rng(0)
    words = [f"word{number}" for number in range(30)]
    texts = [" ".join(generator.choice(words, 12)) for _ in range(50)]
    bm25 = Bm25.fit(texts)
    queries = [" ".join(generator.choice(words, 4)) for _ in range(5)]
    for row, (found, scores) in zip(bm25.scores(queries), bm25.top_k(queries, 10), strict=True):
        assert scores == pytest.approx(np.sort(row)[::-1][:10], rel=1e-5)
        assert row[found] == pytest.approx(scores, rel=1e-5)


# -- the sum ------------------------------------------------------------------------------------


def test_z_scores_by_hand():
    # mean 2, deviations -1 0 1, standard deviation sqrt(2 / 3)
    assert z_scores(np.array([[1.0, 2.0, 3.0]])) == pytest.approx(np.array([[-1, 0, 1]]) / math.sqrt(2 / 3))
    assert not z_scores(np.array([[0.1, 0.1, 0.1], [0, 0, 0]])).any()
    assert z_scores(np.zeros((2, 0))).shape == (2, 0)


@given(
    st.lists(st.integers(-1000, 1000), min_size=2, max_size=9),
    st.floats(0.01, 100),
    st.floats(-100, 100),
)
def test_neither_shift_nor_scale_matters(values, scale, shift):
    row = np.array([values], np.float64)
    assert z_scores(scale * row + shift) == pytest.approx(z_scores(row), abs=1e-4)


def test_every_member_has_the_same_say():
    # one member's scores are a hundred times the other's and disagree: the sum is level
    total = add_z_scores([np.array([[100.0, 200.0]]), np.array([[2.0, 1.0]])])
    assert total == pytest.approx(np.zeros((1, 2)))


@pytest.mark.plugins("research")
def test_the_best_of_level_scores_stand_in_document_order():
    from sparse_adapt.plugins.research.suite.rankers import best

    ((rows, scores),) = best(np.array([[1.0, 3.0, 3.0, 2.0]], np.float32), 3)
    assert rows.tolist() == [1, 2, 3] and scores.tolist() == [3, 3, 2]


def test_sqrt_idf_by_hand():
    documents = csr_matrix(np.array([[1, 2, 0], [3, 0, 0], [1, 0, 0]], np.float32))
    # tokens in 3, 1, 0 of 3 documents: ln(4 / 4), ln(4 / 2), ln(4 / 1)
    token_scales = sqrt_idf(documents)
    assert token_scales == pytest.approx([0, math.sqrt(math.log(2)), math.sqrt(math.log(4))])
    weighed = scaled(documents, token_scales)
    assert weighed.nnz == 1 and weighed[0, 1] == pytest.approx(2 * math.sqrt(math.log(2)))
    assert documents.nnz == 4
    background = np.array([0.0, 1.0, 1 / 3])  # so they count as in 2.25, 1.5 and .25 of 3
    assert sqrt_idf(documents, background) == pytest.approx(
        [math.sqrt(math.log(4 / 3.25)), math.sqrt(math.log(4 / 2.5)), math.sqrt(math.log(4 / 1.25))]
    )


def test_what_counts_in_a_mean_by_hand():
    documents = [[0, 1, 1], [0, 2], [0, 1, 1, 1]]
    # of 3, 2, 1 and no documents
    share = [0, math.log(4 / 3) / math.log(4), math.log(4 / 2) / math.log(4), 1]
    assert of_mean(documents, 4) == pytest.approx([0.25 + 0.75 * each for each in share])
    assert of_mean([[0]], 2) == pytest.approx([0.25, 1])
    background = np.array([1.0, 0.0, 1.0, 0.0])
    known = of_mean(documents, 4, background)
    assert known[1] > of_mean(documents, 4)[1] and known[2] < of_mean(documents, 4)[2]


# -- the dense model ----------------------------------------------------------------------------


def test_a_models_prompts_stand_before_queries_and_documents(tiny_model, tmp_path):
    folder = tiny_dense(tiny_model, tmp_path / "model")
    prompts = {"query": "starts ", "document": "stops "}
    write_json(folder / "config_sentence_transformers.json", {"prompts": prompts})
    encoder = DenseEncoder(folder, cache=tmp_path / "kept")
    for side, prompt in (("query", "starts "), ("document", "stops "), (None, "")):
        for _ in range(2):  # the second is read where it was kept
            said = DenseEncoder(folder).encode([f"{prompt}kubectl again"])
            assert encoder.encode(["kubectl again"], side) == pytest.approx(said, abs=1e-6)
    assert len(list((tmp_path / "kept").iterdir())) == 3


def test_a_model_kept_in_half_precision_is_read_in_full(tiny_model, tmp_path, monkeypatch):
    monkeypatch.setattr("sparse_adapt.model.dense.fast_precision", lambda device: "bfloat16")
    folder, texts = tiny_dense(tiny_model, tmp_path / "model"), ["it starts", "kubectl stops again"]
    expected = DenseEncoder(folder).encode(texts)
    half = shutil.copytree(folder, tmp_path / "half")
    BertModel.from_pretrained(folder).half().save_pretrained(half)
    for rough in (False, True):
        found = DenseEncoder(half, rough=rough).encode(texts)
        assert found == pytest.approx(expected, abs=0.02)


@pytest.mark.slow
def test_the_installed_model_knows_meaning_and_keeps_what_it_encoded(tmp_path):
    texts = ["a cure for a headache", "pain relief for the head", "the stock market fell"]
    encoder = DenseEncoder(cache=tmp_path)
    heard: list[int] = []
    vectors = encoder.encode(texts, progress=heard.append)
    assert vectors.shape == (3, 384) and vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(3), abs=1e-5)
    assert vectors[0] @ vectors[1] > 0.5 > vectors[0] @ vectors[2]
    assert sum(heard) == 3

    again = DenseEncoder(cache=tmp_path)
    assert np.array_equal(again.encode(texts), vectors)
    assert "_model" not in vars(again)  # read, not encoded
    elsewhere = DenseEncoder(cache=tmp_path / "new", old=tmp_path)
    assert np.array_equal(elsewhere.encode(texts), vectors) and "_model" not in vars(elsewhere)
    assert [path.name for path in (tmp_path / "new").iterdir()] == [
        path.name for path in tmp_path.glob("dense-*")
    ]
    for path in tmp_path.glob("dense-*"):
        path.write_bytes(b"broken")
    assert DenseEncoder(cache=tmp_path).encode(texts) == pytest.approx(vectors, abs=1e-5)
    assert encoder.encode([]).shape == (0, 384)


@pytest.mark.slow
def test_rough_cosines_are_near_and_kept_apart_from_exact_ones(tmp_path, monkeypatch):
    monkeypatch.setattr("sparse_adapt.model.dense.fast_precision", lambda device: "bfloat16")
    texts = ["a cure for a headache", "pain relief for the head", "the stock market fell"]
    exact = DenseEncoder(cache=tmp_path).encode(texts)
    rough = DenseEncoder(cache=tmp_path, rough=True).encode(texts)
    cosines = [vectors @ vectors.T for vectors in (exact, rough)]
    assert 0.0 < np.abs(cosines[0] - cosines[1]).max() < 0.01
    assert np.array_equal(DenseEncoder(cache=tmp_path).encode(texts), exact)
    assert np.array_equal(DenseEncoder(cache=tmp_path, rough=True).encode(texts), rough)


@pytest.mark.parametrize("multiplies", ["amx_bf16", "avx512_bf16"])
def test_only_a_processor_that_multiplies_bfloat16_reads_in_it(monkeypatch, multiplies):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {multiplies: True}, raising=False)
    assert fast_precision(torch.device("cpu")) == "bfloat16"
    assert fast_precision(torch.device("cuda")) == "float32"
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx2": True, multiplies: False})
    assert fast_precision(torch.device("cpu")) == "float32"


@pytest.mark.parametrize("source", ["no-such-model", "./folder", "a/b/c"])
def test_an_unknown_dense_model_is_one_line(source):
    with pytest.raises(ModelError, match="no such model folder; give a folder"):
        DenseEncoder(source)


def test_a_folder_without_a_model_is_one_line(tmp_path):
    with pytest.raises(ModelError, match=r"holds no modules\.json"):
        DenseEncoder(tmp_path)


def test_a_broken_dense_model_is_one_line(tmp_path):
    (tmp_path / "modules.json").write_text("{")
    with pytest.raises(ModelError, match=r"modules\.json: can't be read"):
        DenseEncoder(tmp_path).encode(["text"])
    (tmp_path / "modules.json").write_text("[]")
    with pytest.raises(ModelError, match=r"holds no config\.json"):
        DenseEncoder(tmp_path).encode(["text"])


@pytest.mark.parametrize(
    ("module", "problem"),
    [
        ({"type": "joblib.numpy_pickle.NumpyUnpickler", "path": ""}, "is no part of sentence-transformers"),
        ({"type": "sentence_transformers.models.Pooling", "path": "../elsewhere"}, "no folder of this model"),
        ({"type": "sentence_transformers.models.Pooling", "path": "/elsewhere"}, "no folder of this model"),
        (
            {"type": "sentence_transformers.models.Dense", "path": "2_Dense"},
            "2_Dense holds pickled weights alone",
        ),
    ],
)
def test_modules_that_lead_elsewhere_are_refused(tmp_path, module, problem):
    (tmp_path / "2_Dense").mkdir()
    (tmp_path / "2_Dense" / "pytorch_model.bin").write_bytes(b"a pickle")
    (tmp_path / "modules.json").write_text(json.dumps([module]))
    with pytest.raises(ModelError, match=problem):
        DenseEncoder(tmp_path).encode(["text"])
