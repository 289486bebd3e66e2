"""Where a result is written, and how a record names what lies elsewhere, so that it is found again after a move.

What lies in the same run is named from the record's folder (`../1-extend`), so a run can be renamed or copied;
anything else by its whole path. A name that is no path (`splade-tiny`) stays as it is.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

NEAR = (f".{os.sep}", f"..{os.sep}", "./", "../")
Reads = Iterable[str | Path | None]  # what a command reads; a name that is no path counts for nothing


@dataclass(frozen=True, slots=True)
class Place:
    """A folder for a result, and what may be there before.

    `overwrite`: a finished result is replaced, an unfinished one thrown away. `resume`: an unfinished one is gone on
    with. `resumable`: whether a result that fails leaves anything to go on with. `reads`: what is never replaced.
    """

    folder: Path
    overwrite: bool = False
    resume: bool = False
    reads: Reads = ()
    resumable: bool = True
    home: Path | None = None  # the folder of the run that it belongs to
    again: bool = False  # what was begun with something else is thrown away, not refused

    @property
    def partial(self) -> Path:
        """The folder while work on it is under way."""
        return self.folder.with_name(f"{self.folder.name}.partial")

    def reading(self, reads: Reads) -> "Place":
        """The same place for a command that reads these."""
        return replace(self, reads=tuple(reads))


# -- names of places ---------------------------------------------------------------------------------


def absolute(source: str) -> str:
    """A path as it can be found from anywhere; a name that is no path as it stands."""
    return str(Path(source).resolve()) if Path(source).exists() else source


def portable(source: str, folder: Path, home: Path | None) -> str:
    """How a record in `folder` names a source: from there where both lie in `home`, else as `absolute` does."""
    place = Path(source)
    if home is None or not place.exists() or not place.resolve().is_relative_to(home.resolve()):
        return absolute(source)
    near = Path(os.path.relpath(place.resolve(), folder.resolve())).as_posix()
    return near if near.startswith("../") else f"./{near}"


def source_in(stored: str, folder: Path) -> str:
    """The source that a record in `folder` names: a path from here, or a name."""
    return str((folder / stored).resolve()) if stored.startswith(NEAR) else stored


def is_there(path: Path) -> bool:
    """Whether something is at a path; nothing is where the path is none that the system knows, being too long."""
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def is_path(source: str) -> bool:
    """Whether a source is written as a path, whether or not anything is there."""
    return source.startswith((os.sep, "~", *NEAR)) or source in (".", "..")


def free(path: str | Path) -> str:
    """A path like this one where nothing is yet."""
    place, number = Path(path), 2
    while place.exists() or place.with_name(f"{place.name}.partial").exists():
        place, number = Path(path).with_stem(f"{Path(path).stem}-{number}"), number + 1
    return str(place)
