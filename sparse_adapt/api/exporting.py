"""A corpus as vectors in the files of a search engine: `export`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from sparse_adapt.api.models import ModelGiven, load_sparse
from sparse_adapt.api.searching import is_vectors
from sparse_adapt.collection.given import Corpus, DocumentsGiven, QueriesGiven, queries_of
from sparse_adapt.collection.readers import documents_at
from sparse_adapt.engines.formats import check_takes, find_engine, module_of
from sparse_adapt.engines.layout import ExportSource
from sparse_adapt.engines.manifest import ExportManifest, remarks
from sparse_adapt.engines.quantise import DEFAULT_LARGEST, DEFAULT_SCALE, Quantisation
from sparse_adapt.engines.writing import ExportOptions, export_corpus, write_export
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.progress import watching
from sparse_adapt.report.results import Result
from sparse_adapt.report.tables import Row
from sparse_adapt.retrieve.vectors.folder import Vectors, open_vectors
from sparse_adapt.retrieve.vectors.manifest import stamp, token_names
from sparse_adapt.retrieve.vectors.shards import encode_queries


@dataclass(frozen=True, repr=False)
class Export(Result):
    """An export on the disk. `loading` holds the commands or lines of Python that load it, ready to be copied."""

    folder: Path
    manifest: ExportManifest
    loading: str

    @property
    def headline(self) -> str:
        """The format, the folder and what it holds."""
        return f"{self.manifest.format} in {self.folder}: {self.contents}"

    @property
    def contents(self) -> str:
        """What was written, in words."""
        made = self.manifest
        if not made.documents:
            return "the encoder"
        counts = f"{made.documents:,} documents with {made.entries:,} weights"
        return f"{counts}, {made.queries:,} queries" if made.queries else counts

    @property
    def remarks(self) -> tuple[str, ...]:
        """How weights are stored, which were left out or cut, and which texts no search will find, in words."""
        return tuple(remarks(self.manifest))

    def to_dict(self) -> dict[str, Any]:
        """The manifest, the folder, and how it is loaded."""
        return {
            "folder": str(self.folder),
            "loading": self.loading,
            **self.manifest.model_dump(mode="json"),
        }

    def rows(self) -> Sequence[Row]:
        """One row for each file."""
        files = (*self.manifest.parts, *filter(None, [self.manifest.queries_file]))
        return [{"file": file.path, "rows": file.rows, "sha256": file.sha256} for file in files]

    def renderable(self) -> RenderableType:
        """What was written, what it cost, and how it is loaded."""
        return Group(*map(Text, (self.headline, *self.remarks, "", self.loading)))


def export(
    format: str,
    model: ModelGiven | None,
    corpus: DocumentsGiven | None,
    out: str | Path,
    *,
    queries: QueriesGiven | None = None,
    scale: float | None = None,
    largest: int | None = None,
    texts: bool | DocumentsGiven = False,
    device: str = "auto",
    overwrite: bool = False,
    resume: bool = False,
    progress: bool | None = None,
) -> Export:
    """Write a corpus as vectors into a folder, in the files that a search engine loads.

    format: one of the names that `sparse-adapt export --help` lists, such as `opensearch`, `anserini` or `qdrant`.
    corpus: a place, documents in memory, or the folder that `sparse-adapt encode` wrote, which needs no model; None for
    formats that hold the encoder alone. `scale` and `largest`: of engines that keep whole impacts, weight x scale,
    rounded, at most `largest`. `texts`: whether title and text of each document are stored too, for opensearch and
    elasticsearch; beside vectors, the documents that have them. With `resume`, an export that was stopped goes on.
    Raises ConfigError for what the format can't take, MissingExtraError without a package that it needs, OutputError
    for a place that is taken.

    >>> import tempfile, sparse_adapt as sa
    >>> folder = tempfile.mkdtemp() + "/export"
    >>> made = sa.export("opensearch", "splade-tiny", ["a bird sings", "we save money"], folder, device="cpu")
    >>> made.manifest.documents
    2
    """
    row, place = find_engine(format), Path(out)
    quantisation = _quantisation(scale, largest)
    check_takes(
        row,
        queries=queries is not None,
        texts=texts is not False,
        scaled=quantisation is not None,
    )
    if row.holds == "vectors" and corpus is None:
        raise ConfigError(f"{format} holds documents; name a corpus, or vectors that were encoded")
    if row.holds == "encoder" and corpus is not None:
        raise ConfigError(f"{format} holds the encoder alone; leave the corpus and vectors out")
    ready = isinstance(corpus, str | Path) and is_vectors(corpus)
    if ready and texts is True:
        raise ConfigError("vectors hold no texts; name the documents that have them")
    if model is None and (not ready or queries is not None or row.holds == "encoder"):
        raise ConfigError("name the model that made the vectors; only vectors alone need none")
    asked = None if queries is None else queries_of(queries)
    held, encoder = (None, None) if model is None else load_sparse(model, device)
    name = "" if held is None else held.source
    encoded = None if asked is None or encoder is None else encode_queries(encoder, asked)
    options = ExportOptions(
        quantisation=quantisation,
        overwrite=overwrite,
        resume=resume,
        with_texts=texts is not False,
        reads=_read_of(corpus, texts)
        + [each for each in (name, queries) if isinstance(each, str | Path) and each],
    )
    if ready or corpus is None or encoder is None:
        given = None if isinstance(texts, bool) else Corpus.of(texts).read()
        source = ExportSource(_ready(encoder, name, corpus), encoded, encoder, given)
        done = write_export(format, source, place, options)
    else:
        documents = Corpus.of(corpus)
        with watching(progress) as bars:
            done = export_corpus(
                format,
                encoder,
                documents.read,
                place,
                model_name=name,
                queries=encoded,
                options=options,
                progress=bars.count("documents", documents.count()),
            )
    return Export(done.path, done.manifest, module_of(row).how_to_load(done))


def _read_of(*given: object) -> list[str | Path]:
    """Where corpora lie that are named: folders of vectors, or the files that hold documents."""
    named = [each for each in given if isinstance(each, str | Path) and str(each)]
    places = [each if is_vectors(each) else documents_at(each) for each in named]
    return [place for place in places if place is not None]


def _quantisation(scale: float | None, largest: int | None) -> Quantisation | None:
    if scale is None and largest is None:
        return None
    return Quantisation.of(
        DEFAULT_SCALE if scale is None else scale, DEFAULT_LARGEST if largest is None else largest
    )


def _ready(encoder: SparseEncoder | None, name: str, corpus: DocumentsGiven | None) -> Vectors:
    """Vectors that were encoded before, or none of them and who would have made them."""
    if corpus is None:
        assert encoder is not None, "checked before"
        return Vectors(stamp(encoder, name), token_names(encoder), ())
    assert isinstance(corpus, str | Path), "checked before"
    opened = open_vectors(Path(corpus))
    if encoder is not None and not opened.model.fits(stamp(encoder)):
        raise InputError(corpus, f"was encoded by another model ({opened.model.name}), not by {name}")
    return opened
