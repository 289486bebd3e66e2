"""Work that is done once: done already where its record says that it was made from the same.

A source that is a file, a folder or a model counts by its checksum (`files.marker`), wherever it lies; a name or a
setting counts by itself. A step keeps its record in `steps/NAME.json`, a stage in `stage.json` beside its model, a
whole run in `request.json`; `made_from_same` compares each of them with what is named now.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple, TypeGuard

from pydantic import BaseModel, ConfigDict, ValidationError

from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.marker import checksum
from sparse_adapt.files.place import absolute, is_path, portable, source_in
from sparse_adapt.files.writing import write_json

STEPS_FOLDER = "steps"
UNCOUNTED = "memory"  # a setting of how work is done, which may be another when it goes on
PATH, SHA256 = "path", "sha256"  # keys of a source's stamp


class Source(NamedTuple):
    """Something that a step reads: as it was named, and where what is read of it lies; a bare name has no place.

    `checksum`: how its content is known again, by default all of the file or folder.
    """

    named: str
    place: str | Path | None = None
    checksum: Callable[[], str] | None = None

    def once(self) -> "Source":
        """The same, hashed once: for whoever reads it once and goes on with what it read."""
        if self.place is None:
            return self
        return self._replace(checksum=cache(self.checksum or partial(checksum, self.place)))


def of_path(named: str | Path) -> Source:
    """A file or a folder, all of it; anything else is a name."""
    return Source(str(named), Path(named) if Path(named).exists() else None)


def stamps_of(sources: Mapping[str, object]) -> dict[str, object]:
    """Each source as its stamp; anything but a `Source` stands for itself. Raises InputError as `stamp` does."""
    return {key: stamp(each) if isinstance(each, Source) else each for key, each in sources.items()}


def stamp(source: Source) -> dict[str, str]:
    """A source as its path and checksum. Raises InputError for a place that can't be read."""
    path = {PATH: absolute(source.named)}
    if source.place is None:
        return path
    try:
        content = checksum(Path(source.place)) if source.checksum is None else source.checksum()
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(source.place, f"can't be read ({reason}); check the file") from error
    return {**path, SHA256: content}


# -- one comparison -------------------------------------------------------------------------------


def made_from_same(
    record: Path, before: Mapping[str, object] | None, now: Mapping[str, object], *, again: bool = False
) -> bool:
    """Whether what has a record was made from what is named now; without a record it wasn't made.

    Raises ConfigError, which names the first thing that differs, unless it may be made `again`.
    """
    differs = "" if before is None else changed(_counted(before), _counted(now))
    if differs and not again:
        raise ConfigError(
            f"{record}: made with {differs}; go on with the same, or start again, which loses what is there: pass "
            "--overwrite without --resume"
        )
    return before is not None and not differs


def _counted(made_from: Mapping[str, object]) -> dict[str, object]:
    """What something is made from, tables within it too, without what doesn't count."""
    return {
        key: _counted(value) if isinstance(value, Mapping) else value
        for key, value in made_from.items()
        if key != UNCOUNTED
    }


def check_request(record: Path, request: Mapping[str, object]) -> None:
    """Raise ConfigError where a file holds another request than this one, InputError where it holds none."""
    try:
        before = json.loads(record.read_bytes()) if record.is_file() else None
    except (ValueError, RecursionError) as error:
        raise InputError(record, f"broken ({error}); pass --overwrite to start again") from error
    if before is not None and not isinstance(before, dict):
        raise InputError(record, "doesn't say what the run was begun with; pass --overwrite to start again")
    made_from_same(record, before, json.loads(json.dumps(request)))


def changed(before: Mapping[str, object], now: Mapping[str, object]) -> str:
    """The first thing by which stamps differ from those that there were, in words; empty where nothing does."""
    for key in (*now, *(key for key in before if key not in now)):
        if not is_same(before.get(key), now.get(key)):
            return _difference(key, before.get(key), now.get(key))
    return ""


def is_same(before: object, now: object) -> bool:
    """Whether two stamps are of the same content, which is the same wherever it lies."""
    if not _is_stamp(now) or not _is_stamp(before):
        return before == now
    if SHA256 in before and SHA256 in now:
        return bool(before[SHA256] == now[SHA256])
    gone = SHA256 in before and is_path(now[PATH])
    return not gone and bool(before[PATH] == now[PATH])


def _is_stamp(value: object) -> TypeGuard[Mapping[str, str]]:
    return isinstance(value, Mapping) and isinstance(value.get(PATH), str)


def _difference(key: str, before: object, now: object) -> str:
    """A source or setting that differs, in words; of a table of settings those that differ."""
    if _is_stamp(before):
        if _is_stamp(now) and before[PATH] == now[PATH]:
            return f"the {key} {before[PATH]}, which changed since"
        return f"{'another' if key == 'model' else 'other'} {key} ({before[PATH]})"
    if isinstance(before, dict) and isinstance(now, dict):
        names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        return f"other {key} ({', '.join(names)})"
    return f"no {key}" if before is None else f"another {key} ({before})"


# -- in a record ----------------------------------------------------------------------------------


def to_record(stamps: Mapping[str, object], folder: Path, home: Path | None) -> dict[str, object]:
    """Stamps as a record in `folder` keeps them: what lies in the run `home` is named from there."""
    return {
        key: {**value, PATH: portable(value[PATH], folder, home)} if _is_stamp(value) else value
        for key, value in stamps.items()
    }


def from_record(stamps: Mapping[str, object], folder: Path) -> dict[str, object]:
    """The stamps that a record in `folder` keeps, with paths from here."""
    return {
        key: {**value, PATH: source_in(value[PATH], folder)} if _is_stamp(value) else value
        for key, value in stamps.items()
    }


# -- a step of a run ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """What is done, and by what it is known whether it has to be.

    sources: by a word for each, a `Source`, or a value that counts by itself; makes: names of files and folders in the
    run's folder, of which those count that are there afterwards; do: does it, and says what came of it.
    """

    name: str
    sources: Mapping[str, object]
    makes: Sequence[str]
    do: Callable[[], str]


class Done(BaseModel):
    """The record of a step that is done: what came of it, how long it took, what it made and from what."""

    model_config = ConfigDict(frozen=True)

    message: str
    seconds: float
    made: tuple[str, ...]
    made_from: dict[str, object]


def carry_out(step: Step, folder: Path, home: Path | None = None) -> tuple[Done, bool]:
    """The record of a step in a run's folder, and whether it was done before: from the same, and all still there.

    `home`: the run's folder, where `folder` is a part of it.
    """
    path = folder / STEPS_FOLDER / f"{step.name}.json"
    stamps = stamps_of(step.sources)
    done = _recorded(path)
    before = None if done is None else from_record(done.made_from, path.parent)
    if made_from_same(path, before, stamps, again=True):
        assert done is not None, path
        if all((folder / name).exists() for name in done.made):
            return done, True
    path.unlink(missing_ok=True)  # so that a kill doesn't leave it beside what is half made anew
    started = time.monotonic()
    message = step.do()
    seconds = round(time.monotonic() - started, 1)
    made = tuple(name for name in step.makes if (folder / name).exists())
    made_from = to_record(stamps, path.parent, home or folder)
    done = Done(message=message, seconds=seconds, made=made, made_from=made_from)
    write_json(path, done.model_dump(mode="json"))
    return done, False


def _recorded(path: Path) -> Done | None:
    """The record at a path; None where there is none, or one that nobody can read."""
    try:
        return Done.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return None
