"""Vectors of a corpus on the disk, and a Lucene index of them: `encode` and `index`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sparse_adapt.api.checks import a_folder, check_output
from sparse_adapt.api.following import a_query, free, line
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
    Scale,
    Workers,
    declared,
    out_option,
)
from sparse_adapt.api.results import Written
from sparse_adapt.errors import InputError
from sparse_adapt.files.place import Place
from sparse_adapt.report.progress import progress_bars

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
) -> Written:
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
    from sparse_adapt.retrieve.vectors.cluster import cluster_of, on_cluster
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
    return Written(place.folder, message, [index_it, export_it], figures={"rows": manifest.rows})


@declared
def index(
    vectors: Annotated[
        str | Path,
        Option("A folder that `encode` or `export anserini` wrote.", metavar="DIR", check=a_folder),
    ],
    out: Annotated[str | Path, out_option("Index folder to write.", "INDEX")],
    *,
    scale: Scale = None,
    threads: Annotated[
        int | None, Option("Threads that build the index.", ge=1, shown="all processors")
    ] = None,
    overwrite: Overwrite = False,
    progress: bool | None = None,
) -> Written:
    """Build a Lucene index from sparse vectors.

    Anserini builds it; weights become whole numbers.

    >>> import sparse_adapt as sa
    >>> sa.index("vectors", "my-index")  # doctest: +SKIP
    <Written: my-index: 5,183 documents, anserini-1.7.1>
    """
    from sparse_adapt.engines.lucene import build_index
    from sparse_adapt.engines.manifest import read_export_manifest
    from sparse_adapt.engines.quantise import Quantisation
    from sparse_adapt.retrieve.vectors.folder import read_manifest
    from sparse_adapt.retrieve.vectors.manifest import read_format
    from sparse_adapt.stages.record import read_before

    source, place = Path(vectors), Path(out)
    is_plain = read_format(source) == "vectors"
    total = read_manifest(source).rows if is_plain else read_export_manifest(source, "anserini").documents
    with progress_bars(progress) as bars:
        card = build_index(
            source,
            Place(place, overwrite),
            threads=threads,
            quantisation=None if scale is None else Quantisation.of(scale),
            progress=bars.count("documents", total),
        )
    name = card.model.name
    query = a_query(read_before(name).get("corpus")) if name else None
    steps = [] if query is None else [line("search", query, "--model", name, "--index", out)]
    return Written(place, f"{card.documents - card.empty_documents:,} documents, {card.engine}", steps)


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
