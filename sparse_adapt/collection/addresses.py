"""Where bytes come from: a local file, or an address that fsspec opens (`s3://`, `https://`): all with a protocol."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, cast

from sparse_adapt.collection.compression import check_readable, decompressed
from sparse_adapt.errors import InputError, MissingExtraError, first_line

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.")
PACKAGE = re.compile(r"(?:[Ii]nstall|requires|[Nn]o module named) [\"']?([\w-]+)")


class Address(str):
    """A file or folder that fsspec opens."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """Its last part, without what a query adds."""
        return self.split("?")[0].rstrip("/").rsplit("/", 1)[-1]

    def __truediv__(self, name: str) -> "Address":
        return Address(f"{self.rstrip('/')}/{name}")


Location = Path | Address


def place_of(source: str | Path) -> Location:
    """A source as an address where it has a protocol, as a path otherwise. `file://` is a path."""
    text = str(source)
    if isinstance(source, Address):
        return source
    if isinstance(source, Path) or not ADDRESS.match(text):
        return Path(source)
    return Path(text.removeprefix("file://")) if text.startswith("file:///") else Address(text)


def readable(path: str | Path) -> Path:
    """The path, once it's sure that a file is there. Raises InputError otherwise."""
    place = Path(path)
    try:
        if place.is_dir():
            raise InputError(path, "is a folder; give the file itself")
        if not place.exists():
            raise InputError(path, "no such file; check the path")
    except OSError as error:
        raise InputError(path, f"can't be read ({error.strerror or error}); check the path") from error
    if not os.access(place, os.R_OK):
        raise InputError(path, "can't be read (permission denied); check its mode")
    return place


def reachable(source: str | Path) -> Location:
    """The place, local or not, once it's sure that a file is there. Raises InputError otherwise."""
    place = place_of(source)
    if isinstance(place, Path):
        return readable(place if str(source).startswith("file:") else source)
    files, path = filesystem(place)
    if not _ask(place, lambda: files.exists(path)):
        raise InputError(place, "no such file; check the address")
    return place


def names_in(folder: Address) -> list[str]:
    """What a remote folder holds, sorted; nothing where it isn't one."""
    files, path = filesystem(folder)
    if not _ask(folder, lambda: files.isdir(path)):
        return []
    return sorted(
        entry.rstrip("/").rsplit("/", 1)[-1] for entry in _ask(folder, lambda: files.ls(path, detail=False))
    )


def open_bytes(source: str | Path) -> IO[bytes]:
    """The bytes behind a place, decompressed as its name says.

    Raises InputError for an ending that nobody here can read, MissingExtraError where a package is missing.
    """
    place = place_of(source)
    check_readable(place.name, place)
    if isinstance(place, Address):
        files, path = filesystem(place)
        raw = cast(IO[bytes], _ask(place, lambda: files.open(path, "rb")))
    else:
        raw = place.open("rb")
    try:
        return decompressed(raw, place.name)
    except BaseException:
        raw.close()
        raise


def fingerprint(address: Address) -> str:
    """What the file system behind an address tells a change of its file by: its size, date or tag, as a checksum."""
    files, path = filesystem(address)
    return str(_ask(address, lambda: files.ukey(path)))


def filesystem(address: Address) -> tuple[Any, str]:
    """What fsspec reads an address with, and the path in it.

    Raises MissingExtraError without fsspec, InputError for a protocol that it doesn't know or lacks a package for.
    """
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError("fsspec", "remote") from error
    protocol = address.split("://")[0]
    try:
        files, path = fsspec.core.url_to_fs(address)
    except ImportError as error:
        found = PACKAGE.search(str(error))
        package = found[1] if found else protocol
        raise InputError(
            address, f"{protocol}:// needs a package that is not installed: pip install {package}"
        ) from error
    except ValueError as error:
        problem = f"fsspec can't open it ({first_line(error)}); check what stands before ://"
        raise InputError(address, problem) from error
    return files, str(path)


def _ask(address: Address, question: Callable[[], Any]) -> Any:  # noqa: ANN401 - fsspec is untyped
    """An answer of a remote file system, whose errors are of all kinds."""
    try:
        return question()
    except FileNotFoundError as error:
        raise InputError(address, "no such file; check the address") from error
    except Exception as error:
        problem = f"can't be read ({first_line(error)}); check the address and your access"
        raise InputError(address, problem) from error
