"""What a process that is killed at a file operation leaves: its folder as it lay there when the operation began."""

import builtins
import hashlib
import io
import json
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from commands import ran

from sparse_adapt.files.marker import faults, marker_of, strangers
from sparse_adapt.pipeline import adapt

State = dict[str, bytes | None]
"""What lies in a folder: bytes by path, None for a folder within."""

WRITING = frozenset("wax+")
ALWAYS = ("fsync",)  # by descriptor
BY_NAME = ("rename", "replace", "unlink", "remove", "rmdir", "mkdir", "truncate", "link", "symlink")
REPORT = "whole/report.json"  # of a run; once it is there, every stage is done
LUCENES_OWN = re.compile(r"whole/(_|segments)")
RANDOM = re.compile(r"\.[0-9a-f]{16}\.partial")


class Watched:
    """A folder whose states are kept: one before each operation on a file below it, each once."""

    def __init__(self, root: Path) -> None:
        self.root, self.operations = root, 0
        self.states: dict[str, State] = {}
        self._held: dict[bytes, bytes] = {}

    def operates(self, path: object, options: dict[str, Any], *, always: bool) -> None:
        """An operation begins; where it is on a file below the folder, that is what a kill would leave now."""
        known = isinstance(path, str | os.PathLike)
        below = options.get("dir_fd") is not None or (known and os.fspath(path).startswith(str(self.root)))
        if always or below:
            self.operations += 1
            state = state_of(self.root, self._held)
            self.states.setdefault(_name_of(state), state)


def state_of(root: Path, held: dict[bytes, bytes] | None = None) -> State:
    """All that lies below a folder; bytes that are `held` already aren't held twice."""
    held = {} if held is None else held
    state: State = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        content = None if path.is_dir() else path.read_bytes()
        state[name] = None if content is None else held.setdefault(content, content)
    return state


def restore(root: Path, state: State) -> None:
    """Have a folder hold a state, and nothing else."""
    for path in root.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    for name, content in state.items():
        (root / name).mkdir() if content is None else (root / name).write_bytes(content)


def watched(root: Path, work: Callable[[], object]) -> Watched:
    """Every state that a kill can leave of something that writes below a folder."""
    found = Watched(root)
    with _watching(found):
        work()
    return found


def _name_of(state: State) -> str:
    """The same for states that differ by the random names of temporary files alone."""
    digest = hashlib.sha256()
    for name, content in sorted((RANDOM.sub(".partial", name), content) for name, content in state.items()):
        digest.update(repr((name, content if content is None else hashlib.sha256(content).digest())).encode())
    return digest.hexdigest()


@contextmanager
def _watching(found: Watched) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in (*ALWAYS, *BY_NAME):
            patch.setattr(os, name, _counted(found, getattr(os, name), always=name in ALWAYS))
        patch.setattr(os, "open", _created(found, os.open))
        for module in (io, builtins):
            patch.setattr(module, "open", _opened(found, module.open))
        yield


def _counted(found: Watched, function: Callable[..., Any], *, always: bool) -> Callable[..., Any]:
    def call(*given: Any, **options: Any) -> Any:
        found.operates(given[0], options, always=always)
        return function(*given, **options)

    return call


def _opened(found: Watched, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(file: Any, mode: str = "r", *given: Any, **options: Any) -> Any:
        if not WRITING.isdisjoint(mode):
            found.operates(file, {}, always=False)
        return function(file, mode, *given, **options)

    return call


def _created(found: Watched, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(path: Any, flags: int, *given: Any, **options: Any) -> Any:
        if flags & os.O_CREAT:
            found.operates(path, options, always=False)
        return function(path, flags, *given, **options)

    return call


@pytest.fixture
def no_clock(monkeypatch):
    """Every moment is the same, so that records of a run and of a resumed one are; and no disk is waited for."""
    torch.set_num_threads(1)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    monkeypatch.setattr(time, "strftime", lambda *_: "2026-01-01T00:00:00+0000")
    monkeypatch.setattr(adapt, "peak_memory", lambda: 0)


def content(folder: Path) -> State:
    """All that lies beside and in a result; of a report without which stages were done before."""
    found = state_of(folder)
    if marker_of(folder / "whole") is not None:
        assert not [*faults(folder / "whole"), *strangers(folder / "whole")]
    if (report := found.get(REPORT)) is not None:
        told = json.loads(report)
        stages = [{**stage, "message": ""} for stage in told.get("stages", [])]
        found[REPORT] = json.dumps({**told, "stages": stages}, sort_keys=True).encode()
        del found["whole/sparse-adapt.json"]
        found |= dict.fromkeys(found.keys() & {"whole/report.html"}, b"")  # shows the report
    of_lucene = [path for path in found if LUCENES_OWN.match(path)]  # hold numbers of chance
    if of_lucene:
        assert ran("verify", str(folder / "whole"))[0] == 0
    return {**found, **dict.fromkeys([*of_lucene, *(["whole/sparse-adapt.json"] if of_lucene else [])], b"")}
