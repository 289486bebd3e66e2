"""Models of every form, written by sentence-transformers: our vectors are its own, before and after extension."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from families import FAMILIES, build
from formed import (
    POOLINGS,
    PROMPTS,
    TERMS,
    TEXTS,
    check_same,
    routed,
    theirs_of,
    transformer,
    two_encoders,
    written,
)
from safetensors.numpy import load_file, save_file
from sentence_transformers import SparseEncoder as Theirs
from sentence_transformers.base.modules import Normalize
from sentence_transformers.sparse_encoder.modules import (
    Router,
    SparseStaticEmbedding,
    SpladePooling,
)

from sparse_adapt.errors import ModelError
from sparse_adapt.model.forms import Form
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import extend
from sparse_adapt.retrieve.encode import encode


@pytest.fixture(scope="module")
def bases(tmp_path_factory) -> Path:
    """One folder of each family, tied."""
    folder = tmp_path_factory.mktemp("bases")
    for family in FAMILIES:
        build(folder / family, family)
    return folder


def check_all(theirs: Theirs, folder: Path) -> SparseEncoder:
    """Ours is theirs as it was written, after an extension, and as we write it."""
    ours = SparseEncoder.load(written(theirs, folder / "theirs"))
    check_same(ours, theirs)
    assert len(extend(ours, TERMS).new_tokens) == 2
    ours.save(folder / "ours")
    again = SparseEncoder.load(folder / "ours")
    assert again.form == ours.form
    for side in ("query", "document"):
        assert (encode(again, TEXTS, side) != encode(ours, TEXTS, side)).nnz == 0
    check_same(again, Theirs(str(folder / "ours"), device="cpu"))
    return again


@pytest.mark.parametrize("family", FAMILIES)
def test_a_family_with_every_part_of_a_form(family, bases, tmp_path):
    settings = POOLINGS[list(POOLINGS)[list(FAMILIES).index(family) % 3]]
    check_all(theirs_of(bases / family, settings, max_active_dims=20, prompts=PROMPTS), tmp_path)


@pytest.mark.parametrize("pooling", POOLINGS)
def test_pooling_and_activation(pooling, bases, tmp_path):
    ours = check_all(theirs_of(bases / "bert", POOLINGS[pooling]), tmp_path)
    asked = {"pooling": ours.form.pooling, "activation": ours.form.activation}
    names = {"pooling": "pooling_strategy", "activation": "activation_function"}
    expected = {**dict(pooling="max", activation="relu")}
    expected |= {key: POOLINGS[pooling][name] for key, name in names.items() if name in POOLINGS[pooling]}
    assert asked == expected


def test_the_heaviest_entries_alone(bases, tmp_path):
    ours = check_all(theirs_of(bases / "bert", max_active_dims=7), tmp_path)
    counts = np.diff(encode(ours, TEXTS, "document").indptr)
    assert counts.max() == 7


def test_prompts_and_the_default_one(bases, tmp_path):
    check_all(theirs_of(bases / "bert", prompts=PROMPTS), tmp_path / "named")
    theirs = theirs_of(
        bases / "bert", prompts={"ask": "find the ", "query": "find the "}, default_prompt_name="ask"
    )
    ours = check_all(theirs, tmp_path / "default")
    assert (
        ours.form.prompt("document") == ""
    )  # sentence-transformers names a document's prompt itself, and leaves it empty


@pytest.mark.parametrize(
    ("prompts", "default"),
    [({"passage": "find "}, None), ({"corpus": "find "}, None), ({"ask": "find "}, "ask"), ({}, "query"),
     ({"query": "find "}, "query"), ({"document": None, "passage": "find "}, "passage")],
)  # fmt: skip
def test_prompts_of_other_names_are_read_and_kept_as_sentence_transformers_does(
    prompts, default, bases, tmp_path
):
    folder = written(theirs_of(bases / "bert"), tmp_path / "theirs")
    about = folder / "config_sentence_transformers.json"
    told = {**json.loads(about.read_text()), "prompts": prompts, "default_prompt_name": default}
    about.write_text(json.dumps(told))
    theirs, ours = Theirs(str(folder), device="cpu"), SparseEncoder.load(folder)
    check_same(ours, theirs)
    ours.save(tmp_path / "ours")
    again = Theirs(str(tmp_path / "ours"), device="cpu")
    assert (again.prompts, again.default_prompt_name) == (theirs.prompts, theirs.default_prompt_name)
    check_same(SparseEncoder.load(tmp_path / "ours"), again)


def test_a_longest_text(bases, tmp_path):
    theirs = theirs_of(bases / "bert")
    theirs.max_seq_length = 9
    assert check_all(theirs, tmp_path).max_tokens == 9


def test_a_longest_text_as_older_versions_wrote_it(bases, tmp_path):
    theirs = theirs_of(bases / "bert")
    folder = written(theirs, tmp_path / "theirs")
    told = json.loads((folder / "sentence_bert_config.json").read_text())
    (folder / "sentence_bert_config.json").write_text(json.dumps({**told, "max_seq_length": 11}))
    assert SparseEncoder.load(folder).max_tokens == 11


@pytest.mark.parametrize("family", ["bert", "roberta", "xlm-roberta", "modernbert"])
def test_a_table_for_queries(family, bases, tmp_path):
    ours = check_all(routed(bases / family, POOLINGS["log1p_relu"]), tmp_path)
    assert ours.query_side is not None and ours.query_side.frozen
    token = ours.new_tokens[0]
    assert ours.query_side.weights[token.token_id] == ours.query_side.weights[list(token.pieces)].max()


def test_a_table_of_ones_with_prompts(bases, tmp_path):
    ones = torch.ones(len(transformer(bases / "bert").tokenizer))
    ours = check_all(routed(bases / "bert", weight=ones, prompts=PROMPTS), tmp_path)
    assert (ours.query_side.weights == 1.0).all()


def test_two_encoders(bases, tmp_path):
    theirs = two_encoders(
        bases / "bert", bases / "distilbert", POOLINGS["sum"], prompts=PROMPTS, max_active_dims=20
    )
    theirs[0].sub_modules["query"][0].max_seq_length = 9
    ours = SparseEncoder.load(written(theirs, tmp_path / "theirs"))
    assert ours.query_encoder is not None and ours.query_encoder.max_tokens == 9 < ours.max_tokens
    check_same(ours, theirs)
    ours.save(tmp_path / "ours")
    again = SparseEncoder.load(tmp_path / "ours")
    for side in ("query", "document"):
        assert (encode(again, TEXTS, side) != encode(ours, TEXTS, side)).nnz == 0
    check_same(again, Theirs(str(tmp_path / "ours"), device="cpu"))
    assert (encode(ours, TEXTS, "query") != encode(ours, TEXTS, "document")).nnz > 0


@pytest.mark.parametrize("queries", ["table", "encoder"])
def test_routes_as_version_5_names_them(queries, bases, tmp_path):
    """As the folders of the efficient SPLADEs and of OpenSearch's inference-free models have them."""
    theirs = (
        routed(bases / "bert") if queries == "table" else two_encoders(bases / "bert", bases / "distilbert")
    )
    folder = written(theirs, tmp_path / "theirs")
    (folder / "modules.json").write_text(
        '[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Router"}]'
    )
    for path in folder.glob("query_0_Transformer"):
        path.rename(folder / "query_0_MLMTransformer")
    text = (folder / "router_config.json").read_text()
    for now, then in (
        ("base.modules.transformer.Transformer", "sparse_encoder.models.MLMTransformer"),
        ("sparse_encoder.modules.splade_pooling.", "sparse_encoder.models."),
        ("sparse_encoder.modules.sparse_static_embedding.", "sparse_encoder.models."),
        ("query_0_Transformer", "query_0_MLMTransformer"),
    ):
        text = text.replace(now, then)
    (folder / "router_config.json").write_text(text)
    for path in folder.rglob("sentence_bert_config.json"):
        path.write_text('{"max_seq_length": 20, "do_lower_case": false}')
    ours = SparseEncoder.load(folder)
    assert "MLMTransformer" in text and ours.max_tokens == 20
    check_same(ours, Theirs(str(folder), device="cpu"))


def test_a_transformer_in_a_folder_of_its_own(bases, tmp_path):
    folder = written(theirs_of(bases / "bert", POOLINGS["sum"]), tmp_path / "theirs")
    own = folder / "0_Transformer"
    own.mkdir()
    for path in [path for path in folder.iterdir() if path.is_file()]:
        if path.name not in ("modules.json", "config_sentence_transformers.json"):
            shutil.move(path, own / path.name)
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["path"] = "0_Transformer"
    (folder / "modules.json").write_text(json.dumps(modules))
    check_same(SparseEncoder.load(folder), Theirs(str(folder), device="cpu"))


def test_modules_as_version_5_names_them(bases, tmp_path):
    folder = written(theirs_of(bases / "bert", POOLINGS["log1p_relu"]), tmp_path / "theirs")
    named = "sentence_transformers.sparse_encoder.models"
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": f"{named}.MLMTransformer"},
        {"idx": 1, "name": "1", "path": "1_SpladePooling", "type": f"{named}.SpladePooling"},
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 20, "do_lower_case": false}')
    ours = SparseEncoder.load(folder)
    assert ours.max_tokens == 20
    check_same(ours, Theirs(str(folder), device="cpu"))


@pytest.mark.parametrize("precision", [torch.float16, torch.bfloat16])
def test_a_file_of_half_precision(precision, bases, tmp_path):
    theirs = theirs_of(bases / "bert", POOLINGS["log1p_relu"])
    theirs[0].auto_model.to(precision)
    folder = written(theirs, tmp_path / "theirs")
    whole = Theirs(str(folder), device="cpu", model_kwargs={"dtype": torch.float32})
    check_same(SparseEncoder.load(folder), whole)


@pytest.mark.parametrize("name", ["idf.json", "query_token_weights.txt"])
def test_opensearch_s_table_beside_a_plain_folder(name, bases, tmp_path):
    folder = tmp_path / "published"
    shutil.copytree(bases / "bert", folder)
    table = {"server": 2.5, "zoo": 0.5, "the": 0.25}
    lines = "".join(f"{token}\t{weight}\n" for token, weight in table.items())
    (folder / name).write_text(json.dumps(table) if name.endswith("json") else lines)
    ours = SparseEncoder.load(folder)
    module = transformer(bases / "bert")
    (tmp_path / "table.json").write_text(json.dumps(table))
    router = Router.for_query_document(
        [SparseStaticEmbedding.from_json(str(tmp_path / "table.json"), tokenizer=module.tokenizer)],
        [module, SpladePooling()],
    )
    check_same(ours, Theirs(modules=[router], device="cpu"))
    ours.save(tmp_path / "ours")
    assert json.loads((tmp_path / "ours" / "idf.json").read_text()) == table
    check_same(SparseEncoder.load(tmp_path / "ours"), Theirs(str(tmp_path / "ours"), device="cpu"))


# -- what is refused --------------------------------------------------------------------------------


@pytest.fixture
def plain(bases, tmp_path) -> Path:
    return written(theirs_of(bases / "bert"), tmp_path / "theirs")


def refusal(folder) -> str:
    with pytest.raises(ModelError) as caught:
        SparseEncoder.load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def changed(path: Path, **settings) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))


@pytest.mark.parametrize(
    ("file", "settings", "problem"),
    [
        ("1_SpladePooling/config.json", {"pooling_strategy": "mean"}, "pooling_strategy is 'mean'"),
        ("1_SpladePooling/config.json", {"activation_function": "gelu"}, "activation_function is 'gelu'"),
        ("config_sentence_transformers.json", {"max_active_dims": 0}, "max_active_dims is 0"),
        ("config_sentence_transformers.json", {"similarity_fn_name": "cosine"}, "its scores are 'cosine'"),
        ("config_sentence_transformers.json", {"prompts": {"query": 3}}, "its prompts are no words"),
        ("config_sentence_transformers.json", {"default_prompt_name": "ask"}, "default prompt 'ask' is none"),
        ("sentence_bert_config.json", {"transformer_task": "feature-extraction"}, "gives no logits"),
        ("sentence_bert_config.json", {"query_length": 8}, "query_length is 8"),
        ("sentence_bert_config.json", {"max_seq_length": -1}, "max_seq_length is -1"),
    ],
)
def test_what_isn_t_understood_is_refused_in_one_line(file, settings, problem, plain):
    changed(plain / file, **settings)
    assert problem in refusal(plain)


@pytest.mark.parametrize("text", ["{", "3", "[1]", "[]"])
def test_damaged_modules_are_one_line(plain, text):
    (plain / "modules.json").write_text(text)
    assert "modules" in refusal(plain)


@pytest.mark.parametrize(
    ("order", "named"), [((1, 0), "SpladePooling"), ((0, 1, 1), "SpladePooling"), ((0,), "Transformer")]
)
def test_modules_that_contradict_each_other_are_named(order, named, plain):
    modules = json.loads((plain / "modules.json").read_text())
    (plain / "modules.json").write_text(json.dumps([modules[place] for place in order]))
    assert named in refusal(plain)


def test_a_route_that_nothing_describes_is_refused(bases, tmp_path):
    folder = written(routed(bases / "bert"), tmp_path / "theirs")
    changed(folder / "router_config.json", structure={"query": ["elsewhere"], "document": [""]})
    assert "gives no type for 'elsewhere'" in refusal(folder)


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        ("sentence_transformers.sparse_encoder.modules.SparseAutoEncoder", "include SparseAutoEncoder"),
        ("theirs.own.Head", "theirs.own.Head is no part of sentence-transformers"),
    ],
)
def test_other_modules_are_named(kind, problem, plain):
    modules = json.loads((plain / "modules.json").read_text())
    modules[1]["type"] = kind
    (plain / "modules.json").write_text(json.dumps(modules))
    assert problem in refusal(plain)


def test_a_module_outside_the_folder_is_refused(plain):
    modules = json.loads((plain / "modules.json").read_text())
    modules[1]["path"] = "../elsewhere"
    (plain / "modules.json").write_text(json.dumps(modules))
    assert "'../elsewhere', which is no folder of this model" in refusal(plain)


def test_two_encoders_of_different_tokenizers_are_refused(bases, tmp_path):
    folder = written(two_encoders(bases / "bert", bases / "roberta"), tmp_path / "theirs")
    assert "its queries and its documents have different tokenizers" in refusal(folder)


def test_two_encoders_of_different_sizes_are_refused(bases, tmp_path):
    build(tmp_path / "spare", "bert", spare=8)
    folder = written(two_encoders(bases / "bert", tmp_path / "spare"), tmp_path / "theirs")
    assert "both need the same" in refusal(folder)


def test_a_router_behind_which_more_is_done_is_refused(bases, tmp_path):
    module = transformer(bases / "bert")
    router = Router.for_query_document(
        [SparseStaticEmbedding(tokenizer=module.tokenizer)], [module, SpladePooling()]
    )
    folder = written(Theirs(modules=[router, Normalize()], device="cpu"), tmp_path / "theirs")
    assert "can't be adapted" in refusal(folder)


def test_a_table_of_another_tokenizer_is_refused(bases, tmp_path):
    folder = written(routed(bases / "bert"), tmp_path / "theirs")
    other = transformer(bases / "deberta-v2").tokenizer
    other.save_pretrained(folder / "query_0_SparseStaticEmbedding")
    assert "different tokenizers" in refusal(folder)


@pytest.mark.parametrize("weight", [float("nan"), float("inf"), -1.0])
def test_a_table_with_what_is_no_weight_is_refused(weight, bases, tmp_path):
    folder = written(routed(bases / "bert"), tmp_path / "theirs")
    path = folder / "query_0_SparseStaticEmbedding" / "model.safetensors"
    weights = load_file(path)
    weights["weight"] = np.array([weight, *weights["weight"][1:]], np.float32)
    save_file(weights, path)
    assert "no numbers, or below zero" in refusal(folder)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"qqq": 1.0}', "weighs 'qqq'"),
        ('{"the": NaN}', "no numbers, or below zero"),
        ("[3]", "isn't a table"),
        ('{"the": "x"}', "isn't a table"),
    ],
)
def test_a_table_that_fits_no_tokenizer_is_refused(text, problem, bases, tmp_path):
    shutil.copytree(bases / "bert", tmp_path / "published")
    (tmp_path / "published" / "idf.json").write_text(text)
    assert problem in refusal(tmp_path / "published")


def test_a_table_that_the_modules_contradict_is_refused(plain):
    (plain / "idf.json").write_text('{"the": 1.0}')
    assert "modules.json says that the model reads queries, but idf.json" in refusal(plain)


def test_of_equal_entries_the_first_are_kept():
    from scipy.sparse import csr_matrix

    rows = csr_matrix(np.array([[1.0, 2.0, 1.0, 1.0], [0.0, 0.0, 3.0, 0.0]], np.float32))
    kept = Form(entries=2).pruned(rows).toarray()
    assert kept.tolist() == [[1.0, 2.0, 0.0, 0.0], [0.0, 0.0, 3.0, 0.0]]
