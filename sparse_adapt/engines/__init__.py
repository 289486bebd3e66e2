"""Search engines: the files that an engine loads, and the engine itself, opened and compared with exact search.

Each engine has one module, which knows its files, says how they are loaded, and opens an export in the engine:
`anserini` (with `lucene`, its index, and `java`), `ciff`, `seismic`, `milvus`, `qdrant`, `pgvector`, `vespa`,
`parquet`, `opensearch`, `opensearch_seismic` and `elasticsearch` (with `features` and `lucene_features`, which they
share), `onnx`, `anserini_onnx` and `opensearch_model` (the encoder itself).

`formats` has a row for each engine. `quantise` makes weights into what an engine keeps, `manifest` says what an export
holds, `layout` brings texts into files, `engine` is what an open engine can do, `writing` writes an export, and
`parity` compares the engine's rankings with exact search.
"""
