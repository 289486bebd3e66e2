"""OpenSearch: `rank_features`, searched by `neural_sparse` with raw tokens; the files are those of `features`.

OpenSearch takes any token as the name of a feature, dots included, so tokens keep the names that a model of ML
Commons gives them. A query's weight may be 64 at most: where one is heavier, the whole query is halved until it
isn't, which moves no document. Where a table weighs the model's queries, the export holds it with the tokenizer
(`query_tokenizer`), for `neural_sparse` by `query_text`.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sparse_adapt.engines.features import FIELD, FeatureFields
from sparse_adapt.engines.layout import ExportLayout, ExportSource
from sparse_adapt.engines.manifest import ExportFolder
from sparse_adapt.engines.query_tokenizer import how_to_ask, weighs_by_table, with_query_tokenizer

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


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export; beside them tokenizer and table, where the model weighs queries by one."""
    made = OPENSEARCH.layout(source)
    if source.encoder is None or not weighs_by_table(source.encoder):
        return made
    names = OPENSEARCH.names(source.vectors.tokens)
    return replace(made, documents=with_query_tokenizer(made.documents, source.encoder, names, halving))


def how_to_load(export: ExportFolder) -> str:
    """How an export is loaded, and how its queries are weighed where a table weighs them."""
    return "\n\n".join(filter(None, (OPENSEARCH.how_to_load(export), how_to_ask(export))))


open_export, load = OPENSEARCH.open_export, OPENSEARCH.load
