"""A process that dies at its n-th file operation: from then on it does nothing to the disk, tidying up included."""

import builtins
import gc
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

WRITING = frozenset("wax+")
ALWAYS = ("fsync",)  # by descriptor
BY_NAME = ("rename", "replace", "unlink", "remove", "rmdir", "mkdir", "truncate")


class Killed(BaseException):
    """The process is dead."""


class Process:
    """Counts the operations on files below a folder, and dies at one of them."""

    def __init__(self, root: Path, dies_at: int) -> None:
        self.root, self.dies_at, self.count, self.ended = str(root), dies_at, 0, False

    def operates(self) -> None:
        """Another operation begins, unless the process is dead, or dies now."""
        if self.ended:
            return
        self.count += 1
        if self.count >= self.dies_at:
            raise Killed

    def is_below(self, path: object, options: dict[str, Any]) -> bool:
        """Whether an operation is on a file that counts."""
        known = isinstance(path, str | os.PathLike)
        return options.get("dir_fd") is not None or (known and os.fspath(path).startswith(self.root))


@contextmanager
def dying_at(operation: int, root: Path) -> Iterator[Process]:
    """Within the block the process dies at an operation on a file below `root`; nobody dies at a large number."""
    process = Process(root, operation)
    with pytest.MonkeyPatch.context() as patch:
        for name in (*ALWAYS, *BY_NAME):
            patch.setattr(os, name, _counted(process, getattr(os, name), always=name in ALWAYS))
        patch.setattr(os, "open", _created(process, os.open))
        for module in (io, builtins):
            patch.setattr(module, "open", _opened(process, module.open))
        yield process
    process.ended = True


def _counted(process: Process, function: Callable[..., Any], *, always: bool) -> Callable[..., Any]:
    def call(*given: Any, **options: Any) -> Any:
        if always or process.is_below(given[0], options):
            process.operates()
        return function(*given, **options)

    return call


def _opened(process: Process, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(file: Any, mode: str = "r", *given: Any, **options: Any) -> Any:
        if not WRITING.isdisjoint(mode) and process.is_below(file, {}):
            process.operates()
        return function(file, mode, *given, **options)

    return call


def _created(process: Process, function: Callable[..., Any]) -> Callable[..., Any]:
    def call(path: Any, flags: int, *given: Any, **options: Any) -> Any:
        if flags & os.O_CREAT and process.is_below(path, options):
            process.operates()
        return function(path, flags, *given, **options)

    return call


def killed_at(operation: int, root: Path, work: Callable[[], object]) -> bool:
    """Do something in a process that dies; whether it did, or came to its end before."""
    died = False
    try:
        with dying_at(operation, root):
            work()
    except Killed:
        died = True
    gc.collect()  # lets go of the locks, as the system does for a dead process
    return died


def operations_of(root: Path, work: Callable[[], object]) -> int:
    """How many operations on files below a folder something takes."""
    with dying_at(2**62, root) as process:
        work()
        return process.count
