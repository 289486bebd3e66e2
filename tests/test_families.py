"""Every family of models: extended, encoded, saved and read back by every loader, tied or not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from families import FAMILIES, build
from tokenizers import Tokenizer
from torch.testing import assert_close
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer, BertModel, MobileBertConfig

from sparse_adapt.errors import ModelError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.terms.mining import Term, mine_terms

TERMS = [Term(text, "jargon") for text in ("zorvex", "kubectl", "max_connections", "nodezq", "c++")]
UNUSED = ("cls.predictions.bias", "lm_head.bias")  # the bias again where rows aren't tied
TEXTS = [
    "Set max_connections; kubectl logs show the rest (zorvex).",
    "zorvex",
    "",
    "the server of zorvex, " * 12,  # longer than the 40 tokens of these models
]
EVERY = [
    pytest.param(family, tied, id=f"{family}-{'tied' if tied else 'untied'}")
    for family in FAMILIES
    for tied in (True, False)
]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, bool], Path]:
    """Per family the folder `base` and, extended by TERMS, the folder `extended`; built once."""
    built: dict[tuple[str, bool], Path] = {}

    def folder(family: str, tied: bool) -> Path:
        if (family, tied) not in built:
            place = tmp_path_factory.mktemp(family)
            build(place / "base", family, tied=tied)
            encoder = SparseEncoder.load(place / "base")
            extend(encoder, TERMS)
            torch.save(weights(encoder), place / "weights.pt")
            encoder.save(place / "extended")
            built[family, tied] = place
        return built[family, tied]

    return folder


def weights(encoder: SparseEncoder) -> torch.Tensor:
    with torch.no_grad():
        return encoder(encoder.tokenize(TEXTS)).weights


@pytest.mark.parametrize(("family", "tied"), EVERY)
def test_saved_and_loaded_it_gives_the_same_vectors(family, tied, folders):
    place = folders(family, tied)
    encoder = SparseEncoder.load(place / "extended")
    expected = torch.load(place / "weights.pt")
    assert torch.equal(weights(encoder), expected)
    assert 0.05 < (expected > 0).float().mean() < 0.9  # the comparison is about something
    assert [token.term for token in encoder.new_tokens] == [
        token.term for token in sorted(encoder.new_tokens, key=lambda token: token.token_id)
    ]
    assert {token.term for token in encoder.new_tokens} == {term.text for term in TERMS}
    assert encoder.max_tokens == 40
    assert (encoder.output_rows is encoder.input_rows) == tied


@pytest.mark.parametrize(("family", "tied"), EVERY)
def test_old_rows_stay_bit_for_bit_and_new_ones_start_as_the_mean_of_their_pieces(family, tied, folders):
    place = folders(family, tied)
    base, extended = SparseEncoder.load(place / "base"), SparseEncoder.load(place / "extended")
    size = base.vocabulary_size
    assert extended.old_size == size == len(base.tokenizer)
    assert extended.vocabulary_size == size + len(TERMS) == len(extended.tokenizer)
    assert extended.masked_lm.config.vocab_size == size + len(TERMS)
    after = dict(extended.masked_lm.named_parameters(remove_duplicate=False))
    for name, before in base.masked_lm.named_parameters(remove_duplicate=False):
        if not tied and name in UNUSED:
            assert torch.equal(after[name], extended.output_bias)
            continue
        assert torch.equal(after[name][:size] if size in before.shape[:1] else after[name], before), name
    for token in extended.new_tokens:
        pieces = list(token.pieces)
        assert len(pieces) > 1
        assert_close(extended.input_rows[token.token_id], base.input_rows[pieces].mean(dim=0))
        assert_close(extended.output_rows[token.token_id], base.output_rows[pieces].mean(dim=0))
        if base.output_bias is not None:
            assert_close(extended.output_bias[token.token_id], base.output_bias[pieces].mean())


@pytest.mark.parametrize(("family", "tied"), EVERY)
def test_every_loader_reads_the_same_ids(family, tied, folders):
    place = folders(family, tied)
    encoder = SparseEncoder.load(place / "extended")
    expected = encoder.tokenize(TEXTS)
    raw = Tokenizer.from_file(str(place / "extended" / "tokenizer.json"))
    assert AutoTokenizer.from_pretrained(place / "extended")(TEXTS, truncation=True)["input_ids"] == expected
    assert [entry.ids for entry in raw.encode_batch(TEXTS)] == expected
    assert len(expected[-1]) == 40
    new = {token.term: token.token_id for token in encoder.new_tokens}
    assert [token_id for token_id in expected[0] if token_id in new.values()] == [
        new["max_connections"],
        new["kubectl"],
        new["zorvex"],
    ]


@pytest.mark.parametrize(("family", "tied"), EVERY)
def test_it_equals_the_textbook_computation_on_logits_of_transformers(family, tied, folders):
    place = folders(family, tied)
    tokenizer = AutoTokenizer.from_pretrained(place / "extended")
    masked_lm, report = AutoModelForMaskedLM.from_pretrained(place / "extended", output_loading_info=True)
    assert not report["missing_keys"]
    encoder = SparseEncoder.load(place / "extended")
    for text, ids in zip(TEXTS, encoder.tokenize(TEXTS), strict=True):
        with torch.no_grad():
            logits = masked_lm(**tokenizer(text, truncation=True, return_tensors="pt")).logits[0]
            ours = encoder([ids]).weights[0]
        assert_close(ours, logits.relu().log1p().amax(dim=0), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("family", "tied"), EVERY)
def test_sentence_transformers_gives_the_same_vectors(family, tied, folders):
    from sentence_transformers import SparseEncoder as Theirs

    place = folders(family, tied)
    theirs = Theirs(str(place / "extended"), device="cpu")
    expected = torch.load(place / "weights.pt")
    for encode in (theirs.encode_document, theirs.encode_query):
        found = encode(TEXTS, convert_to_tensor=True, convert_to_sparse_tensor=False)
        assert (found - expected).abs().max() < 1e-5
    assert theirs.get_embedding_dimension() == expected.shape[1]
    assert theirs.max_seq_length == 40


@pytest.mark.parametrize("family", ["bert", "roberta", "deberta-v2"])
def test_spare_rows_are_used_first_and_keep_their_number(family, tmp_path):
    encoder = SparseEncoder.load(build(tmp_path / "base", family, spare=8))
    tokens, rows = len(encoder.tokenizer), encoder.vocabulary_size
    assert rows == tokens + 8
    before = encoder.output_rows.detach().clone()
    extend(encoder, TERMS)  # five of eight
    assert encoder.vocabulary_size == rows
    assert [token.token_id for token in encoder.new_tokens] == list(range(tokens, tokens + 5))
    assert torch.equal(encoder.output_rows[:tokens], before[:tokens])
    assert torch.equal(encoder.output_rows[tokens + 5 :], before[tokens + 5 :])
    extend(
        encoder, [Term(text, "jargon") for text in ("quuxly", "frobnic", "wibblet", "gronk")]
    )  # three and one
    assert encoder.vocabulary_size == rows + 1 == encoder.masked_lm.config.vocab_size
    expected = weights(encoder)
    encoder.save(tmp_path / "saved")
    again = SparseEncoder.load(tmp_path / "saved")
    assert torch.equal(weights(again), expected)
    assert again.old_size == tokens


def test_mined_terms_are_terms_that_can_be_added(twelve_documents, tmp_path):
    for family in ("bert", "roberta", "xlm-roberta"):
        encoder = SparseEncoder.load(build(tmp_path / family, family))
        vocabulary = set(encoder.tokenizer.get_vocab())
        terms = mine_terms(twelve_documents, encoder.tokenizer, top=40)
        assert len(extend(encoder, terms).new_tokens) == 40
        assert not vocabulary & {token.token for token in encoder.new_tokens}


def test_a_decoder_bias_kept_under_the_other_name_alone_is_restored(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = build(tmp_path / "base", "bert", tied=False)
    tensors = load_file(folder / "model.safetensors")
    bias = tensors.pop("cls.predictions.decoder.bias")  # older transformers saved one tensor for both
    tensors["cls.predictions.bias"] = bias
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    assert torch.equal(SparseEncoder.load(folder).output_bias, bias)


def test_positions_that_start_behind_the_padding_id_shorten_the_longest_text(tmp_path):
    for family, longest in (("bert", 64), ("roberta", 62), ("modernbert", 64)):  # of 64 positions
        folder = build(tmp_path / family, family)
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        settings.pop("model_max_length")
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
        encoder = SparseEncoder.load(folder)
        assert encoder.max_tokens == longest
        ids = encoder.tokenize(["server " * 300])
        assert len(ids[0]) == longest
        assert encoder(ids).weights.isfinite().all()


# -- refusals ------------------------------------------------------------------------------------


@pytest.fixture
def copy(tiny_model: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny_model, tmp_path / "copy"))


def refusal(source: str | Path) -> str:
    with pytest.raises(ModelError) as caught:
        SparseEncoder.load(source)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(str(source))
    return message


def test_refuses_a_folder_without_a_model(tmp_path):
    assert "config.json" in refusal(tmp_path)


def test_refuses_names_that_are_neither_folder_nor_alias_nor_hub_id():
    for name in ("nothing", "./no/such", "a/b/c", "~/x"):
        assert "no such model folder" in refusal(name)


def test_refuses_a_hub_id_at_once_where_there_is_no_connection(monkeypatch):
    import socket
    import time

    def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    started = time.monotonic()
    assert "the Hub" in refusal("hub:nobody/such-a-model")
    assert time.monotonic() - started < 5


def test_refuses_a_model_without_a_head(copy):
    BertModel.from_pretrained(copy).save_pretrained(copy)
    assert "no masked-language-model head" in refusal(copy)


def test_refuses_weights_without_a_part_of_the_model(copy):
    from safetensors.torch import load_file, save_file

    tensors = load_file(copy / "model.safetensors")
    tensors.pop("bert.encoder.layer.1.output.dense.weight")
    save_file(tensors, copy / "model.safetensors", {"format": "pt"})
    assert "lack bert.encoder.layer.1.output.dense.weight" in refusal(copy)


def test_refuses_pickled_weights(copy):
    torch.save(AutoModelForMaskedLM.from_pretrained(copy).state_dict(), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    assert "pytorch_model.bin" in refusal(copy)


def test_refuses_a_folder_without_weights(copy):
    (copy / "model.safetensors").unlink()
    assert "no weights" in refusal(copy)


@pytest.mark.parametrize("length", [0, 12, 4000])
def test_refuses_damaged_weights(copy, length):
    path = copy / "model.safetensors"
    path.write_bytes(path.read_bytes()[:length])
    assert "model.safetensors is damaged" in refusal(copy)


def test_refuses_weights_of_another_shape(copy):
    settings = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**settings, "vocab_size": 210}))
    assert "(200, 16), but config.json says (210, 16)" in refusal(copy)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "config.json: can't be read"),
        ("[]", "config.json: not a model's configuration"),
        ('{"model_type": "gpt2"}', "not a masked language model"),
        ('{"model_type": "nonesuch"}', "not a masked language model"),
    ],
)
def test_refuses_a_config_that_is_broken_or_of_no_masked_language_model(copy, content, said):
    (copy / "config.json").write_text(content)
    assert said in refusal(copy)


def test_never_runs_code_from_a_folder(copy):
    settings = json.loads((copy / "config.json").read_text())
    code = {"AutoConfig": "code.Config", "AutoModelForMaskedLM": "code.Model"}
    (copy / "config.json").write_text(json.dumps({**settings, "model_type": "own", "auto_map": code}))
    (copy / "code.py").write_text(f"open({str(copy / 'ran')!r}, 'w')\n")
    refusal(copy)
    assert not (copy / "ran").exists()


def test_refuses_a_folder_without_a_tokenizer(copy):
    (copy / "tokenizer.json").unlink()
    assert "tokenizer.json" in refusal(copy)
    (copy / "tokenizer_config.json").unlink()
    assert "tokenizer.json" in refusal(copy)


@pytest.mark.parametrize("content", ["", "{", "{}", '{"model": {"type": "nonesuch"}}'])
def test_refuses_a_damaged_tokenizer(copy, content):
    (copy / "tokenizer.json").write_text(content)
    assert "not a tokenizer that can be loaded" in refusal(copy)


def test_refuses_a_tokenizer_that_is_not_fast(copy):
    (copy / "tokenizer.json").unlink()
    (copy / "vocab.txt").write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a"]))
    settings = {"tokenizer_class": "BertJapaneseTokenizer", "word_tokenizer_type": "basic"}
    (copy / "tokenizer_config.json").write_text(json.dumps(settings))
    assert "fast tokenizer" in refusal(copy)


def test_refuses_a_tokenizer_with_more_tokens_than_the_model_has_rows(copy):
    tokenizer = AutoTokenizer.from_pretrained(copy)
    tokenizer.add_tokens(["zorvex"])
    tokenizer.save_pretrained(copy)
    assert "201 tokens, the model rows for 200" in refusal(copy)


@pytest.mark.parametrize("content", ["{", "{}", '{"max_tokens": 9, "new_tokens": [{"token": "a"}]}'])
def test_refuses_a_damaged_list_of_new_tokens(copy, content):
    (copy / "vocabulary.json").write_text(content)
    assert "vocabulary.json: damaged" in refusal_anywhere(copy)


def refusal_anywhere(source: Path) -> str:
    with pytest.raises(ModelError) as caught:
        SparseEncoder.load(source)
    return str(caught.value)


def test_refuses_a_deberta_head_that_is_no_linear_layer_over_the_vocabulary(tmp_path):
    from families import DEBERTA, unigram

    tokenizer = unigram()
    for hidden in (16, 320):  # the second has a square layer with more rows than there are tokens
        settings = {**DEBERTA, "hidden_size": hidden, "vocab_size": len(tokenizer), "legacy": False}
        config = AutoConfig.for_model("deberta-v2", **settings)
        AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path / str(hidden))
        tokenizer.save_pretrained(tmp_path / str(hidden))
        assert "linear layer over its" in refusal(tmp_path / str(hidden))


def test_refuses_logits_that_are_more_than_one_layer(tmp_path):
    from families import wordpiece

    tokenizer = wordpiece()
    small = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    narrow = {"embedding_size": 16, "intra_bottleneck_size": 16}
    small = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    narrow = {"embedding_size": 16, "intra_bottleneck_size": 16}
    config = MobileBertConfig(vocab_size=len(tokenizer), **small, **narrow)
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path)  # multiplies by two matrices
    tokenizer.save_pretrained(tmp_path)
    assert "more to its logits than one linear layer" in refusal(tmp_path)
