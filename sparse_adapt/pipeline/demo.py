"""All stages on a corpus of new terms, and every model measured: one column of the demo's table each.

Such a corpus has terms, queries of the kinds control, explicit (they say a term) and semantic (they mean one
unsaid), and judgements of a train and a test split. The hard queries are the semantic ones of the train split.
Dimensions: V vocabulary. Vectors of documents are (documents, V), those of the queries of a split (queries, V).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.collection.folder import CorpusFolder
from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.place import Place, portable
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.demo_report import ALONE, BASE, KINDS, SPLITS, TOP, has_alone
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.pipeline.report import ColumnFigures, Demonstrated, DemoTermFigures, HardQuery
from sparse_adapt.pipeline.run import Finished, Listener, NoListener, is_whole, run, run_stage
from sparse_adapt.report.progress import Progress, no_progress, passing
from sparse_adapt.retrieve.activity import weights_of
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, evaluate_vectors, read_collection
from sparse_adapt.retrieve.search import top_k
from sparse_adapt.selection.comparison import JudgedDocuments, judged_evidence
from sparse_adapt.selection.questions import SOME, general_collection
from sparse_adapt.selection.retention import (
    EncodedCollection,
    Groups,
    active,
    encode_collection,
    known_of,
    retention_figures,
    retention_of,
    texts_in,
    with_background,
)
from sparse_adapt.stages.runner import Outcome
from sparse_adapt.terms.function_words import function_tokens
from sparse_adapt.terms.mining import read_terms

MEASURING = "measure: general texts read"


class TermTexts(NamedTuple):
    """A term, the rows of the documents that say it, the hard queries that mean it, and the unseen ones that do."""

    term: str
    rows: list[int]
    hard_query_ids: list[str]
    unseen_query_ids: list[str]


@dataclass(frozen=True)
class Scene:
    """A corpus of new terms as it is measured."""

    corpus: CorpusFolder
    documents: tuple[Document, ...]
    splits: dict[str, Collection]
    terms: tuple[TermTexts, ...]

    @cached_property
    def general(self) -> Collection:
        """General questions and passages, the same for every model."""
        return general_collection(most=SOME)

    @cached_property
    def known(self) -> Collection | None:
        """Known items: documents that say no term, by two of their words; None where there are none."""
        saying = np.zeros(len(self.documents), dtype=np.bool_)
        saying[[row for texts in self.terms for row in texts.rows]] = True
        return known_of(self.documents, saying)

    @property
    def hard_queries(self) -> list[Query]:
        """Queries that mean a term without saying it, and that a model may be trained on."""
        return self.semantic_queries("train")

    def semantic_queries(self, split: str) -> list[Query]:
        """Queries of a split that mean a term without saying it."""
        return [query for query in self.splits[split].queries if query.kind == "semantic"]

    def relevant(self, query: Query, split: str = "train") -> list[str]:
        """Ids of the documents that are relevant to a query of a split."""
        judged = self.splits[split].judgements[query.query_id]
        return [document_id for document_id, grade in judged.items() if grade > 0]


def read_scene(place: str, terms: Sequence[str]) -> Scene:
    """A corpus of this design. Raises InputError where a split, a kind of query or a term is missing."""
    corpus = CorpusFolder(place)
    splits = {split: read_collection(corpus, split) for split in SPLITS}
    documents = splits["train"].documents
    for split, collection in splits.items():
        for kind in KINDS:
            if all(query.kind != kind for query in collection.queries):
                raise InputError(place, f'no query of kind "{kind}" has judgements in the split "{split}"')
    scene = Scene(corpus, documents, splits, ())
    texts = tuple(_texts_of(scene, term) for term in terms)
    unsaid = next((each.term for each in texts if not each.rows), None)
    if unsaid is not None:
        raise InputError(place, f"no document says the term {unsaid!r}; remove it from the terms")
    return replace(scene, terms=texts)


def _texts_of(scene: Scene, term: str) -> TermTexts:
    word = re.compile(rf"(?<!\w){re.escape(term)}(e?s)?(?!\w)", re.IGNORECASE)
    rows = [row for row, document in enumerate(scene.documents) if word.search(document.full_text)]
    names = {scene.documents[row].document_id for row in rows}
    hard, unseen = (
        [each.query_id for each in scene.semantic_queries(split) if names & set(scene.relevant(each, split))]
        for split in SPLITS
    )
    return TermTexts(term, rows, hard, unseen)


def measure(
    model: SparseEncoder, scene: Scene, progress: Progress = no_progress
) -> tuple[ColumnFigures, Groups]:
    """One column, and a value of each query that shows what a model keeps.

    `progress` hears of the general texts, which take longest.
    """
    documents = encode(model, [document.full_text for document in scene.documents], "document")
    queries = {
        split: encode(model, [query.text for query in collection.queries], "query")
        for split, collection in scene.splits.items()
    }
    results = {
        split: evaluate_vectors(queries[split], documents, collection)
        for split, collection in scene.splits.items()
    }
    general = encode_collection(model, scene.general, progress)
    domain = EncodedCollection(scene.splits["test"], queries["test"], documents)
    retained = _retained(model, scene, domain, general)
    figures: ColumnFigures = {
        "general": {kind: each["model"] for kind, each in retention_figures(retained).items()},
        "hard_queries": _ranks(scene, queries["train"], documents),
        "terms": [_term_figures(model, scene, texts, documents, queries) for texts in scene.terms],
        "ndcg@10": {
            split: {kind: result.means(kind)["ndcg@10"] for kind in KINDS}
            for split, result in results.items()
        },
        "nonzero_document": results["test"].means()["nonzero_document"],
        "nonzero_query": float(np.mean([result.means()["nonzero_query"] for result in results.values()])),
        "function_share": _shares_by_kind(model, scene, documents, queries),
        "control_active": _control_active(model, scene, queries),
    }
    return figures, retained


def _retained(
    model: SparseEncoder, scene: Scene, domain: EncodedCollection, general: EncodedCollection
) -> Groups:
    """What the model keeps of what it knew, both sides in a mixed index, and background texts that activate a term."""
    terms = _terms(model, scene)
    groups = retention_of(model, domain, general, scene.known, terms)
    return with_background(groups, model, terms)


def _control_active(model: SparseEncoder, scene: Scene, queries: Mapping[str, csr_matrix]) -> float:
    """Share of the control queries of both splits that activate a term, though they have nothing to do with it."""
    found = [
        active(queries[split], _terms(model, scene))[_of_kind(collection.queries, "control")]
        for split, collection in scene.splits.items()
    ]
    return float(np.concatenate(found).mean())


def _terms(model: SparseEncoder, scene: Scene) -> list[list[int]]:
    """The tokens of each term."""
    return [_token_ids(model, texts.term) for texts in scene.terms]


def _ranks(scene: Scene, queries: csr_matrix, documents: csr_matrix) -> dict[str, HardQuery]:
    """For each hard query the ranks of its documents, None for one that isn't found, and the ids on top."""
    names = [document.document_id for document in scene.documents]
    rows = [row for row, query in enumerate(scene.splits["train"].queries) if query.kind == "semantic"]
    ranking = top_k(queries[rows], documents, len(names))
    figures: dict[str, HardQuery] = {}
    for query, (order, _) in zip(scene.hard_queries, ranking, strict=True):
        place = {names[int(row)]: rank for rank, row in enumerate(order, start=1)}
        relevant = scene.relevant(query)
        first = [names[int(row)] for row in order[: len(relevant)]]
        figures[query.query_id] = {
            "ranks": {document_id: place.get(document_id) for document_id in relevant},
            "top": first,
            "all_on_top": set(first) == set(relevant),
        }
    return figures


# -- one term -------------------------------------------------------------------------------------


def _term_figures(
    model: SparseEncoder,
    scene: Scene,
    texts: TermTexts,
    documents: csr_matrix,
    queries: Mapping[str, csr_matrix],
) -> DemoTermFigures:
    """A term's weight where it is said, meant, and neither; its lightest piece's where it has no token."""
    ids = _token_ids(model, texts.term)
    own, others = texts.rows, np.setdiff1d(np.arange(len(scene.documents)), texts.rows)
    weights = weights_of(documents, [ids])[:, 0]
    of_hard, of_unseen = (
        dict(
            zip(
                (each.query_id for each in scene.splits[split].queries),
                weights_of(queries[split], [ids])[:, 0],
                strict=True,
            )
        )
        for split in SPLITS
    )
    return {
        "term": texts.term,
        "single_token": len(ids) == 1,
        "weights": {scene.documents[row].document_id: float(weights[row]) for row in own},
        "heaviest_in": sum(_is_heaviest(documents[row], ids) for row in own),
        "others_largest": float(weights[others].max(initial=0.0)),
        "hard_queries": {query_id: float(of_hard[query_id]) for query_id in texts.hard_query_ids},
        "meant": {query_id: float(of_unseen[query_id]) for query_id in texts.unseen_query_ids},
        "control_largest": max(
            float(weights_of(queries[split], [ids])[_of_kind(collection.queries, "control")].max(initial=0.0))
            for split, collection in scene.splits.items()
        ),
    }


def _token_ids(model: SparseEncoder, term: str) -> list[int]:
    """The term's own dimension, or its tokens as a text spells them, after a space."""
    beside = next((each.token_id for each in model.new_tokens if each.beside and each.term == term), None)
    if beside is not None:
        return [beside]
    return [int(token) for token in model.tokenizer(f" {term}", add_special_tokens=False)["input_ids"]]


def _is_heaviest(vector: csr_matrix, ids: Sequence[int]) -> bool:
    return vector.nnz > 0 and int(vector.indices[vector.data.argmax()]) in ids


# -- kinds of queries -----------------------------------------------------------------------------


def function_share(
    model: SparseEncoder, queries: csr_matrix, documents: csr_matrix, top: int = TOP
) -> NDArray[np.float64]:
    """Share of each query's `top` scores that stop words, punctuation and special tokens make: (queries,).

    queries: (queries, V); documents: (documents, V). A query that finds nothing has share 0.
    """
    function = np.flatnonzero(function_tokens(model.tokenizer))
    shares = np.zeros(queries.shape[0])
    for row, (indices, scores) in enumerate(top_k(queries, documents, top)):
        if len(indices):
            from_function = documents[indices][:, function] @ queries[row, function].T
            shares[row] = float(from_function.sum()) / float(scores.sum())
    return shares


def _shares_by_kind(
    model: SparseEncoder, scene: Scene, documents: csr_matrix, queries: Mapping[str, csr_matrix]
) -> dict[str, float]:
    """The mean of `function_share` over the queries of both splits."""
    shares: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for split, collection in scene.splits.items():
        values = function_share(model, queries[split], documents)
        for kind in KINDS:
            shares[kind] += values[_of_kind(collection.queries, kind)].tolist()
    return {kind: float(np.mean(values)) for kind, values in shares.items()}


def _of_kind(queries: Sequence[Query], kind: str) -> NDArray[np.bool_]:
    return np.array([query.kind == kind for query in queries])


# -- the whole demo -------------------------------------------------------------------------------


def run_demo(plan: Plan, place: Place, listener: Listener | None = None, *, alone: bool = False) -> Finished:
    """Carry out a plan on a corpus of new terms, and measure the base model and the model after each stage.

    `alone`: measure also the base model after the last stage alone, so what training does without new tokens.
    Raises InputError, before anything is trained, for a corpus that isn't of this design.
    """
    measured = None
    if not is_whole(place):
        assert plan.corpus is not None
        scene = read_scene(plan.corpus, [term.text for term in read_terms(plan.files["terms"])])
        measured = partial(_measured, plan, scene, listener or NoListener(), alone)
    return _checked(run(plan, place, listener, measured), alone)


def _measured(
    plan: Plan, scene: Scene, listener: Listener, alone: bool, outcomes: Sequence[Outcome], work: Path
) -> dict[str, object]:
    """A column of each model, what the last one keeps of what the first one knew, and what it gains."""
    models = {BASE: plan.model}
    if alone:
        models[ALONE] = str(_fine_tuned_alone(plan, work, listener))
    models |= {stage: str(outcome.folder) for stage, outcome in zip(plan.stages, outcomes, strict=True)}
    advance = passing(MEASURING, len(models) * texts_in(scene.general))
    columns, retained = list[ColumnFigures](), list[Groups]()
    for name, model in models.items():
        figures, groups = measure(SparseEncoder.load(model), scene, advance)
        columns.append({"name": name, "model": portable(model, work, work), **figures})
        retained.append(groups)
    shown: Demonstrated = {
        "terms": [texts.term for texts in scene.terms],
        "hard_queries": {query.query_id: query.text for query in scene.hard_queries},
        "columns": columns,
    }
    base, final = SparseEncoder.load(plan.model), SparseEncoder.load(outcomes[-1].folder)
    return {
        "demo": shown,
        "evidence": judged_evidence(base, final, JudgedDocuments.of(scene.corpus, work)),
        "retention": retention_figures(retained[-1], retained[0], questions=scene.general.queries),
    }


def _fine_tuned_alone(plan: Plan, work: Path, listener: Listener) -> Path:
    """The folder of the base model after the last stage alone."""
    last = plan.stages[-1]
    return run_stage(last, plan, plan.model, work / f"{last}-{ALONE}", listener, name=ALONE).folder


def _checked(finished: Finished, alone: bool) -> Finished:
    """A finished run that is a demo of the same request."""
    if "demo" not in finished.report:
        raise ConfigError(f"{finished.folder}: a run that isn't the demo's; choose another -o")
    if alone and not has_alone(finished.report):
        raise ConfigError(
            f"{finished.folder}: finished without fine-tuning alone; choose another -o, or leave out --alone"
        )
    return finished
