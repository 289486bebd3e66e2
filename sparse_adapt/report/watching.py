"""How whoever waits hears how far a long piece of work is."""

from collections.abc import Callable

Heard = Callable[[int], None]
"""Hears how many more are done."""

Watch = Callable[[str, int | None], Heard]
"""What is counted, and how many there are where that is known -> who hears of it."""


class Before(int):
    """So many that were done before: they count as done, and say nothing of how fast the work goes."""


def silent(more: int) -> None:
    """Nobody waits."""


def unwatched(what: str, total: int | None = None) -> Heard:
    """Nobody hears."""
    return silent


def duration(seconds: float) -> str:
    """Seconds, minutes or hours, whichever reads best."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
