"""Bulk requests for OpenSearch: `rank_features`, searched by `neural_sparse` with raw tokens.

The files are those of `features`. OpenSearch takes any token as the name of a feature, dots included, so
tokens keep the names that a model of ML Commons gives them. A query's weight may be 64 at most: where one is
heavier, the whole query is halved until it isn't, which moves no document.
"""

import json
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sparse_adapt.export import features
from sparse_adapt.export.features import FIELD, Target
from sparse_adapt.export.parts import Manifest

HEAVIEST = 64.0  # weight in a query, for Lucene's linear feature query


def share(weights: Mapping[str, float]) -> float:
    """The power of two that a query is multiplied with, 1 unless a weight is too heavy."""
    heaviest = max(weights.values(), default=0.0)
    return 1.0 if heaviest <= HEAVIEST else 2.0 ** -math.ceil(math.log2(heaviest / HEAVIEST))


def search_body(weights: Mapping[str, float], k: int) -> dict[str, Any]:
    """What `_search` takes: the k documents with the largest dot products, their ids and scores only."""
    factor = share(weights)
    tokens = {name: weight * factor for name, weight in weights.items()}
    return {
        "size": k,
        "_source": False,
        "query": {"neural_sparse": {FIELD: {"query_tokens": tokens}}},
    }


def token_name(token: str) -> str:
    """A token as OpenSearch knows it: itself."""
    return token


TARGET = Target("opensearch", "OpenSearch", {"type": "rank_features"}, search_body, token_name)

write = partial(features.write, TARGET)


def loading(folder: Path, manifest: Manifest) -> str:
    """Shell commands that load it, and lines of Python that name what the server refuses."""
    python = (
        "from pathlib import Path\n"
        "from sparse_adapt.engines.opensearch import load\n"
        f'load(Path({json.dumps(str(folder))}), "http://localhost:9200", "documents")'
    )
    return f"{features.curl_lines(folder, 'documents')}\n\n{python}"
