"""Other processes that read many texts with a model, such as those of a cluster."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Generic, NamedTuple, Protocol, TypeVar

import torch

Item = TypeVar("Item")
Key = TypeVar("Key")
Result = TypeVar("Result")
Model = TypeVar("Model", bound=torch.nn.Module)


class Piece(NamedTuple, Generic[Key, Item]):
    """A piece of a model's work: what knows its result again, what the work needs, and what an error calls it."""

    key: Key
    item: Item
    name: str


class Workers(Protocol):
    """Processes that hold copies of a model, one thread each, such as those of a cluster."""

    @property
    def workers(self) -> int:
        """How many pieces are worked on at once."""

    def each(
        self, do: Callable[[Model, Item], Result], model: Model, pieces: Iterable[Piece[Key, Item]]
    ) -> Iterator[tuple[Key, Result]]:
        """What `do`, a function of a module, makes of each piece with the model, in any order."""


_WORKERS: ContextVar[Workers | None] = ContextVar("workers", default=None)


@contextmanager
def read_by(workers: Workers | None) -> Iterator[None]:
    """Have many texts read by other processes for the while, however deep within the work; None: by this one."""
    before = _WORKERS.set(workers)
    try:
        yield
    finally:
        _WORKERS.reset(before)


def other_processes() -> Workers | None:
    """The processes that read texts for this one, where there are any."""
    return _WORKERS.get()
