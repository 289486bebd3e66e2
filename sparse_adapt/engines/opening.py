"""Opening an export in its engine, so that it can be searched and held against exact search."""

from contextlib import AbstractContextManager
from pathlib import Path

from sparse_adapt.engines.formats import EngineRow, find_engine, module_of, require
from sparse_adapt.engines.layout import Engine
from sparse_adapt.engines.manifest import read_export
from sparse_adapt.errors import ConfigError
from sparse_adapt.retrieve.vectors.folder import EncodedBatch


def open_engine(
    name: str, folder: Path, *, url: str = "", documents: EncodedBatch | None = None
) -> AbstractContextManager[Engine]:
    """The engine of that name, loaded with an export of its format, for a `with` block.

    `url`: where the engine is a server. `documents`: what an export that holds none is searched with.
    Raises ConfigError for a format that no engine here serves and for a `url` that is missing or not wanted,
    MissingExtraError without its package, InputError for a folder that its manifest doesn't vouch for.
    """
    row = find_engine(name)
    require(row.to_open)
    _check_url(row, url)
    return module_of(row).open_export(read_export(folder, name), url, documents)


def _check_url(row: EngineRow, url: str) -> None:
    if not row.opens:
        raise ConfigError(f"{row.name}: only {row.title} itself can open it; deploy it there")
    if not row.in_process and not url:
        raise ConfigError(f"{row.title} is a server; say where with --url {row.address}")
    if not row.address and url:
        raise ConfigError(f"--url {url}: {row.title} runs in this process; leave it out")
