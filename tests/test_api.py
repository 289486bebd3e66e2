"""The Python API: paths and memory give the same, mistakes are our errors, results show themselves."""

import doctest
import importlib
import inspect
import json
import pkgutil
import re
import statistics
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy.sparse import issparse

import sparse_adapt as sa
from sparse_adapt.api.options import options_of
from sparse_adapt.collection.readers import Query, read_documents, read_judgements, read_queries
from sparse_adapt.errors import ConfigError, InputError, MissingPackageError, ModelError, OutputError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.vocabulary import TermError
from sparse_adapt.report.progress import progress_bars

HEAVY = ("torch", "transformers", "scipy", "pydantic", "numpy", "rich")


@pytest.fixture(scope="module")
def model(tiny_model) -> sa.Model:
    return sa.load(tiny_model, device="cpu")


@pytest.fixture
def frame(twelve_documents) -> pandas.DataFrame:
    rows = [{"id": each.document_id, "title": each.title, "text": each.text} for each in twelve_documents]
    return pandas.DataFrame(rows)


# -- the names ------------------------------------------------------------------------------------


def test_importing_loads_nothing_heavy_and_is_quick():
    code = "import time, sys; start = time.perf_counter(); import sparse_adapt; print(time.perf_counter() - start);"
    code += f"print([name for name in {HEAVY!r} if name in sys.modules])"
    command = [sys.executable, "-c", code]
    printed = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(3)]
    seconds, loaded = zip(*(each.splitlines() for each in printed), strict=True)
    assert set(loaded) == {"[]"}
    assert statistics.median(map(float, seconds)) < 0.15


@pytest.mark.plugins("engines")
def test_every_public_name_is_there_and_none_is_a_module():
    assert not {"TYPE_CHECKING", "READING_ORDER"} & set(dir(sa)), "which completion has no use for"
    assert set(sa.__all__) <= set(dir(sa)) and all(callable(getattr(sa, name)) for name in sa.__all__)
    assert not set(sa.__all__) & {each.name for each in pkgutil.iter_modules(sa.__path__)}
    with pytest.raises(AttributeError, match="no attribute 'adopt'"):
        sa.adopt  # noqa: B018 - which raises


@pytest.mark.plugins("engines")
def test_every_public_function_has_a_docstring_with_an_example():
    for name in sa.__all__:
        if name.islower():
            assert (
                f">>> sa.{name}(" in getattr(sa, name).__doc__ or f"sa.{name}(" in getattr(sa, name).__doc__
            ), name


def test_every_command_is_a_function_of_the_same_name():
    """But for stages, which `train` carries out, research, and two whose names are folders of the package."""
    from sparse_adapt.cli.app import PANELS

    otherwise = {"terms": "mine_terms", "report": "write_report", "words": "add_words"}
    rows = [each for panel, each in PANELS.items() if panel != "Research"]
    names = [row.name.replace("-", "_") for panel in rows for row in panel if not isinstance(row, str)]
    assert {otherwise.get(name, name) for name in names} <= set(sa.__all__)


@pytest.mark.plugins("engines")
def test_help_of_a_function_reads_like_documentation():
    for name in sa.__all__:
        if name.islower():
            shown = str(inspect.signature(getattr(sa, name)))
            assert "Annotated" not in shown and "ForwardRef" not in shown and len(shown) < 1_000, name
    assert "    adapted = sa.adapt(" in sa.__doc__.split("\n\n")[2]


@pytest.mark.plugins("engines")
def test_a_docstring_lists_the_options_in_the_words_of_python():
    for name in sa.__all__:
        function = getattr(sa, name)
        known = {} if name == "Model" or not name.islower() else options_of(function)
        listed = re.findall(r"^- (\w+): ", function.__doc__, re.MULTILINE)
        assert listed == [each for each in known if known[each].option.help], name
        shown = " ".join(function.__doc__.partition("\n- ")[2].partition(">>>")[0].split())
        assert "--" not in shown and "commas between" not in shown, name
    told = " ".join(inspect.getdoc(sa.adapt).split())
    assert "an ir_datasets id. Or documents in a list or a dictionary. - out: Run folder" in told


def test_types_are_marked_as_such():
    for package in ("sparse_adapt", "diagnostics", "corpora"):
        assert (Path(sa.__file__).parents[1] / package / "py.typed").is_file()


# -- a model --------------------------------------------------------------------------------------


def test_a_model_says_what_it_is(model, tiny_model):
    assert repr(model) == f"<Model: {tiny_model}, sparse, 200 tokens, on cpu>"
    assert len(model.tokens) == 200 and model.terms == [] and model.is_sparse
    assert sa.load(model) is model
    assert (model.record, model.history) == ({}, [])


def test_texts_become_rows_and_one_string_is_one_text(model):
    vectors = model.encode(["test the backup", "", "who owns zorvex"])
    assert issparse(vectors) and vectors.shape == (3, 200) and vectors.dtype == np.float32
    alone = model.encode("test the backup").toarray()
    np.testing.assert_allclose(
        alone, vectors[0].toarray(), rtol=1e-5, atol=1e-6
    )  # a body's sums follow its batch
    with pytest.raises(InputError, match=r"texts:2: need to be strings \(found: int\)"):
        model.encode(["a", 5])


def test_queries_and_documents_are_encoded_compared_and_decoded(model):
    """As sentence-transformers' SparseEncoder names it."""
    documents = model.encode_document(["test the backup", "who owns zorvex", ""])
    assert (documents != model.encode(["test the backup", "who owns zorvex", ""])).nnz == 0
    queries = model.encode_query("backup")
    assert (queries != model.encode("backup", side="query")).nnz == 0
    expected = queries.toarray() @ documents.toarray().T
    np.testing.assert_allclose(model.similarity(queries, documents), expected, rtol=1e-6)
    dense = model.similarity(queries.toarray(), documents.toarray())
    np.testing.assert_allclose(dense, expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["encode_query", "encode_queries", "encode_document", "encode_documents"])
def test_a_user_of_sentence_transformers_calls_as_he_is_used_to(model, name, monkeypatch):
    texts = ["test the backup", "who owns zorvex"]
    bars = []
    monkeypatch.setattr(
        "sparse_adapt.api.models.progress_bars", lambda shown: bars.append(shown) or progress_bars(False)
    )
    vectors = getattr(model, name)(texts, batch_size=1, show_progress_bar=True)
    assert bars == [True]
    assert (vectors != model.encode(texts, side="query" if "quer" in name else "document")).nnz == 0
    with pytest.raises(TypeError, match="prompt"):
        getattr(model, name)(texts, prompt="query: ")


def test_a_vector_is_decoded_heaviest_token_first(model):
    vectors = model.encode(["test the backup", ""])
    first, empty = model.decode(vectors)
    assert empty == [] and len(first) == vectors[0].nnz
    assert [weight for _, weight in first] == sorted(vectors[0].data.tolist(), reverse=True)
    assert all(vectors[0, model.tokens.index(token)] == np.float32(weight) for token, weight in first)
    assert model.decode(vectors[0].toarray()[0], top_k=3) == [first[:3]]
    with pytest.raises(ConfigError, match=r"top_k should be greater than or equal to 1"):
        model.decode(vectors, 0)


def test_vectors_of_another_model_are_refused(model):
    with pytest.raises(InputError, match="have 200 and 201 columns; encode both with one model"):
        model.similarity(model.encode("a"), np.zeros((1, 201)))
    with pytest.raises(InputError, match=r"have 201 columns, and .* 200; encode them with this model"):
        model.decode(np.zeros((1, 201)))


def test_no_public_method_of_a_model_wants_a_progress():
    kinds = [sa.Model, SparseEncoder, SentenceEncoder]
    methods = [getattr(kind, name) for kind in kinds for name in vars(kind) if not name.startswith("_")]
    asked = [
        each
        for method in methods
        if callable(method)
        for each in inspect.signature(method).parameters.values()
    ]
    assert len(asked) > 50 and not [
        each for each in asked if "Progress" in str(each.annotation) and each.default is each.empty
    ]


def test_extending_and_saving_keeps_the_terms(tiny_model, tmp_path):
    model = sa.load(tiny_model, device="cpu")
    extension = model.extend(["zorvex", "kubectl"])
    assert [token.term for token in extension.new_tokens] == model.terms == ["zorvex", "kubectl"]
    assert model.encode("zorvex").shape == (1, 202)
    folder = model.save(tmp_path / "extended")
    again = sa.load(folder, device="cpu")
    assert again.terms == ["zorvex", "kubectl"]
    assert again.record["stage"] == "extend" and again.record["model"]["path"] == str(tiny_model)
    assert (again.encode("zorvex") != model.encode("zorvex")).nnz == 0
    with pytest.raises(OutputError, match="already there"):
        model.save(tmp_path / "extended")
    again.save(tmp_path / "copy")
    assert sa.load(tmp_path / "copy").record == again.record


def test_terms_are_a_list_a_dictionary_or_a_file(tiny_model, zorvex_collection):
    for given in (
        ["zorvex"],
        {"coined": ["zorvex"]},
        zorvex_collection,
        str(zorvex_collection / "terms.json"),
    ):
        model = sa.load(tiny_model, device="cpu")
        model.extend(given)
        assert model.terms == ["zorvex"]
    assert model.encoder.new_tokens[0].category == "coined"
    with pytest.raises(
        InputError, match=r"zorvex: no such file; terms themselves come in a list: \['zorvex'\]"
    ):
        model.extend("zorvex")
    with pytest.raises(InputError, match="terms:2: duplicate term 'kubectl'"):
        model.extend(["kubectl", "kubectl"])
    with pytest.raises(InputError, match="needs a list of terms under 'coined'"):
        model.extend({"coined": "kubectl"})
    with pytest.raises(TermError):
        model.extend([" \u200b"])


def test_what_is_no_model_is_an_error_of_ours(tmp_path):
    with pytest.raises(ModelError, match="no such model folder"):
        sa.load("nowhere")
    with pytest.raises(ConfigError, match="choose auto"):
        sa.load("splade-tiny", device="tpu")


# -- what is done with it -------------------------------------------------------------------------


def test_mined_terms_are_a_sequence_with_evidence(
    tiny_model, zorvex_collection, twelve_documents, frame, tmp_path
):
    mined = sa.mine_terms(zorvex_collection, tiny_model)
    assert "zorvex" in [term.text.casefold() for term in mined] and len(mined) == len(mined.to_frame())
    for given in (twelve_documents, frame, [each.full_text for each in twelve_documents]):
        assert [term.text for term in sa.mine_terms(given, tiny_model)] == [term.text for term in mined]
    assert mined[0].evidence.gain == mined.to_frame()["gain"].iloc[0]
    assert mined.to_dict()["criterion"].startswith("all")
    path = mined.save(tmp_path / "terms.json")
    model = sa.load(tiny_model, device="cpu")
    model.extend(path)
    assert len(model.terms) == len(mined)
    with pytest.raises(OutputError):
        mined.save(path)
    with pytest.raises(ConfigError, match="unknown by 'gains'; did you mean 'gain'"):
        sa.mine_terms(zorvex_collection, tiny_model, by="gains")


def test_the_words_of_a_glossary_that_the_model_lacks(tiny_model, twelve_documents, sparse_adapt, tmp_path):
    glossary = {
        "zorvex": "how a team spends",
        "server": "a machine",
        "quornel": "nobody says it",
        "the plan": "of it",
    }
    alone = sa.mine_terms(model=tiny_model, glossary=glossary)
    assert [term.text for term in alone] == ["zorvex", "quornel"], "if a corpus said them all"
    assert alone.summary[0] == "4 entries: 1 phrase, 2 new words, 1 word with a token"
    assert "documents" not in str(alone) and " zorvex " in str(alone)
    said = sa.mine_terms(twelve_documents, tiny_model, glossary=glossary)
    assert [term.text for term in said] == ["zorvex"]
    texts = [document.full_text.lower() for document in twelve_documents]
    assert said.rows()[0]["documents"] == sum("zorvex" in text for text in texts) >= 2
    assert {entry.entry.term: entry.refused for entry in said.entries}[
        "quornel"
    ] == "the corpus never says it"
    pieces = sa.load(tiny_model).encoder.tokenizer.tokenize("zorvex")
    assert said.to_frame().to_dict("records")[0]["pieces"] == " ".join(pieces)
    (tmp_path / "glossary.csv").write_text("term,definition\nzorvex,how a team spends\n")
    words = ("terms", "--glossary", tmp_path / "glossary.csv", "--model", tiny_model)
    ran = sparse_adapt(*words, "-o", tmp_path / "terms.json")
    assert ran.status == 0 and "1 words of them get a token" in ran.out
    assert [term.text for term in sa.terms.mining.read_terms(tmp_path / "terms.json")] == ["zorvex"]
    assert f"adapt CORPUS --glossary {tmp_path / 'glossary.csv'}" in ran.err
    for refused, why in ((("terms",), "terms needs CORPUS"), ((*words, "--top", "3"), "leave out --top")):
        assert why in sparse_adapt(*refused).err


@pytest.mark.plugins("engines")
def test_explaining_takes_scores_apart(model, zorvex_collection, frame):
    found = sa.explain(model, "who owns the server", zorvex_collection, top=3)
    assert found == sa.explain(model, "who owns the server", frame, top=3)
    table = found.to_frame()
    assert np.allclose(table.groupby("rank")["contribution"].sum(), [match.score for match in found.matches])
    assert found.tokens[0].token in str(found) and '<div class="sparse-adapt' in found._repr_html_()
    assert repr(found).startswith("<QueryReport: 'who owns the server', ")
    with pytest.raises(InputError, match="query: is empty"):
        sa.explain(model, " ", frame)


def test_a_notebook_prints_a_result_as_plain_text(model, twelve_documents, monkeypatch):
    """Rich takes a notebook for a terminal, and shows what it captures a second time."""
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert "\x1b" not in str(sa.explain(model, "who owns the server", twelve_documents))


def test_diagnosing_a_term_and_a_model(model, tiny_model, zorvex_collection, frame):
    report = sa.diagnose(model, "zorvex", zorvex_collection)
    assert report.state == "pieces" and len(report.to_frame()) == report.corpus["holding"] == 3
    assert (
        sa.diagnose(tiny_model, "zorvex", frame, device="cpu").to_dict()["corpus"]
        == report.to_dict()["corpus"]
    )
    assert repr(report).startswith("<TokenReport: 'zorvex', ") and "Vocabulary" in str(report)
    with pytest.raises(InputError, match="document 'd99'"):
        sa.diagnose(model, "zorvex", frame, document_id="d99")
    health = sa.diagnose_model(model, frame, baseline=tiny_model)
    assert health.drift.mean_overlap == pytest.approx(1.0)
    assert "function words" in str(health)


def test_evaluating_in_memory_is_evaluating_a_folder(model, tiny_model, zorvex_collection, frame):
    found = sa.evaluate(model, zorvex_collection, baseline=tiny_model)
    queries = list(read_queries(zorvex_collection))
    judged = read_judgements(zorvex_collection)
    held = sa.evaluate(model, frame, queries=queries, judgements=judged)
    assert held.measures == found.measures == found.baseline
    assert found.p_value["ndcg@10"] == 1.0 and held.baseline is None
    assert len(found.queries) == 3 and set(found.to_frame()["kind"]) == {
        "all",
        "control",
        "explicit",
        "semantic",
    }
    assert json.loads(json.dumps(found.to_dict()))["count"] == {"queries": 3, "documents": 12}
    assert "ndcg@10" in repr(found) and "recall@100" in str(found)
    with pytest.raises(ConfigError, match="documents in memory have no judgements"):
        sa.evaluate(model, frame, queries=queries)
    with pytest.raises(InputError, match="judges query 'q9', which has no text"):
        sa.evaluate(model, frame, queries=queries, judgements={"q9": ["d01"]})


def test_searching_one_query_or_several(model, zorvex_collection, twelve_documents):
    one = sa.search(model, zorvex_collection, "who owns the server", top=4)
    assert len(one) == 4
    assert [hit.rank for hit in one] == [1, 2, 3, 4] and one[0].text
    several = sa.search(model, twelve_documents, {"a": "who owns the server", "b": "a saw"}, top=4)
    assert list(several.run["a"].items()) == [(hit.document_id, hit.score) for hit in one]
    assert several.queries == (Query("a", "who owns the server"), Query("b", "a saw"))
    assert len(several.to_frame()) == len(several) == len(several.run["a"]) + len(several.run["b"])
    assert one[0].document_id in str(one) and repr(one).startswith(
        "<SearchResults: 'who owns the server', 4 documents"
    )
    assert len(sa.search(model, twelve_documents, zorvex_collection / "queries.jsonl").queries) == 6
    with pytest.raises(InputError, match="query: is empty"):
        sa.search(model, twelve_documents, "")


def test_a_model_keeps_the_vectors_of_the_last_corpus(tiny_model, twelve_documents, monkeypatch):
    from sparse_adapt.api import models

    encoded, document_vectors = [], models.document_vectors

    def counted(encoder, documents, **how):
        encoded.append(len(documents))
        return document_vectors(encoder, documents, **how)

    monkeypatch.setattr(models, "document_vectors", counted)
    model = sa.load(tiny_model, device="cpu")
    before = sa.search(model, twelve_documents, "who owns the server")
    assert sa.search(model, list(twelve_documents), "who owns the server").hits == before.hits
    assert encoded == [12]
    sa.search(model, twelve_documents[:5], "who owns the server")
    model.extend(["zorvex"])
    sa.search(model, twelve_documents[:5], "who owns the server")
    assert encoded == [12, 5, 5]


@pytest.mark.plugins("engines")
def test_searching_vectors_that_were_encoded(model, zorvex_collection, tmp_path):
    from sparse_adapt.retrieve.vectors.shards import encode_corpus

    encode_corpus(model.encoder, read_documents(zorvex_collection), Place(tmp_path / "vectors", resume=True))
    found = sa.search(model, tmp_path / "vectors", "who owns the server")
    assert found.run == sa.search(model, zorvex_collection, "who owns the server").run
    made = sa.export("qdrant", None, tmp_path / "vectors", tmp_path / "export")
    assert made.manifest.documents == 12


@pytest.mark.plugins("engines")
def test_exporting_from_memory_is_exporting_a_folder(model, zorvex_collection, frame, tmp_path):
    first = sa.export(
        "anserini", model, zorvex_collection, tmp_path / "a", queries=["who owns zorvex"], scale=50
    )
    second = sa.export("anserini", model, frame, tmp_path / "b", queries={"1": "who owns zorvex"}, scale=50)
    assert first.manifest == second.manifest and first.manifest.queries == 1
    assert (tmp_path / "a" / "manifest.json").is_file() and len(first.to_frame()) == len(
        first.manifest.parts
    ) + 1
    assert str(tmp_path / "a") in first.loading and repr(first).startswith("<Result: anserini in ")
    with pytest.raises(OutputError, match="already there"):
        sa.export("anserini", model, frame, tmp_path / "b")
    with pytest.raises(ConfigError, match="unknown export format 'lucene'"):
        sa.export("lucene", model, frame, tmp_path / "c")
    with pytest.raises(ConfigError, match="name the model"):
        sa.export("anserini", None, frame, tmp_path / "c")
    with pytest.raises(ConfigError, match="holds documents"):
        sa.export("anserini", model, None, tmp_path / "c")


@pytest.mark.plugins("engines")
def test_an_export_stores_the_texts_of_its_documents(model, frame, zorvex_collection, tmp_path):
    from sparse_adapt.retrieve.vectors.shards import encode_corpus

    encode_corpus(model.encoder, read_documents(zorvex_collection), Place(tmp_path / "vectors", resume=True))
    sa.export("opensearch", model, frame, tmp_path / "a", texts=True)
    sa.export("opensearch", None, tmp_path / "vectors", tmp_path / "b", texts=frame)
    parts = [(tmp_path / name / "documents/part-00000.ndjson").read_text() for name in ("a", "b")]
    assert parts[0] == parts[1] and '"title": "Login"' in parts[0]
    with pytest.raises(ConfigError, match="vectors hold no texts; name the documents"):
        sa.export("opensearch", None, tmp_path / "vectors", tmp_path / "c", texts=True)
    with pytest.raises(ConfigError, match="qdrant stores no texts"):
        sa.export("qdrant", model, frame, tmp_path / "c", texts=True)


def test_without_pandas_a_frame_names_its_pip_line(model, frame, monkeypatch):
    found = sa.search(model, frame, "who owns the server")
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingPackageError, match="pandas is not installed: pip install pandas"):
        found.to_frame()


def test_progress_is_told_where_somebody_looks_on_or_asks_for_it(model, twelve_documents, capfd):
    sa.train("extend", model, terms=["zorvex"])
    assert capfd.readouterr().err == ""
    sa.train("extend", model, terms=["zorvex"], progress=True)
    assert "extend: 1 new tokens" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "module", sorted({place for place in sa._PLACES.values() if place.startswith("api.")})
)
def test_examples_in_docstrings_run(module):
    found = doctest.testmod(importlib.import_module(f"sparse_adapt.{module}"), optionflags=doctest.ELLIPSIS)
    assert found.attempted and not found.failed


def test_queries_are_made_up_from_documents_in_memory(tmp_path, twelve_documents):
    made = sa.queries(twelve_documents, tmp_path / "collection", count=6, held=2, progress=False)
    written = (made.path / "queries.jsonl").read_text().splitlines()
    assert 2 <= len(written) <= 8 and (made.path / "qrels").is_dir()
