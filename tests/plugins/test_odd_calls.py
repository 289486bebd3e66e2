"""Every public function, called with odd values: each call works, or ends in a `SparseAdaptError` of one line."""

import inspect
from itertools import count

import pytest

import sparse_adapt as sa
from sparse_adapt.api.indexing import encode
from sparse_adapt.collection.readers import Document, Query

ODD = [None, True, -1, 0, 1.5, float("nan"), 10**30, "", "  ", "./nowhere", "a\0b", "\ud800", "x" * 5000, b"x", [],
       [None], [1], ["a", 2], {}, {1: 2}, {"a": None}, object(), [Document("a", None)], [Query(1, None)]]  # fmt: skip
DOCUMENTS = ["a team decides how a zorvex is spent", "a bird sings", "planes land"]
HOW = {"device": "cpu", "max_tokens": 16, "progress": False}
OUT = iter(f"out-{number}" for number in count())
ONCE = {"overwrite": False, "resume": False, "progress": False}


@pytest.fixture(scope="module")
def place(tmp_path_factory, tiny_model):
    """A folder that holds a model of a new term, and its pack."""
    folder = tmp_path_factory.mktemp("odd")
    extended = sa.load(tiny_model, device="cpu")
    extended.extend(["kubectl"])
    sa.pack(extended.save(folder / "ext"), folder / "p.pack", base=tiny_model)
    return folder


def calls(model, tiny, collection):
    """A good call of each function: what it takes, without what need not be named."""
    read = {"model": model, "corpus": DOCUMENTS}
    vectors = {"columns": (), "engine": "local", "workers": None, "shard": 2}
    return {
        sa.load: {"source": tiny, "device": "cpu", "max_tokens": 16, "windows": 8, "overlap": 2},
        sa.mine_terms: {"corpus": DOCUMENTS, "model": str(tiny), "top": 1, "share": 0.2, "by": "gain",
                        "out": None, "define": None, "llm": None, "columns": (), "overwrite": False, "progress": False,
                        "glossary": None},
        sa.explain: {**read, **HOW, "query": "zorvex", "top": 1, "expansions": 2, "windows": 0, "overlap": None},
        sa.diagnose: {**read, "term": "zorvex", "document_id": "1", "device": "cpu", "max_tokens": 16},
        sa.diagnose_model: {**read, **HOW, "baseline": None},
        sa.search: {**read, **HOW, "query": "zorvex", "queries": None, "index": None, "vectors": None,
                    "verify": False, "top": 2, "run": None, "texts": None, "columns": ()},
        sa.evaluate: {"model": model, "collection": DOCUMENTS, "queries": {"q": "zorvex"}, "baseline": None,
                      "judgements": {"q": ["1"]}, "general": None, "measures": (), "split": "test", "columns": (),
                      **HOW},
        sa.export: {"format": "opensearch", **read, "out": OUT, "vectors": None, "queries": None, "scale": None,
                    "largest": None, "texts": False, "columns": (), **ONCE, **HOW},
        encode: {**read, "out": OUT, **vectors, **ONCE, **HOW},
        sa.pack: {"model": "ext", "out": OUT, "base": tiny, "terms": (), "author": None, "overwrite": False},
        sa.packs: {"source": "ext"},
        sa.unpack: {"model": str(tiny), "files": ["p.pack"], "out": OUT, "remove": (), "corpus": None,
                    "overwrite": False, "progress": False},
        sa.train: {"stage": "warmup", **read, "out": OUT, "preset": "default", **ONCE, "steps": 1, "seed": 0,
                   "train": "all", "batch_size": 2, "device": "cpu"},
        sa.adapt: {"corpus": str(collection), "out": OUT, "model": tiny, "glossary": None, "columns": (),
                   "queries": None, "candidates": None, "teacher": "bm25", "llm": None, "stages": None,
                   "engine": "local", "workers": None, "until": "queries", **ONCE, "seed": 0},
        model.encode: {"texts": ["a"], "side": "document", "progress": False, "show_progress_bar": False,
                       "batch_size": 8},
        model.save: {"folder": OUT, "overwrite": False},
    }  # fmt: skip


NAMES = "load mine_terms explain diagnose diagnose_model search evaluate export encode pack packs unpack train adapt"


@pytest.mark.parametrize("name", [*NAMES.split(), "Model.encode", "Model.save"])
def test_odd_values_end_in_errors_of_ours(name, place, tiny_model, zorvex_collection, monkeypatch):
    monkeypatch.chdir(place)
    every = calls(sa.load(tiny_model, device="cpu"), tiny_model, zorvex_collection)
    function, good = next((each, good) for each, good in every.items() if each.__qualname__ == name)
    assert {*inspect.signature(function).parameters} - {"reading", "given", "settings"} <= {*good}

    def call(**changed):
        given = {**good, **changed}
        return function(**{key: next(OUT) if value is OUT else value for key, value in given.items()})

    call()
    others = []
    for key, value in ((key, value) for key in good for value in ODD if (key, value) != ("steps", 10**30)):
        try:
            call(**{key: value})
        except sa.SparseAdaptError as error:
            assert "\n" not in str(error), (key, value)
        except Exception as error:
            others.append((key, value, error))
    assert others == []


@pytest.mark.parametrize("terms", ODD)
def test_odd_terms_change_no_model(tiny_model, terms):
    model = sa.load(tiny_model, device="cpu")
    try:
        model.extend(terms)
    except sa.SparseAdaptError as error:
        assert "\n" not in str(error) and model.terms == []
