"""Connections of the explorer's server: one on which no whole request comes is closed after a while.

uvicorn waits for a request as long as a connection is open; whoever opens some and sends half of a request would keep
them all.
"""

import asyncio

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS = 10.0  # in which the head of a request has to come


class ClosingProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, on a connection that is closed while it stays silent."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self.waiting = self.loop.call_later(SECONDS, self._close_silent)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self.waiting.cancel()
        super().connection_lost(exc)

    def _close_silent(self) -> None:
        """Close a connection on which nobody is answered, or is about to be; wait on while somebody is."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering or self.timeout_keep_alive_task is not None:  # uvicorn closes it after its own while
            self.waiting = self.loop.call_later(SECONDS, self._close_silent)
        else:
            self.transport.close()
