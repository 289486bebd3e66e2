"""Lucene, for real: it ranks as exact search over the impacts does, up to rounding as over the weights."""

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from odd import export, vouch_anew
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Query, read_documents, read_queries
from sparse_adapt.errors import ConfigError, InputError, MissingExtraError, OutputError
from sparse_adapt.files.folders import output_folder
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines import lucene
from sparse_adapt.plugins.engines.java import anserini_jar, find_java
from sparse_adapt.plugins.engines.layout import ExportSource
from sparse_adapt.plugins.engines.lucene import LuceneHit, LuceneIndex, build_index, look_up, verify_index
from sparse_adapt.plugins.engines.quantise import Quantisation
from sparse_adapt.plugins.engines.writing import write_export
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.retrieve.vectors.manifest import token_names
from sparse_adapt.retrieve.vectors.shards import encode_corpus, encode_queries, encode_vectors

GATROCRAPTIC = Path(__file__).parents[3] / "corpora" / "gatrocraptic"
ODD = [
    "##ing",
    "[unused12]",
    "node.js",
    "Node.js",
    "été",
    "日本",
    "supply chain",
    "a\tb",
    "\\",
    '"',
    "%",
    "Ġthe",
]
ODD += ["▁of", "the", "\u00a0", "x" * 255, "\uff26\uff35", "e\u0301te\u0301", "-", "'s"]

SILENT = """
import sys
from pathlib import Path
from sparse_adapt.plugins.engines.lucene import LuceneIndex, build_index
from sparse_adapt.files.place import Place

build_index(Path(sys.argv[1]), Place(Path(sys.argv[2])))
with LuceneIndex(Path(sys.argv[2])) as index:
    assert index.search({"the": 1}, 3)
"""

FULL = """
import resource, signal, sys
from pathlib import Path
from sparse_adapt.errors import OutputError
from sparse_adapt.plugins.engines.lucene import build_index
from sparse_adapt.files.place import Place

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    build_index(Path(sys.argv[1]), Place(Path(sys.argv[2])))
except OutputError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> SparseEncoder:
    return SparseEncoder.load(tiny_model)


@pytest.fixture(scope="module")
def shards(model, twelve_documents, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("twelve") / "shards"
    encode_corpus(model, twelve_documents, Place(folder, resume=True), documents_a_shard=5)
    return folder


@pytest.fixture(scope="module")
def index(shards, tmp_path_factory):
    folder = tmp_path_factory.mktemp("twelve") / "index"
    build_index(shards, Place(folder))
    with LuceneIndex(folder) as index:
        yield index


def exported(vectors: csr_matrix, folder: Path, tokens: Sequence[str], ids: Sequence[str] = ()) -> Path:
    """A collection of documents d0, d1, ... with the given weights."""
    block = EncodedBatch(list(ids) or [f"d{row}" for row in range(vectors.shape[0])], vectors)
    export("anserini", folder, list(tokens), block)
    return folder


@contextmanager
def indexed(
    vectors: csr_matrix, folder: Path, tokens: Sequence[str], ids: Sequence[str] = ()
) -> Iterator[LuceneIndex]:
    """An index of such a collection."""
    build_index(exported(vectors, folder / "out", tokens, ids), Place(folder / "index"))
    with LuceneIndex(folder / "index") as index:
        yield index


def assert_same_ranking(found: list[LuceneHit], ids: list[str], scores: np.ndarray) -> None:
    """Lucene's list is the exact one: scores equal, and within a score the ids that exact search gives."""
    exact = {ids[row]: int(scores[row]) for row in np.flatnonzero(scores)}
    expected = sorted(exact.values(), reverse=True)[: len(found)]
    assert [hit.impact for hit in found] == expected
    assert all(exact[hit.document_id] == hit.impact for hit in found)
    assert len({hit.document_id for hit in found}) == len(found) == min(len(exact), len(found))


def rounding_bound(query: csr_matrix, documents: csr_matrix, scale: float) -> np.ndarray:
    """The most by which rounding both sides can move each score: half a step on every weight (documents,)."""
    half = 0.5 / scale
    query_on, documents_on = (query > 0).astype(float), (documents > 0).astype(float)
    shared = np.asarray((documents_on @ query_on.T).todense()).ravel()
    moved = np.asarray((documents @ query_on.T).todense() + (documents_on @ query.T).todense()).ravel()
    return half * moved + half * half * shared + 1e-5


def check_parity(index: LuceneIndex, documents: EncodedBatch, queries: csr_matrix) -> None:
    quantisation = index.card.quantisation
    impacts = quantisation.impacts(documents).vectors.astype(np.int64)
    for row in range(queries.shape[0]):
        query = queries[row]
        query_impacts = quantisation.impacts(EncodedBatch(["q"], query)).vectors.astype(np.int64)
        scores = np.asarray((impacts @ query_impacts.T).todense()).ravel()
        found = index.search(query, len(documents.ids))
        assert len(found) == np.count_nonzero(scores)
        assert_same_ranking(found, documents.ids, scores)
        assert_same_ranking(index.search(query, 3), documents.ids, scores)
        # over the weights themselves: two documents change places only if rounding can explain it
        exact = np.asarray((documents.vectors @ query.T).todense()).ravel()
        bound = rounding_bound(query, documents.vectors, quantisation.scale)
        order = [documents.ids.index(hit.document_id) for hit in found]
        for above, below in pairwise(order):
            assert exact[above] - exact[below] >= -(bound[above] + bound[below])
        for place, hit in zip(order, found, strict=True):
            assert abs(hit.score - exact[place]) <= bound[place]


def test_an_index_opens_by_a_path_from_here_wherever_java_was_started(index, monkeypatch):
    monkeypatch.chdir(index.folder.parent)
    with LuceneIndex(Path(index.folder.name)) as opened:
        assert opened.card.documents == index.card.documents


def test_twelve_documents_rank_as_in_exact_search(model, index, twelve_documents):
    texts = [document.full_text for document in twelve_documents]
    documents = EncodedBatch(
        [document.document_id for document in twelve_documents], encode(model, texts, "document")
    )
    check_parity(index, documents, encode(model, [*texts, "backup", "zorvex", "who signs"], "query"))


def test_gatrocraptic_ranks_as_in_exact_search(tmp_path):
    model = SparseEncoder.load("splade-tiny")
    encode_corpus(
        model, read_documents(GATROCRAPTIC), Place(tmp_path / "vectors", resume=True), documents_a_shard=10
    )
    build_index(tmp_path / "vectors", Place(tmp_path / "index"), threads=2)
    texts = [document.full_text for document in read_documents(GATROCRAPTIC)]
    documents = EncodedBatch(
        [document.document_id for document in read_documents(GATROCRAPTIC)], encode(model, texts, "document")
    )
    queries = [query.text for query in read_queries(GATROCRAPTIC)]
    assert (len(documents.ids), len(queries)) == (26, 71)
    with LuceneIndex(tmp_path / "index") as index:
        check_parity(index, documents, encode(model, queries, "query"))


def test_a_token_in_every_document_still_counts(tmp_path):
    weights = csr_matrix(np.array([[1.0, 0, 0.5], [2.0, 0.25, 0], [3.0, 0, 0]]))
    with indexed(weights, tmp_path, ["the", "a", "b"]) as index:
        assert index.search({"the": 2}, 9) == [("d2", 0.06, 600), ("d1", 0.04, 400), ("d0", 0.02, 200)]
        assert [hit.document_id for hit in index.search({"the": 1, "a": 5}, 2)] == ["d1", "d2"]
        assert index.search({"unheard": 3}, 9) == index.search({}, 9) == index.search({"the": 1}, 0) == []


def test_ties_come_in_the_order_of_ids_with_whole_scores(tmp_path):
    with indexed(csr_matrix(np.full((12, 1), 0.5)), tmp_path, ["x"]) as index:
        found = index.search({"x": 3}, 12)
    assert [hit.document_id for hit in found] == sorted(f"d{row}" for row in range(12))
    assert {hit.impact for hit in found} == {150}


def test_odd_tokens_are_found_as_they_are_and_only_as_they_are(tmp_path):
    with indexed(csr_matrix(np.eye(len(ODD))), tmp_path, ODD) as index:
        found = {token: [hit.document_id for hit in index.search({token: 1}, 9)] for token in ODD}
        assert found == {token: [f"d{row}"] for row, token in enumerate(ODD)}
        assert index.search({"supply": 1, "chain": 1, "node": 1, "ete": 1, "NODE.JS": 1}, 9) == []


def test_a_query_may_have_more_tokens_than_lucene_expects(tmp_path):
    weights = csr_matrix(np.vstack([np.full(3000, 0.01), np.full(3000, 0.02)]))
    with indexed(weights, tmp_path, [f"t{number}" for number in range(3000)]) as index:
        assert [hit.impact for hit in index.search(weights[1], 2)] == [3000 * 4, 3000 * 2]


def test_empty_documents_are_left_out_and_counted(tmp_path):
    with indexed(csr_matrix(np.array([[0.0, 1.0], [0.0, 0.0], [0.001, 0.0]])), tmp_path, ["a", "b"]) as index:
        assert (index.card.documents, index.card.empty_documents) == (3, 2)
        assert [hit.document_id for hit in index.search({"a": 1, "b": 1}, 9)] == ["d0"]


def test_an_index_of_nothing_finds_nothing(tmp_path):
    with indexed(csr_matrix((2, 1)), tmp_path, ["a"]) as index:
        assert index.search({"a": 1}, 9) == []


def test_ids_of_any_kind_come_back(tmp_path):
    ids = ["a b", "ünï", 'qu"ote\\', "tab\there", "日本", "0", "x" * 500]
    with indexed(csr_matrix(np.arange(1, 8, dtype=float).reshape(-1, 1)), tmp_path, ["a"], ids) as index:
        assert [hit.document_id for hit in index.search({"a": 1}, 9)] == ids[::-1]


def test_shards_and_their_export_give_the_same_index(model, shards, index, tmp_path, twelve_documents):
    source = ExportSource(encode_vectors(model, twelve_documents, documents_a_block=5))
    write_export("anserini", source, Place(tmp_path / "out"))
    heard: list[int] = []
    card = build_index(tmp_path / "out", Place(tmp_path / "index"), progress=heard.append)
    assert card == index.card
    assert sum(heard) == 12
    with LuceneIndex(tmp_path / "index") as other:
        query = encode(model, ["a certificate of the server"], "query")
        assert other.search(query, 12) == index.search(query, 12) != []


def test_a_run_holds_every_query(model, index, twelve_documents):
    queries = encode(model, ["backup", "saw and plane"], "query")
    run = index.search_all(EncodedBatch(["q1", "q2"], queries), 5)
    assert list(run) == ["q1", "q2"]
    assert list(run["q2"].items()) == [(hit.document_id, hit.score) for hit in index.search(queries[1], 5)]


def test_a_query_in_words_is_searched_with_its_model(model, index):
    found = look_up("zorvex report", model, index, 3)
    assert found == index.search(encode(model, ["zorvex report"], "query"), 3)
    assert [hit.score for hit in found] == [hit.impact / 10_000 for hit in found]


def test_queries_of_another_model_are_refused(model, tiny_model, index):
    other = SparseEncoder.load(tiny_model)
    with torch.no_grad():
        other.output_bias[7] += 0.5
    with pytest.raises(InputError, match="made by other weights of the same vocabulary"):
        look_up("zorvex", other, index)
    other.masked_lm.resize_token_embeddings(201, mean_resizing=False)
    with pytest.raises(InputError, match=r"another vocabulary, that of .* \(200 tokens there, 201 here\)"):
        look_up("zorvex", other, index)
    with pytest.raises(InputError, match="has 200 tokens, the query vector 201"):
        index.search(csr_matrix((1, 201)), 3)


def test_another_scale_needs_another_export(model, shards, tmp_path):
    card = build_index(shards, Place(tmp_path / "coarse"), quantisation=Quantisation(scale=10, largest=255))
    assert (card.quantisation.scale, card.quantisation.largest) == (10, 255)
    exported(csr_matrix(np.eye(200)), tmp_path / "out", token_names(model))
    with pytest.raises(ConfigError, match="quantised already, x 100; export it again"):
        build_index(tmp_path / "out", Place(tmp_path / "index"), quantisation=Quantisation(scale=10))
    assert not (tmp_path / "index").exists()


def test_anserini_itself_reads_documents_and_queries(model, index, twelve_documents, tmp_path):
    """Its own command, on the exported files: the run it writes is ours."""
    queries = encode_queries(
        model, [Query("q1", "a backup of the database"), Query("q 2", "zorvex is spending")]
    )
    write_export(
        "anserini", ExportSource(encode_vectors(model, twelve_documents), queries), Place(tmp_path / "out")
    )
    command = [find_java().home / "bin/java", "-cp", anserini_jar(), "io.anserini.search.SearchCollection"]
    command += ["-index", index.folder, "-topics", tmp_path / "out/queries.tsv"]
    command += ["-output", tmp_path / "run.txt"]
    command += ["-topicReader", "TsvString", "-impact", "-pretokenized", "-hits", "12"]
    subprocess.run(command, check=True, capture_output=True)
    ranked = [line.rsplit(" ", 5) for line in (tmp_path / "run.txt").read_text().splitlines()]
    for row, query_id in enumerate(queries.ids):
        theirs = [(fields[2], round(float(fields[4]))) for fields in ranked if fields[0] == query_id]
        ours = [(hit.document_id, hit.impact) for hit in index.search(queries.vectors[row], 12)]
        assert theirs == ours != []


# -- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.nightly
def test_building_and_searching_print_nothing(shards, tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SILENT, str(shards), str(tmp_path / "index")], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_place_without_an_index_says_how_to_make_one(tmp_path):
    place = tmp_path / "place"
    place.mkdir()
    with pytest.raises(InputError, match=r"no index\.json here; make an index with: sparse-adapt index"):
        LuceneIndex(place)
    with pytest.raises(InputError, match="make one with: sparse-adapt encode"):
        build_index(place, Place(tmp_path / "index"))
    (place / "manifest.json").write_text('{"format": "opensearch"}')
    with pytest.raises(InputError, match=r"not a file that this version reads \(model: Field required"):
        build_index(place, Place(tmp_path / "index"))
    assert [path.name for path in tmp_path.iterdir()] == ["place"]


def test_a_damaged_index_is_refused(index, tmp_path):
    shutil.copytree(index.folder, tmp_path / "cut")
    next((tmp_path / "cut").glob("segments_*")).unlink()
    with pytest.raises(InputError, match=r"Lucene can't open this index \(no segments.* build it again"):
        LuceneIndex(tmp_path / "cut")
    shutil.copytree(index.folder, tmp_path / "other")
    card = json.loads((tmp_path / "other/index.json").read_text()) | {"documents": 13}
    (tmp_path / "other/index.json").write_text(json.dumps(card))
    with pytest.raises(InputError, match="holds 12 documents, not 13"):
        LuceneIndex(tmp_path / "other")


def test_every_byte_of_an_index_is_vouched_for(index, tmp_path):
    files = verify_index(index.folder)
    shutil.copytree(index.folder, tmp_path / "flipped")
    lucenes_own = [
        path for path in (tmp_path / "flipped").iterdir() if path.name.startswith(("_", "segments"))
    ]
    assert len(lucenes_own) > 5 and files >= len(lucenes_own) + 2  # the card and the tokens
    for path in lucenes_own:
        content = path.read_bytes()
        path.write_bytes(bytes([*content[:-1], content[-1] ^ 1]))
        with pytest.raises(InputError, match=f"{re.escape(path.name)}: isn't what was written; index again"):
            verify_index(tmp_path / "flipped")
        path.write_bytes(content)
    lucenes_own[0].unlink()
    with pytest.raises(InputError, match="is gone; index again"):
        verify_index(tmp_path / "flipped")
    (tmp_path / "flipped" / "sparse-adapt.json").unlink()
    with pytest.raises(InputError, match="bears no checksums of its files; index again"):
        verify_index(tmp_path / "flipped")


KILLED = """
import os, signal, sys
from pathlib import Path
from sparse_adapt.plugins.engines import lucene
from sparse_adapt.files.place import Place

lucene._count = lambda index: os.kill(os.getpid(), signal.SIGKILL)
lucene.build_index(Path(sys.argv[1]), Place(Path(sys.argv[2])))
"""


@pytest.mark.nightly
def test_a_killed_build_is_begun_anew(shards, index, tmp_path):
    command = [sys.executable, "-c", KILLED, str(shards), str(tmp_path / "index")]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert any((tmp_path / "index.partial").glob("segments*"))
    assert build_index(shards, Place(tmp_path / "index")) == index.card
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
    names = {path.name for path in (tmp_path / "index").iterdir()}
    assert {"index.json", "tokens.json"} <= names


def test_what_another_command_left_unfinished_is_not_thrown_away(shards, tmp_path):
    with pytest.raises(KeyboardInterrupt), output_folder(Place(tmp_path / "index")) as work:
        (work / "days of work").write_text("")
        raise KeyboardInterrupt
    with pytest.raises(OutputError, match="an unfinished run is in"):
        build_index(shards, Place(tmp_path / "index"))
    assert (tmp_path / "index.partial" / "days of work").exists()


def test_an_index_does_not_replace_what_it_is_made_from(shards):
    with pytest.raises(OutputError):
        build_index(shards, Place(shards, overwrite=True))
    assert (shards / "manifest.json").is_file()


def test_documents_that_anserini_loses_are_missed(tmp_path):
    """A part whose manifest vouches for JSON that isn't: Anserini stops reading it, and carries on."""
    folder = exported(csr_matrix(np.ones((4, 1))), tmp_path / "out", ["a"])
    part = folder / "documents/part-00000.jsonl"
    part.write_text(part.read_text().replace('"d2", "contents"', '"d2" "contents"'))
    vouch_anew(folder)
    with pytest.raises(
        OutputError, match=r"index: Lucene holds \d of 4 documents \(.*; nothing was kept\)$"
    ) as caught:
        build_index(folder, Place(tmp_path / "index"))
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.nightly
def test_a_disk_that_fills_up_leaves_nothing(model, tmp_path):
    """Anserini only logs an index that can't be written to its end, and counts every document as indexed."""
    rows = np.random.default_rng(20).random((3000, 200))
    exported(csr_matrix(rows), tmp_path / "out", token_names(model))
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "out"), str(tmp_path / "index")],
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""
    assert re.fullmatch(
        r"\S+/index: Lucene holds 0 of 3,000 documents \(\S*Exception: File too large; nothing was kept\)\n",
        done.stdout,
    )
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_without_the_extra_nothing_is_written(shards, tmp_path, monkeypatch):
    def missing(name: str) -> None:
        raise MissingExtraError("pyserini", "lucene")

    monkeypatch.setattr(lucene, "java_class", missing)
    with pytest.raises(MissingExtraError, match="pip install"):
        build_index(shards, Place(tmp_path / "index"))
    assert list(tmp_path.iterdir()) == []
