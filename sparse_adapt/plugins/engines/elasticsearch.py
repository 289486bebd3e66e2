r"""Elasticsearch, 8.15 or newer: `sparse_vector` fields and queries; the files are those of `features`.

Elasticsearch refuses dots in the names of features: a token with one is written as `node\u00002ejs`, which goes back
(`layout.unescape_token`) and meets no other token, as `node_js` would. A query says `prune: false`, since indices
leave out frequent tokens by default from 9.1 on.
"""

from collections.abc import Mapping
from functools import partial

from sparse_adapt.files.records import JsonObject
from sparse_adapt.plugins.engines.features import BUSY, SECONDS, FeatureFields, SearchServer
from sparse_adapt.plugins.engines.layout import escape_token
from sparse_adapt.plugins.engines.lucene_features import FIELD


def _search_body(weights: Mapping[str, float], k: int) -> tuple[JsonObject, float]:
    """What `_search` takes: the k documents with the largest dot products, their ids and scores only."""
    query = {"field": FIELD, "query_vector": dict(weights), "prune": False}
    return {"size": k, "_source": False, "query": {"sparse_vector": query}}, 1.0


def _server(url: str) -> SearchServer:
    from elasticsearch import ApiError, Elasticsearch, TransportError, helpers

    client = Elasticsearch(url, request_timeout=SECONDS, retry_on_status=BUSY)
    return SearchServer(client, helpers.streaming_bulk, (ApiError, TransportError))


ELASTICSEARCH = FeatureFields(
    "elasticsearch",
    "Elasticsearch",
    {"type": "sparse_vector"},
    _search_body,
    partial(escape_token, offends=".".__eq__),
    _server,
)

layout, how_to_load = ELASTICSEARCH.layout, ELASTICSEARCH.how_to_load
open_export, load = ELASTICSEARCH.open_export, ELASTICSEARCH.load
