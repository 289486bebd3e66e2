"""Checks of records that stream by: at least one, each id once, some of many."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from sparse_adapt.errors import InputError

T = TypeVar("T")
RECENT = 1 << 16  # ids held as they are
LONGEST_RUN = 1 << 22  # sorted hashes


def at_least_one(items: Iterable[T], path: str | Path, kind: str) -> Iterator[T]:
    """The items as they come. Raises InputError at the end if there was none."""
    empty = True
    for item in items:
        empty = False
        yield item
    if empty:
        raise InputError(path, f"holds no {kind}; check that it is the file you mean")


def sample(things: Iterable[T], most: int, seed: int) -> list[T]:
    """At most so many in their order, each as likely as any other. They are read once, and only `most` are held."""
    random = default_rng([seed, 3])
    rows: list[tuple[int, T]] = []
    for number, thing in enumerate(things):
        if len(rows) < most:
            rows.append((number, thing))
        elif (place := int(random.integers(number + 1))) < most:
            rows[place] = (number, thing)
    return [thing for _, thing in sorted(rows, key=lambda pair: pair[0])]


def evenly(things: Sequence[T], most: int) -> Sequence[T]:
    """At most so many, evenly spaced, the first among them."""
    return things[:: max(1, -(-len(things) // most))]


class Unique:
    """The ids of one file so far, or pairs of ids with a tab between; a second use of one is an error.

    `numbered`: what the numbers count where they are no lines, as those of the documents in a folder.
    """

    def __init__(self, path: str | Path, kind: str, numbered: str = "") -> None:
        self.path, self.kind, self.numbered = path, kind, numbered
        self.first: dict[str, int] = {}

    def add(self, identifier: str, line: int) -> None:
        """Note an id. Raises InputError, which names both lines, if the file has used it already."""
        first = self.first.setdefault(identifier, line)
        if first != line:
            raise self.duplicate(identifier, first, line)

    def duplicate(self, identifier: str, first: int, line: int) -> InputError:
        """The error for an id on two lines."""
        shown = identifier.replace("\t", " ")
        where = f"{self.numbered} {first:,} and {line:,}" if self.numbered else f"first on line {first}"
        problem = f'duplicate {self.kind} "{shown}" ({where}); remove or rename one of them'
        return InputError(self.path, problem, line=None if self.numbered else line)


class UniqueAmongMany(Unique):
    """The ids of one file so far. A second use is an error, raised at most `recent` ids late.

    Of older ids only a hash of 64 bits is kept. Where one comes again, the file is read again to find both
    lines, or that the two ids differ. `again` gives lines and ids from the file's beginning.
    """

    def __init__(
        self,
        path: str | Path,
        kind: str,
        again: Callable[[], Iterable[tuple[int, str]]],
        *,
        numbered: str = "",
        recent: int = RECENT,
        hashed: Callable[[str], int] = hash,
    ) -> None:
        super().__init__(path, kind, numbered)
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
