"""How well a model ranks a judged collection, and whether a difference to another model is more than chance.

Measures come from ranx: nDCG with linear gains, reciprocal rank, average precision, precision and recall, each with
its usual cut. A query without a positive judgement is left out, one with an empty result counts as 0, and
documents with equal scores stand in document order. Where queries are documents themselves (ArguAna, Quora), the
document that has a query's own id is left out of its ranking, as BEIR does. Beside the measures stands what the
ranking costs: how many non-zero weights a document and a query have.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import NamedTuple, cast

import numba
import numpy as np
from numba.core.errors import NumbaTypeSafetyWarning
from numba.typed import List as NumbaList
from numpy.typing import NDArray
from ranx import evaluate as ranx_evaluate
from scipy.sparse import csr_matrix

from sparse_adapt.collection.folder import CorpusFolder
from sparse_adapt.collection.lines import say_taken
from sparse_adapt.collection.readers import (
    Document,
    Judgements,
    Query,
    Run,
    read_judgements,
    read_queries,
)
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.report.tables import ComparedFigures, Evaluated, Figures
from sparse_adapt.retrieve.hybrid import document_vectors, query_vectors
from sparse_adapt.retrieve.search import search
from sparse_adapt.retrieve.significance import Values, holm, randomisation_test

DEPTH = 1000
SHOWN = 10  # documents of a query in JSON
MEASURES = {
    "ndcg@10": "ndcg@10",
    "mrr@10": "mrr@10",
    "map": f"map@{DEPTH}",
    "p@1": "precision@1",
    "p@5": "precision@5",
    "recall@100": "recall@100",
}
SIZES = ("nonzero_document", "nonzero_query")
USUAL = tuple(MEASURES)
ALWAYS = ("precision@1", "recall@1")  # asked of ranx, which loses its way with one measure alone
OF_RANX = {"ndcg": "ndcg", "mrr": "mrr", "map": "map", "p": "precision", "recall": "recall"}


def check_measure(measure: str) -> None:
    """Raise ConfigError for a measure that there isn't."""
    ranx_name(measure)


def ranx_name(measure: str) -> str:
    """What ranx calls a measure: one of MEASURES, or one of OF_RANX with a cut of its own, such as ndcg@20."""
    name, _, cut = measure.partition("@")
    if measure not in MEASURES and not (name in OF_RANX and cut.isdecimal() and 0 < int(cut) <= DEPTH):
        several = f"{', '.join(MEASURES)}, or another cut such as ndcg@20, of at most {DEPTH:,}"
        raise ConfigError(f"--measures {measure}: no such measure; there are {several}")
    return MEASURES.get(measure, f"{OF_RANX[name]}@{cut}")


class Measured(NamedTuple):
    """Each measure of each query: `values[measure]` is (queries,), in the order of `query_ids`."""

    query_ids: tuple[str, ...]
    values: dict[str, Values]

    @property
    def means(self) -> Figures:
        """Each measure's mean over the queries."""
        return {measure: float(values.mean()) for measure, values in self.values.items()}


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents, the queries of one split that can be measured, what is relevant to each, and what is measured."""

    documents: tuple[Document, ...]
    queries: tuple[Query, ...]
    judgements: Judgements
    measures: tuple[str, ...] = USUAL


@dataclass(frozen=True, slots=True)
class ModelResult:
    """What one model reached on one collection.

    `values` holds every measure and `nonzero_query` as (queries,), `nonzero_document` as (documents,).
    """

    queries: tuple[Query, ...]
    values: dict[str, Values]
    run: Run = field(default_factory=dict)  # query id -> document id -> score, best first

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of query that the collection names, in the order they first appear."""
        return tuple(dict.fromkeys(query.kind for query in self.queries if query.kind))

    def means(self, kind: str | None = None) -> Figures:
        """Mean of each measure, over all queries or those of one kind."""
        return {name: float(values.mean()) for name, values in self.select(kind).items()}

    def select(self, kind: str | None = None) -> dict[str, Values]:
        """The values (queries,) of one kind's queries; documents have no kind, so their size is left out then."""
        if kind is None:
            return self.values
        return self.among(np.array([query.kind == kind for query in self.queries])).values

    def among(self, chosen: NDArray[np.bool_]) -> "ModelResult":
        """The same of some queries (queries,), without the size of documents and without rankings."""
        queries = tuple(query for query, is_chosen in zip(self.queries, chosen, strict=True) if is_chosen)
        values = {name: values[chosen] for name, values in self.values.items() if name != "nonzero_document"}
        return ModelResult(queries, values)

    def without_sizes(self) -> "ModelResult":
        """The same without the number of non-zero weights of a text."""
        return replace(self, values={name: each for name, each in self.values.items() if name not in SIZES})


# -- one run ----------------------------------------------------------------------------------


def evaluate_run(run: Run, judgements: Judgements, measures: Sequence[str] = USUAL) -> Measured:
    """Measures of a ranking, per query that has a positive judgement, in the order of the judgements.

    A query's documents rank by score; equal scores keep the order in which the run names them.
    """
    query_ids = judged_queries(judgements)
    answered = [index for index, query_id in enumerate(query_ids) if run.get(query_id)]
    values = {measure: np.zeros(len(query_ids)) for measure in measures}
    pairs = [_as_arrays(run[query_ids[index]], judgements[query_ids[index]]) for index in answered]
    if pairs:
        for measure, measured in _ask_ranx(pairs, measures).items():
            values[measure][answered] = measured
    return Measured(query_ids, values)


def judged_queries(judgements: Judgements) -> tuple[str, ...]:
    """The queries that something is relevant to: those that a measure can say anything about."""
    return tuple(
        query_id
        for query_id, documents in judgements.items()
        if any(judgement > 0 for judgement in documents.values())
    )


def _as_arrays(ranking: dict[str, float], judged: dict[str, int]) -> tuple[Values, Values]:
    """A ranking (documents, 2) and its judgements (judged, 2) as ranx takes them: number, value; best first.

    Python's sort is stable where ranx's own is not, so that ties keep their order.
    """
    ranked = sorted(ranking, key=lambda document_id: -ranking[document_id])[:DEPTH]
    relevant = sorted(judged, key=lambda document_id: -judged[document_id])
    number = {document_id: number for number, document_id in enumerate(dict.fromkeys([*ranked, *relevant]))}
    run = [(number[document_id], len(ranked) - rank) for rank, document_id in enumerate(ranked)]
    judgements = [(number[document_id], judged[document_id]) for document_id in relevant]
    return np.array(run, dtype=np.float64), np.array(judgements, dtype=np.float64)


def _ask_ranx(pairs: Sequence[tuple[Values, Values]], measures: Sequence[str]) -> dict[str, Values]:
    """Each measure as (queries,). ranx sets numba's number of threads for good, so it is put back."""
    threads, names = numba.get_num_threads(), [ranx_name(measure) for measure in measures]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NumbaTypeSafetyWarning)
            measured = ranx_evaluate(
                NumbaList([judgements for _, judgements in pairs]),
                NumbaList([run for run, _ in pairs]),
                [*names, *(each for each in ALWAYS if each not in names)],
                return_mean=False,
            )
    finally:
        numba.set_num_threads(threads)
    return {measure: measured[name] for measure, name in zip(measures, names, strict=True)}


# -- a model on a collection ------------------------------------------------------------------


def read_collection(place: str | Path | CorpusFolder, split: str = "test") -> Collection:
    """Documents, measurable queries and judgements of one split.

    Raises InputError where a judged query has no text, nothing is relevant to any query, or no judged
    document is in the corpus.
    """
    corpus = CorpusFolder.of(place)
    judgements = read_judgements(corpus.source, split)
    return measurable(corpus.source, judgements, read_queries(corpus.source), corpus.read(), split)


def measurable(
    source: str | Path,
    judgements: Judgements,
    queries: Iterable[Query],
    documents: Iterable[Document],
    split: str,
) -> Collection:
    """A collection of the queries that judgements say anything about. `source` and `split` are for messages.

    Raises InputError as `read_collection` does.
    """
    texts = {query.query_id: query for query in queries}
    query_ids = judged_queries(judgements)
    if not query_ids:
        raise InputError(source, f"the split {split!r} has no query with a positive judgement")
    missing = next((query_id for query_id in query_ids if query_id not in texts), None)
    if missing is not None:
        raise InputError(source, f"the split {split!r} judges query {missing!r}, which has no text")
    if left_out := [query_id for query_id in judgements if query_id not in {*query_ids}]:
        note = f"{len(left_out):,} of {len(judgements):,} judged queries have no positive judgement"
        say_taken(str(source), f"{note} ({left_out[0]!r}), and are left out")
    in_order = tuple(documents)
    known = {document.document_id for document in in_order}
    if not any(document_id in known for query_id in query_ids for document_id in judgements[query_id]):
        raise InputError(source, f"no document that the split {split!r} judges is in the corpus")
    judged = {document_id for query_id in query_ids for document_id in judgements[query_id]}
    if lacking := sorted(judged - known):
        note = f"{len(lacking):,} of {len(judged):,} judged documents aren't in the corpus ({lacking[0]!r})"
        say_taken(str(source), f"{note}, and count as not found")
    collection = Collection(in_order, tuple(texts[query_id] for query_id in query_ids), judgements)
    if own := own_documents(collection):
        note = f"{len(own):,} of {len(query_ids):,} queries have the id and the text of a document"
        say_taken(str(source), f"{note}, which is left out of the query's own ranking, as BEIR does")
    return collection


def own_documents(collection: Collection) -> set[str]:
    """The ids of queries that are documents: the document of that id has the query's text.

    BEIR leaves such a document out of the query's own ranking (Thakur et al. 2021, arXiv:2104.08663). Ids that are
    numbers may be alike by chance, and so may a document that is judged relevant to the query of its id.
    """
    texts = {query.query_id: plain(query.text) for query in collection.queries}
    same = {each.document_id for each in collection.documents if _is_text_of(each, texts)}
    return {name for name in same if collection.judgements[name].get(name, 0) <= 0}


def _is_text_of(document: Document, texts: Mapping[str, str]) -> bool:
    """Whether a document has the text of the query of its own id."""
    asked = texts.get(document.document_id)
    return bool(asked) and asked in (plain(document.text), plain(document.full_text))


def plain(text: str) -> str:
    """A text in lower case, its words parted by one space each."""
    return " ".join(text.lower().split())


def evaluate_model(
    model: EitherEncoder,
    collection: str | Path | Collection,
    split: str = "test",
    *,
    progress: Progress = no_progress,
) -> ModelResult:
    """Encode a collection, search it exactly, and measure. `progress` hears how many texts are done."""
    if not isinstance(collection, Collection):
        collection = read_collection(collection, split)
    query_texts = [query.text for query in collection.queries]
    if isinstance(model, SentenceEncoder):
        texts = [document.full_text for document in collection.documents]
        dense = model.encode(query_texts, progress=progress), model.encode(texts, progress=progress)
        return evaluate_dense(*dense, collection)
    queries = query_vectors(model, query_texts, progress=progress)
    return evaluate_vectors(
        queries, document_vectors(model, collection.documents, progress=progress), collection
    )


def evaluate_vectors(
    queries: csr_matrix, documents: csr_matrix, collection: Collection, depth: int = DEPTH
) -> ModelResult:
    """The same for vectors that are there already: queries (queries, V), documents (documents, V).

    `depth`: how many documents of a query are looked at.
    """
    query_ids = [query.query_id for query in collection.queries]
    document_ids = [document.document_id for document in collection.documents]
    run = search(queries, query_ids, documents, document_ids, _deeper(depth, collection))
    sizes = [np.diff(vectors.indptr).astype(np.float64) for vectors in (documents, queries)]
    return _measured(run, depth, sizes, collection)


def evaluate_dense(
    queries: NDArray[np.float32], documents: NDArray[np.float32], collection: Collection
) -> ModelResult:
    """The same for dense vectors: queries (queries, H), documents (documents, H), every entry one that counts."""
    document_ids = [document.document_id for document in collection.documents]
    run: Run = {}
    depth = _deeper(DEPTH, collection)
    for query, vector in zip(collection.queries, queries, strict=True):
        scores = documents @ vector
        best = np.argsort(-scores, kind="stable")[:depth]
        run[query.query_id] = {document_ids[row]: float(scores[row]) for row in best}
    sizes = [np.full(len(vectors), vectors.shape[1], np.float64) for vectors in (documents, queries)]
    return _measured(run, DEPTH, sizes, collection)


def _deeper(depth: int, collection: Collection) -> int:
    """How many documents to look for, so that as many are left without a query's own."""
    return depth + bool(own_documents(collection))


def _measured(run: Run, depth: int, sizes: Sequence[Values], collection: Collection) -> ModelResult:
    """Measures of a run over a collection; sizes: non-zero weights of each document (documents,), then (queries,)."""
    ranked = evaluate_ranking(run, collection, depth)
    return replace(ranked, values={**ranked.values, **dict(zip(SIZES, sizes, strict=True))})


def evaluate_ranking(run: Run, collection: Collection, depth: int = DEPTH) -> ModelResult:
    """The measures of a ranking that something else made, of whose vectors nothing is known."""
    judgements = {query.query_id: collection.judgements[query.query_id] for query in collection.queries}
    own = own_documents(collection)
    rankings = {
        query_id: {name: score for name, score in scores.items() if name != query_id or query_id not in own}
        for query_id, scores in run.items()
    }
    run = {query_id: dict(islice(scores.items(), depth)) for query_id, scores in rankings.items()}
    return ModelResult(collection.queries, evaluate_run(run, judgements, collection.measures).values, run)


# -- against a baseline -----------------------------------------------------------------------


def compare(
    result: ModelResult, baseline: ModelResult, kind: str | None = None, *, seed: int = 0
) -> ComparedFigures:
    """Two models on the same queries and documents: means, model minus baseline, how likely chance gives as much.

    A `p_value` comes from `randomisation_test`; `adjusted` ones have Holm's correction over these measures. The number
    of non-zero weights is no measure: its difference is told, not tested.
    """
    assert result.queries == baseline.queries, "two results can be compared on the same queries only"
    ours, theirs = result.select(kind), baseline.select(kind)
    p_values = {
        name: randomisation_test(ours[name] - theirs[name], np.random.default_rng(seed))
        for name in ours
        if name not in SIZES
    }
    return ComparedFigures(
        model=result.means(kind),
        baseline=baseline.means(kind),
        difference={name: float((ours[name] - theirs[name]).mean()) for name in ours if name in theirs},
        p_value=p_values,
        adjusted=dict(zip(p_values, holm(list(p_values.values())), strict=True)),
    )


def evaluation(result: ModelResult, baseline: ModelResult | None = None, *, sizes: bool = True) -> Evaluated:
    """The object that `sparse-adapt evaluate --json` prints: means, differences, then kinds and queries.

    `adjusted` holds the p-values after Holm's correction over every test of the object. Without `sizes` nothing says
    how many non-zero weights a text has.
    """
    documents = len(result.values["nonzero_document"])
    if not sizes:
        result, baseline = result.without_sizes(), None if baseline is None else baseline.without_sizes()
    content = cast("Evaluated", _figures(result, baseline))
    if result.kinds:
        content["kinds"] = {kind: _figures(result, baseline, kind) for kind in result.kinds}
    if baseline is not None:
        _correct([content, *content.get("kinds", {}).values()])
    content["queries"] = [
        {"query_id": query.query_id, "kind": query.kind, **_query_figures(row, result, baseline)}
        for row, query in enumerate(result.queries)
    ]
    content["count"] = {"queries": len(result.queries), "documents": documents}
    return content


def _figures(result: ModelResult, baseline: ModelResult | None, kind: str | None = None) -> ComparedFigures:
    return {"model": result.means(kind)} if baseline is None else compare(result, baseline, kind)


def _correct(groups: Sequence[ComparedFigures]) -> None:
    """Put Holm's correction over the tests of all groups into each group."""
    tests = [(group, name) for group in groups for name in group["p_value"]]
    corrected = holm([group["p_value"][name] for group, name in tests])
    for (group, name), value in zip(tests, corrected, strict=True):
        group["adjusted"][name] = value


def _query_figures(
    row: int, result: ModelResult, baseline: ModelResult | None
) -> dict[str, dict[str, object]]:
    named = {"model": result} if baseline is None else {"model": result, "baseline": baseline}
    return {
        which: {
            **{name: float(values[row]) for name, values in measured.values.items() if name != SIZES[0]},
            "ranking": _ranking(measured.run.get(result.queries[row].query_id, {})),
        }
        for which, measured in named.items()
    }


def _ranking(scores: Mapping[str, float]) -> list[dict[str, object]]:
    """The best documents of one query with their scores, as many as nDCG@10 looks at."""
    return [{"document_id": name, "score": score} for name, score in islice(scores.items(), SHOWN)]
