"""A disk that fails at any one operation ends a command in one line, and what was done can be gone on with."""

import builtins
import errno
import io
import os
from pathlib import Path

import pytest
from commands import ran

import sparse_adapt as sa
from sparse_adapt.errors import OutputError

OPERATIONS = ("open", "unlink", "mkdir", "chmod", "rename", "replace", "fsync", "rmdir", "listdir", "scandir")


class Failing:
    """A disk whose operation of some number fails, on what lies below a folder."""

    def __init__(self, patch: pytest.MonkeyPatch, root: Path, number: int) -> None:
        self.root, self.number, self.count = str(root), number, 0
        for name in OPERATIONS:
            patch.setattr(os, name, self.wrapped(getattr(os, name)))
        for module in (io, builtins):
            patch.setattr(module, "open", self.wrapped(module.open))

    def wrapped(self, function):
        def call(path=".", *given, **options):
            name = os.fsdecode(path) if isinstance(path, str | os.PathLike) else ""
            if name.startswith(self.root):
                self.count += 1
                if self.count == self.number:
                    raise OSError(errno.EIO, os.strerror(errno.EIO), name)
            return function(path, *given, **options)

        return call


@pytest.mark.parametrize("every", [11, pytest.param(1, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("command", ["encode", "unpack"])
def test_every_operation_that_fails_is_one_line(command, every, tmp_path, tiny_model, zorvex_collection):
    extended = sa.load(tiny_model, device="cpu")
    extended.extend(["kubectl"])
    sa.pack(extended.save(tmp_path / "ext"), tmp_path / "p.pack", base=tiny_model)
    words = {
        "encode": [
            "--model",
            str(tiny_model),
            "--corpus",
            str(zorvex_collection),
            "--shard",
            "4",
            "--device",
            "cpu",
        ],
        "unpack": [str(tmp_path / "p.pack"), "--model", str(tiny_model)],
    }[command]
    root = tmp_path / "written"
    for number in range(1, 500, every):
        folder = root / str(number)
        folder.mkdir(parents=True)
        with pytest.MonkeyPatch.context() as patch:
            disk = Failing(patch, folder, number)
            status, said = ran(command, *words, "-o", str(folder / "out"))
        if disk.count < number:
            break
        if status == 0:  # where nothing depends on it, such as what is tidied up
            continue
        assert (status, said.splitlines()[-1][:7], said.count("error: ")) == (2, "error: ", 1), (number, said)
        assert "Traceback" not in said
        again = ["--resume"] if (folder / "out.partial").exists() and command == "encode" else ["--overwrite"]
        assert ran(command, *words, "-o", str(folder / "out"), *again)[0] == 0, (number, said)
    assert 20 < number < 499 and status == 0


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
