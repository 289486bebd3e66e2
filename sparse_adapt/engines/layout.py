"""What the module of an engine has: the files of an export, how they are loaded, and the engine that searches them.

Dimensions: V vocabulary.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Protocol

from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Document, Run
from sparse_adapt.engines.manifest import ExportFolder, ExportManifest, Fact
from sparse_adapt.engines.quantise import Entries
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors

QUERIES_FILE = "queries.jsonl"

Lines = Callable[[Entries], Iterator[str]]
"""The lines of a file that hold some texts."""

WriteDocuments = Callable[[Path, ExportManifest, Iterable[EncodedBatch]], ExportManifest]
"""Writes documents into a folder, block by block; the manifest with their counts and their files."""

Encode = Callable[[Sequence[str]], csr_matrix]
"""Texts -> weights (rows, V)."""


class ExportSource(NamedTuple):
    """What is exported: documents as vectors, queries where there are any, the encoder for engines that hold it.

    `texts`: the documents themselves, in the order of their vectors, where the engine is to store title and text.
    """

    vectors: Vectors
    queries: EncodedBatch | None = None
    encoder: SparseEncoder | None = None
    texts: Iterable[Document] | None = None


@dataclass(frozen=True, kw_only=True)
class ExportLayout:
    """The files of an export, as one engine reads them.

    `documents` writes those of the documents. `query_lines` are the lines of `queries_file`. `settings`: texts,
    or JSON, by the path of further files. `largest_weight`: the largest that the engine keeps, where it keeps floats.
    `facts`: what the manifest says of this engine alone.
    """

    documents: WriteDocuments
    query_lines: Lines | None = None
    queries_file: str = QUERIES_FILE
    settings: Mapping[str, object] = field(default_factory=dict)
    largest_weight: float | None = None
    facts: Mapping[str, Fact] = field(default_factory=dict)


class Engine(Protocol):
    """An export in its engine, ready to be searched.

    An engine may round. Exact search over the weights that it keeps (`stored`) and reads (`asked`) must give its own
    ranking, and what these lose against the float weights is what the format costs.
    """

    @property
    def name(self) -> str:
        """The engine with its version."""

    @property
    def tolerance(self) -> float:
        """How far the engine's arithmetic may be off, as a share of a score: 0 for whole numbers, 1e-6 for float32."""

    @property
    def encode(self) -> Encode | None:
        """Queries in words -> their weights, by the encoder that the export holds; None where it holds none."""

    def stored(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as the engine keeps them (rows, V), in terms of weights: rounded, clipped, cut."""

    def asked(self, queries: EncodedBatch) -> csr_matrix:
        """The queries as the engine reads them (rows, V), in terms of weights."""

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents with their scores in terms of weights, best first.

        Queries without an entry have an empty ranking; documents without a shared token are left out.
        """


class EngineModule(Protocol):
    """What a module that a row of `formats.ENGINES` names must have."""

    def layout(self, source: ExportSource) -> ExportLayout:
        """The files of an export. Raises InputError for a token that the engine can't hold."""

    def how_to_load(self, export: ExportFolder) -> str:
        """The commands or lines of Python that load an export, ready to be copied."""

    def open_export(
        self, export: ExportFolder, url: str, documents: EncodedBatch | None
    ) -> AbstractContextManager[Engine]:
        """The engine with an export in it, in a `with` block, which lets go of everything.

        It is loaded from the export's files alone, by the means that a user has: a library in this process, a server
        at `url`, or a temporary index beside nothing of the user's. `documents` are what an export that holds none is
        searched with. Raises OutputError for a server that refuses.
        """
