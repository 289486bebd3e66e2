"""A disk that fails at any one operation ends a command in one line, and what was done can be gone on with."""

import builtins
import errno
import io
import os
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
from commands import COMMANDS, RESUMABLE, inputs, ran
from safetensors import SafetensorError, serialize_file
from tokenizers import Tokenizer, models
from transformers import PreTrainedTokenizerFast

import sparse_adapt as sa
from sparse_adapt.errors import OutputError
from sparse_adapt.files.marker import faults
from sparse_adapt.files.writing import is_of_disk

OPERATIONS = ("open", "unlink", "mkdir", "chmod", "rename", "replace", "fsync", "rmdir", "listdir", "scandir")


EIO = f"{os.strerror(errno.EIO)} (os error {errno.EIO})"  # as libraries in Rust say it


class Failing:
    """A disk whose operation of some number fails, on what lies below a folder."""

    def __init__(self, patch: pytest.MonkeyPatch, root: Path, number: int) -> None:
        self.root, self.number, self.count = str(root), number, 0
        for name in OPERATIONS:
            patch.setattr(os, name, self.wrapped(getattr(os, name)))
        for module in (io, builtins):
            patch.setattr(module, "open", self.wrapped(module.open))
        write, save = serialize_file, PreTrainedTokenizerFast.save_pretrained

        def tensors(tensors, path, *given, **options):
            self.operates(path, SafetensorError(f"Error while serializing: I/O error: {EIO}"))
            return write(tensors, path, *given, **options)

        def tokenizer(self_, folder, *given, **options):
            self.operates(Path(folder) / "tokenizer.json", Exception(EIO))
            return save(self_, folder, *given, **options)

        for module in (safetensors.torch, safetensors.numpy):
            patch.setattr(module, "serialize_file", tensors)
        patch.setattr(PreTrainedTokenizerFast, "save_pretrained", tokenizer)

    def operates(self, path: object, error: Exception | None = None) -> None:
        """An operation begins; it fails where it is the one."""
        name = os.fsdecode(path) if isinstance(path, str | os.PathLike) else ""
        if name.startswith(self.root):
            self.count += 1
            if self.count == self.number:
                raise error or OSError(errno.EIO, os.strerror(errno.EIO), name)

    def wrapped(self, function):
        def call(path=".", *given, **options):
            self.operates(path)
            return function(path, *given, **options)

        return call


@pytest.fixture(scope="module")
def words_of(tmp_path_factory, tiny_model):
    """What each command that writes a model, or vectors, reads: its words without the place."""
    folder = tmp_path_factory.mktemp("read")
    words = inputs(folder, tiny_model)
    glossary = folder / "more.jsonl"
    glossary.write_text('{"term": "quornel", "definition": "a plan that says how a team spends"}\n')
    lines = {
        **{name: COMMANDS[name] for name in ("encode", "unpack", "extend", "warmup")},
        "words": "words {model} {corpus} --device cpu",
        "calibrate": "calibrate --model {extended} --corpus {corpus} --lower-bias zorvex=0.5",
        "add-terms": f"add-terms --model {{extended}} --glossary {glossary}",
    }
    return {name: line.format(**words).split() for name, line in lines.items()}


@pytest.fixture
def few_texts(monkeypatch):
    for name, value in {
        "synthetic.labelled.POOL": 100,
        "synthetic.labelled.POOL_A_TERM": 50,
        "objectives.rows.FITTED": 50,
        "objectives.rows.STEPS": 5,
        "retrieve.activity.BACKGROUND_TEXTS": 20,
    }.items():
        monkeypatch.setattr(f"sparse_adapt.{name}", value)


def went_on(words: list[str], out: Path) -> None:
    """The command goes on, or begins anew, once the disk is sound."""
    partial = out.with_name(f"{out.name}.partial").exists()
    again = "--resume" if partial and words[0] in RESUMABLE else "--overwrite"
    status, said = ran(*words, "-o", str(out), again)
    assert status == 0, said
    assert not [*faults(out)] and not [path for path in out.parent.iterdir() if path != out]


def refused(status: int, said: str) -> None:
    lines = said.splitlines()
    assert (status, [line for line in lines if line.startswith("error: ")]) == (2, lines[-1:]), said
    assert "Traceback" not in said and "Input/output error" in lines[-1]


@pytest.mark.usefixtures("few_texts")
@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("command", ["encode", "unpack", "words"])
def test_every_operation_that_fails_is_one_line(command, every, tmp_path, words_of):
    words, root = words_of[command], tmp_path / "written"
    for number in range(1, 500, every):
        folder = root / str(number)
        folder.mkdir(parents=True)
        with pytest.MonkeyPatch.context() as patch:
            disk = Failing(patch, folder, number)
            status, said = ran(*words, "-o", str(folder / "out"))
        if disk.count < number:
            break
        if status == 0:  # where nothing depends on it, such as what is tidied up
            continue
        refused(status, said)
        went_on(words, folder / "out")
    assert 20 < number < 499 and status == 0


OF_A_MODEL = (
    "config.json",
    "model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "vocabulary.json",
)


@pytest.mark.usefixtures("few_texts")
@pytest.mark.parametrize(
    "command",
    [
        *("words", "unpack", "calibrate", "extend", "warmup"),
        pytest.param("add-terms", marks=pytest.mark.nightly),  # reads with a dense model
    ],
)
def test_a_file_of_a_model_that_cant_be_written_is_one_line(command, tmp_path, words_of):
    words = words_of[command]
    files = (*OF_A_MODEL, *(["exact_words.json"] if command == "words" else []))
    for name in files:
        folder = tmp_path / name
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            disk = Failing(patch, folder, 0)
            patch.setattr(disk, "operates", failing_at(name, folder, disk.operates))
            status, said = ran(*words, "-o", str(folder / "out"))
        refused(status, said)
        assert not (folder / "out").exists()
        if words[0] not in RESUMABLE:
            assert not list(folder.iterdir()), "nothing half written"
        went_on(words, folder / "out")


def failing_at(name, root, operates):
    """Every writing of files of that name fails below a folder."""

    def operation(path, error=None):
        known = Path(path).name if isinstance(path, str | os.PathLike) else ""
        if str(path).startswith(str(root)) and (known == name or known.startswith(f".{name}.")):
            raise error or OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        operates(path, error)

    return operation


def test_libraries_in_rust_say_what_the_system_said(tmp_path):
    for write in (
        lambda: Tokenizer(models.BPE()).save(str(tmp_path)),
        lambda: safetensors.numpy.save_file({"a": np.zeros(3)}, tmp_path),
    ):
        with pytest.raises(Exception, match=r"Is a directory \(os error 21\)") as caught:
            write()
        assert not isinstance(caught.value, OSError) and is_of_disk(caught.value)
    assert not is_of_disk(ValueError("os error")) and not is_of_disk(OutputError(EIO))


def test_a_call_from_python_ends_in_an_error_of_ours(tmp_path, tiny_model, monkeypatch):
    def failing(*_: object) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), "some/file")

    monkeypatch.setattr("sparse_adapt.model.saved.tokenizer_of", failing)
    with pytest.raises(
        OutputError, match=r"^Input/output error, some/file; see to the disk and run it again$"
    ):
        sa.mine_terms(["a text"], tiny_model)


@pytest.mark.parametrize("name", ["p.pack", "terms.json"])
def test_what_a_killed_command_left_beside_a_file_goes_with_the_next(name, tmp_path, tiny_model):
    left, other = (tmp_path / f".{each}.{'0' * 16}.partial" for each in (name, "else"))
    for path in (left, other):
        path.write_text("half")
    extended = sa.load(tiny_model, device="cpu")
    extended.extend(["kubectl"])
    if name == "p.pack":
        sa.pack(extended.save(tmp_path / "ext"), tmp_path / name, base=tiny_model)
    else:
        sa.mine_terms(["zorvex pays"] * 9, tiny_model, top=1, out=tmp_path / name)
    assert not left.exists() and other.exists()
