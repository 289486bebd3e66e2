"""Teaching by the Python API: one stage, and a whole adaptation, from paths and from memory."""

import gc
import json
from pathlib import Path

import pandas
import pytest

import sparse_adapt as sa
from sparse_adapt.collection.examples import Candidates, read_candidates
from sparse_adapt.collection.glossary import Definition
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.errors import ConfigError, InputError, OutputError
from sparse_adapt.files.place import Place
from sparse_adapt.selection import comparison
from tests.test_adapting import SHORT, SUBJECTS, document, scores

SHARED = {
    "query_settings": {"count": 12, "held": 8},
    "candidate_settings": {"consistent": 40, "count": 4},
    **SHORT,
}


@pytest.fixture
def extended(tiny_model) -> sa.Model:
    model = sa.load(tiny_model, device="cpu")
    model.extend(["zorvex"])
    return model


def test_a_stage_teaches_a_model_in_memory(extended, twelve_documents):
    taught = sa.train("warmup", extended, twelve_documents, **SHORT)
    assert taught.terms == ["zorvex"] and len(taught.history) == 2
    assert (extended.encode("zorvex") != taught.encode("zorvex")).nnz
    assert extended.history == [] and taught.record["stage"] == "warmup"
    assert sa.load(taught.record["model"]["path"]).record["stage"] == "extend"


def test_temporary_folders_last_as_long_as_the_models_that_need_them(extended, twelve_documents):
    first = sa.train("warmup", extended, twelve_documents, **SHORT)
    second = sa.train("preserve", first, twelve_documents, **SHORT)
    places = [Path(second.source), Path(first.source)]
    del first
    gc.collect()
    assert all(place.is_dir() for place in places)
    del second
    gc.collect()
    assert not any(place.is_dir() for place in places)


def test_paths_and_memory_teach_the_same(extended, zorvex_collection, tmp_path):
    held = {
        "corpus": pandas.DataFrame([vars_of(each) for each in read_documents(zorvex_collection)]),
        "candidates": list(read_candidates(zorvex_collection)),
    }
    extended.save(tmp_path / "extended")
    by_path = sa.train(
        "distill", tmp_path / "extended", zorvex_collection, out=tmp_path / "a", labeller="none", **SHORT
    )
    in_memory = sa.train(
        "distill",
        tmp_path / "extended",
        held["corpus"],
        candidates=held["candidates"],
        labeller="none",
        out=tmp_path / "b",
        **SHORT,
    )
    assert (by_path.encode("who owns zorvex") != in_memory.encode("who owns zorvex")).nnz == 0
    written = {path.name for path in (tmp_path / "b-inputs").iterdir()}
    assert written == {"corpus.jsonl", "candidates.jsonl", "sparse-adapt.json"}
    assert not (tmp_path / "a-inputs").exists()
    with pytest.raises(OutputError, match="already there"):
        sa.train("distill", tmp_path / "extended", held["corpus"][:3], out=tmp_path / "b", **SHORT)
    assert len(list(read_documents(tmp_path / "b-inputs"))) == 12


def vars_of(document):
    return {"_id": document.document_id, "title": document.title, "text": document.text}


def test_definitions_and_dictionaries_of_candidates_are_taken(extended, twelve_documents):
    taught = sa.train(
        "dictionary",
        extended,
        twelve_documents,
        dictionary={"zorvex": "how a team spends"},
        labeller="none",
        **SHORT,
    )
    assert taught.terms == ["zorvex"]
    entry = {"query_id": "q", "query": "who signs", "doc_ids": ["d05", "d08"], "teacher_scores": [2, -1]}
    assert sa.train("distill", taught, twelve_documents, candidates=[entry], labeller="none", **SHORT).history


@pytest.mark.parametrize(
    ("stage", "given", "said"),
    [
        ("warmups", {}, "unknown stage 'warmups'; did you mean 'warmup'"),
        ("warmup", {"stps": 3}, "unknown key 'stps'; did you mean 'steps'"),
        ("warmup", {"steps": 0}, "warmup: steps"),
        ("distill", {}, "candidates"),
        ("extend", {"terms": ["zorvex"], "steps": 3}, "extend: unknown key 'steps'"),
        (
            "distill",
            {"candidates": [5]},
            "candidates:1: needs dictionaries with the keys of candidates.jsonl",
        ),
        ("distill", {"candidates": [{"query": "x"}]}, "candidates:1: needs a string"),
    ],
)
def test_what_a_stage_cannot_take_is_an_error_of_ours(tiny_model, twelve_documents, stage, given, said):
    with pytest.raises((ConfigError, InputError)) as raised:
        sa.train(stage, tiny_model, twelve_documents, **given)
    assert said in str(raised.value)


def test_what_goes_on_goes_on_with_the_same_things_in_memory(tmp_path, twelve_documents):
    from sparse_adapt.api.inputs import InputFolder

    begun = InputFolder(Place(tmp_path / "out"))
    place = begun.place("corpus", twelve_documents)
    again = InputFolder(Place(tmp_path / "out", resume=True))
    assert again.place("corpus", list(twelve_documents)) == place
    with pytest.raises(ConfigError, match="made with other corpus"):
        again.place("corpus", twelve_documents[:6])
    assert list(read_documents(place)) == twelve_documents


def state_of(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "name", ["corpus.jsonl", "dictionary.jsonl", "new-corpus.jsonl", "thesis.txt", "queries.jsonl"]
)
def test_what_somebody_else_keeps_beside_a_result_is_left_alone(tmp_path, twelve_documents, tiny_model, name):
    (tmp_path / "a-inputs").mkdir()
    (tmp_path / "a-inputs" / name).write_text("mine")
    before = state_of(tmp_path)
    for given in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(OutputError, match="a-inputs: is there, and sparse-adapt didn't write it"):
            sa.adapt(twelve_documents, tmp_path / "a", model=tiny_model, glossary={"a": "b"}, **given)
    assert state_of(tmp_path) == before


def test_a_file_that_was_put_beside_our_inputs_is_left_alone(tmp_path, twelve_documents):
    from sparse_adapt.api.inputs import InputFolder

    inputs = InputFolder(Place(tmp_path / "a"))
    with inputs.unless_refused():
        inputs.place("corpus", twelve_documents)
        (tmp_path / "a-inputs" / "terms.json").write_text("mine")
        with pytest.raises(OutputError, match=r"terms.json: is there, and sparse-adapt didn't write it"):
            inputs.place("terms", ["zorvex"])
    (tmp_path / "b-inputs").symlink_to(tmp_path / "a-inputs")
    with pytest.raises(OutputError, match=r"b-inputs.*: is there, and sparse-adapt didn't write it"):
        InputFolder(Place(tmp_path / "b")).place("corpus", twelve_documents)
    assert (tmp_path / "a-inputs" / "terms.json").read_text() == "mine"


@pytest.mark.parametrize("old", [False, True])
def test_a_refused_call_leaves_the_inputs_as_they_were(tmp_path, twelve_documents, tiny_model, old):
    from sparse_adapt.api.inputs import InputFolder

    if old:
        InputFolder(Place(tmp_path / "a")).place("corpus", twelve_documents[:3])
    before = state_of(tmp_path)
    extended = sa.load(tiny_model, device="cpu")
    extended.extend(["kubectl"])
    for given in (
        {"glossary": {"zorvex": ""}},
        {"model": extended, "glossary": {"": ""}},
    ):
        with pytest.raises((ConfigError, InputError)):  # twelve texts are too few, too
            sa.adapt(twelve_documents, tmp_path / "a", **{"model": tiny_model, **given}, overwrite=True)
        assert state_of(tmp_path) == before, given
    assert old or list(tmp_path.iterdir()) == []


# -- a whole adaptation ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def documents():
    return [document(number, name) for number, name in enumerate(SUBJECTS)]


@pytest.fixture
def teacher(tmp_path, documents) -> str:
    from sparse_adapt.collection.readers import write_documents

    write_documents(tmp_path / "for-teacher" / "corpus.jsonl", documents)
    return str(scores(tmp_path / "for-teacher"))


def test_an_adaptation_from_memory(tiny_model, documents, teacher, tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "why_refused", lambda rows: None)  # an untrained model gains nothing
    out = tmp_path / "adapted"
    rows = [{"id": each.document_id, "title": each.title, "text": each.text} for each in documents]
    asked = {"model": tiny_model, "teacher": teacher, "glossary": {"zorvex": "how a team spends"}, **SHARED}
    asked["dictionary"] = {"labeller": "none"}  # a dense one reads 20,000 words first
    asked["stages"] = ["extend", "dictionary", "rank"]
    stopped = sa.adapt(rows, out, until="terms", **asked)
    assert "zorvex" in [term.text for term in stopped.terms] and "stopped after terms" in repr(stopped)
    with pytest.raises(InputError, match="there is no model yet"):
        _ = stopped.model
    with pytest.raises(OutputError, match="unfinished run"):
        sa.adapt(rows, out, **asked)
    with pytest.raises(ConfigError, match="made with other corpus"):
        sa.adapt(rows[:20], out, resume=True)
    done = sa.adapt(iter(rows), out, resume=True)
    assert done.model.terms == ["zorvex"], "what a glossary defines is taught, and kept"
    assert [stage["stage"] for stage in done.report["stages"]] == ["rank", "extend", "dictionary"]
    assert Path(done.report["model"]) == Path(tiny_model).resolve(), "what it is compared with"
    ranked, taught = out / "ranking", json.loads((out / "1-extend" / "stage.json").read_text())
    assert taught["model"]["path"] == str(Path(tiny_model).resolve()), "words are taught to the base model"
    kept = json.loads((ranked / "choice.json").read_text())["kept"]
    assert kept and done.report["stages"][0]["folder"] == "ranking/1-rank"
    tried = [row["name"] for row in done.rows() if row["weighed"] == ""]
    assert tried == [
        "base",
        "ranking alone at 50%",
        "ranking alone",
        "dictionary",
        "dictionary and ranking at 50%",
        "dictionary and ranking",
    ]
    left = [path for path in out.rglob("*.json") if f"{out}.partial" in path.read_text()]
    assert not left, "the run may be renamed"
    assert done.model.source == str(out / "model") and sa.load(out).source == str(out / "model")
    assert [row["kept"] for row in done.to_frame().to_dict("records")].count("*") == 1
    assert done.verdict[0] in str(done) and json.dumps(done.to_dict())
    assert sa.adapt(rows, out, resume=True).report == done.report
    definitions = (tmp_path / "adapted-inputs" / "dictionary.jsonl").read_text()
    assert json.loads(definitions)["definition"] == "how a team spends"
    assert sorted(path.name for path in (out / "model").iterdir() if path.suffix == ".partial") == []


def test_an_adaptation_refuses_settings_that_there_are_not(tiny_model, documents, tmp_path):
    for given, said in (
        ({"until": "term"}, "unknown until 'term'; did you mean 'terms'"),
        ({"stages": ["extnd"]}, "unknown stages 'extnd'; did you mean 'extend'"),
        ({"stps": 3}, "unknown key 'stps'; did you mean 'steps'"),
        ({"stage": ["rank"]}, "unknown option 'stage'; did you mean 'stages'"),
        ({"stages": "words,rnk"}, "unknown stages 'rnk'; did you mean 'rank'"),
        ({"rank": {"stps": 3}}, "unknown key 'stps'; did you mean 'steps'"),
        ({"documents": 3}, "adapt: documents"),
        ({"query_settings": {"counts": 3}}, "unknown key 'counts'; did you mean 'count'"),
    ):
        with pytest.raises(ConfigError) as raised:
            sa.adapt(documents, tmp_path / "adapted", model=tiny_model, **given)
        assert said in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("given", [{}, {"glossary": {"zorvex": ""}}, {"queries": [""]}, {"stps": 3}])
def test_a_refused_adaptation_leaves_nothing_and_names_what_was_given(tiny_model, tmp_path, given):
    with pytest.raises(sa.SparseAdaptError) as raised:
        sa.adapt(["a team decides", "a bird sings"], tmp_path / "adapted", model=tiny_model, **given)
    assert str(tmp_path) not in str(raised.value)
    if not given:
        assert str(raised.value).startswith("documents: holds 2 different documents of 2; at least 8")
    assert list(tmp_path.iterdir()) == []


def test_a_refused_stage_leaves_nothing(tiny_model, tmp_path):
    with pytest.raises(sa.SparseAdaptError, match="has no new tokens to train"):
        sa.train("warmup", tiny_model, ["a team decides"], out=tmp_path / "warm", steps=1)
    assert list(tmp_path.iterdir()) == []


def test_records_of_ours_are_written_as_they_are(tmp_path, documents):
    from sparse_adapt.api.inputs import InputFolder

    inputs = InputFolder(Place(tmp_path / "out"))
    entry = Candidates("q", "who signs", ("d1", "d2"), (1.0, 0.0))
    assert list(read_candidates(inputs.place("candidates", [entry]))) == [entry]
    assert inputs.place("dictionary", [Definition("zorvex", "how")]).endswith("out-inputs/dictionary.jsonl")
    assert inputs.place("queries", tmp_path / "queries.jsonl") == str(tmp_path / "queries.jsonl")
