"""Encoding on a real Ray cluster of two workers: the bytes of a local run, whoever dies on the way."""

import ctypes
import faulthandler
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

import numpy as np
import psutil
import pytest
import torch

import sparse_adapt as sa
from sparse_adapt.collection.readers import Document, write_documents
from sparse_adapt.errors import MissingExtraError, ModelError, OutputError
from sparse_adapt.files.place import Place
from sparse_adapt.model import dense
from sparse_adapt.model.dense import SMALL, DenseEncoder
from sparse_adapt.model.processes import read_by
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.ray import cluster
from sparse_adapt.plugins.ray.cluster import SIGACTION_SIZE, Cluster, connected, handlers_kept
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors.clusters import on_cluster
from sparse_adapt.retrieve.vectors.shards import JOURNAL_FILE, encode_corpus

SHARD = 40
STORE = 400 << 20  # bytes: what doesn't fit goes to disk, which Ray refuses where the disk is nearly full
TASK = "ray::_work_on"  # what a worker calls itself while it works
DRIVER = """
import sys
from sparse_adapt.cli import main
sys.argv = ["sparse-adapt", "encode", "--model", {model!r}, "--corpus", {corpus!r}, "-o", {out!r}]
sys.argv += ["--engine", "ray", "--workers", "2", "--shard", "{shard}", "--resume"]
main()
"""
NO_ROOM = """
import ray, torch
from sparse_adapt.errors import OutputError
from sparse_adapt.model.processes import Piece
from sparse_adapt.plugins.ray.cluster import connected
ray.init(num_cpus=1, object_store_memory=80 << 20, include_dashboard=False, log_to_driver=False)
with connected() as there:
    try:
        list(there.each(len, torch.nn.Linear(5_000, 5_000), [Piece(0, "a text", "it")]))
    except OutputError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def documents(twelve_documents) -> list[Document]:
    """Ten shards of texts that differ."""
    return [
        Document(f"{number}-{each.document_id}", f"{each.text} {number}", each.title)
        for number in range(33)
        for each in twelve_documents
    ]


@pytest.fixture(scope="module")
def local(tiny_model, documents, tmp_path_factory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("local") / "vectors"
    encode_corpus(
        SparseEncoder.load(tiny_model), documents, Place(folder, resume=True), documents_a_shard=SHARD
    )
    return content(folder)


@pytest.fixture(scope="module")
def two_workers() -> Iterator[None]:
    import ray

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with handlers_kept():
        ray.init(num_cpus=2, object_store_memory=STORE, include_dashboard=False, log_to_driver=False)
    yield
    with handlers_kept():
        ray.shutdown()


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def encode_there(model: Path, documents: list[Document], folder: Path, workers: int = 2) -> None:
    with connected(workers) as there:
        encoder = SparseEncoder.load(model)
        place, work = Place(folder, resume=True), on_cluster(there, encoder)
        encode_corpus(encoder, documents, place, documents_a_shard=SHARD, work=work)


def busy() -> list[psutil.Process]:
    """The processes of our own cluster that encode at this moment."""
    found = []
    for process in psutil.Process().children(recursive=True):
        try:
            if process.cmdline()[:1] == [TASK]:
                found.append(process)
        except (psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found


@contextmanager
def killing(at_most: int) -> Iterator[list[int]]:
    """Kill whichever worker encodes, up to so many."""
    killed: list[int] = []
    enough = Event()

    def kill() -> None:
        while len(killed) < at_most and not enough.is_set():
            for process in busy()[: at_most - len(killed)]:
                process.send_signal(signal.SIGKILL)
                killed.append(process.pid)
            time.sleep(0.002)

    thread = Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        enough.set()
        thread.join()


@pytest.mark.slow
def test_a_cluster_writes_the_bytes_of_a_local_run(two_workers, tiny_model, documents, local, tmp_path):
    heard: list[int] = []
    with connected() as there:
        assert (there.workers, there.gpus) == (2, False)
        model = SparseEncoder.load(tiny_model)
        work = on_cluster(there, model, progress=heard.append)
        encode_corpus(
            model, documents, Place(tmp_path / "vectors", resume=True), documents_a_shard=SHARD, work=work
        )
    assert content(tmp_path / "vectors") == local
    assert sum(heard) == len(documents)


@pytest.mark.nightly
def test_a_worker_killed_within_a_shard_leaves_no_trace(two_workers, tiny_model, documents, local, tmp_path):
    with killing(at_most=1) as killed:
        encode_there(tiny_model, documents, tmp_path / "vectors")
    assert len(killed) == 1
    assert content(tmp_path / "vectors") == local


@pytest.mark.nightly
def test_workers_that_keep_dying_are_one_line_and_the_rest_is_kept(
    two_workers, tiny_model, documents, local, tmp_path, monkeypatch
):
    monkeypatch.setattr(cluster, "ATTEMPTS", 2)
    place = tmp_path / "vectors"
    with pytest.raises(OutputError) as caught, killing(at_most=1000):
        encode_there(tiny_model, documents, place)
    message = str(caught.value)
    assert message.startswith("Ray: 2 workers died one after another on shard ")
    assert message.endswith("pass --resume")
    assert "\n" not in message
    assert not place.exists()
    encode_corpus(
        SparseEncoder.load(tiny_model), documents, Place(place, resume=True), documents_a_shard=SHARD
    )
    assert content(place) == local


@pytest.mark.nightly
def test_a_store_and_a_disk_without_room_are_one_line():
    full = {**os.environ, "RAY_local_fs_capacity_threshold": "0", "RAY_ADDRESS": ""}
    done = subprocess.run(
        [sys.executable, "-c", NO_ROOM], env=full, capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Ray: no room for the model and texts that travel to workers (")
    assert done.stdout.endswith("and pass --resume\n") and done.stdout.count("\n") == 1


@pytest.mark.nightly
def test_a_mistake_in_a_worker_is_told_as_here(two_workers, tiny_model, documents, tmp_path):
    model = SparseEncoder.load(tiny_model)
    torch.nn.init.constant_(model.input_rows, torch.nan)
    with connected() as there, pytest.raises(ModelError, match="weights are broken") as caught:
        encode_corpus(model, documents, Place(tmp_path / "out"), work=on_cluster(there, model))
    assert "\n" not in str(caught.value)


@pytest.mark.nightly
def test_a_killed_driver_goes_on_from_whole_shards(tiny_model, documents, local, tmp_path):
    write_documents(tmp_path / "corpus.jsonl", documents)
    place = tmp_path / "vectors"
    fields = {"model": str(tiny_model), "corpus": str(tmp_path / "corpus.jsonl"), "out": str(place)}
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER.format(**fields, shard=SHARD)],
        stderr=subprocess.PIPE,
        env={**os.environ, "RAY_ADDRESS": ""},
    )
    journal = place.with_name("vectors.partial") / JOURNAL_FILE
    while driver.poll() is None and not (journal.is_file() and journal.read_bytes().count(b"\n") >= 2):
        time.sleep(0.005)
    driver.kill()
    assert driver.wait() == -signal.SIGKILL, driver.communicate()[1].decode()
    done = journal.read_bytes().count(b"\n")
    assert 2 <= done < 10
    model = SparseEncoder.load(tiny_model)
    model_name = str(tiny_model)
    heard: list[int] = []

    def progress(number: int) -> None:
        heard.append(number)

    encode_corpus(
        model,
        documents,
        Place(place, resume=True),
        model_name=model_name,
        documents_a_shard=SHARD,
        progress=progress,
    )
    assert heard[:done].count(SHARD) == done  # told as done, not encoded again
    assert content(place).keys() == local.keys()
    assert all(stored == local[name] for name, stored in content(place).items() if name != "manifest.json")


@pytest.mark.nightly
def test_ray_leaves_the_handlers_of_faults_as_they_were():
    if not handler_of(signal.SIGSEGV):
        faulthandler.enable()
    before = handler_of(signal.SIGSEGV)
    assert before != 0
    with connected():
        assert handler_of(signal.SIGSEGV) == before
    assert handler_of(signal.SIGSEGV) == before


def handler_of(number: int) -> int:
    """The address of who catches a signal, beneath Python; 0 for nobody."""
    action = ctypes.create_string_buffer(SIGACTION_SIZE)
    ctypes.CDLL(None).sigaction(number, None, action)
    return int.from_bytes(action.raw[:8], sys.byteorder)


def test_without_ray_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'sparse-adapt\[ray\]'"), connected():
        raise AssertionError


def test_other_processes_read_texts_to_the_same_bits(two_workers, tiny_model, documents, monkeypatch):
    texts = [each.full_text for each in documents[:96]]
    model = SparseEncoder.load(tiny_model)
    monkeypatch.setattr(dense, "TEXTS_A_PART", 32)
    expected = encode(model, texts, "document", tokens_a_batch=600), DenseEncoder(SMALL).encode(texts)
    pieces: list[str] = []
    each = Cluster.each

    def heard(self, do, model, parts):
        for piece, result in each(self, do, model, parts):
            pieces.append(type(model).__name__)
            yield piece, result

    monkeypatch.setattr(Cluster, "each", heard)
    with connected() as there, read_by(there):
        found = encode(model, texts, "document", tokens_a_batch=600), DenseEncoder(SMALL).encode(texts)
    assert (found[0] != expected[0]).nnz == 0
    assert np.array_equal(found[1], expected[1])
    assert pieces.count("SparseEncoder") > 3 and pieces.count("SentenceTransformer") == 3


@pytest.mark.nightly
def test_an_adaptation_makes_the_same_files_on_a_cluster(two_workers, tmp_path):
    """The general questions are read in many batches, whatever the corpus is."""
    for engine in ("local", "ray"):
        short = {"device": "cpu", "rank": {"steps": 2}}
        sa.adapt("gatrocraptic", tmp_path / engine, engine=engine, progress=False, **short)
    for name in (
        "candidates.jsonl",
        "held.jsonl",
        "choice.json",
        "retention.json",
        "model/model.safetensors",
    ):
        local, there = ((tmp_path / engine / name).read_bytes() for engine in ("local", "ray"))
        assert local == there, name
