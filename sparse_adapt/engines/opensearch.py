"""OpenSearch: `rank_features`, searched by `neural_sparse` with raw tokens; the files are those of `features`.

OpenSearch takes any token as the name of a feature, dots included, so tokens keep the names that a model of ML
Commons gives them. A query's weight may be 64 at most: where one is heavier, the whole query is halved until it
isn't, which moves no document.
"""

import math
from collections.abc import Mapping
from typing import Any

from sparse_adapt.engines.features import FIELD, FeatureFields

HEAVIEST_WEIGHT = 64.0  # in a query, for Lucene's linear feature query


def halving(weights: Mapping[str, float]) -> float:
    """The power of two that a query is multiplied with, 1 unless a weight is too heavy."""
    heaviest = max(weights.values(), default=0.0)
    return 1.0 if heaviest <= HEAVIEST_WEIGHT else 2.0 ** -math.ceil(math.log2(heaviest / HEAVIEST_WEIGHT))


def _search_body(weights: Mapping[str, float], k: int) -> tuple[dict[str, Any], float]:
    """What `_search` takes: the k documents with the largest dot products, their ids and scores only."""
    factor = halving(weights)
    tokens = {name: weight * factor for name, weight in weights.items()}
    query = {"neural_sparse": {FIELD: {"query_tokens": tokens}}}
    return {"size": k, "_source": False, "query": query}, factor


OPENSEARCH = FeatureFields("opensearch", "OpenSearch", {"type": "rank_features"}, _search_body, str)

layout, how_to_load = OPENSEARCH.layout, OPENSEARCH.how_to_load
open_export, load = OPENSEARCH.open_export, OPENSEARCH.load
