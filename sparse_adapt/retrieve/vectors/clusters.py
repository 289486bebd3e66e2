"""Reading on a cluster: the pieces of a corpus that the machines of a plug-in encode."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

from sparse_adapt.errors import ConfigError
from sparse_adapt.model.processes import Piece, Workers
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.registry import registry
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.retrieve.hybrid import document_vectors
from sparse_adapt.retrieve.vectors.shards import Chunk, EncodedChunk, Work


def cluster_of(engine: str, workers: int | None) -> AbstractContextManager[Workers | None]:
    """The cluster that `--engine` names; None where texts are read on this machine.

    Raises ConfigError for `workers` of this machine, MissingPluginError for a cluster that no plug-in has.
    """
    if engine != "local":
        cluster: AbstractContextManager[Workers | None] = registry().find("clusters", engine)(workers)
        return cluster
    if workers is not None:
        raise ConfigError(f"--workers {workers}: are those of a Ray cluster; pass --engine ray as well")
    return nullcontext()


def on_cluster(cluster: Workers, model: SparseEncoder, *, progress: Progress = no_progress) -> Work:
    """Work for `shards.encode_corpus`: each chunk a piece. The chunks in work are all that the driver holds."""

    def work(chunks: Iterator[Chunk]) -> Iterator[EncodedChunk]:
        pieces = (Piece(chunk, chunk.documents, _name_of(chunk)) for chunk in chunks)
        for chunk, vectors in cluster.each(document_vectors, model, pieces):
            progress(len(chunk.documents))
            yield EncodedChunk(chunk, vectors)

    return work


def _name_of(chunk: Chunk) -> str:
    return f"shard {chunk.number:,}, which begins with document {chunk.documents[0].document_id!r}"
