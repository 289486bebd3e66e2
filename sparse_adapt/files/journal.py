"""Lines of an unfinished run: one for every piece of work that is whole."""

import os
from pathlib import Path


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
