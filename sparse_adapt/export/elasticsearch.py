r"""Bulk requests for Elasticsearch (8.15 or newer): `sparse_vector` fields and queries, without pruning.

The files are those of `features`. Elasticsearch refuses dots in the names of features: a token with one is
written as `node\u00002ejs`, which goes back (`parts.unescape_token`) and meets no other token, as `node_js`
would. A query says `prune: false`, since indices leave out frequent tokens by default from 9.1 on.
"""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from sparse_adapt.export import features
from sparse_adapt.export.features import FIELD, Target
from sparse_adapt.export.parts import Manifest, escape_token


def search_body(weights: Mapping[str, float], k: int) -> dict[str, Any]:
    """What `_search` takes: the k documents with the largest dot products, their ids and scores only."""
    query = {"field": FIELD, "query_vector": dict(weights), "prune": False}
    return {"size": k, "_source": False, "query": {"sparse_vector": query}}


def token_name(token: str) -> str:
    """A token as Elasticsearch takes it, without a dot."""
    return escape_token(token, offends=".".__eq__)


TARGET = Target("elasticsearch", "Elasticsearch", {"type": "sparse_vector"}, search_body, token_name)

write = partial(features.write, TARGET)


def loading(folder: Path, manifest: Manifest) -> str:
    """Shell commands that load it, and lines of Python that name what the server refuses."""
    python = (
        "from pathlib import Path\n"
        "from sparse_adapt.engines.elasticsearch import load\n"
        f'load(Path({json.dumps(str(folder))}), "http://localhost:9200", "documents")'
    )
    return f"{features.curl_lines(folder, 'documents')}\n\n{python}"
