"""Encoding on a Ray cluster: a task a shard, on as many workers as there are, to the bytes of a local run.

The driver reads the corpus, hands out shards and writes what comes back, so that workers need neither the corpus
nor the folder; the model travels to them. A worker that dies takes one shard with it, which Ray gives to another.
"""

import ctypes
import logging
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import torch
from scipy.sparse import csr_matrix

from sparse_adapt.errors import ConfigError, MissingExtraError, OutputError, SparseAdaptError, first_line
from sparse_adapt.files.marker import files_at
from sparse_adapt.model.folder import ModelFolder
from sparse_adapt.model.reading import Reading
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors.shards import Chunk, EncodedChunk, Work

if TYPE_CHECKING:  # Ray is an extra
    from ray import ObjectRef

ATTEMPTS = 4  # at one shard, before its workers are taken to die of it

_models: dict[str, SparseEncoder] = {}  # of this worker, by the object that they came in


class Cluster(NamedTuple):
    """A cluster that is connected: how many shards it encodes at once, and on a GPU each or on a processor."""

    workers: int
    gpus: bool


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


def on_cluster(
    cluster: Cluster, model: str, reading: Reading | None = None, *, progress: Progress = no_progress
) -> Work:
    """Work for `shards.encode_corpus`: each chunk a task, as many at once as the cluster has workers.

    `reading`: how much of a text is read, where it isn't as much as the model's folder says.

    The chunks in work are all that the driver holds. Raises OutputError, after which the run can be resumed,
    for a chunk whose workers die every time.
    """
    import ray

    folder = ModelFolder.of(model).path
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(files_at(folder))}
    task = ray.remote(num_cpus=1, num_gpus=1 if cluster.gpus else 0, max_retries=ATTEMPTS - 1)(_encode_chunk)

    def work(chunks: Iterator[Chunk]) -> Iterator[EncodedChunk]:
        shipped = ray.put(files)
        running: dict[ObjectRef, Chunk] = {}
        try:
            for chunk in chunks:
                if len(running) >= cluster.workers:
                    yield _next_done(running, progress)
                texts = [document.full_text for document in chunk.documents]
                running[task.remote([shipped], shipped.hex(), texts, reading)] = chunk
            while running:
                yield _next_done(running, progress)
        finally:
            for left in running:
                ray.cancel(left, force=True)

    return work


def _next_done(running: "dict[ObjectRef, Chunk]", progress: Progress) -> EncodedChunk:
    import ray
    from ray.exceptions import RayError, RayTaskError

    done = ray.wait(list(running), num_returns=1)[0][0]
    chunk = running.pop(done)
    try:
        vectors: csr_matrix = ray.get(done)
    except RayTaskError as error:
        if isinstance(error.cause, SparseAdaptError):
            raise error.cause from error
        raise
    except RayError as error:
        first = chunk.documents[0].document_id
        raise OutputError(
            f"Ray: {ATTEMPTS} workers died one after another on shard {chunk.number:,}, which begins with document "
            f"{first!r} (killed, or out of memory?); the other shards are kept, see the log of Ray and pass --resume"
        ) from error
    progress(len(chunk.documents))
    return EncodedChunk(chunk, vectors)


def _encode_chunk(
    shipped: "list[ObjectRef]", key: str, texts: list[str], reading: Reading | None = None
) -> csr_matrix:
    """In a worker: vectors (texts, V), by a model that is loaded for the worker's first shard."""
    if key not in _models:
        _models.clear()
        _models[key] = _load(shipped[0])
    if reading is not None:
        _models[key].read_as(reading)
    return encode(_models[key], texts, "document")


def _load(shipped: "ObjectRef") -> SparseEncoder:
    import ray

    torch.set_num_threads(1)
    device = "cuda" if ray.get_gpu_ids() else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        for name, content in ray.get(shipped).items():
            (Path(folder) / name).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / name).write_bytes(content)
        return SparseEncoder.load(folder, device)
