"""Lucene's feature fields, in which OpenSearch and Elasticsearch keep weights, in this process and without a server.

Each weight of a document becomes a `FeatureField`, each token of a query a linear feature query, as in both engines;
Lucene rounds and scores. The index stands in memory.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from sparse_adapt.engines.java import java_class

Ask = Callable[[list[dict[str, float]], int], Iterator[dict[str, float]]]
"""Queries as weights by name, none empty -> the k best documents of each with their scores, best first."""

FIELD = "weights"
HEAVIEST_WEIGHT = 64.0  # in a query, for Lucene's linear feature query
ANY_NUMBER_OF_TOKENS = 2**31 - 1


def halving(weights: Mapping[str, float]) -> float:
    """The power of two that a query is multiplied with, 1 unless a weight is too heavy."""
    heaviest = max(weights.values(), default=0.0)
    return 1.0 if heaviest <= HEAVIEST_WEIGHT else 2.0 ** -math.ceil(math.log2(heaviest / HEAVIEST_WEIGHT))


def lucene_version() -> str:
    """The version of Lucene that Anserini brings."""
    return str(java_class("org.apache.lucene.util.Version").LATEST.toString())


@contextmanager
def lucene_index(documents: Iterable[tuple[str, Mapping[str, float]]]) -> Iterator[Ask]:
    """An index of documents, each its id with weights by name. Raises MissingExtraError without Lucene or Java."""
    directory = java_class("org.apache.lucene.store.ByteBuffersDirectory")()
    config = java_class("org.apache.lucene.index.IndexWriterConfig")()
    writer = java_class("org.apache.lucene.index.IndexWriter")(directory, config)
    feature, document = (
        java_class(f"org.apache.lucene.document.{name}") for name in ("FeatureField", "Document")
    )
    ids = []
    for document_id, weights in documents:
        made = document()
        for name, weight in weights.items():
            made.add(feature(FIELD, name, weight))
        writer.addDocument(made)
        ids.append(document_id)
    writer.forceMerge(1)
    writer.close()
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
    try:
        yield partial(_ask, _searcher(reader), ids)
    finally:
        reader.close()


def _searcher(reader: Any) -> Any:  # noqa: ANN401 - a Java object
    from jnius import cast

    kind = java_class("org.apache.lucene.search.IndexSearcher")
    kind.setMaxClauseCount(ANY_NUMBER_OF_TOKENS)
    return kind(cast("org.apache.lucene.index.IndexReader", reader))


def _ask(
    searcher: Any,  # noqa: ANN401 - a Java object
    ids: list[str],
    queries: list[dict[str, float]],
    k: int,
) -> Iterator[dict[str, float]]:
    feature = java_class("org.apache.lucene.document.FeatureField")
    should = java_class("org.apache.lucene.search.BooleanClause$Occur").SHOULD
    for query in queries:
        builder, factor = java_class("org.apache.lucene.search.BooleanQuery$Builder")(), halving(query)
        for name, weight in query.items():
            builder.add(feature.newLinearQuery(FIELD, name, weight * factor), should)
        hits = searcher.search(builder.build(), k).scoreDocs
        yield {ids[hit.doc]: hit.score / factor for hit in hits}
