"""Files of facts that this project wrote: read back in a known shape, or one line that says what is wrong; TOML."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from sparse_adapt.errors import InputError


class Record(BaseModel):
    """Facts as a JSON file: frozen, and refused when a field is missing, unknown or of another type."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


AnyRecord = TypeVar("AnyRecord", bound=BaseModel)
JsonObject = dict[str, Any]  # of other programs: what is read of it is checked there


def read_record(path: Path, kind: type[AnyRecord], advice: str = "make it anew") -> AnyRecord:
    """A JSON file as a record of one kind. Raises InputError with the first field that is wrong."""
    return parse_record(_bytes_of(path), path, kind, advice)


def parse_record(
    content: bytes | str,
    path: Path,
    kind: type[AnyRecord],
    advice: str = "make it anew",
    line: int | None = None,
) -> AnyRecord:
    """What a file, or a line of it, holds as a record of one kind. Raises InputError as `read_record` does."""
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        problem = f"{place}: {first['msg']}" if place else first["msg"]
        message = f"not a file that this version reads ({problem}); {advice}"
        raise InputError(path, message, line=line) from error


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(path, f"can't be read ({error.strerror})") from error


def toml(value: object) -> str:
    """A value as TOML writes it; JSON's strings, numbers and lists are TOML's too.

    A table stands inside braces, without what is None in it, for which TOML has no sign.
    """
    if isinstance(value, Mapping):
        parts = (f"{key} = {toml(inner)}" for key, inner in value.items() if inner is not None)
        return "{ " + ", ".join(parts) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
