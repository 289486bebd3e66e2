"""CIFF in PISA, Seismic, sentence-transformers and ONNX Runtime: written, loaded, searched, for real."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ciff_toolkit.read import CiffReader
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, random
from scipy.sparse import vstack as stack

from sparse_adapt.collection.readers import Query
from sparse_adapt.engines import ENGINES, open_engine
from sparse_adapt.engines.parity import check_engine
from sparse_adapt.errors import ConfigError, InputError, MissingExtraError, ModelError, OutputError
from sparse_adapt.export import FORMATS, ciff, loading, onnx, seismic, sentence_transformers, writer
from sparse_adapt.export.parts import read_manifest, unescape_token
from sparse_adapt.export.quantise import Quantisation
from sparse_adapt.files.folders import output_folder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors
from sparse_adapt.retrieve.vectors.manifest import ModelStamp, checksum, stamp
from sparse_adapt.retrieve.vectors.shards import encode_queries, encode_vectors
from tests.odd import some_factors

LONG = "x" * 10_000
ODD = [
    "two words",
    'quo"te',
    "it's",
    "back\\slash",
    "tab\there",
    "line\nfeed",
    "\x00nul",
    "日本",
    "node.js",
    "\\u000020",
    "Node.js",
    "[SEP]",
]
WRITTEN = {"ciff": ciff.write, "seismic": seismic.write}


def stamped(tokens: list[str]) -> ModelStamp:
    sums = {"weights_sha256": "0", "vocabulary_sha256": checksum(json.dumps(tokens).encode())}
    return ModelStamp(name="by hand", vocabulary_size=len(tokens), max_tokens=9, **sums)


def vectors_of(tokens: list[str], *blocks: EncodedBatch) -> Vectors:
    return Vectors(stamped(tokens), tokens, list(blocks))


def odd_block(columns: int = len(ODD)) -> EncodedBatch:
    """Document d0 has token 0 only, d1 token 1 only, and so on; the last has none."""
    rows = stack([csr_matrix(np.eye(columns, dtype=np.float32)), csr_matrix((1, columns))], format="csr")
    return EncodedBatch([f"d{row}" for row in range(columns + 1)], rows)


# -- CIFF ----------------------------------------------------------------------------------------


def read_ciff(path: Path) -> tuple[list[str], np.ndarray, list[str]]:
    """Terms, impacts (documents, terms) and ids, as another reader finds them."""
    with CiffReader(path) as reader:
        lists = list(reader.read_postings_lists())
        documents = list(reader.read_documents())
        impacts = np.zeros((len(documents), len(lists)), np.int64)
        for column, postings in enumerate(lists):
            rows = np.cumsum([posting.docid for posting in postings.postings])
            impacts[rows, column] = [posting.tf for posting in postings.postings]
            assert (postings.df, postings.cf) == (len(rows), impacts[:, column].sum())
        assert [document.doclength for document in documents] == impacts.sum(axis=1).tolist()
        assert reader.header.num_docs == reader.header.total_docs == len(documents)
        assert reader.header.total_terms_in_collection == impacts.sum()
    return [postings.term for postings in lists], impacts, [each.collection_docid for each in documents]


def test_ciff_by_hand(tmp_path):
    rows = np.array([[0, 1.5, 0], [0.02, 0, 0], [0, 9.0, 0.004]], dtype=np.float32)
    blocks = [EncodedBatch(["a", "b"], csr_matrix(rows[:2])), EncodedBatch(["c"], csr_matrix(rows[2:]))]
    manifest = ciff.write(
        vectors_of(["zeta", "alpha", "mid"], *blocks),
        tmp_path / "out",
        quantisation=Quantisation(largest=255),
    )
    # 1.5 -> 150; 0.02 -> 2; 9.0 -> 900, clipped to 255; 0.004 -> 0.4, dropped, so "mid" has no list
    assert read_ciff(tmp_path / "out/index.ciff")[0] == ["alpha", "zeta"]
    assert read_ciff(tmp_path / "out/index.ciff")[1].tolist() == [[150, 0], [0, 2], [255, 0]]
    assert read_ciff(tmp_path / "out/index.ciff")[2] == ["a", "b", "c"]
    assert (manifest.entries, manifest.dropped, manifest.clipped, manifest.documents) == (3, 1, 1, 3)
    assert read_manifest(tmp_path / "out", "ciff") == manifest
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "index.ciff",
        "manifest.json",
        "tokens.json",
    ]


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.sampled_from([1, 3, 40]))
def test_ciff_reads_back_and_is_what_protobuf_writes(tmp_path_factory, seed, documents, a_block):
    matrix = random(documents, 14, density=0.3, random_state=seed, format="csr", dtype=np.float32)
    matrix.data = (matrix.data**6 * 650).astype(np.float32)  # impacts of one, two and three bytes
    tokens = [*ODD, "b", "a"]
    blocks = [
        EncodedBatch(
            [f"d{row}" for row in range(first, min(first + a_block, documents))],
            matrix[first : first + a_block],
        )
        for first in range(0, documents, a_block)
    ]
    folder = tmp_path_factory.mktemp("ciff") / "out"
    ciff.write(vectors_of(tokens, *blocks), folder)
    terms, impacts, ids = read_ciff(folder / "index.ciff")
    expected = np.minimum(np.rint(matrix.toarray().astype(np.float64) * 100), 65_535)
    kept = [column for column in range(14) if expected[:, column].any()]
    assert sorted(unescape_token(term) for term in terms) == sorted(tokens[column] for column in kept)
    assert terms == sorted(terms, key=str.encode)
    assert ids == [f"d{row}" for row in range(documents)]
    for place, term in enumerate(terms):
        assert impacts[:, place].tolist() == expected[:, tokens.index(unescape_token(term))].tolist()
    stored = (folder / "index.ciff").read_bytes()
    with CiffReader(folder / "index.ciff") as reader:
        assert all(postings.SerializeToString() in stored for postings in reader.read_postings_lists())


@pytest.mark.parametrize("document_id", ["a b", "a\nb", ""])
def test_ciff_refuses_an_id_that_its_readers_cut(document_id, tmp_path):
    with pytest.raises(InputError, match="readers of CIFF keep ids line by line"):
        ciff.write(vectors_of(["a"], EncodedBatch([document_id], csr_matrix([[1.0]]))), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


# -- all that hold vectors -----------------------------------------------------------------------


@pytest.mark.parametrize("format", WRITTEN)
def test_odd_tokens_are_found_as_they_are(format, tmp_path):
    tokens = ODD if format == "ciff" else [token for token in ODD if "\x00" not in token]
    documents = odd_block(len(tokens))
    WRITTEN[format](vectors_of(tokens, documents), tmp_path / "out")
    queries = EncodedBatch(
        [f"q{row}" for row in range(len(documents.ids))], documents.vectors
    )  # the last is empty
    with open_engine(format, tmp_path / "out") as engine:
        run = engine.search_all(queries, 5)
    assert run == {f"q{row}": {f"d{row}": 1.0} for row in range(len(tokens))} | {f"q{len(tokens)}": {}}


@pytest.mark.parametrize("format", WRITTEN)
def test_random_vectors_rank_as_in_exact_search(format, tmp_path, capfd):
    matrix = random(120, 60, density=0.2, random_state=1, format="csr", dtype=np.float32)
    matrix.data *= 3
    documents = EncodedBatch([f"d{row}" for row in range(120)], matrix)
    WRITTEN[format](vectors_of([f"t{column}" for column in range(60)], documents), tmp_path / "out")
    queries = random(25, 60, density=0.1, random_state=2, format="csr", dtype=np.float32)
    with open_engine(format, tmp_path / "out") as engine:
        parity = check_engine(engine, documents, EncodedBatch([f"q{row}" for row in range(25)], queries))
    assert (parity.faults, parity.kinds["tie"]) == ((), 0)
    assert parity.kinds["same"] > 0
    assert capfd.readouterr() == ("", "")  # engines that print are kept quiet


@pytest.mark.parametrize("format", WRITTEN)
def test_an_export_without_weights_is_refused_by_its_engine(format, tmp_path):
    WRITTEN[format](vectors_of(["a"], EncodedBatch(["d"], csr_matrix((1, 1)))), tmp_path / "out")
    with (
        pytest.raises(InputError, match=r"of which .* makes no index"),
        open_engine(format, tmp_path / "out"),
    ):
        pass


def test_seismic_needs_its_large_index_above_65536_tokens(tmp_path):
    tokens = [f"t{column}" for column in range(70_000)]
    rows = csr_matrix(([1.0, 2.0, 70_000.0], ([0, 1, 1], [3, 69_999, 65_539])), shape=(2, 70_000))
    manifest = seismic.write(vectors_of(tokens, EncodedBatch(["low", "high"], rows)), tmp_path / "out")
    assert (manifest.facts["index"], manifest.clipped) == ("SeismicIndexLV", 1)  # 70,000 is beyond float16
    assert "SeismicIndexLV.build(" in loading("seismic")(tmp_path / "out", manifest)
    queries = csr_matrix(([1.0, 1.0], ([0, 1], [3, 65_539])), shape=(2, 70_000))
    with open_engine("seismic", tmp_path / "out") as engine:
        run = engine.search_all(EncodedBatch(["q0", "q1"], queries), 5)
    assert run == {"q0": {"low": 1.0}, "q1": {"high": 65_504.0}}  # 65,539 is not taken for 3


@pytest.mark.parametrize("token", [LONG, "x" * 101, "a\0b", ""])
def test_seismic_refuses_a_token_that_it_would_cut(token, tmp_path):
    with pytest.raises(InputError, match=f"this token has {len(token):,} characters; Seismic takes 1 to 100"):
        seismic.write(vectors_of(["a", token], odd_block(2)), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_ciff_holds_a_token_of_10000_characters(tmp_path):
    ciff.write(vectors_of(["a", LONG], odd_block(2)), tmp_path / "out")
    with open_engine("ciff", tmp_path / "out") as engine:
        run = engine.search_all(EncodedBatch(["q"], csr_matrix([[0.0, 1.0]])), 5)
    assert run == {"q": {"d1": 1.0}}


# -- bad input ------------------------------------------------------------------------------------

FULL = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from scipy.sparse import csr_matrix
from sparse_adapt.errors import OutputError
from sparse_adapt.export import writer
from sparse_adapt.retrieve.vectors.manifest import ModelStamp
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.vectors.folder import (Block, Vectors)

encoder = SparseEncoder.load(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
stamp = ModelStamp(name="x", weights_sha256="0", vocabulary_sha256="1", vocabulary_size=200, max_tokens=9)
block = Block([f"d{row}" for row in range(200)], csr_matrix(np.random.default_rng(0).random((200, 200))))
for format in sys.argv[3:]:
    holding = {"encoder": encoder} if format in ("sentence-transformers", "onnx") else {}
    try:
        vectors = Vectors(stamp, [f"t{i}" for i in range(200)], [block])
        writer(format)(vectors, Path(sys.argv[1]) / format, **holding)
    except OutputError as error:
        print(error)
"""
FILLED = [row.format for row in ENGINES]


@pytest.mark.slow
def test_a_full_disk_leaves_nothing(tiny_model, tmp_path):
    command = [sys.executable, "-c", FULL, str(tmp_path), str(tiny_model), *FILLED]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    full = "the disk is full; free some space and run it again"
    assert done.stdout.splitlines() == [f"{tmp_path / name}: {full}" for name in FILLED]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", WRITTEN)
def test_two_exports_into_one_folder_at_once(format, tmp_path):
    vectors = vectors_of(["a", "b"], odd_block(2))
    with (
        output_folder(tmp_path / "out", resumable=False),
        pytest.raises(OutputError, match="another process is writing here"),
    ):
        WRITTEN[format](vectors, tmp_path / "out")
    WRITTEN[format](vectors, tmp_path / "out")
    with pytest.raises(OutputError, match="already there"):
        WRITTEN[format](vectors, tmp_path / "out")


@pytest.mark.parametrize("weight", [-0.5, float("nan"), float("inf")])
@pytest.mark.parametrize("format", WRITTEN)
def test_a_weight_that_no_model_should_make_is_refused_by_document(format, weight, tmp_path):
    block = EncodedBatch(["fine", "wrong"], csr_matrix(np.array([[1.0, 2.0], [weight, 1.0]])))
    with pytest.raises(InputError, match=f"wrong: has the weight {weight}"):
        WRITTEN[format](vectors_of(["a", "b"], block), tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", WRITTEN)
def test_an_engine_refuses_what_its_manifest_does_not_vouch_for(format, tmp_path):
    manifest = WRITTEN[format](vectors_of(["a", "b"], odd_block(2)), tmp_path / "out")
    with (tmp_path / "out" / manifest.parts[0].path).open("a") as file:
        file.write("x")
    with pytest.raises(InputError, match="has changed since"), open_engine(format, tmp_path / "out"):
        pass
    other = next(name for name in WRITTEN if name != format)
    with (
        pytest.raises(InputError, match=f"an export for {format}, not {other}"),
        open_engine(other, tmp_path / "out"),
    ):
        pass


@pytest.mark.parametrize("format", ["anserini", "ciff", "seismic", "sentence-transformers", "onnx"])
def test_a_library_takes_no_url(format, tmp_path):
    with (
        pytest.raises(ConfigError, match=r"--url http://x: .* runs in this process"),
        open_engine(format, tmp_path, url="http://x"),
    ):
        pass


def test_an_unknown_engine_and_a_missing_one(tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="unknown engine 'pizza'"):
        open_engine("pizza", tmp_path)
    monkeypatch.setattr("sparse_adapt.engines.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sparse-adapt\[seismic\]'"):
        open_engine("seismic", tmp_path)


def test_every_format_has_an_engine():
    without = {"opensearch-model"}  # a model for OpenSearch to load, with the engine that serves its vectors
    assert {row.format for row in ENGINES} == {row.name for row in FORMATS} - without


# -- with the encoder -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tiny_model: Path) -> SparseEncoder:
    encoder = SparseEncoder.load(tiny_model)
    encoder.factors = some_factors(encoder.vocabulary_size)
    return encoder


ASKED = [Query("q1", "a backup of the database"), Query("q2", "zorvex reports"), Query("q3", "the server")]


def test_sentence_transformers_loads_model_and_documents(model, twelve_documents, tmp_path):
    vectors = encode_vectors(model, twelve_documents, documents_a_block=5)
    queries = encode_queries(model, ASKED)
    manifest = sentence_transformers.write(vectors, tmp_path / "out", encoder=model, queries=queries)
    assert (manifest.documents, manifest.queries) == (12, 3)
    documents = encode_queries(model, [Query(each.document_id, each.full_text) for each in twelve_documents])
    with open_engine("sentence-transformers", tmp_path / "out") as engine:
        parity = check_engine(engine, documents, queries, texts=[query.text for query in ASKED])
    assert (parity.faults, parity.kinds["rounding"]) == ((), 0)
    assert parity.encoding_difference is not None and parity.encoding_difference < 1e-5
    snippet = loading("sentence-transformers")(tmp_path / "out", manifest).replace("QUERY", ASKED[0].text)
    done = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, check=True)
    found = [line.split()[0] for line in done.stdout.splitlines()]
    with open_engine("sentence-transformers", tmp_path / "out") as engine:
        assert found == list(engine.search_all(queries, 10)["q1"])
    with pytest.raises(ConfigError, match="sentence-transformers keeps weights as they are"):
        sentence_transformers.write(vectors, tmp_path / "no", encoder=model, quantisation=Quantisation())
    assert not (tmp_path / "no").exists()


@pytest.fixture(scope="module")
def graph(model, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("onnx") / "out"
    manifest = onnx.write(Vectors(stamp(model), [], ()), folder, encoder=model)
    assert isinstance(manifest.facts["largest_difference"], float)
    assert manifest.facts["largest_difference"] < 1e-5
    return folder


@pytest.mark.slow
def test_onnx_encodes_as_torch_does_in_batches_of_any_shape(model, graph, twelve_documents):
    texts = [document.full_text for document in twelve_documents]
    documents = encode_queries(model, [Query(str(row), text) for row, text in enumerate(texts)])
    with open_engine("onnx", graph) as engine:
        assert abs(engine.encode(texts) - documents.vectors).max() < 1e-5
        assert abs(engine.encode(texts[:1]) - documents.vectors[:1]).max() < 1e-5
        parity = check_engine(
            engine, documents, encode_queries(model, ASKED), texts=[query.text for query in ASKED]
        )
    assert parity.faults == ()
    snippet = loading("onnx")(graph, read_manifest(graph)).replace("QUERY", texts[0])
    done = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, check=True)
    best = eval(done.stdout)
    heaviest = sorted(documents.vectors[0].data, reverse=True)[:10]
    assert [weight for weight, _ in best] == pytest.approx(heaviest, abs=1e-5)


@pytest.mark.slow
def test_onnx_is_refused_where_its_weights_are_not_those_of_torch(model, graph, tmp_path, monkeypatch):
    monkeypatch.setattr(onnx, "BOUND", -1.0)
    with pytest.raises(ModelError, match=r"ONNX Runtime's weights differ from torch's by .*more than"):
        onnx.write(Vectors(stamp(model), [], ()), tmp_path / "out", encoder=model)
    assert list(tmp_path.iterdir()) == []


def test_onnx_holds_no_queries_and_names_its_extra(model, tmp_path, monkeypatch):
    with pytest.raises(ConfigError, match="onnx holds an encoder and no vectors; leave out --queries"):
        onnx.write(
            Vectors(stamp(model), [], ()),
            tmp_path / "out",
            encoder=model,
            queries=encode_queries(model, ASKED),
        )
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"onnx is not installed: pip install 'sparse-adapt\[onnx\]'"):
        writer("onnx")(Vectors(stamp(model), [], ()), tmp_path / "out", encoder=model)
    assert list(tmp_path.iterdir()) == []
