"""Vectors of a corpus on the disk: `encode`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sparse_adapt.api.checks import check_output
from sparse_adapt.api.following import free, line
from sparse_adapt.api.options import (
    Columns,
    Device,
    Documents,
    Engine,
    Model,
    Option,
    Out,
    Overwrite,
    Reads,
    Resume,
    Workers,
    declared,
)
from sparse_adapt.errors import InputError
from sparse_adapt.files.place import Place
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.report.results import Result, written

if TYPE_CHECKING:
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.retrieve.vectors.folder import Vectors

MOST_IN_A_SHARD = 1_000_000  # documents, which memory has to hold
MANIFEST, CARD = "manifest.json", "index.json"  # that vectors and indexes bear


@declared
def encode(
    model: Model,
    corpus: Documents,
    out: Out,
    *,
    columns: Columns = (),
    device: Device = "auto",
    overwrite: Overwrite = False,
    resume: Resume = False,
    engine: Engine = "local",
    workers: Workers = None,
    shard: Annotated[
        int,
        Option(
            "Documents in a shard. A stopped run loses the shard that it was at.", ge=1, le=MOST_IN_A_SHARD
        ),
    ] = 4096,
    progress: bool | None = None,
    **reading: Reads,
) -> Result:
    """Turn a corpus into sparse vectors.

    They are written in shards, so that a stopped run can go on.

    >>> import tempfile, sparse_adapt as sa
    >>> sa.encode("splade-tiny", ["a bird sings"], tempfile.mkdtemp() + "/vectors", device="cpu").figures["rows"]
    1
    """
    place = Place(Path(out), overwrite, resume)
    check_output(place)
    from sparse_adapt.api.models import load_sparse
    from sparse_adapt.collection.arguments import Corpus
    from sparse_adapt.collection.readers import documents_at
    from sparse_adapt.retrieve.vectors.clusters import cluster_of, on_cluster
    from sparse_adapt.retrieve.vectors.shards import encode_corpus

    source = Corpus.of(corpus, columns)
    total = source.count()
    sparse_model, encoder = load_sparse(model, device, **reading)
    place_of_texts = source.place or source.table
    reads = [sparse_model.source, *([documents_at(place_of_texts)] if place_of_texts else [])]
    with cluster_of(engine, workers) as cluster, progress_bars(progress) as bars:
        advance = bars.count("documents", total)
        manifest = encode_corpus(
            encoder,
            source.read(),
            place.reading(reads),
            model_name=sparse_model.source,
            documents_a_shard=shard,
            progress=advance,
            work=None if cluster is None else on_cluster(cluster, encoder, progress=advance),
        )
    mean = manifest.nonzeros / manifest.rows
    index_it = line("index", "--vectors", out, "-o", free(f"{out}-index"))
    export_it = line("export", "opensearch", "--vectors", out, "-o", free(f"{out}-opensearch"))
    message = f"{manifest.rows:,} vectors with {mean:.0f} entries each on average"
    return written(place.folder, message, [index_it, export_it], rows=manifest.rows)


def is_index(place: str | Path) -> bool:
    """Whether a place is a Lucene index that `index` wrote."""
    return (Path(place) / CARD).is_file()


def is_vectors(place: str | Path) -> bool:
    """Whether a place is a folder of vectors that `encode` wrote."""
    if not (Path(place) / MANIFEST).is_file():
        return False
    from sparse_adapt.retrieve.vectors.manifest import read_format

    return read_format(Path(place)) == "vectors"


def vectors_at(folder: Path, encoder: "SparseEncoder | None", name: str) -> "Vectors":
    """The vectors in a folder. Raises InputError for those of another model than `encoder`, which is called `name`."""
    from sparse_adapt.retrieve.vectors.folder import open_vectors
    from sparse_adapt.retrieve.vectors.manifest import stamp_of_model

    opened = open_vectors(folder)
    if encoder is not None and not opened.model.fits(stamp_of_model(encoder)):
        raise InputError(folder, f"was encoded by another model ({opened.model.name}), not by {name}")
    return opened
