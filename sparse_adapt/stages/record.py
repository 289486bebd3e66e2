"""`stage.json`: what a stage's model was made from, with which settings and versions.

The next stage reads there what it inherits, and a resumed run whether the stage is still what was asked for.
"""

import hashlib
import json
import time
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

RECORD_FILE = "stage.json"
BEGUN_WITH = ("stage", "model", "files", "settings")  # of a record: what can't change when a run goes on
PACKAGES = ("sparse-adapt", "torch", "transformers", "tokenizers", "accelerate")


def new_record(
    stage: str, model: str, files: Mapping[str, str], settings: Mapping[str, Any], started: float
) -> dict[str, Any]:
    """The record of a stage that began at a moment of the monotonic clock, as far as it is known by now."""
    return {
        "stage": stage,
        "model": str(Path(model).resolve()) if Path(model).is_dir() else model,
        "files": {name: _stamp(path) for name, path in files.items()},
        "settings": dict(settings),
        "versions": {package: version(package) for package in PACKAGES},
        "seconds": round(time.monotonic() - started, 1),
    }


def read_record(folder: str | Path) -> dict[str, Any] | None:
    """The record of a model folder; None where no stage made it."""
    path = Path(folder) / RECORD_FILE
    return cast(dict[str, Any], json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def read_before(model: str) -> dict[str, str]:
    """Files that the stage behind a model folder read, those that are as they were, under the names of its inputs."""
    record = read_record(model)
    files = {} if record is None else record.get("files", {})
    return {name: entry["path"] for name, entry in files.items() if _is_unchanged(entry)}


def extended_from(model: str) -> str | None:
    """The model that the last extension behind a model folder began with; None where nothing tells of one."""
    place = model
    while (record := read_record(place)) is not None:
        place = str(record["model"])
        if record["stage"] == "extend":
            return place
    return None


def _stamp(path: str) -> dict[str, str]:
    """A file's path and checksum; names of datasets and bundled corpora stay as they are."""
    place = Path(path) / "corpus.jsonl" if Path(path).is_dir() else Path(path)
    if not place.is_file():
        return {"path": path}
    return {"path": str(Path(path).resolve()), "sha256": hashlib.sha256(place.read_bytes()).hexdigest()}


def _is_unchanged(entry: Mapping[str, str]) -> bool:
    return "sha256" not in entry or _stamp(entry["path"]).get("sha256") == entry["sha256"]
