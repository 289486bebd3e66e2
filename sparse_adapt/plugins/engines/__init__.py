"""Search engines: the files that an engine loads, and the engine itself, opened and compared with exact search.

Each engine has one module, which knows its files, says how they are loaded, and opens an export in the engine:
`anserini` (with `lucene`, its index, and `java`), `ciff`, `seismic`, `milvus`, `qdrant`, `pgvector`, `vespa`,
`parquet`, `opensearch`, `opensearch_seismic` and `elasticsearch` (with `features` and `lucene_features`, which they
share), `onnx`, `anserini_onnx` and `opensearch_model` (the encoder itself).

`formats` has a row for each engine. `quantise` makes weights into what an engine keeps, `manifest` says what an export
holds, `layout` brings texts into files, `engine` is what an open engine can do, `writing` writes an export, and
`parity` compares the engine's rankings with exact search.
"""

from sparse_adapt.plugins.engines.formats import OWN
from sparse_adapt.registry import Command, Plugin

HERE = "sparse_adapt.plugins.engines"

PLUGIN = Plugin(
    commands=(
        Command("index", f"{HERE}.indexing:index", panel="Search"),
        Command("export", f"{HERE}.exporting:export", panel="Engines"),
        Command("check-export", f"{HERE}.exporting:check_export", panel="Engines"),
    ),
    readers={
        "exports": dict.fromkeys([row.name for row in OWN], f"{HERE}.manifest:read_export"),
        "indexes": {"lucene": f"{HERE}.indexing:LuceneFolder"},
    },
    engines={row.name: row for row in OWN},
)
