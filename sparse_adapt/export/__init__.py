"""Vectors in the layouts that search engines take: one row of `FORMATS`, and one module, a format.

A format's module has `write(vectors, folder, *, queries, quantisation, overwrite)` and returns its manifest.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

from sparse_adapt.errors import ConfigError


class Format(NamedTuple):
    """One target: its name on the command line, the module that writes it, and what that is good for."""

    name: str
    module: str
    summary: str


FORMATS = (
    Format(
        "anserini",
        "sparse_adapt.export.anserini",
        "JsonVectorCollection with integer impacts, for Lucene through Anserini and Pyserini",
    ),
)


def writer(name: str) -> Callable[..., Any]:
    """The `write` function of a format. Raises ConfigError for a name that isn't in the table."""
    for row in FORMATS:
        if row.name == name:
            return import_module(row.module).write  # type: ignore[no-any-return]
    raise ConfigError(f"no export format {name!r}; choose from: {', '.join(row.name for row in FORMATS)}")
