"""Models whose folder says that weights are made in another way are refused, in one line that says what."""

import json

import pytest
from sentence_transformers import SparseEncoder as Written
from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding, SpladePooling

from sparse_adapt.errors import ModelError
from sparse_adapt.model.sparse import SparseEncoder


@pytest.fixture
def saved(tiny_model, tmp_path):
    """A model folder that sentence-transformers itself has read and written again."""
    SparseEncoder.load(tiny_model).save(tmp_path / "ours")
    return Written(str(tmp_path / "ours"), device="cpu")


def write(model: Written, folder) -> str:
    model.save(str(folder))
    return str(folder)


def test_the_usual_form_is_read(saved, tmp_path):
    SparseEncoder.load(write(saved, tmp_path / "theirs"))


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"activation_function": "log1p_relu"}, "activation_function is 'log1p_relu'"),
        ({"pooling_strategy": "sum"}, "pooling_strategy is 'sum'"),
    ],
)
def test_another_pooling_is_refused(saved, tmp_path, settings, problem):
    other = Written(modules=[saved[0], SpladePooling(**settings)], device="cpu")
    with pytest.raises(ModelError, match=problem):
        SparseEncoder.load(write(other, tmp_path / "theirs"))


def test_a_limit_of_entries_is_refused(saved, tmp_path):
    saved.max_active_dims = 5
    with pytest.raises(ModelError, match="keeps the 5 heaviest entries"):
        SparseEncoder.load(write(saved, tmp_path / "theirs"))


def test_a_prompt_is_refused(saved, tmp_path):
    saved.prompts = {"query": "query: ", "document": ""}
    with pytest.raises(ModelError, match=r"puts a prompt before texts \(query\)"):
        SparseEncoder.load(write(saved, tmp_path / "theirs"))


def test_a_table_for_queries_is_refused(saved, tmp_path):
    from sentence_transformers.sparse_encoder.modules import Router

    router = Router.for_query_document(
        query_modules=[SparseStaticEmbedding(tokenizer=saved.tokenizer)],
        document_modules=[saved[0], saved[1]],
    )
    with pytest.raises(ModelError, match="include Router, which can't be adapted"):
        SparseEncoder.load(write(Written(modules=[router], device="cpu"), tmp_path / "theirs"))


@pytest.mark.parametrize("name", ["idf.json", "query_token_weights.txt"])
def test_a_table_beside_a_plain_folder_is_refused(tiny_model, tmp_path, name):
    SparseEncoder.load(tiny_model).save(tmp_path / "model")
    (tmp_path / "model" / name).write_text(json.dumps({"server": 2.5}))
    with pytest.raises(ModelError, match=f"weighed by a table, {name}"):
        SparseEncoder.load(tmp_path / "model")


@pytest.mark.parametrize("text", ["{", "3", "[1]"])
def test_damaged_modules_are_one_line(tiny_model, tmp_path, text):
    SparseEncoder.load(tiny_model).save(tmp_path / "model")
    (tmp_path / "model" / "modules.json").write_text(text)
    with pytest.raises(ModelError, match=r"modules\.json"):
        SparseEncoder.load(tmp_path / "model")
