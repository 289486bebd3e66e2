"""Whatever happens while a result is written, its place holds the old result, or the new one whole."""

import errno
import gzip
import json
import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from contextlib import nullcontext
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from sparse_adapt.errors import OutputError
from sparse_adapt.files import under_way, writing
from sparse_adapt.files.folders import (
    check_free,
    check_replaceable,
    discard,
    output_folder,
    tidy,
    way_to_file,
)
from sparse_adapt.files.marker import MARKER_FILE, mark, vouch
from sparse_adapt.files.place import Place
from sparse_adapt.files.writing import open_output, publish, write_bytes, write_json, write_text


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.name != MARKER_FILE}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != MARKER_FILE)


def result(folder: Path, name: str = "old", text: str = "old") -> Path:
    """A folder as an earlier command left it."""
    folder.mkdir()
    (folder / name).write_text(text)
    vouch(folder)
    return folder


def write(folder: Path, fails: type[BaseException] | None = None, **options: Any) -> None:
    """Write a folder of one new file, and fail behind it."""
    with pytest.raises(fails) if fails else nullcontext(), output_folder(Place(folder, **options)) as work:
        (work / "new").write_text("new")
        if fails:
            raise fails


NEW = {"new": "new"}


def refused(folder: str | Path, match: str, **options: Any) -> None:
    """A folder is refused before anything is written."""
    with pytest.raises(OutputError, match=match), output_folder(Place(Path(folder), **options)):
        pytest.fail("the block must not run")


def run_python(code: str, *arguments: object, wait_for: str = "ready") -> subprocess.Popen[str]:
    """A Python process that has printed `wait_for`."""
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        stdout=subprocess.PIPE,
        stdin=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None and process.stdout.readline().strip() == wait_for
    return process


HALFWAY = """
    import sys
    from pathlib import Path
    from sparse_adapt.files.folders import output_folder
    from sparse_adapt.files.place import Place
    with output_folder(Place(Path(sys.argv[1]), overwrite=len(sys.argv) > 2)) as folder:
        (folder / "half").write_text("half")
        print("ready", flush=True)
        sys.stdin.readline()
"""


@pytest.fixture
def small_disk(tmp_path: Path):
    """A file system of 64 KB, or a skip where this user can't mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("can't mount a small file system here")
    yield disk
    subprocess.run(["umount", "-l", str(disk)], check=True)


class TestOutputFolder:
    def test_appears_only_when_complete(self, tmp_path):
        place = tmp_path / "deep" / "model"
        with output_folder(Place(place)) as folder:
            (folder / "a").write_text("1")
            assert not place.exists()
            assert folder == tmp_path / "deep" / "model.partial"
        assert contents(place) == {"a": "1"}
        assert names(tmp_path / "deep") == ["model"]

    def test_an_empty_folder_is_no_obstacle(self, tmp_path):
        (tmp_path / "model").mkdir()
        write(tmp_path / "model")
        assert contents(tmp_path / "model") == NEW

    @pytest.mark.parametrize("resume", [False, True])
    def test_a_taken_place_is_refused_untouched(self, tmp_path, resume):
        result(tmp_path / "model")
        refused(
            tmp_path / "model", r"model: already there; choose another -o or pass --overwrite$", resume=resume
        )
        assert contents(tmp_path / "model") == {"old": "old"}
        assert names(tmp_path) == ["model"]

    def test_a_file_is_never_replaced_by_a_folder(self, tmp_path):
        (tmp_path / "model").write_text("precious")
        refused(tmp_path / "model", "model: a file is there; choose another -o", overwrite=True)
        assert (tmp_path / "model").read_text() == "precious"

    def test_overwrite_replaces_only_at_the_end(self, tmp_path):
        result(tmp_path / "model")
        with output_folder(Place(tmp_path / "model", overwrite=True)) as folder:
            (folder / "new").write_text("new")
            assert contents(tmp_path / "model") == {"old": "old"}
        assert contents(tmp_path / "model") == NEW
        assert names(tmp_path) == ["model"]

    def test_the_old_folder_survives_a_failed_overwrite(self, tmp_path):
        result(tmp_path / "model")
        write(tmp_path / "model", ZeroDivisionError, overwrite=True)
        assert contents(tmp_path / "model") == {"old": "old"}
        assert contents(tmp_path / "model.partial") == NEW

    def test_the_old_folder_returns_when_the_rename_fails(self, tmp_path, monkeypatch):
        result(tmp_path / "model")
        rename = Path.rename

        def failing(self: Path, target: Path) -> Path:
            if self.name == "model.partial":
                raise OSError(errno.EIO, "Input/output error")
            return rename(self, target)

        monkeypatch.setattr(Path, "rename", failing)
        with pytest.raises(
            OutputError, match=r"Input/output error; what was done is kept in .*; see to the disk"
        ):
            write(tmp_path / "model", overwrite=True)
        assert contents(tmp_path / "model") == {"old": "old"}
        assert contents(tmp_path / "model.partial") == NEW

    def test_a_kill_between_the_two_renames_loses_nothing(self, tmp_path):
        """What is on disk then: the old folder set aside, the new one complete but not yet in place."""
        result(tmp_path / ".model.replaced")
        result(tmp_path / "model.partial", "new", "new")
        refused(tmp_path / "model", "already there")
        assert contents(tmp_path / "model") == {"old": "old"}
        with output_folder(Place(tmp_path / "model", overwrite=True, resume=True)):
            pass
        assert contents(tmp_path / "model") == NEW
        assert names(tmp_path) == ["model"]

    def test_a_kill_before_the_old_folder_is_deleted_keeps_the_new_one(self, tmp_path):
        for name in ("model", ".model.replaced"):
            result(tmp_path / name, "from", name)
        with output_folder(Place(tmp_path / "model", overwrite=True)) as folder:
            assert contents(tmp_path / "model") == {"from": "model"}
            (folder / "from").write_text("newest")
        assert contents(tmp_path / "model") == {"from": "newest"}
        assert names(tmp_path) == ["model"]

    @pytest.mark.parametrize("old", [False, True])
    def test_a_killed_run_leaves_its_part_and_the_old_result(self, tmp_path, old):
        if old:
            result(tmp_path / "model")
        process = run_python(HALFWAY, tmp_path / "model", *(["overwrite"] if old else []))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert contents(tmp_path / "model.partial") == {"half": "half"}
        assert not old or contents(tmp_path / "model") == {"old": "old"}
        refused(tmp_path / "model", "already there" if old else "an unfinished run is in .*--resume")
        with output_folder(Place(tmp_path / "model", resume=True, overwrite=old)) as folder:
            assert contents(folder) == {"half": "half"}
            (folder / "whole").write_text("whole")
        assert contents(tmp_path / "model") == {"half": "half", "whole": "whole"}
        assert names(tmp_path) == ["model"]

    def test_overwrite_starts_an_unfinished_run_again(self, tmp_path):
        result(tmp_path / "model.partial", "half", "half")
        refused(
            tmp_path / "model",
            f"^{tmp_path}/model: an unfinished run is in {tmp_path}/model.partial; "
            "pass --resume to continue it or --overwrite to start again$",
        )
        write(tmp_path / "model", overwrite=True)
        assert contents(tmp_path / "model") == NEW
        assert names(tmp_path) == ["model"]

    def test_two_processes_never_write_one_folder(self, tmp_path):
        process = run_python(HALFWAY, tmp_path / "model")
        for options in ({}, {"overwrite": True}, {"resume": True}):
            refused(tmp_path / "model", "model: another process is writing here", **options)
        assert contents(tmp_path / "model.partial") == {"half": "half"}
        process.communicate("go on\n")
        assert process.returncode == 0
        assert contents(tmp_path / "model") == {"half": "half"}
        assert names(tmp_path) == ["model"]

    def test_a_failure_before_anything_is_written_leaves_no_trace(self, tmp_path):
        with pytest.raises(ZeroDivisionError), output_folder(Place(tmp_path / "model")):
            raise ZeroDivisionError
        assert names(tmp_path) == []

    @pytest.mark.parametrize(("resumable", "left"), [(False, []), (True, ["model.partial"])])
    def test_what_an_interruption_leaves_is_what_can_be_resumed(self, tmp_path, resumable, left):
        write(tmp_path / "model", KeyboardInterrupt, resumable=resumable)
        assert names(tmp_path) == left

    @pytest.mark.parametrize("write", ["output_folder", "write_text"])
    def test_a_parent_that_is_no_folder(self, tmp_path, write):
        (tmp_path / "file").write_text("precious")
        with pytest.raises(OutputError, match=r"file/model: can't be written \(.*\); choose another -o$"):
            if write == "write_text":
                write_text(tmp_path / "file" / "model", "text")
            with output_folder(Place(tmp_path / "file" / "model")):
                pytest.fail("the block must not run")
        assert contents(tmp_path) == {"file": "precious"}

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_a_read_only_parent(self, tmp_path):
        (tmp_path / "closed").mkdir(mode=0o555)
        refused(tmp_path / "closed" / "model", "can't be written")

    @pytest.mark.parametrize("write", ["output_folder", "write_text"])
    def test_a_read_only_file_system(self, small_disk, write):
        write_text(small_disk / "terms.json", "old")
        subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
        with pytest.raises(
            OutputError, match=r": can't be written \(Read-only file system\); choose another -o$"
        ):
            if write == "write_text":
                write_text(small_disk / "terms.json", "new")
            with output_folder(Place(small_disk / "model")):
                pytest.fail("the block must not run")
        assert contents(small_disk) == {"terms.json": "old"}

    def test_the_current_folder_is_never_replaced(self, tmp_path, monkeypatch):
        (tmp_path / "work").mkdir()
        (tmp_path / "work" / "precious").write_text("x")
        monkeypatch.chdir(tmp_path / "work")
        for path in (".", tmp_path):
            refused(path, "holds the folder you are in", overwrite=True)
        assert names(tmp_path) == ["work"]

    def test_a_link_keeps_pointing_to_its_folder(self, tmp_path):
        result(tmp_path / "real")
        (tmp_path / "link").symlink_to(tmp_path / "real")
        write(tmp_path / "link", overwrite=True)
        assert (tmp_path / "link").is_symlink()
        assert contents(tmp_path / "real") == NEW


class TestOverwriting:
    """What `--overwrite` and `--resume` may remove: results of ours, and nothing else."""

    def left_alone(self, tmp_path: Path, match: str, **options: Any) -> None:
        """A result at `out` is refused, and every file is as it was."""
        before = {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
        refused(tmp_path / "out", match, **options)
        if "resume" not in options:
            with pytest.raises(OutputError, match=match):
                check_free(Place(tmp_path / "out", **{"resumable": False, **options}))
        assert {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == before

    def test_a_folder_that_nothing_of_ours_wrote_is_never_replaced(self, tmp_path):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "manifest.json").write_text('{"name": "my web application"}')
        self.left_alone(tmp_path, "out: holds no sparse-adapt.json, so it may be yours", overwrite=True)

    @pytest.mark.parametrize(
        "content", ["", "{", "[]", '{"format": "other", "format_version": 1, "sha256": {}}']
    )
    def test_a_marker_that_isnt_one_counts_for_nothing(self, tmp_path, content):
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / MARKER_FILE).write_text(content)
        self.left_alone(tmp_path, "holds no sparse-adapt.json", overwrite=True)

    @pytest.mark.parametrize(
        "name", ["notes.txt", "in/notes.txt", ".git/HEAD", ".cache/notes", "in/.cache/huggingface.txt"]
    )
    def test_what_somebody_put_into_a_result_keeps_it(self, tmp_path, name):
        result(tmp_path / "out")
        (tmp_path / "out" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "out" / name).write_text("mine")
        self.left_alone(tmp_path, f"out: holds {name}, which sparse-adapt didn't write", overwrite=True)

    def test_what_browsers_leave_and_edits_of_our_files_do_not(self, tmp_path):
        result(tmp_path / "out")
        (tmp_path / "out" / "old").write_text("edited")
        (tmp_path / "out" / ".DS_Store").write_text("")
        (tmp_path / "out" / ".cache" / "huggingface").mkdir(parents=True)
        (tmp_path / "out" / ".cache" / "huggingface" / "a.metadata").write_text("")
        write(tmp_path / "out", overwrite=True)
        assert contents(tmp_path / "out") == NEW

    @pytest.mark.parametrize("how", ["resume", "overwrite"])
    def test_a_partial_folder_of_somebody_else_is_left_alone(self, tmp_path, how):
        (tmp_path / "out.partial").mkdir()
        (tmp_path / "out.partial" / "chapter.txt").write_text("mine")
        self.left_alone(tmp_path, "out.partial: holds no sparse-adapt.json", **{how: True})
        with (
            pytest.raises(OutputError, match=r"out\.partial: holds no sparse-adapt\.json"),
            way_to_file(Place(tmp_path / "out", **{how: True})),
        ):
            pytest.fail("the block must not run")
        discard(tmp_path / "out.partial")
        assert contents(tmp_path / "out.partial") == {"chapter.txt": "mine"}

    @pytest.mark.parametrize(
        "read", ["out", "out/sub", "out/sub/file", "link", "link/sub/file", "elsewhere/../out"]
    )
    def test_what_a_command_reads_is_never_replaced(self, tmp_path, read):
        (result(tmp_path / "out") / "sub").mkdir()
        (tmp_path / "out" / "sub" / "file").write_text("a corpus")
        vouch(tmp_path / "out")
        (tmp_path / "link").symlink_to(tmp_path / "out")
        (tmp_path / "elsewhere").mkdir()
        match = "out: (is|holds) what this command reads"
        self.left_alone(tmp_path, match, overwrite=True, reads=[tmp_path / read])

    def test_nothing_is_written_into_a_folder_that_is_read(self, tmp_path):
        result(tmp_path / "model")
        refused(
            tmp_path / "model" / "out",
            "lies in what this command reads",
            reads=["splade-tiny", None, tmp_path / "model"],
        )
        with output_folder(
            Place(tmp_path / "beside", reads=["splade-tiny", None, tmp_path / "model" / "old"])
        ):
            pass

    def test_what_came_meanwhile_stays(self, tmp_path):
        result(tmp_path / "out")
        with (
            pytest.raises(OutputError, match="something was put there meanwhile"),
            output_folder(Place(tmp_path / "out", overwrite=True)) as folder,
        ):
            (folder / "new").write_text("new")
            (tmp_path / "out" / "mine").write_text("mine")
        assert contents(tmp_path / "out") == {"old": "old", "mine": "mine"}
        assert contents(tmp_path / "out.partial") == NEW

    def test_a_file_is_replaced_by_one_of_its_kind_alone(self, tmp_path):
        def read(path: Path) -> None:
            if path.read_text() != "of the kind":
                raise OutputError("another")

        place = tmp_path / "file"
        kind = {"read": read, "what": "list of terms"}
        check_replaceable(Place(place), **kind)
        for text, overwrite, reads, match in (
            ("of the kind", False, [], "already there; choose another -o or pass --overwrite"),
            ("a corpus", True, [], "file: holds no list of terms, so it isn't replaced"),
            ("of the kind", True, [place], "is what this command reads"),
        ):
            place.write_text(text)
            with pytest.raises(OutputError, match=match):
                check_replaceable(Place(place, overwrite, reads=reads), **kind)
        for text in ("of the kind", ""):
            place.write_text(text)
            check_replaceable(Place(place, overwrite=True), **kind)


def later(folder: Path) -> None:
    """Have a kill be long ago."""
    os.utime(folder / MARKER_FILE, (1.0, 1.0))


class TestNamesLikeOurs:
    """What has a name of ours, and isn't ours, is refused and stays as it was."""

    def stays(self, tmp_path: Path, name: str, match: str, **options: Any) -> None:
        def seen() -> dict[Path, object]:
            return {
                path: path.readlink() if path.is_symlink() else path.is_file() and path.read_text()
                for path in tmp_path.rglob("*")
            }

        before, place = seen(), Place(tmp_path / "out", **options)
        assert tmp_path / name in before
        for begin in (output_folder, way_to_file):
            with pytest.raises(OutputError, match=match), begin(place):
                pytest.fail("the block must not run")
        if "resume" not in options:
            with pytest.raises(OutputError, match=match):
                check_free(place)
        assert seen() == before

    @pytest.mark.parametrize("options", [{}, {"overwrite": True}, {"resume": True}])
    @pytest.mark.parametrize("name", ["out.partial", ".out.replaced", ".out.sparse-adapt.lock"])
    def test_a_link_in_the_place_of_a_folder_of_ours(self, tmp_path, name, options):
        result(tmp_path / "real")
        (tmp_path / name).symlink_to(tmp_path / "real")
        self.stays(tmp_path, name, f"{name}: isn't of sparse-adapt", **options)

    @pytest.mark.parametrize("how", ["resume", "overwrite"])
    @pytest.mark.parametrize("name", ["model.safetensors", "in/weights", "in"])
    def test_a_link_in_unfinished_work(self, tmp_path, name, how):
        (tmp_path / "precious").write_text("precious")
        result(tmp_path / "out.partial", "half")
        mark(tmp_path / "out.partial")
        path = tmp_path / "out.partial" / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(tmp_path / "precious")
        self.stays(tmp_path, f"out.partial/{name}", f"{name}: isn't of sparse-adapt", **{how: True})

    @pytest.mark.parametrize("at_once", [False, True])
    @pytest.mark.parametrize("name", ["thesis.txt", "in/thesis.txt"])
    def test_a_file_that_came_after_a_kill(self, tmp_path, name, at_once):
        result(tmp_path / "out.partial", "half")
        mark(tmp_path / "out.partial", at_once=at_once)
        (tmp_path / "out.partial" / "half").unlink()
        path = tmp_path / "out.partial" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("the only copy")
        later(tmp_path / "out.partial")
        match = f"{name}: was written after the work there had stopped, so it may be yours"
        self.stays(tmp_path, f"out.partial/{name}", match, overwrite=True, resumable=not at_once)
        if at_once:
            self.stays(tmp_path, f"out.partial/{name}", match)
            with pytest.raises(OutputError, match=match):
                tidy(tmp_path / "out")

    def test_a_file_in_a_result_that_steps_aside(self, tmp_path):
        result(tmp_path / ".out.replaced")
        (tmp_path / ".out.replaced" / "thesis.txt").write_text("the only copy")
        result(tmp_path / "out")
        match = "holds thesis.txt, which sparse-adapt didn't write"
        self.stays(tmp_path, ".out.replaced/thesis.txt", match, overwrite=True)
        (tmp_path / "out" / "thesis.txt").write_text("the only copy")
        (tmp_path / ".out.replaced" / "thesis.txt").unlink()
        with pytest.raises(OutputError, match=match):
            discard(tmp_path / "out")
        assert (tmp_path / "out" / "thesis.txt").exists()

    def test_a_lock_of_somebody_else(self, tmp_path):
        for name, content in ((".out.lock", "4711"), (".else.sparse-adapt.lock", "")):
            (tmp_path / name).write_text(content)
        write(tmp_path / "out")
        assert contents(tmp_path / "out") == NEW and (tmp_path / ".out.lock").read_text() == "4711"
        assert (tmp_path / ".else.sparse-adapt.lock").exists()
        (tmp_path / ".out.sparse-adapt.lock").write_text("4711")
        self.stays(tmp_path, ".out.sparse-adapt.lock", "lock: isn't of sparse-adapt", overwrite=True)

    def test_work_under_way_is_as_young_as_its_marker(self, tmp_path, monkeypatch):
        monkeypatch.setattr(under_way, "SECONDS", 0.01)
        monkeypatch.setattr(under_way, "LATE", 0.5)
        with pytest.raises(ZeroDivisionError), output_folder(Place(tmp_path / "out")) as folder:
            later(folder)
            deadline = time.monotonic() + 10
            while (folder / MARKER_FILE).stat().st_mtime == 1.0 and time.monotonic() < deadline:
                time.sleep(0.01)
            later(folder)
            (folder / "half").write_text("half")
            raise ZeroDivisionError
        assert under_way.put_there(tmp_path / "out.partial") == []
        write(tmp_path / "out", overwrite=True)


class TestWholeResults:
    """What a finished folder has, whatever was killed on the way."""

    def test_nothing_half_written_stays(self, tmp_path):
        with output_folder(Place(tmp_path / "out")) as folder:
            (folder / "in").mkdir()
            for name in (
                ".a.0123456789abcdef.partial",
                ".a.fedcba9876543210.partial",
                "in/.b.sparse-adapt.lock",
                "in/.b.0123456789abcdef.partial",
            ):
                (folder / name).write_text("" if name.endswith("lock") else "left")
            (folder / "a").write_text("a")
            (folder / "mine.partial").write_text("no temporary name")
        assert names(tmp_path / "out") == ["a", "in", "mine.partial"]
        assert names(tmp_path / "out" / "in") == []

    def test_files_have_ordinary_modes(self, tmp_path):
        before = os.umask(0o027)
        try:
            with output_folder(Place(tmp_path / "out")) as folder:
                (folder / "weights").write_text("of a library that writes for the owner alone")
                (folder / "weights").chmod(0o600)
            write_text(tmp_path / "file", "text")
        finally:
            os.umask(before)
        written = [*(tmp_path / "out").iterdir(), tmp_path / "file"]
        assert {path.stat().st_mode & 0o777 for path in written} == {0o640}

    def test_a_kill_while_the_old_is_removed_leaves_something_that_can_be_removed(
        self, tmp_path, monkeypatch
    ):
        result(tmp_path / "out")
        result(tmp_path / "out.partial", "half", "half")
        unlink, done = Path.unlink, []

        def killed(self: Path, missing_ok: bool = False) -> None:
            if self.parent.name == "out.partial":
                done.append(self.name)
                raise KeyboardInterrupt
            unlink(self, missing_ok)

        monkeypatch.setattr(Path, "unlink", killed)
        with pytest.raises(KeyboardInterrupt), output_folder(Place(tmp_path / "out", overwrite=True)):
            pytest.fail("the block must not run")
        monkeypatch.setattr(Path, "unlink", unlink)
        assert done == ["half"], "the marker goes last"
        write(tmp_path / "out", overwrite=True)
        assert contents(tmp_path / "out") == NEW
        assert names(tmp_path) == ["out"]


class TestFullDisk:
    def test_real_full_disk_in_a_folder(self, small_disk):
        result(small_disk / "model")
        with (
            pytest.raises(OutputError, match=r"the disk is full; what was done is kept in .*pass --resume"),
            output_folder(Place(small_disk / "model", overwrite=True)) as folder,
        ):
            (folder / "first").write_text("first")
            (folder / "big").write_bytes(bytes(1_000_000))
        assert contents(small_disk / "model") == {"old": "old"}
        assert (small_disk / "model.partial" / "first").read_text() == "first"

    def test_real_full_disk_under_a_single_file(self, small_disk):
        write_text(small_disk / "terms.json", "old")
        with pytest.raises(OutputError, match=r"terms.json: the disk is full; free some space"):
            write_text(small_disk / "terms.json", "x" * 1_000_000)
        assert contents(small_disk) == {"terms.json": "old"}

    def test_real_full_disk_under_the_libraries_that_save_models(self, small_disk):
        """They raise errors of their own: safetensors, torch and tokenizers each another one."""
        torch = pytest.importorskip("torch")
        from safetensors.torch import save_file
        from tokenizers import Tokenizer, models

        tensors = {"weight": torch.zeros(100_000)}
        vocabulary = {f"token number {index}": index for index in range(20_000)}
        saves = {
            "safetensors": lambda folder: save_file(tensors, folder / "model.safetensors"),
            "torch": lambda folder: torch.save(tensors, folder / "state.pt"),
            "tokenizers": lambda folder: Tokenizer(models.WordLevel(vocabulary)).save(str(folder / "t.json")),
        }
        for name, save in saves.items():
            with (
                pytest.raises(OutputError, match="the disk is full"),
                output_folder(Place(small_disk / name, resumable=False)) as folder,
            ):
                save(folder)
            assert names(small_disk) == [], name

    def test_a_limit_on_file_size_counts_as_full(self, tmp_path):
        """Needs no mount: a process may write files of 10 kB at most, and writes one of 100 kB."""
        code = """
            import sys
            from sparse_adapt.errors import OutputError
            from pathlib import Path
            from sparse_adapt.files.place import Place
            from sparse_adapt.files.folders import (output_folder, write_text)
            write_text(sys.argv[1] + "/terms.json", "old")
            try:
                with output_folder(Place(Path(sys.argv[1] + "/model"))) as folder:
                    (folder / "big").write_bytes(bytes(100_000))
            except OutputError as error:
                print(error)
            try:
                write_text(sys.argv[1] + "/terms.json", "x" * 100_000)
            except OutputError as error:
                print(error)
        """

        def limit() -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))

        done = subprocess.run(
            [sys.executable, "-B", "-c", textwrap.dedent(code), tmp_path],
            preexec_fn=limit,
            capture_output=True,
            text=True,
            check=True,
        )
        folder, file = done.stdout.splitlines()
        assert folder.startswith(f"{tmp_path}/model: the disk is full; what was done is kept in")
        assert file == f"{tmp_path}/terms.json: the disk is full; free some space and run it again"
        assert names(tmp_path) == ["model.partial", "terms.json"]
        assert (tmp_path / "terms.json").read_text() == "old"

    def test_other_errors_are_not_taken_for_a_full_disk(self, tmp_path):
        told = r": No such file or directory, .*missing; see to the disk and run it again"
        with pytest.raises(OutputError, match=told), output_folder(Place(tmp_path / "model")):
            (tmp_path / "missing").read_text()


class TestSingleFiles:
    def test_text_and_json(self, tmp_path):
        write_text(tmp_path / "new" / "a.txt", "naïve\n")
        write_json(tmp_path / "b.json", {"weights": [1.5, float("nan"), float("inf")], "path": tmp_path})
        assert (tmp_path / "new" / "a.txt").read_bytes() == "naïve\n".encode()
        read = json.loads((tmp_path / "b.json").read_text())
        assert read == {"weights": [1.5, None, None], "path": str(tmp_path)}
        assert names(tmp_path) == ["b.json", "new"]

    def test_numbers_of_numpy_are_numbers(self, tmp_path):
        import numpy as np

        write_json(tmp_path / "a.json", {"p": np.float32(0.5), "n": np.int64(3), "nan": np.float64("nan")})
        assert json.loads((tmp_path / "a.json").read_text()) == {"p": 0.5, "n": 3, "nan": None}

    def test_a_failing_block_changes_nothing(self, tmp_path):
        write_text(tmp_path / "a", "old")
        with pytest.raises(ZeroDivisionError), open_output(tmp_path / "a") as file:
            file.write("new")
            raise ZeroDivisionError
        assert contents(tmp_path) == {"a": "old"}

    def test_what_a_kill_left_goes_with_the_next_and_what_lives_stays(self, tmp_path):
        write_text(tmp_path / "a", "old")
        code = """
            import sys
            from sparse_adapt.files.writing import open_output
            with open_output(sys.argv[1]) as file:
                file.write("new" * 100_000)
                file.flush()
                print("ready", flush=True)
                sys.stdin.readline()
        """
        killed, living = (run_python(code, tmp_path / "a") for _ in range(2))
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
        assert len(names(tmp_path)) == 3 and (tmp_path / "a").read_text() == "old"
        (tmp_path / ".b.0123456789abcdef.partial").write_text("of another file")
        write_text(tmp_path / "a", "newest")
        assert len(names(tmp_path)) == 3
        living.communicate("go on\n")
        assert names(tmp_path) == [".b.0123456789abcdef.partial", "a"]

    def test_a_link_in_the_way_of_the_temporary_file_is_not_followed(self, tmp_path, monkeypatch):
        (tmp_path / "precious").write_text("precious")
        monkeypatch.setattr(writing.secrets, "token_hex", lambda count: "0" * 2 * count)
        (tmp_path / ".a.0000000000000000.partial").symlink_to(tmp_path / "precious")
        for write in (write_text, write_bytes):
            with pytest.raises(OutputError, match=r"can't be written \(File exists\)"):
                write(tmp_path / "a", "text")
        assert (tmp_path / "precious").read_text() == "precious"

    def test_a_name_in_gz_is_compressed(self, tmp_path):
        write_text(tmp_path / "a.jsonl.gz", "text\n")
        assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()) == b"text\n"

    def test_a_folder_in_its_place(self, tmp_path):
        with pytest.raises(OutputError, match=r"can't be written \(Is a directory\)"):
            write_text(tmp_path, "text")

    def test_devices_are_written_directly(self, tmp_path):
        pipe, read = tmp_path / "pipe", []
        os.mkfifo(pipe)
        (tmp_path / "file").write_text("text")
        for put in (
            lambda place: write_text(place, "text"),
            lambda place: write_bytes(place, b"text"),
            lambda place: publish(tmp_path / "file", place),
        ):
            reader = Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
            reader.start()
            put(pipe)
            reader.join(10)
            assert read.pop() == "text" and pipe.is_fifo() and names(tmp_path) == ["file", "pipe"]
            put(Path("/dev/null"))
            assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("place", ["s3://bucket/model", "gs://bucket/model", Path("s3://bucket/model")])
def test_an_address_is_no_place_to_write_to(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(place, "local folder")
    with pytest.raises(OutputError, match="local folder"):
        write_text(place, "text")
    assert names(tmp_path) == []


@pytest.mark.parametrize("place", ["~", "~/model", "~root/model"])
def test_the_home_that_a_shell_would_name_is_no_name(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(place, "~ is read by shells alone; give the whole path")
    for write in (lambda: write_text(place, "text"), lambda: write_bytes(Path(place), b"text")):
        with pytest.raises(OutputError, match="~ is read by shells alone"):
            write()
    assert names(tmp_path) == []


def test_sync_tolerates_what_a_file_system_cannot_do(tmp_path, monkeypatch):
    def refuse(descriptor: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(writing.os, "fsync", refuse)
    write_text(tmp_path / "a", "text")
    assert contents(tmp_path) == {"a": "text"}
