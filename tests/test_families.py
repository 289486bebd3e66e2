"""Every family of models: extended, encoded, saved and read back by every loader, tied or not."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from families import FAMILIES, build
from tokenizers import Tokenizer
from torch.testing import assert_close
from transformers import AutoModelForMaskedLM, AutoTokenizer

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
    assert 0.05 < (expected > 0).float().mean() < 1.0  # the comparison is about something
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
