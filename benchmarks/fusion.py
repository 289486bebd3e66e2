"""BM25 and sparse weights added by Lucene in one query: nDCG@10 of each alone and of both.

    python -m benchmarks.fusion --data DIR

An index holds what `export opensearch --texts` stores: title and text, cut into words by Lucene's standard analyzer as
in the export's mapping, and weights as feature fields. BM25 of title and text are added, as `multi_match` does with
`most_fields`. Its boost makes the mean best score of both sides equal over the queries of a collection; no judgement is
read for it. The English analyzer, which has stems and stop words, is measured beside the standard one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import torch

from benchmarks.measure import options
from benchmarks.tables import MEASURE, Results, line
from sparse_adapt.collection.readers import Document, Judgements, Run
from sparse_adapt.model.forms import Side
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines.features import TEXT_FIELDS, rounded
from sparse_adapt.plugins.engines.java import java_class
from sparse_adapt.plugins.engines.lucene_features import (
    any_of,
    best,
    feature_fields,
    feature_query,
    halving,
    lucene_analyzer,
    lucene_searcher,
)
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, evaluate_run, read_collection
from sparse_adapt.retrieve.vectors.manifest import token_names

MODEL, COLLECTIONS, K = "splade-tiny", ("scifact", "cranfield", "cacm"), 10
ROWS = ("BM25", "sparse", "both")
STANDARD, ENGLISH = "standard.Standard", "en.English"  # analyzers of Lucene
Weights = Mapping[str, float]


class Question(NamedTuple):
    """A query in words and in weights."""

    text: str
    weights: Weights


class Fused:
    """Lucene's searcher over texts and weights."""

    def __init__(self, searcher: Any, ids: Sequence[str], analyzer: str) -> None:  # noqa: ANN401
        self._searcher, self._ids = searcher, ids
        self._words = java_class("org.apache.lucene.util.QueryBuilder")(lucene_analyzer(analyzer))

    def search(self, question: Question, bm25: float, sparse: float, k: int = K) -> dict[str, float]:
        """The k best documents by a sum, each side times its factor; a side whose factor is 0 isn't asked."""
        sides, factor = [], halving(question.weights)
        boosted = java_class("org.apache.lucene.search.BoostQuery")
        if bm25:
            fields = (self._words.createBooleanQuery(field, question.text) for field in TEXT_FIELDS)
            sides.append(boosted(any_of(query for query in fields if query is not None), bm25))
        if sparse:
            sides.append(boosted(feature_query(question.weights, factor), sparse / factor))
        return best(self._searcher, self._ids, any_of(sides), k)

    def search_all(self, queries: Mapping[str, Question], bm25: float, sparse: float) -> Run:
        """A run."""
        return {query_id: self.search(question, bm25, sparse) for query_id, question in queries.items()}


@contextmanager
def fused(documents: Iterable[tuple[Document, Weights]], analyzer: str) -> Iterator[Fused]:
    """An index of documents in memory."""
    text_field, ids = java_class("org.apache.lucene.document.TextField"), []
    stored = java_class("org.apache.lucene.document.Field$Store").NO

    def fields() -> Iterator[Iterator[Any]]:
        for document, weights in documents:
            ids.append(document.document_id)
            texts = {name: getattr(document, name) for name in TEXT_FIELDS}
            words = (text_field(*each, stored) for each in texts.items())
            yield chain(words, feature_fields(weights))

    with lucene_searcher(fields(), analyzer) as searcher:
        yield Fused(searcher, ids, analyzer)


def mean_best(run: Run) -> float:
    """The mean over queries of their best score, 0 where nothing is found."""
    return fmean(max(scores.values(), default=0.0) for scores in run.values())


def ndcg(run: Run, judgements: Judgements) -> float:
    """The mean nDCG@10."""
    return evaluate_run(run, judgements).means[MEASURE]


def by_name(model: SparseEncoder, texts: Sequence[str], side: Side, names: Sequence[str]) -> list[Weights]:
    """The weights of each text by token; those of documents as Lucene keeps them."""
    vectors = encode(model, texts, side)
    vectors = rounded(vectors) if side == "document" else vectors
    return [
        {names[column]: float(weight) for column, weight in zip(row.indices, row.data, strict=True)}
        for row in vectors
    ]


def measure(
    model: SparseEncoder, collection: Collection, analyzers: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """For each analyzer nDCG@10 of the rows, and the boost."""
    names = token_names(model)
    weights = by_name(model, [each.full_text for each in collection.documents], "document", names)
    vectors = by_name(model, [query.text for query in collection.queries], "query", names)
    queries = {
        query.query_id: Question(query.text, vector)
        for query, vector in zip(collection.queries, vectors, strict=True)
    }
    for analyzer in analyzers:
        with fused(zip(collection.documents, weights, strict=True), analyzer) as index:
            alone = [index.search_all(queries, 1.0, 0.0), index.search_all(queries, 0.0, 1.0)]
            boost = mean_best(alone[1]) / mean_best(alone[0])
            runs = [*alone, index.search_all(queries, boost, 1.0)]
        figures = [ndcg(run, collection.judgements) for run in runs]
        yield {"analyzer": analyzer, "boost": boost, **dict(zip(ROWS, figures, strict=True))}


def page(entries: Sequence[Mapping[str, Any]]) -> str:
    """A table for each analyzer: rows of rankers, columns of collections."""
    parts = []
    for analyzer in dict.fromkeys(each["analyzer"] for each in entries):
        shown = [each for each in entries if each["analyzer"] == analyzer]
        lines = [
            line((f"Lucene's {analyzer.split('.')[1]}Analyzer", *(each["collection"] for each in shown))),
            line(("---", *("---:",) * len(shown))),
            *(line((row, *(f"{each[row]:.3f}" for each in shown))) for row in ROWS),
            line(("boost of BM25", *(f"{each['boost']:.2f}" for each in shown))),
        ]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Measure, print the page, save both; entries that are there are kept."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    results, model = Results("fusion"), SparseEncoder.load(MODEL)
    for name in COLLECTIONS:
        missing = [
            each for each in (STANDARD, ENGLISH) if not results.holds({"collection": name, "analyzer": each})
        ]
        if missing:
            for entry in measure(model, read_collection(arguments.data / name), missing):
                results.add({"collection": name, **entry})
    results.conclude(page(results.rows))


if __name__ == "__main__":
    main()
