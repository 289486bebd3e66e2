"""Loops over arrays as machine code, and work shared out among threads of this process or among other processes."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import torch
from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])
Item = TypeVar("Item")
Key = TypeVar("Key")
Result = TypeVar("Result")
Model = TypeVar("Model", bound=torch.nn.Module)

WORTH_A_THREAD = 1 << 28  # multiply-adds, about a millisecond: to start a thread takes a tenth of that


def compiled(function: Function) -> Function:
    """The function as machine code that lets threads run; compiled anew where nothing can be kept."""
    try:
        return cast(Function, njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder for the cache
        return cast(Function, njit(nogil=True)(function))


def share_out(
    make_worker: Callable[[], Callable[[Item], None]], items: Sequence[Item], multiply_adds: int
) -> None:
    """Work on every item, on as many threads as torch has where there is enough to do; each makes its worker.

    A torch operation inside such a thread stays on it, so that blocks don't wait for each other.
    """
    threads = min(torch.get_num_threads(), len(items), 1 + multiply_adds // WORTH_A_THREAD)
    if threads <= 1:
        worker = make_worker()
        for item in items:
            worker(item)
        return
    remaining, allowed = deque(items), torch.get_num_threads()

    def work_on_next() -> None:
        torch.set_num_threads(1)  # of this thread only
        with torch.no_grad():
            worker = make_worker()
            while remaining:
                try:
                    item = remaining.popleft()
                except IndexError:  # another thread was faster
                    return
                worker(item)

    try:
        with ThreadPoolExecutor(threads) as executor:
            try:
                for done in [executor.submit(work_on_next) for _ in range(threads)]:
                    done.result()
            finally:
                remaining.clear()  # after an error nobody starts on the rest
    finally:
        torch.set_num_threads(allowed)  # threads that start later take their number from the last call


# -- other processes ------------------------------------------------------------------------------


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
