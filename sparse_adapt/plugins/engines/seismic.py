"""Weights for Seismic: the JSON lines that its index is built from (Bruch et al. 2024, arXiv:2404.18812).

    FOLDER/documents.jsonl    {"id": ..., "vector": {"token": weight, ...}}
    FOLDER/queries.jsonl      the same
    FOLDER/tokens.json, manifest.json

Seismic reads one file, compares names of up to 100 characters and keeps weights as float16: the largest is
65,504, and larger ones are clipped. Texts without an entry are left out, since nothing finds them. More than
65,536 tokens need its index for large vocabularies, which `how_to_load` names where it must.

It is opened so that it searches exactly: no list is pruned and no block is skipped. Seismic is made to be
approximate; these settings leave its storage alone, weights of documents in float16, as what can differ from exact
search. Those of production are faster and find less: they are Seismic's to choose, and its manual's to explain.
Dimensions: V vocabulary.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.collection.readers import Run
from sparse_adapt.errors import InputError
from sparse_adapt.plugins.engines.engine import FloatEngine, quiet
from sparse_adapt.plugins.engines.layout import ExportLayout, ExportSource, in_one_file, vector_line
from sparse_adapt.plugins.engines.manifest import ExportFolder
from sparse_adapt.retrieve.vectors.folder import EncodedBatch

DOCUMENTS_FILE = "documents.jsonl"
LARGEST_WEIGHT = 65_504.0  # of float16
LONGEST_TOKEN = 100  # characters; Seismic cuts what is longer, and tokens would meet
MOST_TOKENS = 2**16  # of its usual index
SKIP_NOTHING = 0.0  # heap_factor: a block is skipped if its bound times this is below the worst score kept


def layout(source: ExportSource) -> ExportLayout:
    """The files of an export: lines of JSON. Raises InputError for a token that Seismic would cut."""
    line = vector_line([_checked(token) for token in source.vectors.tokens])
    return ExportLayout(
        documents=in_one_file(line, DOCUMENTS_FILE),
        query_line=line,
        largest_weight=LARGEST_WEIGHT,
        facts={"index": _index_class(len(source.vectors.tokens))},
    )


def how_to_load(export: ExportFolder) -> str:
    """Python that builds the index."""
    name = _index_class(len(export.tokens))
    return (
        f"from seismic import {name}\n"
        f"index = {name}.build({str(export.path / DOCUMENTS_FILE)!r}, load_content=False)\n"
        f"index.save({str(export.path)!r})"
    )


@contextmanager
def open_export(export: ExportFolder, url: str, documents: EncodedBatch | None) -> "Iterator[SeismicIndex]":
    """Seismic with an index of an export in memory."""
    export.check_holds_weights("Seismic")
    yield SeismicIndex(export)


class SeismicIndex(FloatEngine):
    """An export for Seismic in an index of its own."""

    tolerance = 1e-6

    def __init__(self, export: ExportFolder) -> None:
        import seismic

        super().__init__(export.manifest)
        self.name = f"Seismic {version('pyseismic-lsr')}"
        self._tokens = np.array(export.tokens, dtype=seismic.get_seismic_string())
        kind = seismic.SeismicIndexLV if len(self._tokens) > MOST_TOKENS else seismic.SeismicIndex
        with quiet():
            self._index = kind.build(
                str(export.path / DOCUMENTS_FILE),
                n_postings=max(export.manifest.documents, 1),
                max_fraction=float(len(self._tokens)),
                load_content=False,
            )

    def document_weights(self, documents: EncodedBatch) -> csr_matrix:
        """The documents in float16 (rows, V)."""
        vectors = self.manifest.take(documents).vectors
        vectors.data = vectors.data.astype(np.float16).astype(np.float32)
        return vectors

    def search_all(self, queries: EncodedBatch, k: int) -> Run:
        """For each query id its k best documents with their scores."""
        return self.in_batches(queries, 1, partial(self._search, k))

    def _search(self, k: int, queries: list[dict[int, float]]) -> Iterator[dict[str, float]]:
        for query in queries:
            hits = self._index.search(
                query_id="",
                query_components=self._tokens[list(query)],
                query_values=np.array(list(query.values()), np.float32),
                k=k,
                query_cut=len(query),
                heap_factor=SKIP_NOTHING,
            )
            yield {document_id: score for _, score, document_id in hits if score > 0}


def _index_class(tokens: int) -> str:
    """Which of Seismic's indexes holds so many tokens."""
    return "SeismicIndex" if tokens <= MOST_TOKENS else "SeismicIndexLV"


def _checked(token: str) -> str:
    if not 0 < len(token) <= LONGEST_TOKEN or "\0" in token:
        raise InputError(
            repr(token[:40]),
            f"this token has {len(token):,} characters; Seismic takes 1 to {LONGEST_TOKEN}, none of them NUL",
        )
    return token
