"""Lucene's feature fields, in which OpenSearch and Elasticsearch keep weights, in this process and without a server.

Each weight of a document becomes a `FeatureField`, each token of a query a linear feature query, as in both engines;
Lucene rounds and scores. The index stands in memory.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Protocol

from sparse_adapt.plugins.engines.java import java_class

Ask = Callable[[list[dict[str, float]], int], Iterator[dict[str, float]]]
"""Queries as weights by name, none empty -> the k best documents of each with their scores, best first."""


class ScoreDoc(Protocol):
    """A document's number in the index, and its score."""

    doc: int
    score: float


class TopDocs(Protocol):
    """The best documents for a query, best first."""

    scoreDocs: Sequence[ScoreDoc]


class LuceneSearcher(Protocol):
    """Lucene's searcher, as far as it is asked."""

    def search(self, query: object, k: int) -> TopDocs:
        """The k best documents for a query."""


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
    ids: list[str] = []

    def fields() -> Iterator[Iterator[object]]:
        for document_id, weights in documents:
            ids.append(document_id)
            yield feature_fields(weights)

    with lucene_searcher(fields()) as searcher:
        yield partial(_ask, searcher, ids)


@contextmanager
def lucene_searcher(
    documents: Iterable[Iterable[object]], analyzer: str = "standard.Standard"
) -> Iterator[LuceneSearcher]:
    """Lucene's searcher over documents, each the fields that it has; an analyzer cuts fields of text."""
    directory = java_class("org.apache.lucene.store.ByteBuffersDirectory")()
    config = java_class("org.apache.lucene.index.IndexWriterConfig")(lucene_analyzer(analyzer))
    writer = java_class("org.apache.lucene.index.IndexWriter")(directory, config)
    document = java_class("org.apache.lucene.document.Document")
    for fields in documents:
        made = document()
        for field in fields:
            made.add(field)
        writer.addDocument(made)
    writer.forceMerge(1)
    writer.close()
    reader = java_class("org.apache.lucene.index.DirectoryReader").open(directory)
    try:
        yield _searcher(reader)
    finally:
        reader.close()


def _searcher(reader: object) -> LuceneSearcher:
    from jnius import cast

    kind = java_class("org.apache.lucene.search.IndexSearcher")
    kind.setMaxClauseCount(ANY_NUMBER_OF_TOKENS)
    searcher: LuceneSearcher = kind(cast("org.apache.lucene.index.IndexReader", reader))
    return searcher


def lucene_analyzer(name: str) -> object:
    """One of Lucene's analyzers, with its own stop words if it has any."""
    analyzer: object = java_class(f"org.apache.lucene.analysis.{name}Analyzer")()
    return analyzer


def feature_fields(weights: Mapping[str, float]) -> Iterator[object]:
    """A document's weights by name, as fields of Lucene."""
    feature = java_class("org.apache.lucene.document.FeatureField")
    return (feature(FIELD, name, weight) for name, weight in weights.items())


def feature_query(weights: Mapping[str, float], factor: float) -> object:
    """A query of Lucene whose score is a dot product, times a factor that keeps the weights within bounds."""
    feature = java_class("org.apache.lucene.document.FeatureField")
    return any_of(feature.newLinearQuery(FIELD, name, weight * factor) for name, weight in weights.items())


def any_of(queries: Iterable[object]) -> object:
    """A query of Lucene whose score is the sum of those of other queries."""
    should = java_class("org.apache.lucene.search.BooleanClause$Occur").SHOULD
    builder = java_class("org.apache.lucene.search.BooleanQuery$Builder")()
    for query in queries:
        builder.add(query, should)
    made: object = builder.build()
    return made


def best(searcher: LuceneSearcher, ids: Sequence[str], query: object, k: int) -> dict[str, float]:
    """The k best documents for a query of Lucene with their scores, best first."""
    return {ids[hit.doc]: hit.score for hit in searcher.search(query, k).scoreDocs}


def _ask(
    searcher: LuceneSearcher, ids: Sequence[str], queries: list[dict[str, float]], k: int
) -> Iterator[dict[str, float]]:
    for query in queries:
        factor = halving(query)
        hits = best(searcher, ids, feature_query(query, factor), k)
        yield {document_id: score / factor for document_id, score in hits.items()}
