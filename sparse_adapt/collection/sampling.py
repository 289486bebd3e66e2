"""Some of many: drawn by chance, or evenly spaced."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from numpy.random import default_rng

Thing = TypeVar("Thing")


def sample(things: Iterable[Thing], most: int, seed: int) -> list[Thing]:
    """At most so many in their order, each as likely as any other. They are read once, and only `most` are held."""
    random = default_rng([seed, 3])
    kept: list[tuple[int, Thing]] = []
    for number, thing in enumerate(things):
        if len(kept) < most:
            kept.append((number, thing))
        elif (place := int(random.integers(number + 1))) < most:
            kept[place] = (number, thing)
    return [thing for _, thing in sorted(kept, key=lambda pair: pair[0])]


def evenly(things: Sequence[Thing], most: int) -> Sequence[Thing]:
    """At most so many, evenly spaced, the first among them."""
    return things[:: max(1, -(-len(things) // most))]
