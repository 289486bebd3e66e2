"""Where a result is written: the folder, what may already be there, and what the same command reads."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

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
