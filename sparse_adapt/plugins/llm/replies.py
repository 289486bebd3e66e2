"""The bounds of a server's reply: how many bytes are read of it, and until when; and how long to wait after a failure.

A reply is read as it comes. One that never ends, that trickles in, or that is packed so that nobody knows how much
comes out of it, is given up on at its bound, an error's text like any other.
"""

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LONGEST_WAIT, FIRST_WAIT, GROWN_WAIT = 60.0, 0.5, 8.0  # seconds: that a server may ask for; of our own

_now = threading.local()


class Overdue(Exception):
    """A reply that doesn't end by the call's deadline."""


class TooLong(Exception):
    """A reply with more bytes than what was asked for can have, or packed so that nobody knows."""


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Have replies that this thread reads end by a deadline, in seconds of the monotonic clock."""
    _now.deadline = deadline
    try:
        yield
    finally:
        del _now.deadline


def bounded(response: Any, most: int) -> None:  # noqa: ANN401 - of httpx, by whichever name openai has it
    """Have a response be read up to so many bytes and to the deadline, and never be unpacked."""
    library = sys.modules[type(response).__module__.partition(".")[0]]
    stream, deadline = response.stream, _now.deadline
    packed = response.headers.get("content-encoding", "identity") != "identity"

    class Bounded(library.SyncByteStream):  # type: ignore[misc, name-defined]
        def __iter__(self) -> Iterator[bytes]:
            read = 0
            for part in stream:
                read += len(part)
                if read > most or packed:
                    raise TooLong
                if time.monotonic() > deadline:
                    raise Overdue
                yield part

        def close(self) -> None:
            stream.close()

    response.stream = Bounded()


def bound_behind(error: BaseException | None) -> TooLong | Overdue | None:
    """The bound that a call ran into, which a library wraps in an error of its own."""
    while error is not None:
        if isinstance(error, TooLong | Overdue):
            return error
        error = error.__cause__ or error.__context__
    return None


def seconds_to_wait(error: Exception, repeat: int) -> float:
    """Seconds before a call is repeated: as many as the server asks for, up to a minute, or a growing number."""
    answer = getattr(error, "response", None)
    asked = answer.headers.get("retry-after", "") if answer is not None else ""
    try:
        return min(max(float(asked), 0.0), LONGEST_WAIT)
    except ValueError:
        return min(FIRST_WAIT * 2.0 ** (repeat - 1), GROWN_WAIT)
