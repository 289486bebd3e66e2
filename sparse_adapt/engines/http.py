"""Requests to a server that speaks JSON over HTTP, and what goes wrong with them, in one line."""

import base64
import json
import ssl
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from sparse_adapt.errors import ConfigError, OutputError

SECONDS = 60
BUSY = (429, 502, 503, 504)
MOST_TRIES = 5
FIRST_PAUSE = 0.5  # seconds; each further one is twice as long


class Answer(NamedTuple):
    """What a server answered: its status, and the JSON, or the text where it is none."""

    status: int
    content: Any

    @property
    def good(self) -> bool:
        """Whether it did what it was asked."""
        return 200 <= self.status < 300

    @property
    def reason(self) -> str:
        """What it says went wrong, in one line."""
        return f"status {self.status}: {_said(self.content)}"


class Server:
    """A server at a URL, in which a user and a password may stand. One connection, renewed when it breaks."""

    def __init__(self, url: str, *, seconds: float = SECONDS, first_pause: float | None = None) -> None:
        """Name the server. Raises ConfigError for what is no URL."""
        parts = _parts(url)
        self.place = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        self._root = parts.path.rstrip("/")
        self._headers = {"Accept": "application/json"}
        if parts.username:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        self._parts, self._seconds = parts, seconds
        self._first_pause = FIRST_PAUSE if first_pause is None else first_pause
        self._connection: HTTPConnection | None = None

    def ask(
        self, method: str, path: str, body: bytes | Mapping[str, Any] | None = None, kind: str = "json"
    ) -> Answer:
        """Send a request; one that finds the server busy is sent again after a pause, some times.

        Raises OutputError where there is no server.
        """
        content = body if isinstance(body, bytes | None) else json.dumps(body, ensure_ascii=False).encode()
        headers = self._headers | ({} if content is None else {"Content-Type": f"application/{kind}"})
        for number in range(MOST_TRIES - 1):
            answer = self._once(method, path, content, headers)
            if answer.status not in BUSY:
                return answer
            self.pause(number)
        return self._once(method, path, content, headers)

    def pause(self, number: int) -> None:
        """Leave a busy server alone, the longer the more often (number: 0, 1, ...) it has been busy."""
        time.sleep(self._first_pause * 2**number)

    def close(self) -> None:
        """Let go of the connection."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    def _once(self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]) -> Answer:
        fresh = self._connection is None
        try:
            return self._exchange(method, path, content, headers)
        except (OSError, HTTPException) as error:
            self.close()
            if not fresh and not isinstance(error, TimeoutError):  # a server may end an idle connection
                return self._once(method, path, content, headers)
            said = str(error) or type(error).__name__
            raise OutputError(
                f"{self.place}: can't be reached ({said}); see that the server runs there"
            ) from error

    def _exchange(self, method: str, path: str, content: bytes | None, headers: Mapping[str, str]) -> Answer:
        if self._connection is None:
            self._connection = self._connect()
        self._connection.request(method, f"{self._root}{path}", content, dict(headers))
        return _read(self._connection.getresponse())

    def _connect(self) -> HTTPConnection:
        host = self._parts.hostname or ""
        if self._parts.scheme == "https":
            context = ssl.create_default_context()
            return HTTPSConnection(host, self._parts.port, timeout=self._seconds, context=context)
        return HTTPConnection(host, self._parts.port, timeout=self._seconds)


def _parts(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise ConfigError(f"{url!r} is no URL ({error}); give one such as http://localhost:9200") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{url!r} is no URL of a server; give one such as http://localhost:9200")
    return parts


def _read(response: HTTPResponse) -> Answer:
    content = response.read()
    try:
        return Answer(response.status, json.loads(content) if content else None)
    except ValueError:
        return Answer(response.status, content.decode(errors="replace"))


def _said(content: Any) -> str:  # noqa: ANN401 - whatever the server sent
    """The most telling part of an error's JSON, in one line."""
    while isinstance(content, Mapping):
        inner = next((content[key] for key in ("error", "reason", "message") if key in content), None)
        if inner is None:
            break
        content = inner
    text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
    return " ".join(text.split())[:300] or "no reason given"
