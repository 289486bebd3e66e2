"""How a record names what lies elsewhere, so that it is found again wherever the record's folder has gone.

What lies in the same run is named from the record's folder (`../1-extend`), so a run can be renamed or copied;
anything else by its whole path. A name that is no path (`splade-tiny`) stays as it is.
"""

import os
from pathlib import Path

NEAR = (f".{os.sep}", f"..{os.sep}", "./", "../")


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


def found(stored: str, folder: Path) -> str:
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
