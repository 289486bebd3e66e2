"""What an unfinished run leaves of itself: what it was asked, and a line for every piece of work that is whole."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sparse_adapt.errors import ConfigError, InputError


def check_same(path: Path, asked: Mapping[str, Any]) -> None:
    """A run goes on only with what it was begun with, which `path` holds if there was one.

    Raises ConfigError, which names the first thing that differs.
    """
    if not path.is_file():
        return
    begun = _begun(path)
    for key, value in json.loads(json.dumps(asked)).items():
        if begun.get(key) != value:
            begun_with = other(key, begun.get(key), value)
            raise ConfigError(
                f"{path}: begun with {begun_with}; go on with the same, or start again, which loses what is there, "
                "with --overwrite"
            )


def _begun(path: Path) -> Mapping[str, Any]:
    try:
        begun = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"broken ({error}); pass --overwrite to start again") from error
    if not isinstance(begun, dict):
        raise InputError(path, "doesn't say what the run was begun with; pass --overwrite to start again")
    return begun


def other(key: str, before: object, now: object) -> str:
    """What something was made with that isn't what is asked now, in words; of settings those that differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
        return f"other {key} ({', '.join(names)})"
    return f"no {key}" if before is None else f"another {key} ({before})"


def note(path: Path, line: str) -> None:
    """Add a line, which is on the disk when this returns."""
    with path.open("ab") as file:
        file.write(f"{line}\n".encode())
        file.flush()
        os.fsync(file.fileno())


def noted(path: Path) -> list[str]:
    """The lines so far. One that a kill cut is taken away, so that the next begins where it began."""
    if not path.is_file():
        return []
    *whole, cut = path.read_bytes().split(b"\n")
    if cut:
        os.truncate(path, path.stat().st_size - len(cut))
    return [line.decode(errors="replace") for line in whole]
