"""A file appears whole or not at all: it is written beside its place, under a name nobody can guess, then renamed."""

import errno
import fcntl
import gzip
import io
import json
import math
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn, cast

from sparse_adapt.errors import OutputError, SparseAdaptError, first_line

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # of which `Path` leaves one slash
TEMPORARY = re.compile(r"\.(.+)\.[0-9a-f]{16}\.partial")
ORDINARY = 0o666  # of which the umask takes what it takes
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
FULL_WORDS = (
    "no space left on device",
    "disk quota exceeded",
    "file too large",
    "basic_ios::clear: iostream error",
    "pytorchstreamwriter failed",
)
OF_SYSTEM = re.compile(r"\(os error \d+\)")  # in what libraries in Rust raise, which is no OSError


@contextmanager
def open_output(path: str | Path) -> Iterator[IO[str]]:
    """A text file to write to, which appears at `path` when the block ends well; gzip if it ends in .gz.

    Raises OutputError where the place can't be written or the disk is full; nothing is left then.
    """
    with _published(Path(path)) as raw, _text(raw, compressed=Path(path).suffix == ".gz") as file:
        yield file


def write_text(path: str | Path, text: str) -> None:
    """Put `text` at `path`, whole or not at all."""
    with open_output(path) as file:
        file.write(text)


def write_json(path: str | Path, content: object) -> None:
    """Put `content` at `path` as JSON, whole or not at all. Numbers that aren't finite become null."""
    write_text(path, json.dumps(_finite(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_bytes(path: Path, content: bytes) -> None:
    """Put `content` at `path`, whole or not at all. Raises OutputError as `open_output` does."""
    with _published(path) as raw:
        raw.write(content)


def publish(written: Path, place: Path) -> None:
    """Rename a file that another library has written into its place, once the disk holds it; a device takes a copy."""
    if is_device(place):
        with written.open("rb") as file, place.open("wb") as device:
            shutil.copyfileobj(file, device)
        return
    sync(written)
    written.replace(place)
    sync(place.parent)


def give_ordinary_mode(path: Path) -> None:
    """Let others read a file as the umask says; some libraries write for the owner alone."""
    if path.is_file() and not path.is_symlink():
        umask = os.umask(0)
        os.umask(umask)
        path.chmod(path.stat().st_mode | (ORDINARY & ~umask))


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove what killed processes left half written in a folder, of the file `name` alone where it is given.

    What a process that lives is writing stays: the process holds a lock on it.
    """
    for path in list(folder.iterdir()):
        match = TEMPORARY.fullmatch(path.name)
        if match and name in (None, match[1]) and path.is_file() and not path.is_symlink():
            with suppress(OSError):
                _remove_unless_held(path)


def sync(path: Path) -> None:
    """Have the disk hold a file or the names in a folder."""
    if path.is_symlink():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        _sync_open(descriptor)
    finally:
        os.close(descriptor)


def sync_all(folder: Path) -> None:
    """Have the disk hold every file below a folder, and their names."""
    for root, _, files in os.walk(folder):
        for name in files:
            sync(Path(root) / name)
        sync(Path(root))


def _sync_open(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # file systems that can't
            raise


# -- the file beside its place ---------------------------------------------------------------------


def beside(place: Path) -> Path:
    """A name beside a place that nobody can guess, for a while; what a kill leaves there is swept up."""
    return place.with_name(f".{place.name}.{secrets.token_hex(8)}.partial")


@contextmanager
def _published(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to, which is at the path, and on the disk, when the block ends well; a device takes it at once.

    What a kill left of an earlier try goes. Raises OutputError where it can't be written, or the disk is full.
    """
    refuse_address(path)
    try:
        if is_device(path):  # /dev/stdout and its like
            with path.open("wb") as raw:
                yield raw
        else:
            with _renamed_to(path.resolve()) as raw:
                yield raw
    except OSError as error:
        fail(path, error)


@contextmanager
def _renamed_to(place: Path) -> Iterator[IO[bytes]]:
    """A file beside a place, which takes it when the block ends well."""
    if place.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    place.parent.mkdir(parents=True, exist_ok=True)
    sweep(place.parent, place.name)
    part = beside(place)
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, ORDINARY)
    try:
        with os.fdopen(descriptor, "wb") as raw:
            with suppress(OSError):  # file systems without locks
                fcntl.flock(raw, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield raw
            raw.flush()
            _sync_open(raw.fileno())
            part.replace(place)
        sync(place.parent)
    finally:
        with suppress(OSError):
            part.unlink()


@contextmanager
def _text(raw: IO[bytes], *, compressed: bool) -> Iterator[IO[str]]:
    """Text into a file of bytes, which stays open."""
    below = gzip.GzipFile("", "wb", fileobj=raw, mtime=0) if compressed else raw
    text = io.TextIOWrapper(cast("IO[bytes]", below), encoding="utf-8")
    try:
        yield text
    finally:
        text.detach()  # after a flush
    if below is not raw:
        below.close()


def _remove_unless_held(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    finally:
        os.close(descriptor)


# -- errors --------------------------------------------------------------------------------------


def is_device(path: Path) -> bool:
    """Whether a device, a pipe or a socket is at a path: a stream that no file may take the place of."""
    return path.exists() and not path.is_file() and not path.is_dir()


def refuse_address(path: str | Path) -> None:
    """Raise OutputError for an address, such as `s3://bucket/folder`, and for `~`, which is the shell's."""
    if str(path).startswith("~"):
        raise OutputError(
            f"{path}: ~ is read by shells alone; give the whole path, or ./{path} if that is its name"
        )
    if ADDRESS.match(str(path)):
        raise OutputError(
            f"{path}: results are written to a local folder; give one with -o and copy it there"
        )


def is_full(error: BaseException | None) -> bool:
    """Whether a full disk is behind this; libraries wrap it in errors that hold nothing but its words."""
    while error is not None and not isinstance(error, SparseAdaptError):
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        if any(words in str(error).lower() for words in FULL_WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False


def is_of_disk(error: BaseException) -> bool:
    """Whether the system failed to read or write a file; libraries wrap it in errors of their own."""
    if isinstance(error, OSError) or is_full(error):
        return True
    return not isinstance(error, SparseAdaptError) and OF_SYSTEM.search(str(error)) is not None


def fail(path: str | Path, error: BaseException) -> NoReturn:
    """Raise OutputError for a place that can't be written, or a disk that is full."""
    if is_full(error):
        raise OutputError(f"{path}: the disk is full; free some space and run it again") from error
    reason = (error.strerror if isinstance(error, OSError) else None) or first_line(error)
    raise OutputError(f"{path}: can't be written ({reason}); choose another -o") from error


def reason_of(error: BaseException) -> str:
    """What the system says of a failure, and of which file."""
    if is_full(error):
        return "the disk is full"
    reason = (error.strerror if isinstance(error, OSError) else None) or first_line(error)
    name = error.filename if isinstance(error, OSError) else None
    return reason if name is None else f"{reason}, {os.fsdecode(name) if isinstance(name, bytes) else name}"


def plain_number(value: object) -> object:
    """A number without what numpy, torch or pandas put around it; anything else as it is."""
    return value.item() if hasattr(value, "item") else value


def _finite(content: object) -> object:
    if isinstance(content, Path):
        return str(content)
    content = plain_number(content)
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in cast("dict[object, object]", content).items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return content
