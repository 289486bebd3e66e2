"""What something was made from, as a record keeps it: by the checksum of what was read, wherever it lies.

A source that is a file, a folder or a model counts by its checksum (`files.marker`); a name or a setting counts by
itself.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from sparse_adapt.collection.opening import Address, Location, fingerprint
from sparse_adapt.collection.sources import lies_at
from sparse_adapt.collection.texts import loose_files
from sparse_adapt.errors import InputError
from sparse_adapt.files.journal import other
from sparse_adapt.files.marker import checksum
from sparse_adapt.files.place import absolute, found, is_path, portable
from sparse_adapt.model.folder import ModelFolder, ModelSource

PATH, SHA256 = "path", "sha256"  # keys of a source's stamp


class Source(NamedTuple):
    """Something that a step reads: as it was named, and where what is read of it lies; a bare name has no place.

    `loose`: whether the place is a folder of texts, of which no other file counts.
    """

    named: str
    place: Location | None = None
    loose: bool = False
    model: ModelFolder | None = None  # whose checksum is taken once


def of_collection(named: str | Path, names: Sequence[str]) -> Source:
    """A file, a folder of which the first of `names` is read, a bundled corpus, an address, or a data set's name."""
    place = lies_at(named, names)
    return Source(str(named), place, isinstance(place, Path) and place.is_dir())


def of_model(named: ModelSource) -> Source:
    """A model folder, an alias or `hub:owner/name`."""
    model = ModelFolder.of(named)
    return Source(model.source, model.local, model=model)


def of_path(named: str | Path) -> Source:
    """A file or a folder, all of it; anything else is a name."""
    return Source(str(named), Path(named) if Path(named).exists() else None)


def stamp(source: object) -> Any:  # noqa: ANN401 - as JSON has it
    """A source as its path and checksum; anything but a `Source` stands for itself.

    Raises InputError for a place that can't be read.
    """
    if not isinstance(source, Source):
        return source
    held = {PATH: absolute(source.named)}
    return held if source.place is None else {**held, SHA256: _checksum_of(source, source.place)}


def _checksum_of(source: Source, place: Location) -> str:
    """The checksum of a place here, or what a remote file system tells a change of its file by."""
    if isinstance(place, Address):
        return fingerprint(place)
    try:
        if source.model is not None:
            return source.model.checksum
        return checksum(place, loose_files(place) if source.loose else None)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(place, f"can't be read ({reason}); check the file") from error


# -- in a record ------------------------------------------------------------------------------------


def kept(stamps: Mapping[str, Any], folder: Path, home: Path | None) -> dict[str, Any]:
    """Stamps as a record in `folder` keeps them: what lies in the run `home` is named from there."""
    return {
        key: {**value, PATH: portable(value[PATH], folder, home)} if _is_stamp(value) else value
        for key, value in stamps.items()
    }


def read(stamps: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The stamps that a record in `folder` keeps, with paths from here."""
    return {
        key: {**value, PATH: found(value[PATH], folder)} if _is_stamp(value) else value
        for key, value in stamps.items()
    }


def changed(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """The first thing by which stamps differ from those that there were, in words; empty where nothing does."""
    for key in (*now, *(key for key in before if key not in now)):
        if not is_same(before.get(key), now.get(key)):
            return _told(key, before.get(key), now.get(key))
    return ""


def is_same(before: object, now: object) -> bool:
    """Whether two stamps are of the same content, which is the same wherever it lies.

    Records that were written when stamps had one part hold a checksum alone, or a path.
    """
    if not _is_stamp(now):
        return before == now
    if isinstance(before, str):
        return before in now.values()
    if not _is_stamp(before):
        return False
    if SHA256 in before and SHA256 in now:
        return bool(before[SHA256] == now[SHA256])
    gone = SHA256 in before and is_path(now[PATH])
    return not gone and bool(before[PATH] == now[PATH])


def _is_stamp(value: object) -> TypeGuard[Mapping[str, str]]:
    return isinstance(value, Mapping) and isinstance(value.get(PATH), str)


def _told(key: str, before: object, now: object) -> str:
    if not _is_stamp(before):
        return other(key, before, now)
    return f"{'another' if key == 'model' else 'other'} {key} ({before[PATH]})"
