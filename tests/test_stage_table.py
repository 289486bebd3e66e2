"""The table of stages, and a stage that a contributor adds."""

import json

import pytest

from sparse_adapt.collection.readers import Document, write_documents
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.stages import inputs
from sparse_adapt.stages.inputs import CANDIDATES, CORPUS, DICTIONARY, Inputs
from sparse_adapt.stages.runner import carry_out_stage, files_of_stage
from sparse_adapt.stages.table import find_stage, stage_names, stages_of_adapt

MADE_BY_ADAPT = {"terms", "corpus", "dictionary", "candidates", "pairs", "before"}


@pytest.mark.parametrize("name", stage_names())
def test_each_stage_has_inputs_and_settings(name):
    stage = find_stage(name)
    assert stage.name == name
    assert stage.reads
    if stage.trains:
        assert settings_for(name) == stage.settings()


def test_an_unknown_stage_is_named():
    with pytest.raises(ConfigError, match="unknown stage 'warmpu'; did you mean 'warmup'"):
        find_stage("warmpu")


def test_adapt_takes_the_stages_whose_inputs_it_makes():
    fed = [name for name in stage_names() if {each.key for each in find_stage(name).reads} <= MADE_BY_ADAPT]
    apart = ("published", "distill")  # for queries that somebody has scored
    fed = [name for name in fed if name not in apart]
    assert tuple(fed) == stages_of_adapt()


def test_an_input_is_named_or_lies_in_the_corpus_folder(tmp_path, zorvex_collection):
    folder, other = str(zorvex_collection), str(tmp_path / "other.jsonl")
    distill = find_stage("distill")
    assert files_of_stage(distill, "model", {"corpus": folder}) == {
        "candidates": str(zorvex_collection / "candidates.jsonl"),
        "corpus": folder,
    }
    assert files_of_stage(distill, "model", {"corpus": folder, "candidates": other})["candidates"] == other
    with pytest.raises(ConfigError, match=r"the stage distill needs candidates \(queries and documents"):
        files_of_stage(distill, "model", {"corpus": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"needs corpus \(documents"):
        files_of_stage(distill, "model", {"candidates": other})


def test_an_input_is_inherited_from_the_stage_before(tmp_path, zorvex_collection):
    record = {
        "stage": "warmup",
        "model": {"path": "m"},
        "files": {"corpus": {"path": str(zorvex_collection)}},
    }
    (tmp_path / "stage.json").write_text(json.dumps(record))
    definitions = {"dictionary": str(zorvex_collection)}
    places = files_of_stage(find_stage("dictionary"), str(tmp_path), definitions)
    assert list(places) == ["dictionary", "corpus", "candidates"]
    assert places["corpus"] == str(zorvex_collection)
    assert "corpus" not in files_of_stage(find_stage("dictionary"), "splade-tiny", definitions)


def test_inputs_are_read_once_and_candidates_with_the_ids_of_the_corpus(zorvex_collection, monkeypatch):
    given = Inputs("m", {"corpus": str(zorvex_collection), "candidates": str(zorvex_collection)})
    assert len(given[CORPUS]) == 12
    assert given[CORPUS] is given[CORPUS]
    assert {name for entry in given[CANDIDATES] for name in entry.document_ids} <= inputs.document_ids(given)
    assert given.get(DICTIONARY) is None


@pytest.mark.plugins("research")
def test_a_stage_is_refused_before_its_model_is_loaded(tmp_path):
    write_documents(tmp_path / "corpus.jsonl", [Document("a", "text")])
    with pytest.raises(ConfigError, match="needs pairs"):
        carry_out_stage("contrast", "no such model", {"corpus": tmp_path}, Place(tmp_path / "out"))
