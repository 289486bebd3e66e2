"""The commands for engines: export and check-export, as a user runs them."""

import json

import pytest

from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.vectors.shards import encode_corpus


@pytest.fixture
def vectors(tiny_model, twelve_documents, tmp_path):
    encode_corpus(
        SparseEncoder.load(tiny_model),
        twelve_documents,
        Place(tmp_path / "vectors", resume=True),
        model_name=str(tiny_model),
    )
    return tmp_path / "vectors"


def test_vectors_are_exported_and_checked(sparse_adapt, vectors, tiny_model, zorvex_collection, tmp_path):
    ran = sparse_adapt("export", "ciff", "--vectors", vectors, "-o", tmp_path / "out", "--largest", 255)
    assert (ran.status, ran.messages[-4]) == (0, "next:")
    against = ("--model", tiny_model, "--vectors", vectors, "--queries", zorvex_collection)
    ran = sparse_adapt("check-export", tmp_path / "out", *against, "--qrels", zorvex_collection, "--json")
    content = json.loads(ran.out)
    assert (ran.status, content["kinds"]["fault"], content["queries"], content["top"]) == (0, 0, 6, 10)
    assert content["measures"]["exact"].keys() == {"ndcg@10"}
    assert "rankings are those of exact search, but for ties and rounding" in ran.messages[-1]


def test_documents_beside_the_queries_are_those_of_an_export(
    sparse_adapt, vectors, tiny_model, zorvex_collection, tmp_path
):
    """As the pages print the command."""
    sparse_adapt("export", "ciff", "--vectors", vectors, "-o", tmp_path / "out")
    for queries in (zorvex_collection, zorvex_collection / "queries.jsonl"):
        ran = sparse_adapt("check-export", tmp_path / "out", "--model", tiny_model, "--queries", queries)
        assert ran.status == 0, ran.err
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "who owns zorvex"}\n')
    alone = ("--model", tiny_model, "--queries", tmp_path / "queries.jsonl")
    ran = sparse_adapt("check-export", tmp_path / "out", *alone)
    assert (ran.status, "name the documents once: with --corpus CORPUS" in ran.messages[-1]) == (2, True)


@pytest.mark.parametrize("format", ["opensearch", "opensearch-seismic", "elasticsearch", "vespa"])
def test_a_server_that_is_not_there_is_one_line(
    format, sparse_adapt, vectors, tiny_model, zorvex_collection, tmp_path, monkeypatch
):
    monkeypatch.setattr("sparse_adapt.plugins.engines.vespa.PAUSES", ())
    sparse_adapt("export", format, "--vectors", vectors, "-o", tmp_path / "out")
    against = ("--model", tiny_model, "--vectors", vectors, "--queries", zorvex_collection)
    if format == "vespa":  # which doesn't run in this process
        with monkeypatch.context() as patch:
            patch.setattr("sparse_adapt.api.models.load_sparse", None)  # refused before anything is opened
            ran = sparse_adapt("check-export", tmp_path / "out", *against)
        assert (ran.status, "--url" in ran.messages[-1]) == (2, True)
    ran = sparse_adapt("check-export", tmp_path / "out", *against, "--url", "http://127.0.0.1:9")
    assert (ran.status, ran.out) == (2, "")
    assert ran.messages[-1].startswith("error: http://127.0.0.1:9")


def test_an_export_carries_title_and_text(sparse_adapt, vectors, tiny_model, zorvex_collection, tmp_path):
    given = ("export", "opensearch", "--texts", "--corpus", zorvex_collection)
    ran = sparse_adapt(*given, "--vectors", vectors, "-o", tmp_path / "read")
    assert (ran.status, sum("_search" in line for line in ran.messages)) == (0, 1)
    assert sparse_adapt(*given, "--model", tiny_model, "-o", tmp_path / "encoded").status == 0
    parts = [tmp_path / name / "documents/part-00000.ndjson" for name in ("read", "encoded")]
    assert parts[0].read_bytes() == parts[1].read_bytes()
    assert json.loads(parts[0].read_text().split("\n")[1])["title"] == "Login"
    ran = sparse_adapt("export", "opensearch", "--texts", "--vectors", vectors, "-o", tmp_path / "no")
    assert (ran.status, ran.messages) == (
        2,
        ["error: --texts: name the corpus that holds the texts with --corpus"],
    )


def test_a_fault_is_exit_status_1(
    sparse_adapt, vectors, tiny_model, zorvex_collection, tmp_path, monkeypatch
):
    sparse_adapt("export", "ciff", "--vectors", vectors, "-o", tmp_path / "out")
    from sparse_adapt.plugins.engines.ciff import PisaIndex

    def halved(self, queries, k, search=PisaIndex.search_all):
        return {
            name: {each: score / 2 for each, score in found.items()}
            for name, found in search(self, queries, k).items()
        }

    monkeypatch.setattr(PisaIndex, "search_all", halved)
    against = ("--model", tiny_model, "--vectors", vectors, "--queries", zorvex_collection)
    ran = sparse_adapt("check-export", tmp_path / "out", *against)
    assert ran.status == 1
    assert ran.messages[-1].startswith(
        f"error: {tmp_path / 'out'}: 6 of 6 rankings differ by more than ties and rounding"
    )
    assert any(line.startswith("fault: q1: d") for line in ran.messages)


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        (["export", "cif", "-o", "x"], "unknown export format 'cif'; did you mean 'ciff'?"),
        (
            ["export", "ciff", "-o", "x"],
            "name the documents once: with --corpus CORPUS, or with --vectors DIR",
        ),
        (
            ["export", "ciff", "-o", "x", "--corpus", "gatrocraptic"],
            "--model: name the model that made the vectors",
        ),
        (
            ["export", "onnx", "-o", "x", "--model", "splade-tiny", "--vectors", "."],
            "onnx holds the encoder alone",
        ),
        (["export", "seismic", "-o", "x", "--vectors", "."], "no manifest.json here"),
        (
            ["export", "seismic", "-o", "x", "--vectors", ".", "--scale", "9"],
            "seismic keeps weights as they are",
        ),
    ],
)
def test_a_mistake_is_one_line(sparse_adapt, command, problem, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = sparse_adapt(*command)
    assert (ran.status, ran.out, len(ran.messages)) == (2, "", 1), ran.messages
    assert problem in ran.messages[0]
    assert list(tmp_path.iterdir()) == []


def test_an_index_is_verified_before_it_is_searched(sparse_adapt, vectors, tiny_model, tmp_path):
    assert sparse_adapt("index", "--vectors", vectors, "-o", tmp_path / "index").status == 0
    look = ("search", "zorvex", "--model", tiny_model, "--verify")
    ran = sparse_adapt(*look, "--index", tmp_path / "index")
    assert ran.status == 0 and "files are as they were written" in ran.messages[0]
    path = next((tmp_path / "index").glob("*.dvd"))
    content = path.read_bytes()
    path.write_bytes(bytes([*content[:-1], content[-1] ^ 1]))
    ran = sparse_adapt(*look, "--index", tmp_path / "index")
    assert (ran.status, ran.errors) == (2, [f"error: {path}: isn't what was written; index again"])
    ran = sparse_adapt(*look, "--vectors", vectors)
    assert ran.errors == ["error: --verify checks an index; name one with --index INDEX"]
