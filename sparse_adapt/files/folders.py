"""Results appear whole or not at all: folders and files are written beside their place, then renamed.

While a run works, its folder is `<path>.partial`; a run that is stopped leaves that folder for `--resume`
and nothing at `<path>`. What is made at once says so in its marker, and is begun anew. A folder that is replaced stays
where it is until its successor is complete. Only what bears our marker (`files.marker`) is ever removed, and only while
nothing of somebody else lies in it: no file that the marker doesn't list, of unfinished work none that came after it
(`files.under_way`), and no link.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from filelock import FileLock, Timeout

from sparse_adapt.errors import OutputError, SparseAdaptError
from sparse_adapt.files.marker import MARKER_FILE, is_left, mark, marker_of, remove, strangers, vouch
from sparse_adapt.files.place import Place, Reads, is_there
from sparse_adapt.files.under_way import pulse, put_there
from sparse_adapt.files.writing import (
    fail,
    give_ordinary_mode,
    is_full,
    is_of_disk,
    publish,
    reason_of,
    refuse_address,
    sweep,
    sync,
    sync_all,
)
from sparse_adapt.files.writing import open_output as open_output
from sparse_adapt.files.writing import write_json as write_json
from sparse_adapt.files.writing import write_text as write_text

LOCK = ".sparse-adapt.lock"  # what the name of a lock ends in; the file is empty


@contextmanager
def output_folder(place: Place) -> Iterator[Path]:
    """The folder to write in, `<folder>.partial`, which becomes the place's folder when the block ends well.

    A block that fails leaves the partial folder for `resume` (unless `resumable` is False: then it is
    removed, by the next call where a kill left it) and whatever was there as it was. With `overwrite` a finished
    folder is replaced, and an unfinished one thrown away unless `resume` says to go on with it; but only a folder that
    bears our marker, holds nothing besides, and isn't among what the command `reads`.

    Raises OutputError, before anything is written, for a place that is taken, in use, or can't be written,
    and for an unfinished run that the call says nothing about; and when the disk fills up in the block.
    """
    with _locked(place.folder, place.reads) as target:
        partial = _partial(target)
        _begin(target, place)
        with _working_in(partial, place):
            yield partial
            _settle(partial)
            _publish(partial, target, overwrite=place.overwrite)


@contextmanager
def way_to_file(place: Place) -> Iterator[Path]:
    """A folder to work in, `<folder>.partial`, for a block that ends by writing a file of that name in it.

    The file is put at the place, and the folder goes; without the file the folder goes as well. A block that fails
    leaves what it wrote there for `resume`. Raises OutputError as `output_folder` does.
    """
    with _locked(place.folder, place.reads) as target:
        partial = _partial(target)
        _restore(target)
        if target.exists() and not place.overwrite:
            raise _taken(place.folder)
        _refuse_unfinished(partial, place)
        with _working_in(partial, place):
            yield partial
            if (written := partial / target.name).is_file():
                mark(partial, at_once=True)  # so that a kill doesn't leave a way that has been gone
                publish(written, target)
        remove(partial)


def check_free(place: Place) -> None:
    """Raise OutputError where `output_folder` could not begin a new result, before there is anything to put there."""
    with _locked(place.folder, place.reads) as target:
        _begin(target, replace(place, resume=False))


def check_replaceable(place: Place, *, read: Callable[[Path], object], what: str) -> None:
    """Raise OutputError unless a file may be put at a place: where there is one, it has to be of the same kind.

    read: what reads files of that kind, and refuses others; what: the kind in words.
    """
    path = place.folder
    if not path.is_file():
        return
    if not place.overwrite:
        raise _taken(path)
    _refuse_inputs(path.resolve(), path, place.reads)
    try:
        if path.stat().st_size:
            read(path)
    except SparseAdaptError as error:
        raise OutputError(f"{path}: holds no {what}, so it isn't replaced; choose another -o") from error


def tidy(path: str | Path) -> None:
    """Remove what a process that was killed at the very end left beside a whole result."""
    with _locked(path) as place:
        _restore(place)


def discard(path: str | Path) -> None:
    """Remove a folder of ours, with what a kill left of such a removal. Raises OutputError where somebody is at it."""
    with _locked(path) as place:
        _restore(place)
        if (marker := marker_of(place)) is not None:
            _refuse_strangers(place, place) if marker.sha256 else _refuse_put_there(place)
            remove(place)
        elif place.is_dir() and not any(place.iterdir()):
            place.rmdir()


# -- the checks before ---------------------------------------------------------------------------


def _checked(path: Path, reads: Reads) -> Path:
    """The place without symbolic links, its parent made. Refuses one that is read, or could never be renamed onto."""
    refuse_address(path)
    try:
        place = path.resolve()
        if place in (Path.cwd(), *Path.cwd().parents, Path("~").expanduser()):
            raise OutputError(f"{path}: holds the folder you are in; choose a new folder inside it with -o")
        if place.is_mount():
            raise OutputError(f"{path}: is a mount point, which can't be replaced; choose a folder inside it")
        _refuse_inputs(place, path, reads)
        place.parent.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError) as error:
        fail(path, error)
    return place


def _partial(place: Path) -> Path:
    return place.with_name(f"{place.name}.partial")


def _refuse_inputs(place: Path, path: str | Path, reads: Reads) -> None:
    """Refuse a place that is read by the same command, holds what is read, or lies in a folder that is."""
    for read in reads:
        source = None if read is None else Path(read)
        if source is None or not source.exists():
            continue
        source = source.resolve()
        if source == place or place in source.parents or (source.is_dir() and source in place.parents):
            relation = "is" if source == place else "holds" if place in source.parents else "lies in"
            raise OutputError(f"{path}: {relation} what this command reads ({read}); choose another -o")


@contextmanager
def _locked(path: str | Path, reads: Reads = ()) -> Iterator[Path]:
    """The place without symbolic links, which no other process writes for the while."""
    place = _checked(Path(path), reads)
    file = place.with_name(f".{place.name}{LOCK}")
    if not _may_be_lock(file):
        raise _not_ours(file)
    lock = FileLock(file, timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise OutputError(
            f"{path}: another process is writing here; wait until it ends or choose another -o"
        ) from error
    except (OSError, NotImplementedError) as error:
        fail(path, error)
    try:
        yield place
    finally:
        with suppress(OSError):
            Path(lock.lock_file).unlink()
        lock.release()


def _begin(target: Path, place: Place) -> None:
    """Put right what a kill left, and raise OutputError where nothing may be written."""
    try:
        _restore(target)
        _refuse_taken(target, place)
    except OSError as error:
        fail(place.folder, error)


def _refuse_taken(target: Path, place: Place) -> None:
    if target.exists() and not target.is_dir():
        raise OutputError(f"{place.folder}: a file is there; choose another -o")
    if _holds_something(target):
        if not place.overwrite:
            raise _taken(place.folder)
        _refuse_strangers(target, place.folder)
    _refuse_unfinished(_partial(target), place)


def _taken(path: str | Path) -> OutputError:
    return OutputError(f"{path}: already there; choose another -o or pass --overwrite")


def _refuse_unfinished(partial: Path, place: Place) -> None:
    if partial.is_symlink():
        raise _not_ours(partial)
    if partial.exists() and not partial.is_dir():
        raise OutputError(f"{partial}: a file is in the way; remove it or choose another -o")
    if partial.is_dir():
        sweep(partial, MARKER_FILE)
    if not _holds_something(partial):
        return
    if marker_of(partial) is None:
        raise OutputError(
            f"{partial}: holds no {MARKER_FILE}, so it is no unfinished run of this version; "
            "move it away or choose another -o"
        )
    if not place.overwrite and not place.resume:
        go_on = "--resume to continue it or --overwrite to start again"
        advice = go_on if place.resumable else "--overwrite to discard it"
        raise OutputError(f"{place.folder}: an unfinished run is in {partial}; pass {advice}")
    _refuse_put_there(partial, links_alone=place.resume)


def _refuse_put_there(partial: Path, *, links_alone: bool = False) -> None:
    """Refuse to remove unfinished work, or to write through links in it, where not all that lies there is its own."""
    for stranger in put_there(partial):
        if stranger.is_symlink():
            raise _not_ours(stranger)
        if not links_alone:
            raise OutputError(
                f"{stranger}: was written after the work there had stopped, so it may be yours; move it away or "
                "choose another -o"
            )


def _not_ours(path: Path) -> OutputError:
    return OutputError(
        f"{path}: isn't of sparse-adapt, though it has the name; move it away or choose another -o"
    )


def _may_be_lock(path: Path) -> bool:
    """Whether nothing is at a lock's place, or what may be a lock: an empty file."""
    return not path.is_symlink() and (not path.exists() or (path.is_file() and not path.stat().st_size))


def _refuse_strangers(place: Path, path: str | Path) -> None:
    """Refuse to replace a folder that isn't ours, or that holds something of somebody else's."""
    if marker_of(place) is None:
        raise OutputError(
            f"{path}: holds no {MARKER_FILE}, so it may be yours; remove it yourself or choose another -o"
        )
    for stranger in strangers(place)[:1]:
        raise OutputError(
            f"{path}: holds {stranger.relative_to(place)}, which sparse-adapt didn't write; "
            "move it away or choose another -o"
        )


def _holds_something(folder: Path) -> bool:
    """Whether anything but our marker lies in a folder."""
    if not folder.is_dir():
        return False
    return any(path.name != MARKER_FILE for path in folder.iterdir()) or (
        (folder / MARKER_FILE).exists() and marker_of(folder) is None
    )


# -- the renaming after --------------------------------------------------------------------------


def _publish(partial: Path, place: Path, *, overwrite: bool) -> None:
    """Rename the finished folder into place; an old one steps aside first and is deleted last."""
    if _holds_something(place):
        if not overwrite or strangers(place):
            raise OutputError(f"{place}: something was put there meanwhile; the result is in {partial}")
        place.rename(_replaced(place))
    elif marker_of(place) is not None:
        remove(place)
    try:
        partial.rename(place)
    except OSError:
        _restore(place)
        raise
    sync(place.parent)
    if marker_of(_replaced(place)) is not None:
        with suppress(OSError):
            remove(_replaced(place))


@contextmanager
def _working_in(partial: Path, place: Place) -> Iterator[None]:
    """The folder is there, anew or to go on in; a failure leaves what `--resume` can go on from, and nothing else.

    Raises OutputError where it can't be made, the disk is full, or reading or writing a file fails.
    """
    anew = place.overwrite and not place.resume
    try:
        if partial.exists() and (anew or not _holds_something(partial)):
            remove(partial)
        partial.mkdir(exist_ok=True)
        if marker_of(partial) is None:
            mark(partial, at_once=not place.resumable)
    except OSError as error:
        fail(place.folder, error)
    try:
        with pulse(partial):
            yield
    except BaseException as error:
        with suppress(OSError):
            if not place.resumable or not _holds_something(partial):
                remove(partial)
        if not is_of_disk(error):
            raise
        hint = f"what was done is kept in {partial}; " if is_there(partial) else ""
        then = "pass --resume" if hint else "run it again"
        mend = "free some space" if is_full(error) else "see to the disk"
        raise OutputError(f"{place.folder}: {reason_of(error)}; {hint}{mend} and {then}") from error


def _restore(place: Path) -> None:
    """Put things right after a run that was killed: between two renames the old folder returns, or goes.

    What nobody can go on from goes too.
    """
    replaced, partial = _replaced(place), _partial(place)
    if is_left(partial):
        if marker_of(partial) is not None:
            _refuse_put_there(partial)
        remove(partial)
    if replaced.is_symlink():
        raise _not_ours(replaced)
    if marker_of(replaced) is None:
        return
    _refuse_strangers(replaced, replaced)
    if _holds_something(place):
        remove(replaced)
    else:
        replaced.rename(place)


def _replaced(place: Path) -> Path:
    return place.with_name(f".{place.name}.replaced")


def _settle(folder: Path) -> None:
    """What a whole result has: nothing half written, ordinary modes, a marker that vouches for it, all on the disk."""
    for root, _, files in os.walk(folder):
        here = Path(root)
        sweep(here)
        for name in files:
            path = here / name
            if name.startswith(".") and name.endswith(LOCK) and _may_be_lock(path):
                path.unlink()
            else:
                give_ordinary_mode(path)
    vouch(folder)
    sync_all(folder)
