"""A Lucene index of sparse vectors: `index`, and what `search --index` asks of one."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from sparse_adapt.api.checks import a_folder
from sparse_adapt.api.following import a_query, line
from sparse_adapt.api.options import Option, Overwrite, Scale, declared, out_option
from sparse_adapt.files.place import Place
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.report.results import Result, written

if TYPE_CHECKING:
    from sparse_adapt.model.sparse import SparseEncoder


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
) -> Result:
    """Build a Lucene index from sparse vectors.

    Anserini builds it; weights become whole numbers.

    >>> import sparse_adapt as sa
    >>> sa.index("vectors", "my-index")  # doctest: +SKIP
    <Result: my-index: 5,183 documents, anserini-1.7.1>
    """
    from sparse_adapt.plugins.engines.lucene import build_index
    from sparse_adapt.plugins.engines.manifest import read_export_manifest
    from sparse_adapt.plugins.engines.quantise import Quantisation
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
    return written(place, f"{card.documents - card.empty_documents:,} documents, {card.engine}", steps)


class LuceneFolder:
    """An index as `search` knows it, by its folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def check(self) -> None:
        """Raise InputError for a folder that is no index."""
        from sparse_adapt.plugins.engines.lucene import read_card

        read_card(self.folder)

    def verify(self) -> int:
        """The number of its files, which are as they were written. Raises InputError for one that isn't."""
        from sparse_adapt.plugins.engines.lucene import verify_index

        return verify_index(self.folder)

    def best(
        self, encoder: "SparseEncoder", queries: Sequence[str], top: int
    ) -> list[list[tuple[str, float, int | None]]]:
        """The documents of each query, best first: id, score, impact."""
        from sparse_adapt.plugins.engines.lucene import LuceneIndex, look_up

        with LuceneIndex(self.folder) as opened:
            rankings = [look_up(text, encoder, opened, top) for text in queries]
        return [[(hit.document_id, hit.score, hit.impact) for hit in hits] for hits in rankings]
