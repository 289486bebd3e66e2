"""OpenSearch 3.3 or newer: `sparse_vector` fields, which Seismic searches; the files are those of `features`.

    FOLDER/numbers.json    {token: number}: what documents and queries call a token

This field takes numbers for tokens and keeps 16 bits of them: numbers that are 65,536 apart are one token to it, and
from 32,768 on early versions mis-score documents. A model that has no more tokens keeps its ids. Otherwise the tokens
that documents have are numbered in the order of their ids, and an export with more of them than fit is refused. Queries
must use these numbers, so that a model in the cluster can't ask an index whose tokens are numbered anew.

Segments of fewer than a million documents are searched exactly, by weights of 9 bits. In larger ones a weight is one
of 256 steps up to the largest weight of the documents, and the search is approximate. Dimensions: V vocabulary.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from sparse_adapt.errors import InputError
from sparse_adapt.files.records import JsonObject
from sparse_adapt.plugins.engines.features import INDEX_FILE, FeatureFields
from sparse_adapt.plugins.engines.layout import ExportLayout, ExportSource
from sparse_adapt.plugins.engines.lucene_features import FIELD
from sparse_adapt.plugins.engines.manifest import ExportFolder
from sparse_adapt.plugins.engines.opensearch import connect, search_body
from sparse_adapt.plugins.engines.quantise import as_floats
from sparse_adapt.retrieve.vectors.folder import Vectors

NUMBERS_FILE = "numbers.json"
MOST_TOKENS = 2**15


class Numbering(NamedTuple):
    """What V tokens are called, "" where no document has one, and the largest weight of the documents."""

    names: list[str]
    largest: float


def _search_body(weights: Mapping[str, float], k: int) -> tuple[JsonObject, float]:
    """What `_search` takes: no token of the query is left out, which by default the lightest are."""
    body, factor = search_body(weights, k)
    body["query"]["neural_sparse"][FIELD]["method_parameters"] = {"k": k, "top_n": len(weights)}
    return body, factor


def names_in(export: ExportFolder) -> list[str]:
    """What an export calls its V tokens, "" where no document has one."""
    numbers = json.loads((export.path / NUMBERS_FILE).read_text(encoding="utf-8"))
    return [str(numbers[token]) if token in numbers else "" for token in export.tokens]


SEISMIC = FeatureFields(
    "opensearch-seismic", "OpenSearch", {"type": "sparse_vector"}, _search_body, str, connect, names_in
)


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export. Raises InputError for documents with more tokens than the field tells apart."""
    names, largest = _numbered(source.vectors)
    method = {"name": "seismic", "parameters": {"quantization_ceiling_ingest": largest} if largest else {}}
    fields = replace(SEISMIC, mapping={"type": "sparse_vector", "method": method})
    made, tokens = fields.layout_by(names, source), source.vectors.tokens
    numbers = {token: int(name) for token, name in zip(tokens, names, strict=True) if name}
    index = {
        **cast("Mapping[str, object]", made.settings[INDEX_FILE]),
        "settings": {"index": {"sparse": True}},
    }
    facts = {"renumbered_tokens": len(numbers) if len(tokens) > MOST_TOKENS else 0}
    return replace(made, settings={INDEX_FILE: index, NUMBERS_FILE: numbers}, facts=facts)


how_to_load, open_export, load = SEISMIC.how_to_load, SEISMIC.open_export, SEISMIC.load


def _numbered(vectors: Vectors) -> Numbering:
    """A number for each token that the documents have; the ids themselves where the field can hold them all."""
    used, largest = np.zeros(len(vectors.tokens), dtype=bool), 0.0
    assert iter(vectors.blocks) is not vectors.blocks, (
        "blocks are gone through once more when they are written"
    )
    for weights in (as_floats(block).vectors for block in vectors.blocks):
        used[weights.indices] = True
        largest = max(largest, float(weights.data.max(initial=0.0)))
    if len(used) <= MOST_TOKENS:
        return Numbering([str(token_id) for token_id in range(len(used))], largest)
    if used.sum() > MOST_TOKENS:
        raise InputError(
            vectors.model.name,
            f"documents have {used.sum():,} tokens, a sparse_vector field of OpenSearch tells {MOST_TOKENS:,} apart; "
            "export for opensearch instead",
        )
    numbers = np.cumsum(used) - 1
    return Numbering(
        [str(number) if there else "" for number, there in zip(numbers, used, strict=True)], largest
    )
