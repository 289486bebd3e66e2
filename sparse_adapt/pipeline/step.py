"""A piece of work that is done once: again only where what it was made from has changed since.

`carry_out` keeps a record of each step in the run's folder, `steps/NAME.json`. A source that is a file, a folder or a
model counts by its checksum (`files.checksum`), wherever it lies and whatever it is called; a name or a setting counts
by itself.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from sparse_adapt.collection.addresses import Address, Location, fingerprint
from sparse_adapt.collection.sources import lies_at
from sparse_adapt.errors import InputError
from sparse_adapt.files.checksum import checksum
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.journal import other
from sparse_adapt.files.paths import found, portable

STEPS_FOLDER = "steps"
PATH, SHA256 = "path", "sha256"  # keys of a source's stamp


class Source(NamedTuple):
    """Something that a step reads: as it was named, and where what is read of it lies; a bare name has no place."""

    named: str
    place: Location | None = None


def of_collection(named: str | Path, names: Sequence[str]) -> Source:
    """A file, a folder of which the first of `names` is read, a bundled corpus, an address, or a data set's name."""
    return Source(str(named), lies_at(named, names))


def of_model(named: str) -> Source:
    """A model folder, an alias or a Hub id."""
    from sparse_adapt.model.saved import model_at  # loads torch

    return Source(named, model_at(named))


def of_path(named: str | Path) -> Source:
    """A file or a folder, all of it; anything else is a name."""
    return Source(str(named), Path(named) if Path(named).exists() else None)


@dataclass(frozen=True, slots=True)
class Step:
    """What is done, and by what it is known whether it has to be.

    sources: by a word for each, a `Source`, or a value that counts by itself; makes: names of files and folders in
    the run's folder, of which those count that are there afterwards; do: does it, and says what came of it.
    """

    name: str
    sources: Mapping[str, object]
    makes: Sequence[str]
    do: Callable[[], str]


class Done(BaseModel):
    """The record of a step that is done: what came of it, how long it took, what it made and from what."""

    model_config = ConfigDict(frozen=True)

    said: str
    seconds: float
    made: tuple[str, ...]
    made_from: dict[str, Any]


def carry_out(step: Step, folder: Path) -> tuple[Done, bool]:
    """The record of a step in a run's folder, and whether it was done before: from the same, and all still there."""
    path = folder / STEPS_FOLDER / f"{step.name}.json"
    stamps = {key: stamp(source, path.parent, folder) for key, source in step.sources.items()}
    done = _recorded(path)
    if done is not None and not changed(done.made_from, stamps, path.parent) and _is_there(done, folder):
        return done, True
    path.unlink(missing_ok=True)  # so that a kill doesn't leave it beside what is half made anew
    started = time.monotonic()
    said = step.do()
    seconds = round(time.monotonic() - started, 1)
    made = tuple(name for name in step.makes if (folder / name).exists())
    done = Done(said=said, seconds=seconds, made=made, made_from=stamps)
    write_json(path, done.model_dump(mode="json"))
    return done, False


def _recorded(path: Path) -> Done | None:
    """The record at a path; None where there is none, or one that nobody can read."""
    try:
        return Done.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None


def _is_there(done: Done, folder: Path) -> bool:
    return all((folder / name).exists() for name in done.made)


# -- what something was made from -----------------------------------------------------------------


def stamp(source: object, folder: Path, home: Path | None = None) -> Any:  # noqa: ANN401 - as JSON has it
    """A source as a record in `folder` keeps it: its path from there, if both lie in the run `home`, and its checksum.

    Anything but a `Source` stands for itself. Raises InputError for a place that can't be read.
    """
    if not isinstance(source, Source):
        return source
    held = {PATH: portable(source.named, folder, home)}
    return held if source.place is None else {**held, SHA256: checksum_at(source.place)}


def checksum_at(place: Location) -> str:
    """The checksum of a place here, or what a remote file system tells a change of its file by."""
    if isinstance(place, Address):
        return fingerprint(place)
    try:
        return checksum(place)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(place, f"can't be read ({reason}); check the file") from error


def changed(before: Mapping[str, Any], now: Mapping[str, Any], folder: Path) -> str:
    """The first of these stamps that differs from what a record in `folder` holds, in words; empty where none does."""
    for key, value in now.items():
        if not is_same(before.get(key), value, folder):
            return other(key, _shown(before.get(key)), _shown(value))
    return ""


def is_same(before: object, now: object, folder: Path) -> bool:
    """Whether two stamps in `folder` are of the same content, which is the same wherever it lies.

    Records that were written when stamps had one part hold a checksum alone, or a path.
    """
    if not isinstance(now, dict) or PATH not in now:
        return before == now
    held = before if isinstance(before, dict) else {PATH: before, SHA256: before}
    sums, path = (held.get(SHA256), now.get(SHA256)), held.get(PATH)
    if sums[0] == sums[1] is not None:
        return True
    both = isinstance(before, dict) and None not in sums
    return not both and isinstance(path, str) and found(path, folder) == found(now[PATH], folder)


def is_unchanged(held: Mapping[str, str], source: Source) -> bool:
    """Whether a source is still what a record holds of it; a bare name always is."""
    return SHA256 not in held or (source.place is not None and held[SHA256] == checksum_at(source.place))


def _shown(value: object) -> object:
    return value.get(PATH) if isinstance(value, dict) and PATH in value else value
