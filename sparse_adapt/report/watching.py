"""How whoever waits hears how far a long piece of work is."""

from collections.abc import Callable

Heard = Callable[[int], None]
"""Hears how many more are done."""

Watch = Callable[[str, int | None], Heard]
"""What is counted, and how many there are where that is known -> who hears of it."""


def silent(more: int) -> None:
    """Nobody waits."""


def unwatched(what: str, total: int | None = None) -> Heard:
    """Nobody hears."""
    return silent
