"""The Hub's HTTP API as far as making a repository, pushing one commit and downloading go, over real connections."""

import base64
import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import SHUT_RDWR
from threading import Thread
from typing import Any

TOKEN = "hf_ofthetests"


class SmallHub:
    """Repositories with their files, whether they are private, and how many commits each has.

    `refuse`: a status that answers every request that writes. `cut`: a part of an address at which connections break,
    in the middle of what is sent or received. `repeats`: whether a refusal repeats the token that it was sent.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.private: set[str] = set()
        self.commits: dict[str, int] = {}
        self.stored: dict[str, bytes] = {}  # large files by their SHA-256, in a commit or not yet
        self.refuse, self.cut, self.address, self.repeats = 0, "", "", False

    def get(self, path: str) -> Any:
        """What the Hub tells of a repository, or the bytes of a file."""
        if path.startswith("/api/models/"):
            name, _, rest = path.removeprefix("/api/models/").partition("/tree/")
            name = name.partition("/revision/")[0]
            files = self.repositories.get(name)
            if files is None:
                return None
            if rest:
                return [self._entry(path, content) for path, content in files.items()]
            siblings = [{"rfilename": path} for path in files]
            told = {"id": name, "sha": self.sha(name), "private": name in self.private}
            return {**told, "siblings": siblings, "tags": [], "downloads": 0, "likes": 0}
        name, _, rest = path[1:].partition("/resolve/")
        return self.repositories.get(name, {}).get(rest.partition("/")[2])

    def sha(self, name: str) -> str:
        """The id of a repository's last commit."""
        return hashlib.sha1(f"{name} {self.commits[name]}".encode()).hexdigest()

    def post(self, path: str, body: bytes) -> Any:
        """What the Hub answers to a request that writes; None where nothing is there."""
        if path == "/api/repos/create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            self.repositories[name], self.commits[name] = {".gitattributes": b""}, 0
            if asked.get("visibility") == "private":
                self.private.add(name)
            return {"url": f"{self.address}/{name}", "name": name}
        if path.endswith("/info/lfs/objects/batch"):
            return {"objects": [self._lfs(each) for each in json.loads(body)["objects"]]}
        if path == "/api/validate-yaml":  # of the card
            return {"errors": [], "warnings": []}
        name, _, action = path.removeprefix("/api/models/").rpartition("/")[0].rpartition("/")
        if name not in self.repositories:
            return None
        if action == "preupload":
            return {"files": [self._mode(each) for each in json.loads(body)["files"]]}
        assert action == "commit", path
        for line in body.splitlines():
            self._change(self.repositories[name], **json.loads(line))
        self.commits[name] += 1
        return {"commitUrl": f"{self.address}/{name}/commit/1", "commitOid": self.sha(name)}

    def _entry(self, path: str, content: bytes) -> dict[str, Any]:
        large = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 1}
        told = {"type": "file", "path": path, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}
        return {**told, "lfs": large} if path.endswith((".safetensors", ".pack")) else told

    def _mode(self, asked: dict[str, Any]) -> dict[str, Any]:
        mode = "lfs" if asked["path"].endswith((".safetensors", ".pack")) else "regular"
        return {"path": asked["path"], "uploadMode": mode, "shouldIgnore": False}

    def _lfs(self, asked: dict[str, Any]) -> dict[str, Any]:
        told = {"oid": asked["oid"], "size": asked["size"]}
        upload = {"upload": {"href": f"{self.address}/lfs/{asked['oid']}"}}
        return told if asked["oid"] in self.stored else {**told, "actions": upload}

    def _change(self, files: dict[str, bytes], key: str, value: dict[str, Any]) -> None:
        if key == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        elif key == "lfsFile":
            files[value["path"]] = self.stored[value["oid"]]
        elif key == "deletedFile":
            del files[value["path"]]
        else:
            assert key == "header", key


class Handler(BaseHTTPRequestHandler):
    """Answers from `hub`, and breaks connections in the middle where it says so."""

    protocol_version = "HTTP/1.1"
    hub: SmallHub

    def log_message(self, *_: Any) -> None:
        """Nothing is written."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        found = self.hub.get(path)
        if isinstance(found, bytes):
            commit = self.hub.sha(path[1:].partition("/resolve/")[0])
            self._answer(200, found, ETag=f'"{hashlib.sha256(found).hexdigest()}"', X_Repo_Commit=commit)
        else:
            self._tell(found)

    do_HEAD = do_GET

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            return
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self._answer(401, b'{"error": "Invalid username or password."}')
        elif self.hub.refuse:
            told = "You don't have the rights to write to this namespace"
            sent = f"{'x' * 150} {self.headers['Authorization']}" if self.hub.repeats else told
            self._answer(self.hub.refuse, json.dumps({"error": sent}).encode())
        else:
            self._tell(self.hub.post(self.path.partition("?")[0], body))

    def do_PUT(self) -> None:
        body = self._body()
        if body is not None:
            assert hashlib.sha256(body).hexdigest() == self.path.rpartition("/")[2]
            self.hub.stored[hashlib.sha256(body).hexdigest()] = body
            self._tell({})

    @property
    def _breaks(self) -> bool:
        return bool(self.hub.cut) and self.hub.cut in self.path

    def _body(self) -> bytes | None:
        """What is sent; None where the connection broke in the middle of it."""
        size = int(self.headers.get("Content-Length") or 0)
        if self._breaks:
            self.rfile.read(size // 2)
            self.connection.shutdown(SHUT_RDWR)
            self.close_connection = True
            return None
        return self.rfile.read(size)

    def _tell(self, found: Any) -> None:
        if found is None:
            self._answer(404, b'{"error": "Repository not found"}', X_Error_Code="RepoNotFound")
        else:
            self._answer(200, json.dumps(found).encode())

    def _answer(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content_Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: len(body) // 2] if self._breaks else body)
            self.close_connection = self.close_connection or self._breaks


@contextmanager
def small_hub() -> Iterator[SmallHub]:
    """A Hub at `address`, for as long as the block lasts."""
    hub = SmallHub()
    with ThreadingHTTPServer(("127.0.0.1", 0), type("HandlerOfOne", (Handler,), {"hub": hub})) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        hub.address = f"http://127.0.0.1:{server.server_port}"
        yield hub
        server.shutdown()
