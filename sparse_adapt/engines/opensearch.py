"""OpenSearch: an export on a server, loaded with bulk requests (see `features`)."""

from contextlib import AbstractContextManager
from pathlib import Path

from sparse_adapt.engines import features
from sparse_adapt.engines.http import Server
from sparse_adapt.export.opensearch import TARGET


def open_engine(folder: Path, *, url: str = "") -> AbstractContextManager[features.FeatureIndex]:
    """An export in an index of its own on the server at `url`, which is gone afterwards."""
    return features.open_engine(TARGET, folder, url)


def load(folder: Path, url: str, index: str) -> int:
    """Put an export into an index; how many documents it holds then. See `features.load` for what it raises."""
    server = Server(url)
    try:
        return features.load(TARGET, folder, server, index)
    finally:
        server.close()
