"""Several processes that do one thing together, as `accelerate launch` starts them: the first writes and speaks.

They find each other by what the launcher puts into their environment, and need to see the same files.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from sparse_adapt.errors import ConfigError, OutputError, SparseAdaptError
from sparse_adapt.files.folders import output_folder
from sparse_adapt.files.place import Place

T = TypeVar("T")


NUMBERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE")  # that a launcher sets
MEETING = ("MASTER_ADDR", "MASTER_PORT")  # where its processes find each other


def several() -> bool:
    """Whether a launcher started this process as one of several, who have a place to meet."""
    size = os.environ.get("WORLD_SIZE", "1")
    return size.isdecimal() and int(size) > 1 and all(name in os.environ for name in ("LOCAL_RANK", *MEETING))


def check_environment() -> None:
    """Raise ConfigError for a launcher's variable that no launcher would set so."""
    for name in NUMBERS:
        value = os.environ.get(name, "0")
        if not value.removeprefix("-").isdecimal():
            raise ConfigError(f"{name}={value}: isn't a whole number; unset it, or use accelerate launch")


def is_main() -> bool:
    """Whether this is the process that writes files and speaks to the user; alone it always is."""
    return not several() or os.environ.get("RANK", "0") == "0"


def from_first(value: T) -> T:
    """The first process's value, in all of them; alone its own. What the others pass doesn't matter."""
    if not several():
        return value
    import torch
    from accelerate import PartialState  # joins the others, once

    PartialState(cpu=not torch.cuda.is_available())
    box = [value]
    torch.distributed.broadcast_object_list(box, src=0)
    return box[0]


@contextmanager
def common_folder(place: Place) -> Iterator[Path]:
    """`folders.output_folder` for several processes: the first holds it, the others wait for it at both ends.

    All of them may read there; only the first may write. Raises OutputError in each where the first can't begin.
    """
    if not is_main():
        folder, problem = from_first((Path(), ""))
        if problem:
            raise OutputError(problem)
        yield folder
        from_first(None)
        return
    begun = False
    try:
        with output_folder(place) as folder:
            begun = bool(from_first((folder, "")))
            yield folder
    except SparseAdaptError as error:
        if not begun:
            from_first((Path(), str(error)))
        raise
    from_first(None)
