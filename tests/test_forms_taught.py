"""Models of every form, taught, explained and exported; what can't follow a form names it."""

import numpy as np
import pytest
import torch
from conftest import refused
from formed import POOLINGS, PROMPTS, check_same, routed, theirs_of, two_encoders, written
from scipy.sparse import csr_matrix
from sentence_transformers import SparseEncoder as Theirs
from torch.testing import assert_close

import sparse_adapt as sa
from diagnostics.matches import explain
from diagnostics.token import diagnose
from sparse_adapt.files.place import Place
from sparse_adapt.model.head.summing import plain_splade_sum, splade_sum
from sparse_adapt.model.query_side import QuerySide
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.stages.preserve import Preserve, PreserveBatch, SparsePreserve
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.terms.mining import Term

FORMS = {
    "log1p_relu": lambda folder: theirs_of(folder, POOLINGS["log1p_relu"]),
    "sum": lambda folder: theirs_of(folder, POOLINGS["sum"]),
    "limit": lambda folder: theirs_of(folder, max_active_dims=12),
    "prompts": lambda folder: theirs_of(folder, prompts=PROMPTS),
    "table": lambda folder: routed(folder, POOLINGS["log1p_relu"]),
    "encoders": lambda folder: two_encoders(folder, folder, POOLINGS["sum"]),
}
TAUGHT = [name for name in FORMS if name != "encoders"]
FOLLOWED = {  # stages that can't teach a form, of those that read what the collection of the tests holds
    "sum": {"warmup", "dictionary", "distill"},
    "table": {"warmup", "dictionary", "distill", "joint", "contrast", "triplets", "labelled"},
    "prompts": {"warmup", "dictionary", "distill", "dynamic"},
    "encoders": {"extend", "preserve", "contrast", "rank", "published"},
}


@pytest.fixture(scope="module")
def folders(tiny_model, tmp_path_factory):
    """A folder of each form, as sentence-transformers wrote it."""
    place = tmp_path_factory.mktemp("forms")
    return {name: written(make(tiny_model), place / name) for name, make in FORMS.items()}


@pytest.mark.parametrize("name", TAUGHT)
def test_taught_it_keeps_its_form(name, folders, zorvex_collection, tmp_path):
    files = {key: zorvex_collection / f"{key}.json" for key in ("terms",)}
    carry_out_stage("extend", str(folders[name]), files, Place(tmp_path / "1"))
    quick = {"steps": 2, "batch_size": 4, "device": "cpu"}
    corpus = {"corpus": zorvex_collection}
    carry_out_stage(
        "preserve",
        str(tmp_path / "1"),
        corpus,
        Place(tmp_path / "2"),
        settings_for("preserve", overrides=quick),
    )
    carry_out_stage(
        "rank",
        str(tmp_path / "2"),
        corpus,
        Place(tmp_path / "3"),
        settings_for("rank", overrides=quick),
    )
    before, after = (SparseEncoder.load(tmp_path / number) for number in "13")
    assert after.form == before.form
    assert not torch.equal(after.output_rows, before.output_rows)
    after.token_scales = None  # which sentence-transformers doesn't know
    check_same(after, Theirs(str(tmp_path / "3"), device="cpu"))


@pytest.mark.parametrize(
    ("name", "stage"), [(name, stage) for name, stages in FOLLOWED.items() for stage in sorted(stages)]
)
def test_a_stage_that_can_t_follow_a_form_names_it(name, stage, folders):
    from sparse_adapt.errors import ConfigError
    from sparse_adapt.stages.inputs import Inputs
    from sparse_adapt.stages.table import find_stage

    found = find_stage(stage)
    with pytest.raises(ConfigError, match=f"which the stage {stage} can't teach"):
        found.made(SparseEncoder.load(folders[name]), Inputs("m", {}), found.settings())


@pytest.mark.parametrize("name", FORMS)
def test_explained_and_diagnosed_its_numbers_are_those_of_the_encoder(name, folders, twelve_documents):
    model = SparseEncoder.load(folders[name])
    if name in TAUGHT:
        extend(model, [Term("zorvex", "coined")])
    report = diagnose("zorvex", model, twelve_documents)
    weight = report.weights[0]
    assert weight["encoder_weight"] in (pytest.approx(weight["after_log1p"], abs=1e-4), 0.0)
    found = explain("who owns zorvex", model, twelve_documents)
    scores = (
        encode(model, ["who owns zorvex"], "query")
        @ encode(model, [document.full_text for document in twelve_documents], "document").T
    )
    assert found.matches[0].score == pytest.approx(scores.max(), rel=1e-5)


@pytest.mark.plugins("engines")
@pytest.mark.parametrize("name", ["log1p_relu", "sum"])
def test_the_graph_pools_as_the_model_does(name, folders, tmp_path):
    from sparse_adapt.plugins.engines.onnx import OnnxEncoder

    model = SparseEncoder.load(folders[name])
    sa.export("onnx", folders[name], None, tmp_path / "out", device="cpu")
    texts = ["the server of a client", "a backup of the database"]
    empty = EncodedBatch([], csr_matrix((0, model.vocabulary_size)))
    found = OnnxEncoder(tmp_path / "out", empty).encode(texts).toarray()
    np.testing.assert_allclose(found, encode(model, texts, "query").toarray(), atol=1e-4)


@pytest.mark.plugins("engines")
@pytest.mark.parametrize(
    ("name", "format", "problem"),
    [
        ("table", "onnx", "weighs queries by a table, which ONNX can't do"),
        ("prompts", "onnx", "puts a prompt before texts, which ONNX can't do"),
        ("limit", "onnx", "keeps the heaviest entries alone, which ONNX can't do"),
        ("encoders", "onnx", "reads queries by a model of its own, which ONNX can't do"),
        ("limit", "opensearch-model", "keeps the heaviest entries alone, which ML Commons can't do"),
    ],
)
def test_an_engine_that_can_t_follow_a_form_names_it(name, format, problem, folders, tmp_path, sparse_adapt):
    words = ["export", format, "--model", folders[name], "-o", tmp_path / "out", "--device", "cpu"]
    assert problem in refused(sparse_adapt(*words))
    assert not (tmp_path / "out").exists()


def test_two_encoders_are_adapted_by_no_command(folders, zorvex_collection, tmp_path, sparse_adapt):
    words = ["adapt", zorvex_collection, "--model", folders["encoders"], "-o", tmp_path / "out"]
    assert "reads queries by a model of its own" in refused(sparse_adapt(*words))


def test_two_encoders_search_and_measure_by_both(folders, twelve_documents):
    model = sa.load(folders["encoders"], device="cpu")
    texts = [document.full_text for document in twelve_documents]
    asked = encode(model.encoder.query_encoder, ["the server of a client"], "query")
    assert (asked != encode(SparseEncoder.load(folders["sum"]), ["the server of a client"], "query")).nnz == 0
    scores = (asked @ encode(model.encoder, texts, "document").T).toarray()[0]
    assert sa.search(model, twelve_documents, "the server of a client").hits[0].score == pytest.approx(
        scores.max()
    )


def test_what_isn_t_understood_ends_a_command_with_one_line(
    folders, tmp_path, zorvex_collection, sparse_adapt
):
    import json
    import shutil

    shutil.copytree(folders["sum"], tmp_path / "model")
    (tmp_path / "model" / "1_SpladePooling" / "config.json").write_text(
        json.dumps({"pooling_strategy": "mean"})
    )
    out = tmp_path / "out"
    ran = sparse_adapt("encode", "--model", tmp_path / "model", "--corpus", zorvex_collection, "-o", out)
    assert "pooling_strategy is 'mean'" in refused(ran)
    assert not out.exists()


# -- the parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "log1p_relu"])
def test_sums_and_their_gradients_are_those_of_the_textbook(activation, monkeypatch):
    monkeypatch.setattr("sparse_adapt.model.head.device.TILE_NUMBERS", {"cpu": 1})  # tiles of 64
    generator = torch.Generator().manual_seed(1)
    hidden, weight, bias = (
        torch.randn(shape, generator=generator) for shape in ((3, 5, 7), (130, 7), (130,))
    )
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 0, 1, 0, 0], [0, 0, 0, 0, 0]])
    asked = torch.rand(3, 130, generator=generator)
    found = []
    for function in (splade_sum, plain_splade_sum):
        inputs = [each.clone().requires_grad_() for each in (hidden, weight, bias)]
        weights = function(*inputs, mask, activation)
        (weights * asked).sum().backward()
        found.append([weights.detach(), *(each.grad for each in inputs)])
    for ours, plain in zip(*found, strict=True):
        assert_close(ours, plain, atol=1e-5, rtol=1e-5)
    assert not found[0][0][2].any()
    assert_close(
        splade_sum(hidden, weight, None, mask, activation),
        plain_splade_sum(hidden, weight, None, mask, activation),
    )


def test_a_table_counts_each_token_of_a_query_once():
    side = QuerySide(np.array([0.0, 2.0, 3.0], np.float32), 10)
    assert side.vectors([[2, 1, 2], [], [0]]).toarray().tolist() == [[0.0, 2.0, 3.0], [0.0] * 3, [0.0] * 3]


def test_a_new_token_s_weight_comes_from_how_many_texts_say_it():
    side = QuerySide(np.array([4.0, 1.0, 0.0, 0.0], np.float32), 10)
    texts = [[0, 1, 2], [1, 3], [1], [1]]
    idf = np.log1p(np.array([3.5 / 1.5, 0.5 / 4.5]))  # of the tokens 0 and 1
    scale = float(np.array([4.0, 1.0]) @ idf) / float(idf @ idf)
    found = side.with_idf(texts, [2, 3]).weights
    assert found[:2].tolist() == [4.0, 1.0]
    assert found[2] == pytest.approx(min(4.0, scale * idf[0])) == found[3]
    ones = QuerySide(np.array([1.0, 1.0, 0.0, 0.0], np.float32), 10).with_idf(texts, [2, 3])
    assert ones.weights.tolist() == [1.0] * 4


def test_by_a_table_a_document_gives_a_term_what_its_pieces_scored(folders, twelve_documents):
    encoder, before = (SparseEncoder.load(folders["table"]) for _ in range(2))
    extend(encoder, [Term("zorvex", "coined")])
    texts = [document.full_text for document in twelve_documents]
    stage = SparsePreserve(encoder, before, texts, Preserve(batch_size=4, steps=3, device="cpu"))
    token = encoder.new_tokens[0]
    assert encoder.query_side.weights[token.token_id] > 0.0
    pieces = sorted(set(token.pieces))
    wanted = torch.zeros(1, encoder.vocabulary_size)
    wanted[0, pieces] = torch.arange(1.0, 1.0 + len(pieces))
    scored = float(wanted[0, : stage.old].numpy() @ before.query_side.weights[: stage.old])
    stage._hand_over(wanted, PreserveBatch([[2, token.token_id, 3]], [[]]))
    assert float(wanted[0, token.token_id]) * encoder.query_side.weights[token.token_id] == pytest.approx(
        scored
    )
