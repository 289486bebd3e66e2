"""Whether what was written is still what was written: models, vectors, exports, indexes and whole runs."""

from pathlib import Path
from typing import NamedTuple

from sparse_adapt.engines.formats import ENGINES
from sparse_adapt.engines.manifest import read_export
from sparse_adapt.errors import InputError
from sparse_adapt.files.checksum import MARKER_FILE, MODEL_MARK
from sparse_adapt.files.marker import faults, marker_of
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.retrieve.vectors.folder import read_shards
from sparse_adapt.retrieve.vectors.manifest import MANIFEST_FILE, read_format


class Verified(NamedTuple):
    """What was looked at and found to be as it was written: files, and by how many of them which kind of thing."""

    files: int
    models: int
    vectors: int
    exports: int


def verify(place: str | Path) -> Verified:
    """Look at every file of a result, and of the results within it: a model, vectors, an export, an index or a run.

    Weights have to be numbers and matrices sound, too. Raises InputError or ModelError for the first fault, and for a
    folder that vouches for nothing.
    """
    folder = Path(place)
    marker = marker_of(folder)
    if marker is None or not marker.sha256:
        raise InputError(
            place, f"bears no {MARKER_FILE} that lists its files, so nothing says what was written"
        )
    for fault in faults(folder):
        raise InputError(fault.path, f"{fault.problem}; make it anew, or copy it again")
    markers = sorted(folder.rglob(MARKER_FILE))
    files = sum(len(found.sha256) for path in markers if (found := marker_of(path.parent)) is not None)
    counts = {"models": 0, "vectors": 0, "exports": 0}
    for within in (path.parent for path in markers):
        kind = _check(within)
        if kind in counts:
            counts[kind] += 1
    return Verified(files, **counts)


def _check(folder: Path) -> str:
    """Read a result by its own reader, which raises for what isn't sound; what kind it is."""
    if not (folder / MANIFEST_FILE).is_file():
        if not (folder / MODEL_MARK).is_file():
            return ""
        load_encoder(folder)
        return "models"
    kind = read_format(folder)
    if kind == "vectors":
        for _ in read_shards(folder):
            pass
        return kind
    if kind in {row.name for row in ENGINES}:
        read_export(folder, kind)
        return "exports"
    return ""
