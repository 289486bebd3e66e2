"""Which model folders are refused: other kinds, damaged, changed, made to burst, or with what lies elsewhere."""

import itertools
import json
import re
import shutil
import sys
from base64 import b64encode
from pathlib import Path

import pytest
import torch
from families import DEBERTA, build, unigram, wordpiece
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForMaskedLM, AutoTokenizer, BertModel, MobileBertConfig

from sparse_adapt.errors import ModelError
from sparse_adapt.model.folder import BUNDLED, ModelFolder, resolve
from sparse_adapt.model.hub import hub_id_in
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.weights import INDEX_FILE, check_weights


@pytest.fixture
def copy(tiny_model, tmp_path):
    """A model folder that may be spoilt."""
    shutil.copytree(tiny_model, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def own(tiny_model, tmp_path):
    """A model folder that this project wrote."""
    SparseEncoder.load(tiny_model).save(tmp_path / "own")
    return tmp_path / "own"


def refusal(source: str | Path) -> str:
    with pytest.raises(ModelError) as caught:
        SparseEncoder.load(source)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(str(source))
    return str(caught.value)


# -- what is missing, damaged, or another kind of model ---------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", None, "holds no config.json"),
        ("config.json", "{", "config.json: can't be read"),
        ("config.json", "[]", "config.json: not a model's configuration"),
        ("config.json", '{"model_type": "gpt2"}', "not a masked language model"),
        ("config.json", '{"model_type": "nonesuch"}', "not a masked language model"),
        ("model.safetensors", None, "no weights"),
        *(("model.safetensors", length, "model.safetensors is damaged") for length in (0, 12, 4000)),
        ("tokenizer.json", None, "holds no tokenizer.json"),
        *(
            ("tokenizer.json", content, "not a tokenizer that can be loaded")
            for content in ("", "{", "{}", '{"model": {"type": "nonesuch"}}')
        ),
        *(
            ("vocabulary.json", content, "vocabulary.json: damaged")
            for content in ("{", "{}", '{"max_tokens": 9, "new_tokens": [{"token": "a"}]}')
        ),
        *(
            ("token_scales.json", content, "delete it to do without idf")
            for content in ("{", '{"token scales": [1, -1]}', '{"token scales": []}', '{"weights": [1]}')
        ),
    ],
)
def test_a_file_that_is_gone_or_damaged_is_one_line(copy, name, content, said):
    path = copy / name
    if content is None:
        path.unlink()
    elif isinstance(content, int):
        path.write_bytes(path.read_bytes()[:content])
    else:
        path.write_text(content)
    assert said in refusal(copy)


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
    tensors = load_file(copy / "model.safetensors")
    tensors.pop("bert.encoder.layer.1.output.dense.weight")
    save_file(tensors, copy / "model.safetensors", {"format": "pt"})
    assert "lack bert.encoder.layer.1.output.dense.weight" in refusal(copy)


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod."])
def test_names_what_weights_are_wrapped_in(copy, prefix):
    weights = load_file(copy / "model.safetensors")
    save_file({f"{prefix}{name}": tensor for name, tensor in weights.items()}, copy / "model.safetensors")
    said = refusal(copy)
    assert f"all of its weights are named {prefix}..., as " in said
    assert said.endswith(f"; save the model within: model.{prefix}save_pretrained(FOLDER)")


def test_refuses_pickled_weights(copy):
    torch.save(AutoModelForMaskedLM.from_pretrained(copy).state_dict(), copy / "pytorch_model.bin")
    (copy / "model.safetensors").unlink()
    assert "pytorch_model.bin" in refusal(copy)


def test_refuses_weights_of_another_shape(copy):
    settings = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**settings, "vocab_size": 210}))
    assert "(200, 16), but config.json says (210, 16)" in refusal(copy)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    "family", ["bert", "distilbert", "roberta", "mpnet", "modernbert", "electra", "deberta-v2"]
)
@pytest.mark.parametrize("more", [7, -3])
def test_names_both_sizes_where_a_head_was_not_resized_with_its_embeddings(tmp_path, family, tied, more):
    folder = build(tmp_path / "model", family, tied=tied)
    model = AutoModelForMaskedLM.from_pretrained(folder)
    rows = model.config.vocab_size
    model.base_model.resize_token_embeddings(rows + more, mean_resizing=False)
    model.save_pretrained(folder)
    assert re.search(f": its embeddings have {rows + more} rows, \\S+ in its head {rows}; ", refusal(folder))


@pytest.mark.parametrize("tied", [True, False])
def test_names_both_sizes_where_a_bias_is_short(tmp_path, tied):
    folder = build(tmp_path / "model", "bert", tied=tied)
    tensors = load_file(folder / "model.safetensors")
    rows = len(tensors["cls.predictions.bias"])
    for name in tensors.keys() & {"cls.predictions.bias", "cls.predictions.decoder.bias"}:
        tensors[name] = tensors[name][:-5].clone()
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    said = refusal(folder)
    assert f"embeddings have {rows} rows, cls.predictions." in said and f"in its head {rows - 5};" in said


def test_a_head_that_is_its_embeddings_may_be_resized_by_them(tmp_path):
    folder = build(tmp_path / "model", "modernbert-no-bias", tied=True)
    model = AutoModelForMaskedLM.from_pretrained(folder)
    rows = model.config.vocab_size + 7
    model.base_model.resize_token_embeddings(rows, mean_resizing=False)
    model.save_pretrained(folder)
    assert SparseEncoder.load(folder).vocabulary_size == rows


def test_never_runs_code_from_a_folder(copy):
    settings = json.loads((copy / "config.json").read_text())
    code = {"AutoConfig": "code.Config", "AutoModelForMaskedLM": "code.Model"}
    (copy / "config.json").write_text(json.dumps({**settings, "model_type": "own", "auto_map": code}))
    (copy / "code.py").write_text(f"open({str(copy / 'ran')!r}, 'w')\n")
    refusal(copy)
    assert not (copy / "ran").exists()


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


def test_refuses_a_deberta_head_that_is_no_linear_layer_over_the_vocabulary(tmp_path):
    tokenizer = unigram()
    for hidden in (16, 320):  # the second has a square layer with more rows than there are tokens
        settings = {**DEBERTA, "hidden_size": hidden, "vocab_size": len(tokenizer), "legacy": False}
        config = AutoConfig.for_model("deberta-v2", **settings)
        AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path / str(hidden))
        tokenizer.save_pretrained(tmp_path / str(hidden))
        assert re.search("linear layer over its|LMPredictionHead has no", refusal(tmp_path / str(hidden)))


def test_refuses_logits_that_are_more_than_one_layer(tmp_path):
    tokenizer = wordpiece()
    small = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    narrow = {"embedding_size": 16, "intra_bottleneck_size": 16}
    config = MobileBertConfig(vocab_size=len(tokenizer), **small, **narrow)
    AutoModelForMaskedLM.from_config(config).save_pretrained(tmp_path)  # multiplies by two matrices
    tokenizer.save_pretrained(tmp_path)
    assert "more to its logits than one linear layer" in refusal(tmp_path)


# -- weights in several files ----------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["../elsewhere/weights.bin", "../elsewhere/weights.safetensors", "weights.bin", "nowhere.safetensors", 3],
)
def test_an_index_names_safetensors_of_its_folder_alone(copy, name):
    tensors = load_file(copy / "model.safetensors")
    elsewhere = copy.parent / "elsewhere"
    elsewhere.mkdir()
    for place in (elsewhere / "weights.bin", copy / "weights.bin"):
        torch.save(tensors, place)
    save_file(tensors, elsewhere / "weights.safetensors", {"format": "pt"})
    (copy / "model.safetensors").rename(copy / "model-00001-of-00001.safetensors")
    (copy / INDEX_FILE).write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(tensors, name)}))
    assert f"names {str(name)!r}, which is no .safetensors file of this folder" in refusal(copy)


def test_an_index_of_its_own_files_is_read(copy, tiny_model):
    tensors = load_file(copy / "model.safetensors")
    (copy / "model.safetensors").rename(copy / "model-00001-of-00001.safetensors")
    weight_map = dict.fromkeys(tensors, "model-00001-of-00001.safetensors")
    (copy / INDEX_FILE).write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    found, expected = SparseEncoder.load(copy), SparseEncoder.load(tiny_model)
    assert torch.equal(found.output_rows, expected.output_rows)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"weight_map": []}', "\x00"])
def test_an_index_that_isnt_one_is_one_line(copy, content):
    (copy / "model.safetensors").rename(copy / "model-00001-of-00001.safetensors")
    (copy / INDEX_FILE).write_text(content)
    assert f"{INDEX_FILE}: not an index of weights" in refusal(copy)


def test_an_adapter_is_refused(copy):
    (copy / "adapter_config.json").write_text('{"base_model_name_or_path": "../elsewhere"}')
    assert "is an adapter" in refusal(copy)


# -- what was recorded -----------------------------------------------------------------------------


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """The packages of the bundled models, copied, so that they can be damaged."""
    for bundled in BUNDLED.values():
        shutil.copytree(bundled.folder, tmp_path / bundled.package / "model")
        (tmp_path / bundled.package / "__init__.py").touch()
        monkeypatch.delitem(sys.modules, bundled.package, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_model_of_a_package_is_the_one_that_was_recorded(installed):
    for alias, bundled in BUNDLED.items():
        assert Path(resolve(alias)) == installed / bundled.package / "model"
        check_weights(Path(resolve(alias)), alias)
    for bundled, name in itertools.product(BUNDLED.values(), ("config.json", "tokenizer.json")):
        before = (bundled.folder / name).read_bytes()
        (bundled.folder / name).write_bytes(before + b"\n")
        with pytest.raises(ModelError, match=f"{name}: isn't the file that was recorded") as caught:
            check_weights(bundled.folder, "x")
        assert f"pip install --force-reinstall {bundled.distribution}" in str(caught.value)
        (bundled.folder / name).write_bytes(before)


def test_a_flipped_bit_of_the_bundled_model_is_one_line(installed):
    path = installed / "cognition" / "model" / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelError, match="isn't the file that was recorded"):
        SparseEncoder.load("splade-tiny")
    shutil.copytree(path.parent, installed / "copy")
    assert SparseEncoder.load(installed / "copy").vocabulary_size == 30_522


# -- what was written ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json", "vocabulary.json"])
@pytest.mark.parametrize("place", [0.3, 0.9])
def test_a_flipped_bit_is_one_line(own, name, place):
    path = own / name
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 1
    path.write_bytes(content)
    assert f"{name}: isn't what was written, by its checksum" in refusal(own)


def test_what_is_no_part_of_the_model_may_change(own):
    (own / "README.md").write_text("mine")
    (own / "notes.txt").write_text("mine")
    assert SparseEncoder.load(own).vocabulary_size == 200


@pytest.mark.parametrize("value", [float("inf"), float("-inf"), float("nan")])
def test_a_weight_that_is_no_number_is_named(copy, value):
    tensors = load_file(copy / "model.safetensors")
    tensors["cls.predictions.bias"][3] = value
    save_file(tensors, copy / "model.safetensors", {"format": "pt"})
    assert "cls.predictions.bias holds values that are no numbers" in refusal(copy)


def test_files_of_a_model_have_ordinary_modes(own):
    assert {path.stat().st_mode & 0o444 for path in own.rglob("*") if path.is_file()} == {0o444}


def test_saving_into_a_folder_of_somebody_else_vouches_for_the_model_alone(tiny_model, tmp_path):
    (tmp_path / "mine.json").write_text("{}")
    SparseEncoder.load(tiny_model).save(tmp_path)
    listed = json.loads((tmp_path / "sparse-adapt.json").read_text())["sha256"]
    assert "model.safetensors" in listed and "mine.json" not in listed


# -- bombs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_hidden_layers", 20_000),
        ("vocab_size", 10**12),
        ("hidden_size", 10**9),
        ("intermediate_size", 10**9),
        ("max_position_embeddings", 10**12),
        ("num_labels", 10**9),
    ],
)
def test_a_configuration_that_asks_for_more_than_the_weights_hold_is_refused(copy, key, value):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, key: value}))
    assert f"{key} = {value} in config.json, for which the weights" in refusal(copy)


# -- what would be read otherwise ----------------------------------------------------------------


@pytest.mark.parametrize(
    "family", ["bert", "distilbert", "roberta", "modernbert", "deberta-v2", "electra", "mpnet"]
)
@pytest.mark.parametrize("left", [0, 1])
def test_layers_that_the_configuration_leaves_out_are_named(tmp_path, family, left):
    if (family, left) == ("modernbert", 0):
        pytest.skip("transformers refuses a ModernBERT without layers")
    folder = build(tmp_path / "model", family)
    config = json.loads((folder / "config.json").read_text())
    key = next(key for key in ("num_hidden_layers", "n_layers") if key in config)
    (folder / "config.json").write_text(json.dumps({**config, key: left, "layer_types": None}))
    said = refusal(folder)
    assert re.search(
        r": \S+\.\d+\.\S+ in the weights is read by nothing, for config.json has fewer layers", said
    )


def test_heads_that_nothing_asks_may_be_left_over(copy):
    tensors = load_file(copy / "model.safetensors")
    others = {"bert.pooler.dense.weight": torch.zeros(16, 16), "cls.seq_relationship.bias": torch.zeros(2)}
    others |= {"classifier.0.weight": torch.zeros(2, 16)}
    save_file({**tensors, **others}, copy / "model.safetensors", {"format": "pt"})
    SparseEncoder.load(copy)


@pytest.mark.parametrize(("key", "value"), [("return_dict", False), ("chunk_size_feed_forward", 7)])
def test_settings_of_how_numbers_come_change_none_of_them(copy, tiny_model, key, value):
    config = json.loads((copy / "config.json").read_text())
    (copy / "config.json").write_text(json.dumps({**config, key: value}))
    ids = [[2, 7, 9, 11, 3], [2, 3]]
    assert torch.equal(SparseEncoder.load(copy).weights(ids), SparseEncoder.load(tiny_model).weights(ids))


def spoilt(folder: Path, **parts) -> Path:
    path = folder / "tokenizer.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **parts}))
    return folder


def replacing(**pattern: str) -> dict:
    return {"type": "Replace", "pattern": pattern, "content": "a" * 11}


TEMPLATE = {"type": "TemplateProcessing", "pair": [], "special_tokens": {}}
CLS = {"id": "[CLS]", "ids": [7_000], "tokens": ["[CLS]"]}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        (
            {"normalizer": {"type": "Sequence", "normalizers": [replacing(String="a")] * 12}},
            "characters of one (Rep",
        ),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [replacing(Regex="a?")] * 2}},
            "characters of one (Rep",
        ),
        (
            {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFKD"}, replacing(String="a")]}},
            "over 100 characters of one (Replace)",
        ),
        (
            {
                "normalizer": {
                    "type": "Precompiled",
                    "precompiled_charsmap": b64encode(bytes(4) + b"a" * 101).decode(),
                }
            },
            "over 100 characters of one (Precompiled)",
        ),
        (
            {
                "post_processor": {
                    **TEMPLATE,
                    "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}] * 65,
                }
            },
            "puts over 64 tokens around a text",
        ),
        (
            {
                "post_processor": {
                    **TEMPLATE,
                    "single": [
                        {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                        {"Sequence": {"id": "A", "type_id": 0}},
                    ],
                    "special_tokens": {"[CLS]": CLS},
                }
            },
            "gives token 7,000, the model has rows for 200",
        ),
        ({"normalizer": 7}, "not a tokenizer that can be loaded"),
        ({"normalizer": {"type": "Sequence", "normalizers": 7}}, "not a tokenizer that can be loaded"),
    ],
)
def test_a_tokenizer_that_bursts_is_refused_before_it_reads_a_text(copy, parts, said):
    assert said in refusal(spoilt(copy, **parts))


def test_a_text_that_a_tokenizer_gives_up_on_is_one_line(copy, monkeypatch):
    class PanicException(BaseException):
        """As libraries in Rust raise it."""

    def panics(*_, **__):
        raise PanicException("called `Result::unwrap()` on an `Err` value: TooComplex")

    encoder = SparseEncoder.load(copy)
    monkeypatch.setattr(type(encoder.tokenizer), "__call__", panics)
    with pytest.raises(ModelError, match="the tokenizer gave up on a text"):
        encoder.tokenize(["a text"])
    assert "the tokenizer gave up on a text" in refusal(copy)
    monkeypatch.setattr("sparse_adapt.model.saved.AutoTokenizer.from_pretrained", panics)
    assert "not a tokenizer that can be loaded (called `Result::unwrap()`" in refusal(copy)


# -- names ---------------------------------------------------------------------------------------


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """A folder of runs in the current one, and a Hub that must not be asked."""
    (tmp_path / "runs" / "corpus" / "model").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("the Hub was asked")
    )


@pytest.mark.parametrize(
    ("source", "near"),
    [
        ("runs/corpsu", "runs/corpus"),
        ("runs/corpus/modle", "runs/corpus/model"),
        ("./rusn/corpus", "rusn"),
        ("runs/nothing-like-it", ""),
        ("~/no-such/model", ""),
        ("/no/such", ""),
        ("../a", ""),
        ("a/b/c", ""),
        ("nothing", ""),
        ("./no/such", ""),
        ("typo/model", ""),  # of which no folder is here
        ("hub:a/b/c", ""),
        ("hub:", ""),
        ("hub:../a", ""),
    ],
)
def test_a_mistyped_path_is_one_line_and_goes_nowhere(runs, source, near):
    with pytest.raises(ModelError, match="no such model folder") as caught:
        ModelFolder.of(source)
    wanted = f"did you mean {near}?" if near.startswith("runs/") else ""
    assert wanted in str(caught.value)
    if source == "typo/model":
        assert str(caught.value).endswith("or a model of the Hub as hub:typo/model")


@pytest.mark.parametrize(
    ("source", "hub_id"),
    [
        ("hub:owner/name", "owner/name"),
        ("hub:runs/corpus", "runs/corpus"),
        ("hub:bert-base-uncased", "bert-base-uncased"),
        ("owner/name", ""),
        ("runs/corpus", ""),
    ],
)
def test_only_what_begins_with_hub_is_an_id_of_the_hub(runs, source, hub_id):
    assert hub_id_in(source) == hub_id
    if hub_id:
        assert resolve(source) == source
