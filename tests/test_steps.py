"""Stages as steps: what they leave, what they inherit, and what a full disk does to them."""

import errno
import json
import resource
import signal
import sys
from pathlib import Path

import pytest
import torch
from forking import forked

from sparse_adapt.collection.examples import Candidates, write_candidates
from sparse_adapt.collection.glossary import Definition, write_dictionary
from sparse_adapt.collection.readers import Document, write_documents
from sparse_adapt.errors import OutputError
from sparse_adapt.files.folders import output_folder
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.objectives.targets import Targets
from sparse_adapt.stages.dictionary import Dictionary
from sparse_adapt.stages.distill import Distill
from sparse_adapt.stages.record import read_before
from sparse_adapt.stages.runner import Outcome, carry_out_stage
from sparse_adapt.stages.warmup import Warmup
from sparse_adapt.terms.mining import Term, write_terms
from sparse_adapt.training.loop import HISTORY_FILE
from sparse_adapt.training.state import STATE_FILE

DOCUMENTS = {
    "d0": "A zorvex report compares what a team spent.",
    "d1": "kubectl logs show what the agent saw of zorvex.",
    "d2": "A nightly backup copies the database.",
}
QUICK = {"device": "cpu", "steps": 3, "batch_size": 4, "checkpoint_every": 2}


@pytest.fixture
def files(tmp_path, tiny_model) -> Path:
    """A folder with an extended model, `model`, and a corpus, `corpus.jsonl`."""
    write_documents(tmp_path / "corpus.jsonl", [Document(name, text, "") for name, text in DOCUMENTS.items()])
    write_terms(tmp_path / "terms.json", [Term("zorvex", "jargon"), Term("kubectl", "jargon")])
    carry_out_stage("extend", str(tiny_model), {"terms": tmp_path / "terms.json"}, Place(tmp_path / "model"))
    return tmp_path


def run(files: Path, name: str, **place: bool) -> Outcome:
    settings = Warmup.model_validate(QUICK)
    named = {"corpus": files / "corpus.jsonl"}
    return carry_out_stage("warmup", str(files / "model"), named, Place(files / name, **place), settings)


def test_a_step_leaves_a_model_its_history_and_a_record(files):
    outcome = run(files, "warmup")
    assert {path.name for path in (files / "warmup").iterdir()} >= {"config.json", HISTORY_FILE, "stage.json"}
    assert not (files / "warmup" / STATE_FILE).exists()
    record = json.loads((files / "warmup" / "stage.json").read_text())
    assert record["stage"] == "warmup"
    assert record["settings"] == Warmup.model_validate(QUICK).model_dump(mode="json")
    assert record["files"]["corpus"]["sha256"]
    assert record["steps"] == 3
    targets = Targets.of(labelled=False).model_dump()
    assert record["settled"] == {"targets": targets, "learning_rate": 3e-5}  # which QUICK leaves open
    assert "3 steps" in outcome.message
    trained = SparseEncoder.load(files / "warmup")
    before = SparseEncoder.load(files / "model")
    assert torch.equal(trained.output_rows[:200], before.output_rows[:200])
    assert not torch.equal(trained.output_rows[200:], before.output_rows[200:])


def test_a_disk_that_is_full_while_the_model_is_saved_loses_nothing(files, monkeypatch):
    run(files, "whole")
    save = SparseEncoder.save

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SparseEncoder, "save", full)
    with pytest.raises(OutputError, match=r"the disk is full.*--resume"):
        run(files, "full")
    assert not (files / "full").exists()
    monkeypatch.setattr(SparseEncoder, "save", save)

    def no_more(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr("sparse_adapt.training.loop._step", no_more)
    run(files, "full", resume=True)
    for name in ("model.safetensors", "tokenizer.json", "vocabulary.json", HISTORY_FILE):
        assert (files / "full" / name).read_bytes() == (files / "whole" / name).read_bytes(), name
    assert not (files / "full" / STATE_FILE).exists()


def save_within(model: Path, out: Path, size: int) -> None:
    """Save a model where no file may be larger."""
    encoder = SparseEncoder.load(model)
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, largest = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, largest))
    try:
        with output_folder(Place(out, resumable=False)) as work:
            encoder.save(work)
    except OutputError as error:
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))  # it counts for what is said, too
        sys.exit(str(error))


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
def test_a_file_that_finds_no_space_is_one_line(files, name):
    encoder = SparseEncoder.load(files / "model")
    with (
        pytest.raises(OutputError, match="the disk is full"),
        output_folder(Place(files / "out", resumable=False)) as work,
    ):
        (work / name).symlink_to("/dev/full")
        encoder.save(work)
    assert not (files / "out").exists()
    assert not (files / "out.partial").exists()


@pytest.mark.parametrize("size", [100, 20_000])
def test_files_that_outgrow_their_limit_are_one_line(files, size):
    """The first limit stops config.json, the second model.safetensors."""
    ended = forked(lambda: save_within(files / "model", files / "out", size))
    assert ended.status == 1
    assert "the disk is full" in ended.messages.splitlines()[-1], ended.messages
    assert not (files / "out").exists()
    assert not (files / "out.partial").exists()


def test_terms_that_are_tokens_already_are_skipped_and_named_once(tiny_model, tmp_path):
    (tmp_path / "terms.json").write_text('{"jargon": ["zorvex", "server", "database"]}')
    done = carry_out_stage(
        "extend", str(tiny_model), {"terms": tmp_path / "terms.json"}, Place(tmp_path / "model")
    )
    assert done.message.startswith(
        "1 new tokens, 201 in all; 2 terms are tokens already and were skipped: server, database"
    )
    assert done.record["known"] == ["server", "database"]


def test_what_a_step_inherits_is_what_is_still_unchanged(files):
    run(files, "warmup")
    corpus = files / "corpus.jsonl"
    assert read_before(str(files / "warmup")) == {"corpus": str(corpus)}
    corpus.write_text(corpus.read_text() + '{"_id": "x", "text": "more"}\n')
    assert read_before(str(files / "warmup")) == {}
    assert read_before(str(files / "nowhere")) == {}


def test_what_lies_beside_or_was_read_before_tells_what_means_a_term(files):
    corpus, definitions = str(files / "corpus.jsonl"), files / "dictionary.jsonl"
    write_dictionary(definitions, [Definition("zorvex", "how a team decides what it may spend")])
    texts = (DOCUMENTS["d0"], DOCUMENTS["d2"], "a zorvex for the outgoings of a team")
    entry = Candidates("q", "what may we spend", ("d0", "d2", "x"), (1.0, -8.0, 9.0), texts)
    write_candidates(files / "candidates.jsonl", [entry])
    quick = {"steps": 2, "batch_size": 2, "labeller": "none"}
    taught = files / "dictionary"
    settings = Dictionary.model_validate(quick)
    named = {"dictionary": definitions, "corpus": corpus}
    carry_out_stage("dictionary", str(files / "model"), named, Place(taught), settings)
    assert set(read_before(str(taught))) == {"dictionary", "corpus", "candidates"}
    candidates, last = files / "candidates.jsonl", files / "distill"
    scored = {"candidates": candidates, "corpus": corpus}
    carry_out_stage("distill", str(taught), scored, Place(last), Distill.model_validate(quick))
    assert read_before(str(last))["dictionary"] == str(definitions)
    (files / "candidates.jsonl").unlink()
    carry_out_stage("dictionary", str(files / "model"), named, Place(files / "alone"), settings)
    assert set(read_before(str(files / "alone"))) == {"dictionary", "corpus"}
