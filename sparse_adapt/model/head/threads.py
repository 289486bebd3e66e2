"""Loops over arrays as machine code, and work shared out among threads."""

from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import torch
from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])
Item = TypeVar("Item")

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
