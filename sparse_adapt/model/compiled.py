"""Loops over arrays, compiled once and kept beside the source, or in the user's cache, or not at all."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """The function as machine code that lets threads run; compiled anew where nothing can be kept."""
    try:
        return cast(Function, njit(cache=True, nogil=True)(function))
    except RuntimeError:  # no folder for the cache
        return cast(Function, njit(nogil=True)(function))
