"""What lies at a place as checksums, and the marker of a folder that this project wrote, which vouches for its files.

| place | what counts in its checksum: SHA-256 in hexadecimal |
|---|---|
| a file | its bytes, as they lie there, compressed or not |
| a model folder (it holds `config.json`) | weights, tokenizer, configuration and what an extension added |
| any other folder | every file in it, by name and bytes |

The marker, `sparse-adapt.json`, lists a folder's files with their checksums; by it the folder may be replaced. A folder
within that bears a marker of its own is listed by that marker alone. While a result is being made, its marker lists
nothing. The marker of a result that is made at once, in steps that nobody could go on from, says so: where a kill
leaves it unfinished, it may go.
"""

import hashlib
import json
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from sparse_adapt.files.place import is_there
from sparse_adapt.files.writing import give_ordinary_mode, write_json

MARKER_FILE = "sparse-adapt.json"
MODEL_MARK = "config.json"
OF_A_MODEL = (
    "*.json",
    "*.safetensors",
    "*.model",
    "vocab.*",
    "merges.txt",
    "query_token_weights.txt",
    "*/*.json",
    "*/*.safetensors",
)
ABOUT_A_MODEL = frozenset(
    {"stage.json", "report.json", "request.json", "choice.json", MARKER_FILE}
)  # how it came to be
MARK = {"format": "sparse-adapt", "format_version": 1}
AT_ONCE = {"made": "at once"}
SUMS = "sha256"
LEFT_BY_BROWSERS, LEFT_BY_THE_HUB = ".DS_Store", ".cache/huggingface/"


class Marker(NamedTuple):
    """What a marker holds: the checksum of each file by its path in the folder.

    `at_once`: whether it is of a result that nobody can go on with.
    """

    sha256: Mapping[str, str]
    at_once: bool = False


class Fault(NamedTuple):
    """A file that isn't as its folder's marker says, and what is wrong with it."""

    path: Path
    problem: str


# -- checksums --------------------------------------------------------------------------------------


def checksum(place: str | Path, files: Iterable[Path] | None = None) -> str:
    """The checksum of what is read at a place; of a folder those `files`, where they are given.

    Raises OSError where nothing can be read there.
    """
    path = Path(place)
    if not path.is_dir():
        return checksum_of_file(path)
    digest = hashlib.sha256()
    for file in sorted(files_at(path) if files is None else files):
        digest.update(f"{file.relative_to(path).as_posix()}\n{checksum_of_file(file)}\n".encode())
    return digest.hexdigest()


def files_at(folder: Path) -> Iterator[Path]:
    """The files of a folder that count: those that loading reads where it is a model's, all of them otherwise."""
    if (folder / MODEL_MARK).is_file():
        files = {file for pattern in OF_A_MODEL for file in folder.glob(pattern)}
        yield from (file for file in files if file.name not in ABOUT_A_MODEL and file.is_file())
    else:
        yield from (file for file in folder.rglob("*") if file.is_file())


def checksum_of_file(path: Path) -> str:
    """The checksum of a file's bytes, of any size in little memory."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checksum_of_bytes(content: bytes) -> str:
    """The checksum of bytes in memory."""
    return hashlib.sha256(content).hexdigest()


def checksum_of_texts(texts: Iterable[str]) -> str:
    """The checksum of texts in their order; where one ends and the next begins counts."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return digest.hexdigest()


# -- the marker -------------------------------------------------------------------------------------


def mark(folder: Path, *, at_once: bool = False) -> None:
    """Have a folder bear the marker of a result that isn't whole yet."""
    _write(folder, Marker({}, at_once))


def is_left(folder: Path) -> bool:
    """Whether a folder is what a kill left of a result that was made at once, or of one that was being removed."""
    if not folder.is_dir() or folder.is_symlink():
        return False
    marker = marker_of(folder)
    return not any(folder.iterdir()) if marker is None else marker.at_once


def vouch(folder: Path, files: Iterable[Path] | None = None) -> None:
    """Vouch for files of a folder, by default for all that are in it."""
    listed = sorted(_own_files(folder) if files is None else files)
    sums = {path.relative_to(folder).as_posix(): checksum_of_file(path) for path in listed}
    before = marker_of(folder)
    _write(folder, Marker(sums, before is not None and before.at_once))


@contextmanager
def vouching(folder: Path) -> Iterator[None]:
    """Vouch for the files that the block writes into a folder, beside those that the folder vouched for before."""
    before = {path: _state(path) for path in _own_files(folder)}
    marker = marker_of(folder)
    yield
    written = [path for path in _own_files(folder) if _state(path) != before.get(path)]
    for path in written:
        give_ordinary_mode(path)
    sums = {path.relative_to(folder).as_posix(): checksum_of_file(path) for path in sorted(written)}
    files = (
        {}
        if marker is None
        else {name: each for name, each in marker.sha256.items() if (folder / name).exists()}
    )
    _write(folder, Marker({**files, **sums}, marker is not None and marker.at_once))


def marker_of(folder: Path) -> Marker | None:
    """The marker of a folder; None where it bears none."""
    try:
        content = json.loads((folder / MARKER_FILE).read_bytes())
        sums = content.pop(SUMS)
        sound = (
            content in (MARK, MARK | AT_ONCE)
            and all(map(_is_inside, sums))
            and all(map(_is_text, sums.values()))
        )
    except (OSError, ValueError, RecursionError, AttributeError, TypeError, KeyError):
        return None
    return Marker(sums, content != MARK) if sound else None


def strangers(folder: Path) -> list[Path]:
    """What lies in a folder and isn't ours: all of it without a marker, else files that its marker doesn't list.

    What file browsers and the client of the Hub leave doesn't count.
    """
    marker = marker_of(folder)
    if marker is None:
        return sorted(folder.iterdir())
    names = {path: path.relative_to(folder).as_posix() for path in _own_files(folder)}
    own = [path for path, name in names.items() if name not in marker.sha256 and not _is_left(name)]
    within = (each.parent for each in names if each.name == MARKER_FILE)
    return sorted([*own, *(path for inner in within for path in strangers(inner))])


def remove(folder: Path) -> None:
    """Remove a folder of ours, its marker last, so that a kill in between doesn't leave one that nobody knows."""
    empty(folder)
    (folder / MARKER_FILE).unlink(missing_ok=True)
    folder.rmdir()


def empty(folder: Path) -> None:
    """Remove everything in a folder of ours but its marker."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            remove(path)
        elif path.name != MARKER_FILE:
            path.unlink()


def faults(folder: Path, only: Container[str] | None = None) -> Iterator[Fault]:
    """Every file that is gone or isn't what its folder's marker vouches for, those of folders within too.

    `only`: the files that count, by their paths in the folder.
    """
    marker = marker_of(folder)
    for name, sha256 in sorted(marker.sha256.items()) if marker is not None else ():
        path = folder / name
        if only is not None and name not in only:
            continue
        if not is_there(path) or not path.is_file():
            yield Fault(path, "is gone")
        elif checksum_of_file(path) != sha256:
            yield Fault(path, "isn't what was written")
        elif path.name == MARKER_FILE:
            yield from faults(path.parent)


def _own_files(folder: Path) -> Iterator[Path]:
    """The files of a folder but its marker; of a folder within that bears a marker of its own, that one alone."""
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            inner = path / MARKER_FILE
            yield from [inner] if inner.is_file() else _own_files(path)
        elif path.name != MARKER_FILE:
            yield path


def _is_left(name: str) -> bool:
    return name.rpartition("/")[2] == LEFT_BY_BROWSERS or f"/{name}".rfind(f"/{LEFT_BY_THE_HUB}") >= 0


def _write(folder: Path, marker: Marker) -> None:
    write_json(folder / MARKER_FILE, {**MARK, **(AT_ONCE if marker.at_once else {}), SUMS: marker.sha256})


def _state(path: Path) -> tuple[int, int, int]:
    """What changes whenever a file is written."""
    status = path.lstat()
    return status.st_mtime_ns, status.st_size, status.st_ino


def _is_inside(name: str) -> bool:
    """Whether a path leads to a file of the folder that it starts from."""
    return name != "" and not PurePosixPath(name).is_absolute() and ".." not in name.split("/")


def _is_text(value: object) -> bool:
    return isinstance(value, str)
