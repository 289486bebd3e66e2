"""JSON files of a model folder, read so that one that is damaged is one line that names it."""

import json
from pathlib import Path
from typing import Any

from sparse_adapt.errors import ModelError


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """What a JSON file holds. Raises ModelError where it can't be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"{path}: can't be read ({reason}); fetch the model again") from error


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object that a file holds. Raises ModelError for anything else."""
    content = read_json(path)
    if not isinstance(content, dict):
        raise ModelError(f"{path}: no JSON object; fetch the model again")
    return content
