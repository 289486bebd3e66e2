"""Where bytes come from: a local file, or an address that fsspec opens (`s3://`, `https://`), compressed or not.

How a file is compressed shows in the ending of its name. What is cut short or damaged is an error.
"""

import bz2
import gzip
import io
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from sparse_adapt.errors import InputError, MissingExtraError, first_line

if TYPE_CHECKING:  # libraries of the extra `remote`
    from _typeshed import WriteableBuffer as Buffer
    from fsspec import AbstractFileSystem
    from zstandard import ZstdDecompressionObj

Answer = TypeVar("Answer")

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://.")
PACKAGE = re.compile(r"(?:[Ii]nstall|requires|[Nn]o module named) [\"']?([\w-]+)")
BYTES_AT_ONCE = 1 << 18
PACKED_AT_ONCE = 1 << 10  # of which a Zstandard file can make 32 MiB
UNFOLDED = 1 << 22  # bytes that any compressed file may unfold to
UNFOLDING = 50  # bytes for each of its own beyond those: texts have ten at most


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


def reachable(source: str | Path) -> Location:
    """The place, local or not, once it's sure that a file is there. Raises InputError otherwise."""
    place = place_of(source)
    if isinstance(place, Path):
        return readable(place if str(source).startswith("file:") else source)
    files, path = _file_system(place)
    if not _ask(place, lambda: files.exists(path)):
        raise InputError(place, "no such file; check the address")
    return place


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


def open_bytes(source: str | Path) -> IO[bytes]:
    """The bytes behind a place, decompressed as its name says.

    Raises InputError for an ending that nobody here can read, MissingExtraError where a package is missing.
    """
    place = place_of(source)
    check_ending(place)
    if isinstance(place, Address):
        files, path = _file_system(place)
        raw = cast(IO[bytes], _ask(place, lambda: files.open(path, "rb")))
    else:
        raw = io.BufferedReader(_Steady(place), BYTES_AT_ONCE)
    how = _compression(place.name)
    try:
        return raw if how is None else cast(IO[bytes], _Closing(how.opened(raw), raw, place))
    except BaseException:
        raw.close()
        raise


class _Steady(io.FileIO):
    """A local file, which mustn't become another until its end is read; a pipe may."""

    def __init__(self, place: Path) -> None:
        super().__init__(place, "rb")
        self.place, self.opened = place, _state(os.fstat(self.fileno()))

    def readinto(self, buffer: "Buffer", /) -> int | None:
        read = super().readinto(buffer)
        if read == 0 and len(memoryview(buffer)):
            self._check()
        return read

    def readall(self) -> bytes:
        content = super().readall()
        self._check()
        return content

    def _check(self) -> None:
        """Raise InputError where the file was written to since it was opened, or another took its place."""
        try:
            now = _state(self.place.stat())
        except OSError:
            now = None
        if stat.S_ISREG(os.fstat(self.fileno()).st_mode) and now != self.opened:
            raise InputError(self.place, "changed while it was read; run it again once the file is whole")


def _state(status: os.stat_result) -> tuple[int, int, int]:
    return status.st_ino, status.st_size, status.st_mtime_ns


# -- addresses -----------------------------------------------------------------------------------


def names_at(folder: Address) -> list[str]:
    """What a remote folder holds, sorted; nothing where it isn't one."""
    files, path = _file_system(folder)
    if not _ask(folder, lambda: files.isdir(path)):
        return []
    paths = _ask(folder, lambda: files.ls(path, detail=False))
    return sorted(each.rstrip("/").rsplit("/", 1)[-1] for each in paths)


def fingerprint(address: Address) -> str:
    """What the file system behind an address tells a change of its file by: its size, date or tag, as a checksum."""
    files, path = _file_system(address)
    return str(_ask(address, lambda: files.ukey(path)))


def _file_system(address: Address) -> "tuple[AbstractFileSystem, str]":
    """What fsspec reads an address with, and the path in it.

    Raises MissingExtraError without fsspec, InputError for a protocol that it doesn't know or lacks a package for.
    """
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError("fsspec", "remote") from error
    try:
        files, path = fsspec.core.url_to_fs(address)
    except ImportError as error:
        protocol = address.split("://")[0]
        match = PACKAGE.search(str(error))
        needed = f"needs a package that is not installed: pip install {match[1] if match else protocol}"
        raise InputError(address, f"{protocol}:// {needed}") from error
    except ValueError as error:
        problem = f"fsspec can't open it ({first_line(error)}); check what stands before ://"
        raise InputError(address, problem) from error
    return files, str(path)


def _ask(address: Address, question: Callable[[], Answer]) -> Answer:
    """An answer of a remote file system, whose errors are of all kinds."""
    try:
        return question()
    except FileNotFoundError as error:
        raise InputError(address, "no such file; check the address") from error
    except Exception as error:
        problem = f"can't be read ({first_line(error)}); check the address and your access"
        raise InputError(address, problem) from error


# -- compression ---------------------------------------------------------------------------------


class Compression(NamedTuple):
    """One way to compress: the ending of names, what people call it, how files begin, and how one is opened."""

    ending: str
    name: str
    magic: bytes
    opened: "Callable[[IO[bytes]], Decompressed]"


def bare(name: str) -> str:
    """A file's name without the ending of its compression."""
    how = _compression(name)
    return name if how is None else name.removesuffix(how.ending)


def variants(*names: str) -> tuple[str, ...]:
    """Each name as it is, then with the ending of each compression."""
    return tuple(f"{name}{ending}" for name in names for ending in ("", *COMPRESSED))


def compressed_as(start: bytes) -> Compression | None:
    """How a file is compressed that begins so."""
    return next((each for each in COMPRESSIONS if start.startswith(each.magic)), None)


def broken(name: str, error: Exception) -> str | None:
    """What is wrong with a compressed file, if that is what the error says."""
    how = _compression(name)
    of_data = isinstance(error, EOFError | zlib.error | gzip.BadGzipFile | lzma.LZMAError | _Broken)
    if how is None or not (of_data or (isinstance(error, OSError) and error.errno is None)):
        return None
    reason = str(error).rstrip(".") or type(error).__name__
    return f"broken {how.name} ({reason}); copy or compress it again"


def _compression(name: str) -> Compression | None:
    return next((each for each in COMPRESSIONS if name.endswith(each.ending)), None)


def check_ending(place: Location) -> None:
    """Raise InputError for a file that is compressed in a way nobody here can read."""
    ending = next((each for each in UNREAD if place.name.endswith(each)), None)
    if ending is not None:
        advice = f"decompress it, or compress it as one of {', '.join(COMPRESSED)}"
        raise InputError(place, f"{ending} files aren't read; {advice}")


class _Broken(Exception):
    """A Zstandard file that isn't one."""


class _Zstandard(io.RawIOBase):
    """Decompressed bytes of one Zstandard frame after another.

    The library's own reader passes over a frame that is cut short, which is an error here.
    """

    def __init__(self, raw: IO[bytes]) -> None:
        try:
            import zstandard
        except ImportError as error:
            raise MissingExtraError("zstandard", "remote") from error
        self._raw, self._library = raw, zstandard
        self._frame: ZstdDecompressionObj | None = None
        self._rest, self._ready = b"", memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, space: Any) -> int:  # noqa: ANN401 - a buffer
        """Fill some of the space; nothing at the end."""
        while not self._ready:
            packed = self._rest or self._raw.read(PACKED_AT_ONCE)
            self._rest = b""
            if not packed:
                if self._frame is not None:
                    raise EOFError("ended before the end of a frame")
                return 0
            if self._frame is None:
                self._frame = self._library.ZstdDecompressor().decompressobj()
            try:
                self._ready = memoryview(self._frame.decompress(packed))
            except self._library.ZstdError as error:
                raise _Broken(str(error)) from error
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data, None
        count = min(len(space), len(self._ready))
        space[:count], self._ready = self._ready[:count], self._ready[count:]
        return count


Decompressed = io.BufferedIOBase | _Zstandard


class _Bounded(io.RawIOBase):
    """Decompressed bytes, as long as there aren't far more of them than of the file's own."""

    def __init__(self, decompressed: "Decompressed", raw: IO[bytes], place: Location) -> None:
        self._decompressed, self._raw, self._place, self._made = decompressed, raw, place, 0

    def readable(self) -> bool:
        return True

    def readinto(self, space: Any) -> int:  # noqa: ANN401 - a buffer
        """Fill some of the space. Raises InputError for a file that unfolds to more than texts do."""
        count: int = self._decompressed.readinto(space)
        self._made += count
        if self._made > UNFOLDED + UNFOLDING * self._raw.tell():
            problem = f"unfolds to over {self._made:,} bytes, {UNFOLDING} times its own size; decompress it to read it"
            raise InputError(self._place, problem)
        return count


class _Closing(io.BufferedReader):
    """Decompressed bytes in blocks; closing closes the file below too, which the libraries leave open."""

    def __init__(self, decompressed: "Decompressed", raw: IO[bytes], place: Location) -> None:
        super().__init__(_Bounded(decompressed, raw, place), BYTES_AT_ONCE)
        self._below = raw

    def close(self) -> None:
        """Let go of both."""
        super().close()
        self._below.close()


COMPRESSIONS = (
    Compression(".gz", "gzip", b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw)),
    Compression(".bz2", "bzip2", b"BZh", bz2.BZ2File),
    Compression(".xz", "xz", b"\xfd7zXZ\x00", lzma.LZMAFile),
    Compression(".zst", "Zstandard", b"\x28\xb5\x2f\xfd", _Zstandard),
)
COMPRESSED = tuple(each.ending for each in COMPRESSIONS)
UNREAD = (".Z", ".lz4", ".br", ".lzma", ".lzo", ".sz", ".snappy", ".zip", ".7z", ".tar", ".tgz")
