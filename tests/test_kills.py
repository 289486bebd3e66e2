"""Killed at every file operation of every command that writes, and resumed: the same bytes, and nothing beside them."""

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from killing import killed_at, operations_of

from sparse_adapt.engines.exporting import export_corpus
from sparse_adapt.engines.writing import ExportOptions
from sparse_adapt.errors import OutputError
from sparse_adapt.files.checksum import MARKER_FILE
from sparse_adapt.files.folders import tidy
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import make_plan
from sparse_adapt.pipeline.run import run
from sparse_adapt.retrieve.vectors.shards import encode_corpus
from sparse_adapt.stages.runner import Place, carry_out
from sparse_adapt.terms.mining import Term, write_terms

SHORT = {"steps": 2, "batch_size": 2, "checkpoint_every": 1, "device": "cpu", "judge": "none"}
SOME = {"terms": 5, "extend": 4, "warmup": 4, "run": 5, "encode": 6, "export": 6}  # kills in the usual suite

Work = Callable[[Path, bool], object]  # to a place, resumed or not


@pytest.fixture(scope="module")
def works(tiny_model, zorvex_collection, twelve_documents, tmp_path_factory) -> dict[str, Work]:
    model, corpus = str(tiny_model), str(zorvex_collection)
    plan = make_plan(corpus, model=model, stages=["extend", "warmup"], overrides=SHORT)
    encoder = SparseEncoder.load(tiny_model)
    extended = tmp_path_factory.mktemp("extended") / "model"
    carry_out("extend", model, {"terms": corpus}, Place(extended))

    def stage(name: str, before: str, **named: str) -> Work:
        settings = plan.settings.get(name)
        return lambda place, again: carry_out(name, before, named, Place(place, resume=again), settings)

    def export(place: Path, again: bool) -> None:
        options = ExportOptions(resume=again, documents_a_shard=5)
        export_corpus("anserini", encoder, lambda: twelve_documents, place, options=options)

    return {
        "terms": lambda place, _: write_terms(place, [Term("zorvex", "coined"), Term("kubectl", "tools")]),
        "extend": stage("extend", model, terms=corpus),
        "warmup": stage("warmup", str(extended), corpus=corpus),
        "run": lambda place, again: run(plan, Place(place, resume=again)),
        "encode": lambda place, again: encode_corpus(
            encoder, twelve_documents, place, documents_a_shard=5, resume=again
        ),
        "export": export,
    }


@pytest.fixture(autouse=True)
def no_clock(monkeypatch):
    """Every moment is the same, so that records of a run and of a resumed one are; and no disk is waited for."""
    torch.set_num_threads(1)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(time, "strftime", lambda *_: "2026-01-01T00:00:00+0000")


def content(place: Path) -> dict[str, bytes]:
    """Every file of a result, a single file too; of a report without which stages were done before."""
    if place.is_file():
        return {"": place.read_bytes()}
    files = {path.relative_to(place).as_posix(): path for path in place.rglob("*") if path.is_file()}
    found = {name: path.read_bytes() for name, path in files.items()}
    if "report.json" in found:
        report = json.loads(found["report.json"])
        stages = [{**stage, "said": ""} for stage in report["stages"]]
        found["report.json"] = json.dumps({**report, "stages": stages}, sort_keys=True).encode()
        del found[MARKER_FILE]
    return found


def gone(place: Path) -> None:
    shutil.rmtree(place) if place.is_dir() else place.unlink()


def check(name: str, work: Work, folder: Path, most: int) -> int:
    """Kill at operations that lie evenly, at most so many, and resume; how many kills there were."""
    whole = folder / "whole"
    work(whole, False)
    expected = content(whole)
    gone(whole)
    operations = operations_of(folder, lambda: work(whole, False))
    assert content(whole) == expected, "another run, other bytes"
    gone(whole)
    kills = 0
    for operation in range(1, operations + 1, max(1, operations // most)):
        kills += killed_at(operation, folder, lambda: work(whole, False))
        try:
            work(whole, True)
        except OutputError as error:  # it is whole
            assert "already there" in str(error), (name, operation)
            tidy(whole)
        left = {path.name for path in folder.iterdir()}
        assert left == {"whole"}, (name, operation, left)
        found = content(whole)
        assert found.keys() == expected.keys(), (name, operation)
        for path in found:
            assert found[path] == expected[path], (name, operation, path)
        gone(whole)
    return kills


@pytest.mark.parametrize("name", SOME)
def test_a_kill_at_some_operations_leaves_no_trace(works, tmp_path, name):
    assert check(name, works[name], tmp_path, SOME[name]) > 0


@pytest.mark.nightly
@pytest.mark.parametrize("name", SOME)
def test_a_kill_at_any_operation_leaves_no_trace(works, tmp_path, name):
    print(f"{name}: {check(name, works[name], tmp_path, 1 << 30)} kills")  # noqa: T201 - counted for the record
