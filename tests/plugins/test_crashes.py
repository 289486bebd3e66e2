"""kill -9 at any moment of encode and export, then resume: the same bytes, nothing lost, nothing twice."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from sparse_adapt.collection.readers import Document, write_documents
from sparse_adapt.errors import InputError, OutputError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines import writing
from sparse_adapt.plugins.engines.manifest import ExportFolder
from sparse_adapt.plugins.engines.writing import export_corpus, interim_folder
from sparse_adapt.retrieve.vectors.shards import encode_corpus

SHARD = 12
MOMENTS = 50

Work = Callable[..., None]


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def documents(twelve_documents) -> list[Document]:
    """Eight shards of texts that differ."""
    return [
        Document(f"{number}-{each.document_id}", f"{each.text} {number}", each.title)
        for number in range(8)
        for each in twelve_documents
    ]


def run_encode(model: SparseEncoder, documents: list[Document], out: Path) -> None:
    encode_corpus(model, documents, Place(out, resume=True), documents_a_shard=SHARD)


def run_export(model: SparseEncoder, documents: list[Document], out: Path) -> None:
    export_corpus("anserini", model, lambda: documents, Place(out, resume=True), documents_a_shard=SHARD)


def killed_after(seconds: float, work: Work, *arguments: object) -> bool:
    """Do it in a process of its own and kill that; whether it was still at work."""
    child = os.fork()
    if child == 0:
        try:
            work(*arguments)
        finally:
            os._exit(0)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


@pytest.mark.parametrize(
    ("work", "moments"),
    [
        (run_export, 3),  # which encodes, too
        *(pytest.param(work, MOMENTS, marks=pytest.mark.nightly) for work in (run_encode, run_export)),
    ],
)
def test_a_kill_at_any_moment_leaves_no_trace(work, moments, tiny_model, documents, tmp_path):
    torch.set_num_threads(1)  # a forked process has no other threads
    model = SparseEncoder.load(tiny_model)
    work(model, documents, tmp_path / "first")  # compiles what is compiled
    started = time.monotonic()
    work(model, documents, tmp_path / "whole")
    whole, longest = content(tmp_path / "whole"), time.monotonic() - started
    chance = random.Random(moments)
    place = tmp_path / "killed"
    hits = 0
    for moment in range(moments):
        hits += killed_after(chance.uniform(0.0, longest), work, model, documents, place)
        if not place.exists() and moment % 3 == 0:
            continue  # killed again before it is whole
        if not place.exists():
            work(model, documents, place)
        assert content(place) == whole
        left = {path.name for path in tmp_path.iterdir() if "killed" in path.name and path.suffix != ".lock"}
        assert left <= {place.name, interim_folder(place).name}
        for name in left:
            shutil.rmtree(tmp_path / name)
    assert hits > moments // 4


def test_a_resumed_export_encodes_nothing_twice(tiny_model, documents, tmp_path, monkeypatch):
    model = SparseEncoder.load(tiny_model)
    out = tmp_path / "export"

    def export(given: list[Document], resume: bool = True) -> ExportFolder:
        return export_corpus("anserini", model, lambda: given, Place(out, resume=resume))

    with monkeypatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(writing, "write_export", killed)
        export(documents, resume=False)
    assert [path.name for path in tmp_path.iterdir()] == [interim_folder(out).name]
    monkeypatch.setattr(
        "sparse_adapt.retrieve.vectors.shards.document_vectors", lambda *_, **__: pytest.fail("encoded again")
    )
    with pytest.raises(OutputError, match=r"an unfinished export is in .*; pass --resume"):
        export(documents, resume=False)
    with pytest.raises(InputError, match="encoded other documents"):
        export(documents[1:])
    done = export(documents)
    assert [path.name for path in tmp_path.iterdir()] == ["export"]
    assert done.manifest.documents == len(documents)
    with pytest.raises(OutputError, match="already there"):
        export(documents)


def killed(*_: object, **__: object) -> None:
    raise RuntimeError("while it is written")


def test_vectors_of_ones_own_with_the_name_of_an_export_are_left_alone(tiny_model, documents, tmp_path):
    model = SparseEncoder.load(tiny_model)
    run_encode(model, documents[:12], tmp_path / "export.vectors")
    before = content(tmp_path / "export.vectors")
    run_export(model, documents[:12], tmp_path / "export")
    assert content(tmp_path / "export.vectors") == before


def test_an_export_to_a_taken_place_is_refused_before_anything_is_encoded(tiny_model, documents, tmp_path):
    out = tmp_path / "taken"
    write_documents(out / "file", documents[:1])
    with pytest.raises(OutputError, match="already there"):
        export_corpus("anserini", SparseEncoder.load(tiny_model), lambda: pytest.fail("read"), Place(out))
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
