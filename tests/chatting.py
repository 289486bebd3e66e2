"""A small server of OpenAI's chat protocol, which answers as a test says, or fails in one of the ways of real ones."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Reply(NamedTuple):
    """Status, body and headers of a reply; of one that is cut the connection ends before the body does.

    parts: what comes instead of a body, one after the other, of a reply that doesn't say how long it is.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = {}
    cut: bool = False
    parts: Iterable[bytes] | None = None


def answer(content: str | None) -> Reply:
    """A reply in which the model says this."""
    message = {"role": "assistant", "content": content}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return Reply(200, json.dumps({"id": "1", "object": "chat.completion", "choices": choices}).encode())


def failed(status: int, message: str, **headers: str) -> Reply:
    """An error as servers of the protocol word it."""
    return Reply(status, json.dumps({"error": {"message": message}}).encode(), headers)


class Chat:
    """`write` makes a reply of the last message and of how often that has come; `requests` holds what came."""

    def __init__(self, write: Callable[[str, int], Reply]) -> None:
        self.write, self.lock = write, threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.times: list[float] = []
        self.seen: Counter[str] = Counter()

    @property
    def asked(self) -> list[str]:
        """The last message of each request."""
        return [request["messages"][-1]["content"] for request in self.requests]

    def reply(self, request: dict[str, Any], headers: Mapping[str, str]) -> Reply:
        """What comes back."""
        text = request["messages"][-1]["content"]
        with self.lock:
            self.requests.append(request)
            self.headers.append(headers)
            self.times.append(time.monotonic())
            self.seen[text] += 1
            times = self.seen[text]
        return self.write(text, times)


@contextmanager
def serving(chat: Chat) -> Iterator[str]:
    """The address of a server, while it runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/chat/completions"
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = chat.reply(request, {name.lower(): value for name, value in self.headers.items()})
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Type", "application/json")
            if reply.parts is None:
                self.send_header("Content-Length", str(len(reply.body) + reply.cut))
            self.end_headers()
            for part in (reply.body,) if reply.parts is None else reply.parts:
                self.wfile.write(part)

        def log_message(self, *_: object) -> None: ...

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.handle_error = lambda *_: None  # a client that has gone is no trouble
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        http.server_close()
