"""How whoever waits hears how far a long piece of work is."""

from collections.abc import Callable

Watch = Callable[[str, int | None], Callable[[int], None]]
"""What is counted, and how many there are where that is known -> who hears how many more are done."""


def unwatched(what: str, total: int | None = None) -> Callable[[int], None]:
    """Nobody hears."""
    return lambda more: None
