"""A model as one object: where it comes from, what it tells of itself, texts in and weights out."""

import copy
import shutil
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from sparse_adapt.errors import ModelError
from sparse_adapt.model import folder, hub, sparse
from sparse_adapt.model.encoder import NewToken
from sparse_adapt.model.folder import ModelFolder, resolve
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors.manifest import stamp_of_model
from sparse_adapt.terms.mining import Term

TEXTS = ["who signs for zorvex", "the server", "A nightly backup copies the database. " * 20, ""]


@pytest.fixture
def encoder(tiny_model) -> SparseEncoder:
    return SparseEncoder.load(tiny_model)


# -- where a model is ----------------------------------------------------------------------------


def test_the_alias_finds_the_installed_package_first_and_the_hub_second(monkeypatch):
    assert (Path(resolve("splade-tiny")) / "model.safetensors").is_file()
    monkeypatch.setattr(folder, "find_spec", lambda _: None)
    assert resolve("splade-tiny") == "hub:rasyosef/splade-tiny"


def test_a_folder_goes_before_an_alias_or_a_hub_id(tmp_path, monkeypatch):
    (tmp_path / "splade-tiny").mkdir()
    (tmp_path / "owner" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert ModelFolder.of("splade-tiny").path == Path("splade-tiny")
    assert ModelFolder.of("owner/name").path == Path("owner/name")


def test_an_extended_model_from_the_hub_keeps_its_new_tokens(tiny_model, tmp_path, monkeypatch):
    encoder = SparseEncoder.load(tiny_model)
    extend(encoder, [Term("zorvex", "jargon")])
    encoder.save(tmp_path / "copy")
    asked: list[str] = []

    def download(repository: str, **_: object) -> str:
        asked.append(repository)
        return str(tmp_path / "copy")

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    assert SparseEncoder.load("hub:owner/name").new_tokens == encoder.new_tokens
    assert asked == ["owner/name"]


def test_what_is_asked_of_the_hub_holds_no_pickles_and_no_other_formats(monkeypatch):
    from huggingface_hub.utils import filter_repo_objects

    files = [
        "config.json",
        "model.safetensors",
        "model-00001-of-00002.safetensors",
        "tokenizer.json",
        "vocab.txt",
    ]
    files += [
        "model.safetensors.index.json",
        "vocabulary.json",
        "merges.txt",
        "sentencepiece.bpe.model",
        "README.md",
    ]
    others = ["pytorch_model.bin", "onnx/model.onnx", "openvino/config.json", "code.py"]
    kept = filter_repo_objects(
        [*files, *others],
        allow_patterns=hub.MODEL_FILES,
        ignore_patterns=hub.OTHER_FORMATS,
    )
    assert sorted(kept) == sorted(files)


# -- what it tells of itself ---------------------------------------------------------------------


def test_sizes_before_and_after_an_extension(encoder):
    assert (encoder.vocabulary_size, encoder.old_size, encoder.new_tokens) == (200, 200, ())
    extend(encoder, [Term("zorvex", "jargon"), Term("kubectl", "tools")])
    assert (encoder.vocabulary_size, encoder.old_size) == (202, 200)
    assert [(t.token_id, t.term, t.category) for t in encoder.new_tokens] == [
        (200, "zorvex", "jargon"),
        (201, "kubectl", "tools"),
    ]
    assert encoder.output_rows is encoder.input_rows
    assert encoder.output_bias.shape == (202,)


def test_a_copy_is_a_model_of_its_own(encoder):
    extend(encoder, [Term("zorvex", "jargon")])
    twin = copy.deepcopy(encoder)
    with torch.no_grad():
        encoder.output_rows.zero_()
    assert twin.output_rows.abs().sum() > 0
    assert twin.new_tokens == encoder.new_tokens
    assert twin.output_rows is twin.input_rows


# -- texts to vectors ----------------------------------------------------------------------------


def test_texts_are_cut_at_the_longest_and_keep_their_last_special_token(encoder):
    ids = encoder.tokenize(TEXTS)
    assert [len(text) for text in ids][2:] == [64, 2]
    assert all((text[0], text[-1]) == (2, 3) for text in ids)
    encoder.max_tokens = 5
    assert max(len(text) for text in encoder.tokenize(TEXTS)) == 5


def test_old_tokenization_is_cut_as_the_old_model_cut(encoder):
    encoder.new_tokens = (NewToken(200, "zorvex", "zorvex", "jargon", (61, 90, 91, 92)),)
    assert encoder.old_tokenization([2, 70, 200, 71, 3]) == [2, 70, 61, 90, 91, 92, 71, 3]
    encoder.max_tokens = 6
    assert encoder.old_tokenization([2, 70, 200, 71, 3]) == [2, 70, 61, 90, 91, 3]


def test_hidden_states_times_rows_are_the_logits_of_transformers(encoder):
    ids = torch.tensor(encoder.tokenize(TEXTS[:1]))
    with torch.no_grad():
        logits = encoder.masked_lm(input_ids=ids).logits
        hidden = encoder.hidden(ids, torch.ones_like(ids))
        assert hidden.shape == (1, ids.shape[1], 16)
        assert_close(hidden @ encoder.output_rows.T + encoder.output_bias, logits)
        assert torch.equal(encoder.masked_lm(input_ids=ids).logits, logits)  # all is as it was


def test_the_decoder_comes_back_after_an_error_and_from_nested_use(encoder):
    ids = torch.tensor(encoder.tokenize(TEXTS[:1]))
    with encoder.without_decoder():
        encoder.hidden(ids, torch.ones_like(ids))
        assert encoder.masked_lm(input_ids=ids).logits.shape[-1] == 16
    with pytest.raises(IndexError):
        encoder.hidden(torch.tensor([[9999]]), torch.ones(1, 1, dtype=torch.long))
    assert encoder.masked_lm(input_ids=ids).logits.shape[-1] == 200


def test_padding_leaves_weights_as_they_are(encoder):
    """Unmasked padding moved weights by up to .37."""
    ids = encoder.tokenize(TEXTS)
    with torch.no_grad():
        together = encoder(ids).weights
        alone = torch.cat([encoder([text]).weights for text in ids])
    assert_close(together, alone, atol=1e-5, rtol=1e-5)
    assert (together > 0).any(dim=1).all()


def test_texts_that_are_looked_up_together_learn_as_those_that_arent(encoder, monkeypatch):
    """One group of texts a pass; and afterwards the model looks up what it is given."""
    monkeypatch.setattr(sparse, "PADDED_TOKENS_A_PASS", 8)
    ids = encoder.tokenize(TEXTS)

    def gradients() -> list[torch.Tensor]:
        encoder.zero_grad()
        encoder.weights(ids).square().sum().backward()
        return [each.grad for each in encoder.parameters() if each.grad is not None]

    together = gradients()
    assert "forward" not in vars(encoder.masked_lm.get_input_embeddings())
    monkeypatch.setattr(SparseEncoder, "looked_up", lambda self, token_ids: nullcontext())
    assert_close(together, gradients(), rtol=1e-4, atol=1e-6)


def test_bfloat16_gives_weights_near_those_of_float32(encoder):
    ids = encoder.tokenize(TEXTS)
    with torch.no_grad():
        full = encoder(ids).weights
        with torch.autocast("cpu", torch.bfloat16):
            half = encoder(ids)
    assert half.weights.dtype == torch.float32
    assert (half.weights - full).abs().max() < 0.1
    assert not torch.equal(half.weights, full)


# -- saving --------------------------------------------------------------------------------------


def test_saving_twice_gives_the_same_bytes(encoder, tmp_path):
    extend(encoder, [Term("zorvex", "jargon"), Term("max_connections", "jargon")])
    for name in ("once", "twice"):
        encoder.save(tmp_path / name)
        encoder = SparseEncoder.load(tmp_path / name)
    once, twice = (
        {
            path.relative_to(tmp_path / name): path.read_bytes()
            for path in sorted((tmp_path / name).rglob("*.*"))
        }
        for name in ("once", "twice")
    )
    assert once.keys() == twice.keys()
    assert not [str(name) for name in once if once[name] != twice[name]]


def test_a_saved_folder_holds_no_pickles_and_no_code(encoder, tmp_path):
    encoder.save(tmp_path / "saved")
    files = {str(path.relative_to(tmp_path / "saved")) for path in (tmp_path / "saved").rglob("*.*")}
    assert files == {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "vocabulary.json",
        "modules.json",
        "sentence_bert_config.json",
        "config_sentence_transformers.json",
        "1_SpladePooling/config.json",
        "sparse-adapt.json",
    }


def test_a_base_model_without_extension_survives_saving(tmp_path):
    """Its tokenizer_config.json names a class that builds its own pipeline."""
    folder = Path(shutil.copytree(resolve("splade-tiny"), tmp_path / "base"))
    base = SparseEncoder.load(folder)
    base.save(tmp_path / "saved")
    again = SparseEncoder.load(tmp_path / "saved")
    texts = ["Naïve CELLS, don't; 東京 [MASK] hello", *TEXTS]
    assert again.tokenize(texts) == base.tokenize(texts)
    assert again.max_tokens == base.max_tokens == 256


def test_a_model_is_refused_when_its_parts_do_not_fit(encoder):
    tokenizer = copy.deepcopy(encoder.tokenizer)
    tokenizer.add_tokens(["zorvex"])
    with pytest.raises(ModelError, match="take both from the same model"):
        SparseEncoder(encoder.masked_lm, tokenizer)


# -- factors of tokens --------------------------------------------------------------------------


def test_scales_multiply_weights_and_survive_a_reload(tiny_model, tmp_path):
    encoder, texts = SparseEncoder.load(tiny_model), ["the server logs", "a saw", ""]
    plain = encode(encoder, texts, "document").toarray()
    before = stamp_of_model(encoder)
    encoder.token_scales = np.linspace(0.0, 2.0, encoder.vocabulary_size, dtype=np.float32)
    encoder.save(tmp_path / "weighed")
    loaded = SparseEncoder.load(tmp_path / "weighed")
    np.testing.assert_allclose(
        encode(loaded, texts, "document").toarray(), plain * np.linspace(0.0, 2.0, plain.shape[1]), atol=1e-4
    )
    assert not before.fits(stamp_of_model(loaded))
    assert (encode(loaded, texts, "document").data > 0).all()


def test_a_token_without_a_factor_counts_as_the_most_telling(tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    encoder.token_scales = np.array([0.5, 1.5], np.float32)
    assert encoder.token_scales_of(np.array([0, 1, 2])).tolist() == [0.5, 1.5, 1.5]
