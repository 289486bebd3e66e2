"""Compressed files: how one is shows in the ending of its name. What is cut short or damaged is an error."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

from sparse_adapt.errors import InputError, MissingExtraError

BYTES_AT_ONCE = 1 << 18
PACKED_AT_ONCE = 1 << 10  # of which a Zstandard file can make 32 MiB


class Compression(NamedTuple):
    """One way to compress: the ending of names, what people call it, how files begin, and how one is opened."""

    ending: str
    name: str
    magic: bytes
    opened: Callable[[IO[bytes]], Any]


def bare(name: str) -> str:
    """A file's name without the ending of its compression."""
    how = _by_ending(name)
    return name if how is None else name.removesuffix(how.ending)


def variants(*names: str) -> tuple[str, ...]:
    """Each name as it is, then with the ending of each compression."""
    return tuple(f"{name}{ending}" for name in names for ending in ("", *(each.ending for each in READ)))


def check_readable(name: str, place: str | Path) -> None:
    """Raise InputError for a file that is compressed in a way nobody here can read."""
    for ending in UNREAD:
        if name.endswith(ending):
            known = ", ".join(each.ending for each in READ)
            raise InputError(
                place, f"{ending} files aren't read; decompress it, or compress it as one of {known}"
            )


def decompressed(raw: IO[bytes], name: str) -> IO[bytes]:
    """The bytes behind compressed ones, or the same where the name has no ending of a compression.

    Raises MissingExtraError where a package is missing.
    """
    how = _by_ending(name)
    return raw if how is None else cast(IO[bytes], _Closing(how.opened(raw), raw))


def compressed_as(start: bytes) -> Compression | None:
    """How a file is compressed that begins so."""
    return next((each for each in READ if start.startswith(each.magic)), None)


def broken(name: str, error: Exception) -> str | None:
    """What is wrong with a compressed file, if that is what the error says."""
    how = _by_ending(name)
    of_data = isinstance(error, EOFError | zlib.error | gzip.BadGzipFile | lzma.LZMAError | Broken)
    if how is None or not (of_data or (isinstance(error, OSError) and error.errno is None)):
        return None
    reason = str(error).rstrip(".") or type(error).__name__
    return f"broken {how.name} ({reason}); copy or compress it again"


def _by_ending(name: str) -> Compression | None:
    return next((each for each in READ if name.endswith(each.ending)), None)


class Broken(Exception):
    """A Zstandard file that isn't one."""


class _Zstandard(io.RawIOBase):
    """Decompressed bytes of one Zstandard frame after another; one that is cut short is an error."""

    def __init__(self, raw: IO[bytes]) -> None:
        try:
            import zstandard
        except ImportError as error:
            raise MissingExtraError("zstandard", "remote") from error
        self._raw, self._library = raw, zstandard
        self._frame: Any = None
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
                raise Broken(str(error)) from error
            if self._frame.eof:
                self._rest, self._frame = self._frame.unused_data, None
        count = min(len(space), len(self._ready))
        space[:count], self._ready = self._ready[:count], self._ready[count:]
        return count

    def close(self) -> None:
        """Let go of the file."""
        self._raw.close()
        super().close()


class _Closing(io.BufferedReader):
    """Decompressed bytes in blocks; closing closes the file below too, which the libraries leave open."""

    def __init__(self, decompressed: Any, raw: IO[bytes]) -> None:  # noqa: ANN401
        super().__init__(decompressed, BYTES_AT_ONCE)
        self._below = raw

    def close(self) -> None:
        """Let go of both."""
        super().close()
        self._below.close()


READ = (
    Compression(".gz", "gzip", b"\x1f\x8b", lambda raw: gzip.GzipFile(fileobj=raw)),
    Compression(".bz2", "bzip2", b"BZh", bz2.BZ2File),
    Compression(".xz", "xz", b"\xfd7zXZ\x00", lzma.LZMAFile),
    Compression(".zst", "Zstandard", b"\x28\xb5\x2f\xfd", _Zstandard),
)
UNREAD = (".Z", ".lz4", ".br", ".lzma", ".lzo", ".sz", ".snappy", ".zip", ".7z", ".tar", ".tgz")
