"""Threads for another process: small batches keep one core busy, so something else may have the rest meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch

_lent: ContextVar[int] = ContextVar("lent", default=0)


@contextmanager
def lent(count: int) -> Iterator[None]:
    """So many of torch's threads are another's; one at least has to be left."""
    allowed, token = torch.get_num_threads(), _lent.set(count)
    torch.set_num_threads(allowed - count)
    try:
        yield
    finally:
        _lent.reset(token)
        torch.set_num_threads(allowed)


@contextmanager
def called_back() -> Iterator[None]:
    """For large batches, all of torch's threads, the lent ones too: whoever has these is to give way (`os.nice`)."""
    allowed = torch.get_num_threads()
    torch.set_num_threads(allowed + _lent.get())
    try:
        yield
    finally:
        torch.set_num_threads(allowed)
