"""Engines that serve an exported folder, behind one interface, so that each can be held against exact search.

An engine's module has one function:

    open_engine(folder: Path, *, url: str = "") -> Engine      used in a `with` block, which lets go of everything

`folder` is what `export` wrote for that format. The engine is loaded from its files alone, by the means that a
user has: a library in this process, a server at `url`, or a temporary index beside nothing of the user's. What
is opened has the attributes of `Engine`. The point of `stored` and `asked` is that an engine may round: exact
search over them must give the engine's own ranking, and what they lose against the float weights is what the
format costs. Raises InputError for a folder that its manifest doesn't vouch for, ConfigError where a `url` is
missing or not wanted, OutputError for a server that refuses.

An engine whose export holds an encoder also has `encode(texts) -> csr_matrix`, and is then put its own queries;
one whose export holds nothing else has `take(documents: Block)`, and searches those. Dimensions: V vocabulary.
"""

from contextlib import AbstractContextManager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, Protocol

from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.errors import ConfigError, MissingExtraError, unknown
from sparse_adapt.retrieve.vectors.folder import EncodedBatch


class Engine(Protocol):
    """An export in its engine, ready to be searched.

    `name` is the engine with its version. `tolerance` is how far, as a share of the score, the engine's arithmetic
    may be off: 0 for whole numbers, about 1e-6 for sums in float32.
    """

    name: str
    tolerance: float

    def stored(self, documents: EncodedBatch) -> csr_matrix:
        """The documents as the engine keeps them (rows, V), in terms of weights: rounded, clipped, cut."""

    def asked(self, queries: EncodedBatch) -> csr_matrix:
        """The queries as the engine reads them (rows, V), in terms of weights."""

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents with their scores in terms of weights, best first.

        Queries without an entry have an empty ranking; documents without a shared token are left out.
        """


class EngineRow(NamedTuple):
    """Which module opens the exports of a format; the package it imports and the extra that brings that."""

    format: str
    module: str
    needs: str = ""
    extra: str = ""


ENGINES = (
    EngineRow("anserini", "sparse_adapt.engines.lucene", "pyserini", "lucene"),
    EngineRow("ciff", "sparse_adapt.engines.pisa", "pyterrier_pisa", "pisa"),
    EngineRow("opensearch", "sparse_adapt.engines.opensearch"),
    EngineRow("elasticsearch", "sparse_adapt.engines.elasticsearch"),
    EngineRow("qdrant", "sparse_adapt.engines.qdrant", "qdrant_client", "qdrant"),
    EngineRow("milvus", "sparse_adapt.engines.milvus", "pymilvus", "milvus"),
    EngineRow("vespa", "sparse_adapt.engines.vespa"),
    EngineRow("seismic", "sparse_adapt.engines.seismic", "seismic", "seismic"),
    EngineRow(
        "sentence-transformers",
        "sparse_adapt.engines.sentence_transformers",
        "sentence_transformers",
        "sentence-transformers",
    ),
    EngineRow("onnx", "sparse_adapt.engines.onnx", "onnxruntime", "onnx"),
)


def open_engine(format: str, folder: Path, *, url: str = "") -> AbstractContextManager[Engine]:
    """The engine of a format, loaded with an export of it.

    Raises ConfigError for a format that no engine here serves, MissingExtraError without its package, and
    what the module raises.
    """
    for row in ENGINES:
        if row.format == format:
            if row.needs and find_spec(row.needs) is None:
                raise MissingExtraError(row.needs, row.extra)
            opened: AbstractContextManager[Engine] = import_module(row.module).open_engine(folder, url=url)
            return opened
    raise ConfigError(unknown("engine", format, [row.format for row in ENGINES]))
