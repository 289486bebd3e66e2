"""`stage.json`: what a stage's model was made from, with which settings and versions.

The next stage reads there what it inherits, and a resumed run whether the stage still has the same request. What lies
in the same run is named from the stage's folder (`../1-extend`), so a run can be renamed or copied; in memory every
path is whole.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar, cast

from pydantic import AfterValidator, BaseModel, ConfigDict

from sparse_adapt.collection.sources import of_collection
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.records import parse_record
from sparse_adapt.files.steps import PATH, SHA256, Source, from_record, is_same, of_path, stamp, to_record
from sparse_adapt.files.writing import write_json
from sparse_adapt.model.folder import ModelSource, of_model
from sparse_adapt.stages import inputs
from sparse_adapt.stages.inputs import Input

RECORD_FILE = "stage.json"
EXTENDING = ("extend", "unpack")  # what gives a model tokens: a stage, or term packs put into it
Kind = TypeVar("Kind")
PACKAGES = ("sparse-adapt", "torch", "transformers", "tokenizers", "accelerate")
OF_KEYS = {each.key: each for each in vars(inputs).values() if isinstance(each, Input)}


def _with_path(stamp: dict[str, str]) -> dict[str, str]:
    if PATH not in stamp:
        raise ValueError("lacks its path")
    return stamp


Stamp = Annotated[dict[str, str], AfterValidator(_with_path)]


class ShownRows(TypedDict):
    """Rows of a table that a model's card shows, and a sentence below it."""

    rows: Sequence[Mapping[str, Any]]
    note: str


class StageRecord(TypedDict, total=False):
    """The record of a stage, or of an adaptation, as far as others read it; a stage may add keys of its own."""

    stage: str
    model: dict[str, str]
    files: dict[str, dict[str, str]]
    settings: dict[str, object]
    versions: dict[str, str]
    seconds: float
    steps: int
    settled: dict[str, object]
    calibrated: dict[str, float]
    folder: str
    message: str
    stages: "list[StageRecord]"
    command: str
    measures: ShownRows
    general: ShownRows | None


class _Record(BaseModel):
    """What a record has at least."""

    model_config = ConfigDict(extra="allow")

    stage: str
    model: Stamp
    files: dict[str, Stamp] = {}
    settings: dict[str, object] = {}
    seconds: float = 0.0


def new_record(
    stage: str, model: ModelSource, files: Mapping[str, str], settings: Mapping[str, object], started: float
) -> StageRecord:
    """The record of a stage that began at a moment of the monotonic clock, as far as it is known by now."""
    return {
        "stage": stage,
        "model": stamp(of_model(model)),
        "files": {key: stamp(source_of(key, path)) for key, path in files.items()},
        "settings": dict(settings),
        "versions": {package: version(package) for package in PACKAGES},
        "seconds": round(time.monotonic() - started, 1),
    }


def made_from(record: StageRecord) -> dict[str, object]:
    """What can't change when a stage goes on, or counts as done: stage, model, settings and every file."""
    made = {"stage": record["stage"], "model": record["model"], "settings": record["settings"]}
    return {**made, **record["files"]}


def sources(
    stage: str, model: ModelSource, files: Mapping[str, str], settings: Mapping[str, object]
) -> dict[str, object]:
    """What `made_from` will hold of a stage that is to be carried out."""
    read = {key: source_of(key, path) for key, path in files.items()}
    return {"stage": stage, "model": of_model(model), "settings": dict(settings), **read}


def source_of(key: str, path: str) -> Source:
    """A stage's input by its key and path."""
    if key == inputs.BEFORE.key:
        return of_model(path)
    return of_collection(path, OF_KEYS[key].names) if key in OF_KEYS else of_path(path)


def write_record(folder: Path, record: StageRecord, home: Path | None = None) -> None:
    """Write the record of a model folder, which belongs to the run in `home`."""
    near = {
        "model": to_record({"": record["model"]}, folder, home)[""],
        "files": to_record(record["files"], folder, home),
    }
    write_json(folder / RECORD_FILE, {**record, **near})


def read_stage_record(folder: str | Path) -> StageRecord | None:
    """The record of a model folder; None where no stage made it. Raises InputError for one that is damaged."""
    path = Path(folder) / RECORD_FILE
    try:
        content = path.read_bytes()
    except OSError:
        return None
    record = parse_record(content, path, _Record, "make the model again")
    files = from_record({"model": record.model, **record.files}, path.parent)
    return cast("StageRecord", {**record.model_dump(), "model": files.pop("model"), "files": files})


def read_before(model: str) -> dict[str, str]:
    """Files that the stage behind a model folder read, those that are as they were, under the names of its inputs."""
    record = read_stage_record(model)
    files = {} if record is None else record["files"]
    return {key: entry[PATH] for key, entry in files.items() if _is_unchanged(key, entry)}


def extended_from(model: str) -> str | None:
    """The model that the last extension behind a model folder began with; None where nothing tells of one.

    Raises ConfigError for a model whose record leads back to itself.
    """
    place, seen = model, set[str]()
    while (record := read_stage_record(place)) is not None:
        place = str(record["model"][PATH])
        if record["stage"] in EXTENDING:
            return place
        if place in seen:
            raise ConfigError(f"{model}: its record says that it was made from itself; name another --model")
        seen.add(place)
    return None


def before_extension(model: str | None, device: str, load: Callable[[str, str], Kind]) -> Kind | None:
    """The model before the last extension behind a model folder, loaded to a device; None where there is none."""
    extended = None if model is None else extended_from(model)
    return None if extended is None else load(extended, device)


def _is_unchanged(key: str, entry: Mapping[str, str]) -> bool:
    if SHA256 not in entry:
        return True
    try:
        return is_same(entry, stamp(source_of(key, entry[PATH])))
    except InputError:  # it is gone
        return False
