"""An adaptation under way: what was asked for, where it writes, and which of its steps are done."""

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sparse_adapt.collection.readers import Document
from sparse_adapt.files.folders import write_json, write_text
from sparse_adapt.files.journal import check_same
from sparse_adapt.pipeline.estimate import Expected
from sparse_adapt.pipeline.request import Request
from sparse_adapt.pipeline.run import Listener
from sparse_adapt.report.watching import Heard
from sparse_adapt.teachers.panel import Panel

REQUEST_FILE = "request.json"


class Watcher(Listener, Protocol):
    """Who wants to hear how an adaptation goes: a run's listener that also hears the rest."""

    def count(self, what: str, total: int | None = None) -> Heard:
        """Something is counted; what is returned hears how many more are done."""

    def tell(self, step: str, said: str) -> None:
        """A step is done, or was done before."""

    def expect(self, rows: Sequence[Expected]) -> None:
        """How long it may take, before it begins."""


@dataclass(slots=True)
class Work:
    """An adaptation under way."""

    request: Request
    folder: Path
    watcher: Watcher
    documents: list[Document]
    kept: Path  # vectors of a dense teacher
    panel: Panel | None = None
    records: dict[str, Any] = field(default_factory=dict)

    def step(self, name: str, sources: Mapping[str, Any], made: Sequence[str], do: Callable[[], str]) -> None:
        """Do a step unless it is done: its sources as they were, and what it made still there."""
        path = self.folder / "steps" / f"{name}.json"
        made_from = {key: stamp(value) for key, value in sources.items()}
        if path.is_file():
            held = json.loads(path.read_text(encoding="utf-8"))
            if held["made_from"] == made_from and all((self.folder / each).exists() for each in held["made"]):
                self.records[name] = held
                self.watcher.tell(name, f"{held['said']} (done before)")
                return
        started = time.monotonic()
        said = do()
        there = [each for each in made if (self.folder / each).exists()]
        seconds = round(time.monotonic() - started, 1)
        self.records[name] = {"said": said, "seconds": seconds, "made": there, "made_from": made_from}
        write_json(path, self.records[name])
        self.watcher.tell(name, said)


def same_request(path: Path, request: Request) -> None:
    """Write what was asked for; an unfinished run goes on only with the same."""
    asked = request.plain()
    check_same(path, asked)
    write_json(path, asked)


def stamp(source: object) -> object:
    """A source as it can be compared: a file or a collection by its checksum, a name by itself."""
    if source is None:
        return None
    path = Path(str(source))
    if path.is_dir() and (path / "corpus.jsonl").is_file():
        path = path / "corpus.jsonl"
    if path.is_dir() and (path / "model.safetensors").is_file():
        path = path / "model.safetensors"
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    return str(source)


def move_paths(path: Path, here: Path, there: Path) -> None:
    """Have paths into the work folder point where it will be."""
    text = path.read_text(encoding="utf-8")
    write_text(path, text.replace(str(here.resolve()), str(there.resolve())))
