"""Ids that may occur once each, in files too long to hold all their ids: 8 bytes for each of those long past."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.collection.lines import Unique
from sparse_adapt.errors import InputError

RECENT = 1 << 16  # ids held as they are
LONGEST_RUN = 1 << 22  # sorted hashes


class UniqueAmongMany(Unique):
    """The ids of one file so far. A second use is an error, told at most `recent` ids late.

    Of older ids only a hash of 64 bits is kept. Where one comes again, the file is read again to find both
    lines, or that the two ids differ. `again` gives lines and ids from the file's beginning.
    """

    def __init__(
        self,
        path: str | Path,
        kind: str,
        again: Callable[[], Iterable[tuple[int, str]]],
        *,
        recent: int = RECENT,
        hashed: Callable[[str], int] = hash,
    ) -> None:
        super().__init__(path, kind)
        self.again, self.recent, self.hashed = again, recent, hashed
        self.runs: list[NDArray[np.int64]] = []  # sorted, each shorter than the one before

    def add(self, identifier: str, line: int) -> None:
        """Note an id. Raises InputError for one of the recent ids, or for any when these are full."""
        try:
            super().add(identifier, line)
        except InputError:
            self.settle()  # which raises for what came twice before
            raise
        if len(self.first) >= self.recent:
            self.settle()

    def settle(self) -> None:
        """Compare the recent ids with all before, and keep their hashes only."""
        hashes = np.fromiter(map(self.hashed, self.first), np.int64, len(self.first))
        known = np.zeros(len(hashes), dtype=bool)
        for run in self.runs:
            known |= run[np.searchsorted(run, hashes).clip(max=len(run) - 1)] == hashes
        if known.any():
            self._look_again({identifier for identifier, seen in zip(self.first, known, strict=True) if seen})
        self.first.clear()
        hashes.sort()
        while self.runs and len(self.runs[-1]) <= len(hashes) <= LONGEST_RUN:
            hashes = np.concatenate([self.runs.pop(), hashes])
            hashes.sort(kind="stable")
        if len(hashes):
            self.runs.append(hashes)

    def _look_again(self, suspects: set[str]) -> None:
        last = max(self.first[identifier] for identifier in suspects)
        seen: dict[str, int] = {}
        for line, identifier in self.again():
            if identifier in suspects and identifier in seen:
                raise self.duplicate(identifier, seen[identifier], line)
            if identifier in suspects:
                seen[identifier] = line
            if line >= last:
                return
