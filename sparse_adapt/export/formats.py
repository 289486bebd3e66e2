"""The formats that vectors can be written in: one row, and one module, a format."""

from typing import Literal, NamedTuple

from sparse_adapt.errors import ConfigError, unknown


class Format(NamedTuple):
    """One target.

    `weights`: whether it holds whole impacts (and takes a quantisation) or floats. `needs`, `extra`: the package
    that writing imports, and the extra that brings it. `holds_model`: whether `write` takes `encoder=` as well.
    `holds_vectors`: whether it holds documents at all.
    """

    name: str
    module: str
    summary: str
    weights: Literal["impacts", "floats"]
    needs: str = ""
    extra: str = ""
    holds_model: bool = False
    holds_vectors: bool = True


FORMATS = (
    Format(
        "anserini",
        "sparse_adapt.export.anserini",
        "JsonVectorCollection for Lucene through Anserini and Pyserini",
        "impacts",
    ),
    Format(
        "ciff",
        "sparse_adapt.export.ciff",
        "Common Index File Format for PISA and others",
        "impacts",
        "ciff_toolkit",
        "ciff",
    ),
    Format("opensearch", "sparse_adapt.export.opensearch", "bulk requests with rank features", "floats"),
    Format(
        "elasticsearch", "sparse_adapt.export.elasticsearch", "bulk requests with sparse vectors", "floats"
    ),
    Format("qdrant", "sparse_adapt.export.qdrant", "points with sparse vectors", "floats"),
    Format("milvus", "sparse_adapt.export.milvus", "rows with sparse vectors", "floats"),
    Format("vespa", "sparse_adapt.export.vespa", "feed and schema with a mapped tensor", "floats"),
    Format("seismic", "sparse_adapt.export.seismic", "JSON lines for Seismic", "floats"),
    Format(
        "sentence-transformers",
        "sparse_adapt.export.sentence_transformers",
        "a SparseEncoder's folder and its vectors",
        "floats",
        holds_model=True,
    ),
    Format(
        "onnx",
        "sparse_adapt.export.onnx",
        "the encoder itself, pooling inside, for ONNX Runtime",
        "floats",
        "onnxruntime",
        "onnx",
        holds_model=True,
        holds_vectors=False,
    ),
    Format(
        "opensearch-model",
        "sparse_adapt.export.opensearch_model",
        "the encoder itself, in TorchScript, for OpenSearch's ML Commons",
        "floats",
        holds_model=True,
        holds_vectors=False,
    ),
)


def find_format(name: str) -> Format:
    """The row of that name. Raises ConfigError for a name that isn't in the table."""
    for row in FORMATS:
        if row.name == name:
            return row
    raise ConfigError(unknown("export format", name, [row.name for row in FORMATS]))
