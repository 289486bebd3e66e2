"""A result that is under way: what in its folder is the work's own, and what somebody put there after a kill.

While work goes on, the folder's marker is as young as a pulse keeps it. Whatever is younger than the marker of work
that was stopped isn't of that work, and no link ever is.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread

from sparse_adapt.files.marker import MARKER_FILE

SECONDS = 1.0  # between two beats
LATE = 15.0  # seconds by which a beat may be late, while compiled code lets no other thread run


@contextmanager
def pulse(folder: Path) -> Iterator[None]:
    """Keep the marker of a folder young while the block lasts."""
    marker, ended = folder / MARKER_FILE, Event()

    def beat() -> None:
        while not ended.wait(SECONDS):
            _touch(marker)

    thread = Thread(target=beat, name="pulse", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        _touch(marker)


def put_there(folder: Path) -> list[Path]:
    """What lies in the folder of work that was stopped and isn't of that work: links, and files younger than it."""
    marker = folder / MARKER_FILE
    stopped = marker.lstat().st_mtime + LATE
    return sorted(
        path
        for path in folder.rglob("*")
        if path.is_symlink() or (path.is_file() and path != marker and path.stat().st_ctime > stopped)
    )


def _touch(marker: Path) -> None:
    with suppress(OSError):  # gone, or renamed with its folder
        os.utime(marker)
