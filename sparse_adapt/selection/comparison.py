"""Evidence for an adapted model beside its base model, without a label.

Synthetic queries that were set aside, each kind of them, known items, and definitions in other words of what a model
was taught; the judged queries of a corpus where it has some. Dimensions: B texts, D terms.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.collection.folder import CorpusFolder
from sparse_adapt.collection.glossary import Definition
from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.collection.sources import judged_split
from sparse_adapt.collection.streams import evenly
from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.activity import Activity
from sparse_adapt.retrieve.evaluate import (
    Collection,
    ModelResult,
    evaluate_vectors,
    read_collection,
)
from sparse_adapt.retrieve.hybrid import document_vectors, query_vectors
from sparse_adapt.retrieve.significance import Values
from sparse_adapt.selection.evidence import (
    ALL,
    IN_OTHER_WORDS,
    KNOWN_ITEMS,
    SYNTHETIC,
    Evidence,
    by_kind,
    evidence_of,
)
from sparse_adapt.selection.models import (
    Choice,
    Maker,
    keep,
)
from sparse_adapt.selection.record import RANKING, Chosen, OnJudged, has_words
from sparse_adapt.selection.retention import DEPTH, encode_both, known_of, say_new
from sparse_adapt.selection.rule import BESIDE_RANKING
from sparse_adapt.selection.ruling import why_refused
from sparse_adapt.synthetic.labels import Reworded, reworded
from sparse_adapt.synthetic.queries import HELD

DOCUMENTS, DEFINITIONS = 2_000, 200  # that are asked of at the most
JUDGED_DOCUMENTS, JUDGED = 6_000, 2_000  # documents and queries of a corpus with judgements; of more a part


class TaughtDefinitions(NamedTuple):
    """The definitions that a model was taught, and the dense encoder that told what its examples mean."""

    definitions: Sequence[Definition] = ()
    labeller: str = "none"


class WeighedEvidence(NamedTuple):
    """All the evidence, what the model knows of the definitions it was taught, and why it is refused, if it is."""

    rows: list[Evidence]
    meaning: dict[str, float]
    refused: str | None

    def plain(self) -> Chosen:
        """As JSON holds it."""
        return {
            "evidence": [row._asdict() for row in self.rows],
            "meaning": self.meaning,
            "refused": self.refused,
        }


def weigh(
    models: tuple[SparseEncoder, SparseEncoder],
    results: tuple[ModelResult, ModelResult],
    documents: Sequence[Document],
    definitions: TaughtDefinitions,
    seed: int,
    ranked: ModelResult | None = None,
) -> WeighedEvidence:
    """The evidence for the second of two models, beside the first, the base model.

    `results`: on the synthetic queries that were set aside, `ranked` those of a model that learnt to rank and no words.
    `definitions`: what the second was taught; without a semantic labeller nothing shows whether other words mean the
    same. Queries that say a term so taught count for neither, because the teacher doesn't know what it means.
    """
    asks = definitions.definitions and definitions.labeller != "none"
    if asks:
        says = Activity.of(models[1], [query.text for query in results[0].queries], "query").says_any
        chosen = says if says.all() else ~says
        results = (results[0].among(chosen), results[1].among(chosen))
        ranked = None if ranked is None else ranked.among(chosen)
    base, model = results
    both = encoded(*models, evenly(documents, DOCUMENTS))
    rows = [*by_kind(SYNTHETIC, model, base), *of_known_items(both)]
    if ranked is not None:
        rows.append(
            evidence_of(BESIDE_RANKING, *(each.values[SYNTHETIC.measure] for each in (model, ranked)))
        )
    of_definitions, meaning = of_meaning(both, definitions, seed) if asks else ([], {})
    rows += of_definitions
    return WeighedEvidence(rows, meaning, why_refused(rows))


def keep_or_refuse(
    choice: Choice,
    makers: Sequence[Maker],
    documents: Sequence[Document],
    definitions: TaughtDefinitions,
    seed: int,
    folder: Path,
) -> tuple[Choice, Chosen]:
    """Save the best model; where it is refused, the best that learnt no terms, or else the one that has to be beaten.

    What shows, as JSON holds it: of the model that is kept, or of the best where nothing that was learnt is.
    """
    shutil.rmtree(folder, ignore_errors=True)
    best = keep(choice, makers, documents, folder)
    if choice.kept in (0, choice.baseline):
        return choice, {}
    candidates, beaten = choice.tried, choice.tried[choice.baseline]
    instead = choice.without_words if has_words(choice.best.name) else choice.baseline
    maker = next(each for each in makers if each.name == beaten.name)
    models, results = (maker.make(), best), (beaten.result, choice.best.result)
    ranked = candidates[instead].result if candidates[instead].name.startswith(RANKING) else None
    evidence = weigh(models, results, documents, definitions, seed, ranked)
    stored: Chosen = {**evidence.plain(), "best": choice.kept}
    if evidence.refused is None:
        return choice, stored
    choice, shown = keep_or_refuse(
        replace(choice, kept=instead), makers, documents, TaughtDefinitions(), seed, folder
    )
    if shown:
        stored |= {"evidence": shown["evidence"], "meaning": shown["meaning"]}
    return choice, stored


# -- measuring both models --------------------------------------------------------------------------


class Encoded(NamedTuple):
    """Both models, and both models' vectors of some documents of the corpus."""

    models: tuple[SparseEncoder, SparseEncoder]  # base and adapted
    documents: Sequence[Document]
    vectors: tuple[csr_matrix, csr_matrix]  # (documents, V) each


def encoded(base: SparseEncoder, model: SparseEncoder, documents: Sequence[Document]) -> Encoded:
    """Documents by either model."""
    return Encoded(
        (base, model), documents, (document_vectors(base, documents), document_vectors(model, documents))
    )


def of_known_items(both: Encoded) -> list[Evidence]:
    """Two words of a document that says no new term, where there are some."""
    known = known_of(both.documents, say_new(both.models, both.documents))
    if known is None:
        return []
    base, model = (result.values[KNOWN_ITEMS.measure] for result in _results(both, known))
    return [evidence_of(KNOWN_ITEMS.name, model, base)]


def of_meaning(
    both: Encoded, learnt: TaughtDefinitions, seed: int
) -> tuple[list[Evidence], dict[str, float]]:
    """Whether definitions in other words find documents that say their term; how many of them activate it first."""
    definitions = evenly(learnt.definitions, DEFINITIONS)
    texts = reworded(definitions, DenseEncoder(learnt.labeller, rough=True), seed)
    adapted = both.models[1]
    says = _saying(adapted, both.documents)
    in_other_words = [each for each in texts if says.get(each.term.casefold())]
    if not in_other_words:
        return [], {}
    queries = tuple(Query(f"meant-{number}", each.text) for number, each in enumerate(in_other_words))
    judged = {
        query.query_id: {both.documents[row].document_id: 1 for row in says[each.term.casefold()]}
        for query, each in zip(queries, in_other_words, strict=True)
    }
    base, model = (
        result.values[IN_OTHER_WORDS.measure]
        for result in _results(both, Collection(tuple(both.documents), queries, judged))
    )
    row = _by_term(in_other_words, model, base)
    return [row], {
        "texts": len(in_other_words),
        "terms": row.queries,
        "active": _active_first(adapted, in_other_words),
    }


def _by_term(texts: Sequence[Reworded], model: Values, base: Values) -> Evidence:
    """The texts of one term stand or fall together, so each term counts as one. model, base: (B,)."""
    terms = np.array([each.term for each in texts])
    means = [
        np.array([values[terms == term].mean() for term in dict.fromkeys(terms)]) for values in (model, base)
    ]
    return evidence_of(IN_OTHER_WORDS.name, *means)


def _active_first(model: SparseEncoder, texts: Sequence[Reworded]) -> float:
    """Share of texts that give the term that they mean more weight than any other new term, and some."""
    place = {token.term.casefold(): row for row, token in enumerate(model.new_tokens)}
    weights = Activity.of(model, [each.text for each in texts], "query").weights  # (B, D)
    own = [place.get(each.term.casefold(), 0) for each in texts]
    return float(
        np.mean(
            [row[column] > 0 and row.argmax() == column for row, column in zip(weights, own, strict=True)]
        )
    )


def _saying(model: SparseEncoder, documents: Sequence[Document]) -> dict[str, list[int]]:
    """Rows of the documents that say each new term."""
    mentions = Activity.of(model, [document.full_text for document in documents], "document").says
    rows = (np.flatnonzero(column).tolist() for column in mentions.T)
    return {
        token.term.casefold(): documents_with
        for token, documents_with in zip(model.new_tokens, rows, strict=True)
        if documents_with
    }


def _results(both: Encoded, collection: Collection) -> Iterator[ModelResult]:
    """What the base model and the adapted one find."""
    for model, vectors in zip(both.models, both.vectors, strict=True):
        queries = query_vectors(model, [query.text for query in collection.queries])
        yield evaluate_vectors(queries, vectors, collection, DEPTH)


# -- judged queries -------------------------------------------------------------------------------


class JudgedDocuments(NamedTuple):
    """Documents that are looked at, of so many; queries whose relevant documents are known, where there are some."""

    documents: tuple[Document, ...]
    all_documents: int
    queries: Collection | None
    source: str  # of which queries
    all_queries: int = 0

    @classmethod
    def of(cls, place: str | CorpusFolder, run: Path) -> "JudgedDocuments":
        """The judged queries of a corpus; else the synthetic ones that an adaptation in `run` set aside; else none."""
        corpus, made = CorpusFolder.of(place), run / "collection"
        split = judged_split(corpus.source)
        judged, source = None, ""
        if split is not None:
            judged, source = read_collection(corpus, split), f"the judged queries of the split {split!r}"
        elif (made / "qrels" / f"{HELD}.tsv").is_file():
            judged = read_collection(made, HELD)
            source = "synthetic queries that were set aside, each with the document that it was made from"
        everything = tuple(corpus.read()) if judged is None else judged.documents
        documents, asked = _some(everything, judged), 0
        if judged is not None:
            asked = len(judged.queries)
            judged = Collection(documents, tuple(evenly(judged.queries, JUDGED)), judged.judgements)
        return cls(documents, len(everything), judged, source, asked)

    @property
    def among(self) -> str:
        """Which part of the corpus is looked at, in words; nothing where it is all of it, as `evaluate` looks at."""
        queries = 0 if self.queries is None else len(self.queries.queries)
        parts = [
            (len(self.documents), self.all_documents, "documents"),
            (queries, self.all_queries, "queries"),
        ]
        return " and ".join(f"{part:,} of {whole:,} {what}" for part, whole, what in parts if part < whole)


def _some(documents: tuple[Document, ...], judged: Collection | None) -> tuple[Document, ...]:
    """At most so many documents in their order: the judged ones first of all."""
    if len(documents) <= JUDGED_DOCUMENTS:
        return documents
    wanted = set() if judged is None else {name for each in judged.judgements.values() for name in each}
    drawn = {each.document_id for each in evenly(documents, JUDGED_DOCUMENTS)}
    names = [each.document_id for each in documents if each.document_id in wanted]
    more = [each.document_id for each in documents if each.document_id in drawn - wanted]
    chosen = {*names, *more[: max(0, JUDGED_DOCUMENTS - len(names))]}
    return tuple(each for each in documents if each.document_id in chosen)


def judged_evidence(base: SparseEncoder, model: SparseEncoder, judged: JudgedDocuments) -> OnJudged:
    """What both models reach on judged queries, all and each kind, as `report.json` holds it under `evidence`."""
    rows = list[Evidence]()
    if judged.queries is not None:
        both = encode_both(base, model, judged.queries)
        rows = _of_judged(*(evaluate_vectors(each.queries, each.documents, judged.queries) for each in both))
    found: OnJudged = {"judged by": judged.source, "rows": [row._asdict() for row in rows]}
    return found | {"among": judged.among} if judged.among else found


def _of_judged(base: ModelResult, model: ModelResult) -> list[Evidence]:
    """A row for all queries, then one for each kind."""
    return [
        evidence_of(kind or ALL, *(each.select(kind)[SYNTHETIC.measure] for each in (model, base)))
        for kind in (None, *model.kinds)
    ]
