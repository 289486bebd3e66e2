"""A piece of work that is done once: again only where what it was made from has changed since.

`carry_out` keeps a record of each step in the run's folder, `steps/NAME.json`, unless the step writes one itself.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from sparse_adapt.files.folders import write_json
from sparse_adapt.stages.made_from import changed, kept, read, stamp

STEPS_FOLDER = "steps"


@dataclass(frozen=True, slots=True)
class Step:
    """What is done, and by what it is known whether it has to be.

    sources: by a word for each, a `made_from.Source`, or a value that counts by itself; makes: names of files and
    folders in the run's folder, of which those count that are there afterwards; do: does it, and says what came of it.
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


def carry_out(step: Step, folder: Path, home: Path | None = None) -> tuple[Done, bool]:
    """The record of a step in a run's folder, and whether it was done before: from the same, and all still there.

    `home`: the run's folder, where `folder` is a part of it.
    """
    path = folder / STEPS_FOLDER / f"{step.name}.json"
    stamps = {key: stamp(source) for key, source in step.sources.items()}
    done = _recorded(path)
    if (
        done is not None
        and not changed(read(done.made_from, path.parent), stamps)
        and _is_there(done, folder)
    ):
        return done, True
    path.unlink(missing_ok=True)  # so that a kill doesn't leave it beside what is half made anew
    started = time.monotonic()
    said = step.do()
    seconds = round(time.monotonic() - started, 1)
    made = tuple(name for name in step.makes if (folder / name).exists())
    made_from = kept(stamps, path.parent, home or folder)
    done = Done(said=said, seconds=seconds, made=made, made_from=made_from)
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
