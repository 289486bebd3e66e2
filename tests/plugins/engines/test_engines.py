"""What holds for every engine: what an export refuses, what its manifest vouches for, and how a new one is added."""

import subprocess
import sys

import numpy as np
import pytest
from odd import BLOCK, QUERIES, SHORT_ODD_TOKENS, TOKENS, export, vectors_of
from scipy.sparse import csr_matrix, random
from scipy.sparse import vstack as stack

import sparse_adapt as sa
from sparse_adapt.errors import ConfigError, InputError, OutputError
from sparse_adapt.files.folders import output_folder
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines.formats import engines, open_engine
from sparse_adapt.plugins.engines.layout import ExportSource
from sparse_adapt.plugins.engines.manifest import read_export_manifest
from sparse_adapt.plugins.engines.parity import check_engine
from sparse_adapt.plugins.engines.quantise import Quantisation
from sparse_adapt.plugins.engines.writing import export_corpus, write_export
from sparse_adapt.retrieve.vectors.folder import EncodedBatch
from sparse_adapt.retrieve.vectors.shards import encode_corpus

HOLDING = [row.name for row in engines() if row.holds == "vectors"]
LOCAL = [row.name for row in engines() if row.holds == "vectors" and row.in_process]
SERVERS = {"pgvector"}  # each start of which takes seconds; tests of its own rank by it
IN_PROCESS = [pytest.param(name, marks=pytest.mark.nightly) if name in SERVERS else name for name in LOCAL]
LIBRARIES = ["ciff", "seismic"]


def one_each(columns: int) -> EncodedBatch:
    """Document d0 has token 0 only, d1 token 1 only, and so on; the last has none."""
    rows = stack([csr_matrix(np.eye(columns, dtype=np.float32)), csr_matrix((1, columns))], format="csr")
    return EncodedBatch([f"d{row}" for row in range(columns + 1)], rows)


@pytest.mark.parametrize(
    "name", ["opensearch", "opensearch-seismic", "elasticsearch", "pgvector", "qdrant", "vespa"]
)
def test_every_file_is_as_it_was(name, tmp_path, golden_folder):
    manifest = export(name, tmp_path / "out", TOKENS, BLOCK, queries=QUERIES)
    golden_folder(tmp_path / "out", name)
    assert (manifest.documents, manifest.empty_documents, manifest.entries) == (3, 1, 3)
    assert (manifest.queries, manifest.empty_queries) == (1, 1)


@pytest.mark.parametrize("name", IN_PROCESS)
def test_odd_tokens_are_found_as_they_are(name, tmp_path):
    documents = one_each(len(SHORT_ODD_TOKENS))
    export(name, tmp_path / "out", SHORT_ODD_TOKENS, documents)
    queries = EncodedBatch(
        [f"q{row}" for row in range(len(documents.ids))], documents.vectors
    )  # the last is empty
    with open_engine(name, tmp_path / "out") as engine:
        run = engine.search_all(queries, 5)
    assert run == {f"q{row}": {f"d{row}": 1.0} for row in range(len(SHORT_ODD_TOKENS))} | {
        f"q{len(SHORT_ODD_TOKENS)}": {}
    }


@pytest.mark.parametrize("name", IN_PROCESS)
def test_random_vectors_rank_as_in_exact_search(name, tmp_path, capfd):
    matrix = random(120, 60, density=0.2, random_state=1, format="csr", dtype=np.float32)
    matrix.data *= 3
    documents = EncodedBatch([f"d{row}" for row in range(120)], matrix)
    export(name, tmp_path / "out", [f"t{column}" for column in range(60)], documents)
    queries = random(25, 60, density=0.1, random_state=2, format="csr", dtype=np.float32)
    with open_engine(name, tmp_path / "out") as engine:
        parity = check_engine(engine, documents, EncodedBatch([f"q{row}" for row in range(25)], queries))
    assert (parity.faults, parity.kinds["tie"]) == ((), 0)
    assert parity.kinds["same"] > 0
    assert capfd.readouterr() == ("", "")  # engines that print are kept quiet


def twice(block: EncodedBatch) -> EncodedBatch:
    """The same weights, each in two entries of half of it, in no order: what scipy takes for the same matrix."""
    weights = block.vectors.tocoo()
    row, column = (
        np.concatenate([weights.row, weights.row[::-1]]),
        np.concatenate([weights.col, weights.col[::-1]]),
    )
    order = np.argsort(row, kind="stable")
    halves = np.concatenate([weights.data, weights.data[::-1]]) / 2
    starts = np.searchsorted(row[order], np.arange(weights.shape[0] + 1))
    return EncodedBatch(block.ids, csr_matrix((halves[order], column[order], starts), shape=weights.shape))


@pytest.mark.parametrize("name", HOLDING)
def test_entries_of_one_token_in_one_text_add_up(name, tmp_path):
    weights = np.array([[1.25, 0.5, 0], [0, 2.5, 0.25], [0.005, 0, 0.75]], np.float32)
    once = EncodedBatch(["d0", "d1", "d2"], csr_matrix(weights))
    doubled = twice(once)
    assert not doubled.vectors.has_canonical_format and (doubled.vectors != once.vectors).nnz == 0
    export(name, tmp_path / "once", ["a", "b", "c"], once, queries=once)
    export(name, tmp_path / "twice", ["a", "b", "c"], doubled, queries=doubled)
    content = [
        {path.name: path.read_bytes() for path in (tmp_path / kind).rglob("*.*") if path.is_file()}
        for kind in ("once", "twice")
    ]
    assert content[0] == content[1]
    if name in {*LOCAL} - SERVERS:
        with open_engine(name, tmp_path / "twice") as engine:
            assert engine.search_all(doubled, 3) == engine.search_all(once, 3)
            assert check_engine(engine, doubled, doubled).faults == ()


# -- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LIBRARIES)
def test_an_export_without_weights_is_refused_by_its_engine(name, tmp_path):
    export(name, tmp_path / "out", ["a"], EncodedBatch(["d"], csr_matrix((1, 1))))
    with (
        pytest.raises(InputError, match=r"of which .* makes no index"),
        open_engine(name, tmp_path / "out"),
    ):
        pass


@pytest.mark.parametrize("weight", [-0.5, float("nan"), float("inf")])
@pytest.mark.parametrize("name", HOLDING)
def test_a_weight_that_no_model_should_make_is_refused_by_document(name, weight, tmp_path):
    block = EncodedBatch(["fine", "wrong"], csr_matrix(np.array([[1.0, 2.0], [weight, 1.0]], np.float32)))
    with pytest.raises(InputError, match=f"wrong: has the weight {weight}"):
        export(name, tmp_path / "out", ["a", "b"], block)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", HOLDING)
def test_two_exports_into_one_folder_at_once(name, tmp_path):
    with (
        output_folder(Place(tmp_path / "out", resumable=False)),
        pytest.raises(OutputError, match="another process is writing here"),
    ):
        export(name, tmp_path / "out", ["a", "b"], one_each(2))
    export(name, tmp_path / "out", ["a", "b"], one_each(2))
    with pytest.raises(OutputError, match="already there"):
        export(name, tmp_path / "out", ["a", "b"], one_each(2))


@pytest.mark.parametrize("name", HOLDING)
def test_a_manifest_vouches_for_every_file(name, tmp_path):
    manifest = export(name, tmp_path / "out", ["a", "b"], one_each(2), queries=one_each(2))
    assert read_export_manifest(tmp_path / "out", name) == manifest
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*")}
    assert manifest.queries_file is not None
    vouched = {*(file.path for file in manifest.parts), manifest.queries_file.path}
    assert files - vouched == {"tokens.json", "manifest.json", "sparse-adapt.json"}  # vouched for otherwise
    for path in vouched:
        content = (tmp_path / "out" / path).read_bytes()
        (tmp_path / "out" / path).write_bytes(content[:-1] + b"x")
        with pytest.raises(InputError, match="has changed since"):
            read_export_manifest(tmp_path / "out")
        (tmp_path / "out" / path).write_bytes(content)
    (tmp_path / "out" / manifest.parts[0].path).unlink()
    with pytest.raises(InputError, match="named by its manifest, but can't be read"):
        read_export_manifest(tmp_path / "out")


@pytest.mark.parametrize("name", LOCAL)
def test_an_export_for_another_engine_is_refused(name, tmp_path):
    export(name, tmp_path / "out", ["a", "b"], one_each(2))
    other = next(each for each in LOCAL if each != name)
    with pytest.raises(InputError, match=f"an export for {name}, not {other}; export again for {other}"):
        open_engine(other, tmp_path / "out")


def test_an_export_replaces_nothing_that_it_is_made_from(tiny_model, twelve_documents, tmp_path):
    model = SparseEncoder.load(tiny_model)
    model.save(tmp_path / "model")
    encode_corpus(model, twelve_documents, Place(tmp_path / "vectors", resume=True))
    taken = {name: content_of(tmp_path / name) for name in ("model", "vectors")}
    with pytest.raises(OutputError, match="is what this command reads"):
        sa.export("qdrant", None, tmp_path / "vectors", tmp_path / "vectors", overwrite=True)
    with pytest.raises(OutputError, match="is what this command reads"):
        sa.export("qdrant", tmp_path / "model", twelve_documents, tmp_path / "model", overwrite=True)
    assert taken == {name: content_of(tmp_path / name) for name in ("model", "vectors")}


def content_of(folder):
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_token_that_the_engine_can_not_hold_is_told_before_anything_is_encoded(tiny_model, tmp_path):
    model = SparseEncoder.load(tiny_model)
    model.tokenizer.add_tokens(["x" * 300])
    model.masked_lm.resize_token_embeddings(len(model.tokenizer), mean_resizing=False)
    place = Place(tmp_path / "out")
    with pytest.raises(InputError, match="this token has 300 characters, Lucene takes 1 to 255"):
        export_corpus("anserini", model, lambda: pytest.fail("read"), place)
    with pytest.raises(ConfigError, match="qdrant keeps weights as they are"):
        export_corpus("qdrant", model, lambda: pytest.fail("read"), place, quantisation=Quantisation())
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_export_of_vectors_left_goes_unasked(tmp_path):
    source, out = ExportSource(vectors_of(["a", "b"], one_each(2))), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt), output_folder(Place(out, resumable=False)) as work:
        (work / "documents").mkdir()
        raise KeyboardInterrupt
    assert write_export("qdrant", source, Place(out)).manifest.documents == 3
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


FULL = """
import resource, signal, sys
from pathlib import Path
import numpy as np
from scipy.sparse import csr_matrix
from sparse_adapt.plugins.engines.layout import ExportSource
from sparse_adapt.plugins.engines.writing import write_export
from sparse_adapt.errors import OutputError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors
from sparse_adapt.retrieve.vectors.manifest import ModelStamp

encoder = SparseEncoder.load(sys.argv[2])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
stamp = ModelStamp(name="x", weights_sha256="0", vocabulary_sha256="1", vocabulary_size=200, max_tokens=9)
block = EncodedBatch([f"d{row}" for row in range(200)], csr_matrix(np.random.default_rng(0).random((200, 200))))
for name in sys.argv[3:]:
    try:
        vectors = Vectors(stamp, [f"t{i}" for i in range(200)], [block])
        write_export(name, ExportSource(vectors, encoder=encoder), Place(Path(sys.argv[1]) / name))
    except OutputError as error:
        print(error)
"""


@pytest.mark.nightly
def test_a_full_disk_leaves_nothing(tiny_model, tmp_path):
    names = [row.name for row in engines() if row.name != "anserini-onnx"]  # which refuses the small model
    command = [sys.executable, "-c", FULL, str(tmp_path), str(tiny_model), *names]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    full = "the disk is full; free some space and run it again"
    assert done.stdout.splitlines() == [f"{tmp_path / name}: {full}" for name in names]
    assert list(tmp_path.iterdir()) == []
