"""Vectors in the layouts that search engines take: one row of `FORMATS`, and one module, a format.

A format's module has two functions:

    write(vectors, folder, *, queries, quantisation, overwrite) -> Manifest    (and encoder=, if it holds the model)
    loading(folder, manifest) -> str    the commands or lines of Python that load the folder, ready to be copied

`parts` has what all share: the manifest, parts with their checksums, names for tokens.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sparse_adapt.errors import MissingExtraError
from sparse_adapt.export.formats import FORMATS as FORMATS
from sparse_adapt.export.formats import Format as Format
from sparse_adapt.export.formats import find_format

if TYPE_CHECKING:  # the table alone must not load torch
    from sparse_adapt.export.parts import Manifest


def writer(name: str) -> Callable[..., "Manifest"]:
    """The `write` function of a format.

    Raises ConfigError for a name that isn't in the table, MissingExtraError without the format's package.
    """
    row = find_format(name)
    if row.needs and find_spec(row.needs) is None:
        raise MissingExtraError(row.needs, row.extra)
    return import_module(row.module).write  # type: ignore[no-any-return]


def loading(name: str) -> Callable[..., str]:
    """The function of a format that says how its folder is loaded."""
    return import_module(find_format(name).module).loading  # type: ignore[no-any-return]
