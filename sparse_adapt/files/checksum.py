"""What lies at a place as one checksum, by which a change is noticed: SHA-256 in hexadecimal.

| place | what counts |
|---|---|
| a file | its bytes, as they lie there, compressed or not |
| a model folder (it holds `config.json`) | weights, tokenizer, configuration and what an extension added |
| any other folder | every file in it, by name and bytes |
"""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

MARKER_FILE = "sparse-adapt.json"  # of a folder that this project wrote (files.marker)
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
        found = {file for pattern in OF_A_MODEL for file in folder.glob(pattern)}
        yield from (file for file in found if file.name not in ABOUT_A_MODEL and file.is_file())
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
