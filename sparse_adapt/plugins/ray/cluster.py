"""Reading on a Ray cluster: a task a piece of the work, on as many workers as there are, to the bytes of a local run.

A piece is a shard of a corpus that is encoded, or a batch of texts that some step of an adaptation reads. The driver
hands pieces out and keeps what comes back, so that workers need neither files nor folders; the model travels to them. A
worker that dies takes one piece with it, which Ray gives to another.
"""

import copy
import ctypes
import logging
import os
import pickle
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from sparse_adapt.errors import ConfigError, MissingExtraError, OutputError, SparseAdaptError, first_line
from sparse_adapt.files.marker import checksum_of_bytes
from sparse_adapt.model.processes import Item, Key, Model, Piece, Result

if TYPE_CHECKING:  # Ray is an extra
    from ray import ObjectRef

ATTEMPTS = 4  # at one piece, before its workers are taken to die of it

_models: dict[str, torch.nn.Module] = {}  # of this worker, by checksum


@dataclass(frozen=True)
class Cluster:
    """A cluster that is connected: how many pieces it works on at once, and on a GPU each or on a processor."""

    workers: int
    gpus: bool
    shipped: "dict[str, ObjectRef]" = field(default_factory=dict)  # the last work's model, by its checksum

    def each(
        self, do: Callable[[Model, Item], Result], model: Model, pieces: Iterable[Piece[Key, Item]]
    ) -> Iterator[tuple[Key, Result]]:
        """What `do` makes of each piece with the model, in any order; pieces are taken as workers are free.

        Raises what `do` raises of ours, and OutputError, after which the run can be resumed, for a piece whose workers
        die every time, and where Ray has no room for what travels.
        """
        import ray
        from ray.exceptions import ObjectStoreFullError, OutOfDiskError

        task = ray.remote(num_cpus=1, num_gpus=1 if self.gpus else 0, max_retries=ATTEMPTS - 1)(_work_on)
        running: dict[ObjectRef, Piece[Key, Item]] = {}
        try:
            key, shipped = self._ship(model)
            for piece in pieces:
                if len(running) >= self.workers:
                    yield _next_done(running)
                running[task.remote([shipped], key, do, piece.item)] = piece
            while running:
                yield _next_done(running)
        except (ObjectStoreFullError, OutOfDiskError) as error:
            raise OutputError(
                f"Ray: no room for the model and texts that travel to workers ({first_line(error)}); start Ray with a "
                "larger --object-store-memory, or free disk space where it keeps its files, and pass --resume"
            ) from error
        finally:
            for left in running:
                ray.cancel(left, force=True)

    def _ship(self, model: torch.nn.Module) -> "tuple[str, ObjectRef]":
        """A model as workers find it, by its checksum: whatever changes of it, what they hold is what is here."""
        import ray

        here = next(model.parameters()).device.type == "cpu"
        stored = pickle.dumps(model if here else copy.deepcopy(model).to("cpu"))
        key = checksum_of_bytes(stored)
        if key not in self.shipped:
            self.shipped.clear()
            self.shipped[key] = ray.put(stored)
        return key, self.shipped[key]


FAULTS = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
SIGACTION_SIZE = 256  # bytes; no system's structure is larger


@contextmanager
def connected(workers: int | None = None) -> Iterator[Cluster]:
    """The Ray cluster that there is (connected already, started on this machine, or named by RAY_ADDRESS), or one
    on this machine for the while. `workers`: how many shards at once; by default one for each processor or GPU.

    Raises MissingExtraError without Ray, ConfigError where no cluster can be had.
    """
    try:
        import ray
    except ImportError as error:
        raise MissingExtraError("ray", "ray") from error
    own = not ray.is_initialized()
    if own:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            with handlers_kept():
                ray.init(log_to_driver=False, include_dashboard=False, logging_level=logging.ERROR)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise ConfigError(
                f"Ray: no cluster ({first_line(error)}); check RAY_ADDRESS, or run without --engine ray"
            ) from error
    try:
        resources = ray.cluster_resources()
        gpus = int(resources.get("GPU", 0))
        yield Cluster(workers or gpus or max(1, int(resources.get("CPU", 1))), gpus > 0)
    finally:
        if own:
            with handlers_kept():
                ray.shutdown()


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Whoever catches a process's faults goes on catching them after Ray starts or stops.

    Ray puts its own handlers in their place and leaves none when it stops; a Java machine in the process, which
    reads its threads' faults all the time, then dies of one.
    """
    if os.name != "posix":
        yield
        return
    library = ctypes.CDLL(None)
    before = {number: ctypes.create_string_buffer(SIGACTION_SIZE) for number in FAULTS}
    for number, action in before.items():
        library.sigaction(number, None, action)
    try:
        yield
    finally:
        for number, action in before.items():
            library.sigaction(number, action, None)


def _next_done(running: "dict[ObjectRef, Piece[Key, Item]]") -> tuple[Key, Any]:
    import ray
    from ray.exceptions import RayError, RayTaskError

    done = ray.wait(list(running), num_returns=1)[0][0]
    piece = running.pop(done)
    try:
        return piece.key, ray.get(done)
    except RayTaskError as error:
        if isinstance(error.cause, SparseAdaptError):
            raise error.cause from error
        raise
    except RayError as error:
        raise OutputError(
            f"Ray: {ATTEMPTS} workers died one after another on {piece.name} (killed, or out of memory?); what is "
            "done is kept, see the log of Ray and pass --resume"
        ) from error


def _work_on(
    shipped: "list[ObjectRef]", key: str, do: Callable[[torch.nn.Module, Item], Result], item: Item
) -> Result:
    """In a worker: what `do` makes of a piece with a model that is loaded for the worker's first one."""
    import ray

    if key not in _models:
        torch.set_num_threads(1)
        _models.clear()
        model: torch.nn.Module = pickle.loads(ray.get(shipped[0]))  # by the driver, of its own
        _models[key] = model.to("cuda" if ray.get_gpu_ids() else "cpu")
    return do(_models[key], item)
