"""Results appear whole or not at all: folders and files are written beside their place, then renamed.

While a run works, its folder is `<path>.partial`; a run that is stopped leaves that folder for `--resume`
and nothing at `<path>`. A folder that is replaced stays where it is until its successor is complete.
"""

import errno
import gzip
import json
import math
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn, cast

from filelock import FileLock, Timeout

from sparse_adapt.errors import OutputError, SparseAdaptError

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # of which `Path` leaves one slash
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
FULL_WORDS = (
    "no space left on device",
    "disk quota exceeded",
    "file too large",
    "basic_ios::clear: iostream error",
    "pytorchstreamwriter failed",
)


@contextmanager
def output_folder(
    path: str | Path, *, overwrite: bool = False, resume: bool = False, resumable: bool = True
) -> Iterator[Path]:
    """The folder to write in, `<path>.partial`, which becomes `path` when the block ends well.

    A block that fails leaves the partial folder for `resume` (unless `resumable` is False: then it is
    removed) and whatever was at `path` as it was. With `overwrite` a finished folder is replaced, and an
    unfinished one thrown away unless `resume` says to go on with it.

    Raises OutputError, before anything is written, for a place that is taken, in use, or can't be written,
    and for an unfinished run that the call says nothing about; and when the disk fills up in the block.
    """
    place = _checked(Path(path))
    partial = place.with_name(f"{place.name}.partial")
    with _locked(place, path):
        try:
            _restore(place)
            _refuse_taken(place, partial, path, overwrite=overwrite, resume=resume, resumable=resumable)
        except OSError as error:
            _fail(path, error)
        with _working_in(partial, path, anew=overwrite and not resume, resumable=resumable):
            yield partial
            _flush(partial)
            _publish(partial, place, overwrite=overwrite)


@contextmanager
def way_to_file(path: str | Path, *, overwrite: bool = False, resume: bool = False) -> Iterator[Path]:
    """A folder to work in, `<path>.partial`, for a block that ends by writing a file at `path`: then it goes.

    A block that fails leaves what it wrote there for `resume`. Raises OutputError as `output_folder` does.
    """
    place = _checked(Path(path))
    partial = place.with_name(f"{place.name}.partial")
    with _locked(place, path):
        if place.exists() and not overwrite:
            raise OutputError(f"{path}: already there; choose another -o or pass --overwrite")
        if _holds_something(partial) and not (overwrite or resume):
            raise _unfinished(path, partial, resumable=True)
        with _working_in(partial, path, anew=overwrite and not resume, resumable=True):
            yield partial
        shutil.rmtree(partial)


def check_free(path: str | Path, *, overwrite: bool = False) -> None:
    """Raise OutputError where `output_folder` could not begin a new result, before there is anything to put there."""
    place = _checked(Path(path))
    partial = place.with_name(f"{place.name}.partial")
    _refuse_taken(place, partial, path, overwrite=overwrite, resume=False, resumable=False)


def discard_unfinished(path: str | Path) -> None:
    """Remove what a killed run left beside `path` and nobody can go on from. Raises OutputError where one is at it."""
    place = _checked(Path(path))
    with _locked(place, path):
        shutil.rmtree(place.with_name(f"{place.name}.partial"), ignore_errors=True)


@contextmanager
def open_output(path: str | Path) -> Iterator[IO[str]]:
    """A text file to write to, which appears at `path` when the block ends well; gzip if it ends in .gz.

    Raises OutputError where the place can't be written or the disk is full; nothing is left then.
    """
    _refuse_address(path)
    place = Path(path)
    part = None
    try:
        if place.exists() and not place.is_file() and not place.is_dir():  # /dev/stdout and its like
            with place.open("w", encoding="utf-8") as file:
                yield file
            return
        place = place.resolve()
        if place.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{place.name}.{os.getpid()}.partial")
        with _create(part, compressed=place.suffix == ".gz") as file:
            yield file
        _sync(part)
        part.replace(place)
        _sync(place.parent)
    except OSError as error:
        _fail(path, error)
    finally:
        if part is not None:
            with suppress(OSError):
                part.unlink()


def write_text(path: str | Path, text: str) -> None:
    """Put `text` at `path`, whole or not at all."""
    with open_output(path) as file:
        file.write(text)


def write_json(path: str | Path, content: object) -> None:
    """Put `content` at `path` as JSON, whole or not at all. Numbers that aren't finite become null."""
    write_text(path, json.dumps(_finite(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n")


# -- the checks before ---------------------------------------------------------------------------


def _checked(path: Path) -> Path:
    """The place without symbolic links, its parent made. Refuses one that could never be renamed onto."""
    _refuse_address(path)
    try:
        place = path.resolve()
        if place in (Path.cwd(), *Path.cwd().parents, Path("~").expanduser()):
            raise OutputError(f"{path}: holds the folder you are in; choose a new folder inside it with -o")
        if place.is_mount():
            raise OutputError(f"{path}: is a mount point, which can't be replaced; choose a folder inside it")
        place.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        _fail(path, error)
    return place


def _refuse_address(path: str | Path) -> None:
    if ADDRESS.match(str(path)):
        raise OutputError(
            f"{path}: results are written to a local folder; give one with -o and copy it there"
        )


@contextmanager
def _locked(place: Path, path: str | Path) -> Iterator[None]:
    lock = FileLock(place.with_name(f".{place.name}.lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise OutputError(
            f"{path}: another process is writing here; wait until it ends or choose another -o"
        ) from error
    except (OSError, NotImplementedError) as error:
        _fail(path, error)
    try:
        yield
    finally:
        with suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()


def _refuse_taken(
    place: Path, partial: Path, path: str | Path, *, overwrite: bool, resume: bool, resumable: bool
) -> None:
    if place.exists() and not place.is_dir():
        raise OutputError(f"{path}: a file is there; choose another -o")
    if partial.exists() and not partial.is_dir():
        raise OutputError(f"{partial}: a file is in the way; remove it or choose another -o")
    if not overwrite and _holds_something(place):
        raise OutputError(f"{path}: already there; choose another -o or pass --overwrite")
    if not overwrite and not resume and _holds_something(partial):
        raise _unfinished(path, partial, resumable=resumable)


def _unfinished(path: str | Path, partial: Path, *, resumable: bool) -> OutputError:
    go_on = "--resume to continue it or --overwrite to start again"
    advice = go_on if resumable else "--overwrite to discard it"
    return OutputError(f"{path}: an unfinished run is in {partial}; pass {advice}")


def _holds_something(folder: Path) -> bool:
    return folder.is_dir() and any(folder.iterdir())


# -- the renaming after --------------------------------------------------------------------------


def _publish(partial: Path, place: Path, *, overwrite: bool) -> None:
    """Rename the finished folder into place; an old one steps aside first and is deleted last."""
    if _holds_something(place):
        if not overwrite:
            raise OutputError(f"{place}: something was put there meanwhile; the result is in {partial}")
        place.rename(_replaced(place))
    try:
        partial.rename(place)
    except OSError:
        _restore(place)
        raise
    _sync(place.parent)
    shutil.rmtree(_replaced(place), ignore_errors=True)


@contextmanager
def _working_in(partial: Path, path: str | Path, *, anew: bool, resumable: bool) -> Iterator[None]:
    """The folder is there, `anew` or to go on in; a failure leaves what `--resume` can go on from, and nothing else.

    Raises OutputError where it can't be made, or the disk is full.
    """
    try:
        if anew and partial.exists():
            shutil.rmtree(partial)
        partial.mkdir(exist_ok=True)
    except OSError as error:
        _fail(path, error)
    try:
        yield
    except BaseException as error:
        if not resumable:
            shutil.rmtree(partial, ignore_errors=True)
        with suppress(OSError):
            partial.rmdir()  # which works only where nothing was written
        if _is_full(error):
            kept = f"what was done is kept in {partial}; " if partial.exists() else ""
            then = "pass --resume" if partial.exists() else "run it again"
            raise OutputError(f"{path}: the disk is full; {kept}free some space and {then}") from error
        raise


def _restore(place: Path) -> None:
    """Put things right after a run that was killed between two renames: the old folder returns, or goes."""
    replaced = _replaced(place)
    if replaced.is_dir() and _holds_something(place):
        shutil.rmtree(replaced)
    elif replaced.is_dir():
        replaced.rename(place)


def _replaced(place: Path) -> Path:
    return place.with_name(f".{place.name}.replaced")


def _create(path: Path, *, compressed: bool) -> IO[str]:
    if compressed:
        return cast("IO[str]", gzip.open(path, "wt", encoding="utf-8"))
    return path.open("w", encoding="utf-8")


def _flush(folder: Path) -> None:
    """Have the disk hold every file before the rename says that they are there."""
    for root, _, files in os.walk(folder):
        for name in files:
            _sync(Path(root) / name)
        _sync(Path(root))


def _sync(path: Path) -> None:
    if path.is_symlink():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno != errno.EINVAL:  # file systems that can't
            raise
    finally:
        os.close(descriptor)


# -- errors --------------------------------------------------------------------------------------


def _is_full(error: BaseException | None) -> bool:
    """Whether a full disk is behind this; libraries wrap it in errors that hold nothing but its words."""
    while error is not None and not isinstance(error, SparseAdaptError):
        if isinstance(error, OSError) and error.errno in FULL:
            return True
        if any(words in str(error).lower() for words in FULL_WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False


def _fail(path: str | Path, error: BaseException) -> NoReturn:
    if _is_full(error):
        raise OutputError(f"{path}: the disk is full; free some space and run it again") from error
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    raise OutputError(f"{path}: can't be written ({reason}); choose another -o") from error


def _finite(content: object) -> object:
    if isinstance(content, Path):
        return str(content)
    if hasattr(content, "item"):  # a number from numpy or torch
        content = content.item()
    if isinstance(content, float):
        return content if math.isfinite(content) else None
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in cast("dict[object, object]", content).items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return content
