"""What a model keeps of what it knew, while it learns a domain: four measures, each with a value for each query.

- *General questions*: questions of people, asked of passages that are hard to tell apart (`general.py`).
- *False activations*: general questions that activate a new term, though none of them means one.
- The *mixed index*: the domain's documents among the general passages, as in a search box that serves both. Queries of
  either side are asked of all of it; a domain's document *enters* where it is among a general question's first ten.
- *Known items*: two telling words of a document, which alone is relevant to them. The search for known items needs no
  labels: what is lost there, users lose who type words that the base model knew.

Queries made up of documents share their words, so they promise more than users see; these measures stand beside them.

Dimensions: V vocabulary. Values of a measure are (queries,).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from wordfreq import zipf_frequency

from sparse_adapt.collection.readers import Document, Judgements, Query
from sparse_adapt.collection.streams import evenly
from sparse_adapt.model.exact.words import FIRST_WORD
from sparse_adapt.model.idf import TokenScales
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.report.tables import Retained
from sparse_adapt.retrieve.activity import Activity, background_queries, new_terms, weights_of
from sparse_adapt.retrieve.columns import beside
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, ModelResult, evaluate_vectors
from sparse_adapt.retrieve.hybrid import (
    document_vectors,
    query_vectors,
    rescaled,
    with_words_of_documents,
    with_words_of_queries,
)
from sparse_adapt.retrieve.significance import Values, holm, paired, randomisation_test
from sparse_adapt.selection.evidence import BACKGROUND, GENERAL, KNOWN_ITEMS, MIXED
from sparse_adapt.selection.general import FIRST, RANKED, general_rows
from sparse_adapt.selection.questions import general_collection

LOOKED_AT = 10  # documents of a query that people look at
DEPTH = 100  # documents of a query that are looked at here
KNOWN_DOCUMENTS = 500
SHOWN = (RANKED, FIRST, "mrr@10", "recall@100")
DOCUMENTS, KNOWN = 500, 500  # of a run's corpus; known items, about
WORD = re.compile(r"[^\W\d_]+")
TELLING = 5.8  # zipf frequency (Speer 2022, wordfreq) from which on a word tells no document from another
WORDS, WINDOWS = (2, 4), (6, 12)  # telling words in any order, and words in a row
KINDS = (*(f"{count} telling words" for count in WORDS), *(f"{count} words in a row" for count in WINDOWS))
TWO_WORDS = KINDS[0]

Groups = dict[str, dict[str, Values]]  # kind of query -> measure -> a value for each query


class EncodedCollection(NamedTuple):
    """A collection with its vectors under one model: queries (queries, V), documents (documents, V)."""

    collection: Collection
    queries: csr_matrix
    documents: csr_matrix

    def with_scales(self, model: SparseEncoder, token_scales: TokenScales | None) -> "EncodedCollection":
        """Vectors that `encode_unscaled` gave, as the model gives them with token scales (V)."""
        most = None if model.words is None else model.words.settings.heaviest
        queries, documents = (
            rescaled(self.queries, token_scales),
            rescaled(self.documents, token_scales, most),
        )
        return EncodedCollection(self.collection, queries, documents)


def encode_collection(
    model: SparseEncoder, collection: Collection, progress: Progress = no_progress
) -> EncodedCollection:
    """Vectors of a collection's queries and documents, with exact words where the model has some."""
    queries = query_vectors(model, [query.text for query in collection.queries], progress=progress)
    documents = document_vectors(model, collection.documents, progress=progress)
    return EncodedCollection(collection, queries, documents)


def encode_both(
    base: SparseEncoder, model: SparseEncoder, collection: Collection
) -> tuple[EncodedCollection, EncodedCollection]:
    """Vectors of a collection by two models. Each text is read once where exact words alone tell the models apart."""
    first = encode_collection(base, collection)
    if not model.adds_words_to(base):
        return first, encode_collection(model, collection)
    queries = with_words_of_queries(model, first.queries, [query.text for query in collection.queries])
    documents = with_words_of_documents(model, first.documents, collection.documents)
    return first, EncodedCollection(collection, queries, documents)


def encode_unscaled(
    model: SparseEncoder, collection: Collection, progress: Progress = no_progress
) -> EncodedCollection:
    """Vectors without token scales, all weights of a document beside its exact words: `EncodedCollection.with_scales`
    makes of them what the model gives.
    """
    scales, words = model.token_scales, model.words
    model.token_scales = None
    model.words = None if words is None else words.with_settings(heaviest=None)
    try:
        return encode_collection(model, collection, progress)
    finally:
        model.token_scales, model.words = scales, words


def with_exact_words(model: SparseEncoder, encoded: EncodedCollection) -> EncodedCollection:
    """Vectors that `encode_unscaled` gave of a model without exact words, with those of another beside them."""
    assert model.words is not None, "of a model that has some"
    collection, queries, documents = encoded
    texts = [query.text for query in collection.queries]
    return EncodedCollection(
        collection,
        beside(queries, model.words.queries(texts, model.tokenizer), FIRST_WORD),
        beside(documents, model.words.documents(collection.documents), FIRST_WORD),
    )


def active(queries: csr_matrix, terms: Sequence[TokenIds]) -> Values:
    """1 for each query (queries, V) with weight for a term, all of its tokens; 0 for others: (queries,)."""
    return np.asarray((weights_of(queries, terms) > 0).any(axis=1), np.float64)


def with_background(groups: Groups, model: SparseEncoder, terms: Sequence[TokenIds]) -> Groups:
    """The measures of a model, and background texts that activate a term."""
    there = active(encode(model, background_queries(), "query"), terms)
    return {**groups, BACKGROUND.name: {BACKGROUND.measure: there}}


def retention_of(
    model: SparseEncoder,
    domain: EncodedCollection,
    general: EncodedCollection,
    known: Collection | None,
    terms: Sequence[TokenIds],
) -> Groups:
    """The four measures of one model, by kind of query. `terms`: the tokens of each new term."""
    alone = evaluate_vectors(general.queries, general.documents, general.collection, DEPTH)
    groups: Groups = {GENERAL.name: {name: alone.values[name] for name in SHOWN}}
    groups[GENERAL.name]["false_activations"] = active(general.queries, terms)
    groups.update(_in_mixed_index(domain, general))
    if known is not None:
        queries = query_vectors(model, [query.text for query in known.queries])
        result = evaluate_vectors(queries, domain.documents, known, DEPTH)
        groups[KNOWN_ITEMS.name] = {KNOWN_ITEMS.measure: result.values[KNOWN_ITEMS.measure]}
    return groups


def evaluate_with_retention(
    models: Sequence[SparseEncoder], domain: Collection, general: Collection, advance: Sequence[Progress]
) -> Iterator[tuple[ModelResult, Groups]]:
    """What each model reaches on a domain's collection, and what it keeps beside it; every text is encoded once.

    `advance`: who hears how many texts a model has encoded.
    """
    known = known_of(domain.documents, say_new(models, domain.documents))
    for model, progress in zip(models, advance, strict=True):
        encoded = encode_collection(model, domain, progress)
        result = evaluate_vectors(encoded.queries, encoded.documents, domain)
        there = encode_collection(model, general, progress)
        yield result, retention_of(model, encoded, there, known, _terms(model))


def texts_in(*collections: Collection) -> int:
    """How many texts collections have."""
    return sum(len(each.documents) + len(each.queries) for each in collections)


def _in_mixed_index(domain: EncodedCollection, general: EncodedCollection) -> Groups:
    """nDCG@10 of either side's queries over the documents of both, and which top tens the domain enters."""
    documents = vstack([domain.documents, general.documents], format="csr")
    ours, theirs = _named(domain.collection, "domain"), _named(general.collection, GENERAL.name)
    both = (*ours.documents, *theirs.documents)
    theirs_ranked = evaluate_vectors(general.queries, documents, _over(both, theirs), DEPTH)
    entered = [_enters(theirs_ranked, query.query_id) for query in theirs.queries]
    groups: Groups = {
        MIXED.name: {
            "ndcg@10": theirs_ranked.values["ndcg@10"],
            "domain enters": np.array(entered, np.float64),
        }
    }
    if not ours.queries:
        return groups
    ours_ranked = evaluate_vectors(domain.queries, documents, _over(both, ours), DEPTH)
    for kind in ours_ranked.kinds or (None,):
        groups[f"{kind or 'all'}, mixed index"] = {"ndcg@10": ours_ranked.select(kind)["ndcg@10"]}
    return groups


def _enters(result: ModelResult, query_id: str) -> bool:
    return any(name.startswith("domain ") for name in list(result.run[query_id])[:LOOKED_AT])


def _named(collection: Collection, side: str) -> Collection:
    """The same with ids that say which side they are of, so that no two of the mixed index are alike."""
    documents = tuple(
        Document(f"{side} {each.document_id}", each.text, each.title) for each in collection.documents
    )
    queries = tuple(Query(f"{side} {each.query_id}", each.text, each.kind) for each in collection.queries)
    judged: Judgements = {
        f"{side} {query_id}": {f"{side} {name}": grade for name, grade in grades.items()}
        for query_id, grades in collection.judgements.items()
    }
    return Collection(documents, queries, judged)


def _over(documents: tuple[Document, ...], collection: Collection) -> Collection:
    return Collection(documents, collection.queries, collection.judgements)


def measure_retention(
    base: SparseEncoder,
    adapted: SparseEncoder,
    documents: Sequence[Document],
    general: Sequence[EncodedCollection] = (),
    questions: int | None = None,
) -> dict[str, Retained]:
    """Both models' means by kind and measure, and the differences. `documents`: of the corpus.

    `general`: vectors of the general questions and passages by either model, where they were made before; `questions`:
    how many are asked elsewhere, all by default.
    """
    models, domain = (base, adapted), _known_in([base, adapted], documents)
    there = general or [encode_collection(model, general_collection(most=questions)) for model in models]
    baseline, ours = (
        _with_background(model, domain, each) for model, each in zip(models, there, strict=True)
    )
    return retention_figures(ours, baseline, questions=there[0].collection.queries)


def measure_alone(model: SparseEncoder, documents: Sequence[Document]) -> dict[str, Retained]:
    """One model's means by kind and measure, as `measure_retention` has them beside a base model's."""
    there = encode_collection(model, general_collection())
    return retention_figures(_with_background(model, _known_in([model], documents), there))


def _known_in(models: Sequence[SparseEncoder], documents: Sequence[Document]) -> Collection:
    """Some documents of a corpus with known items for queries, of those that say no new term where there are any."""
    some = evenly(documents, DOCUMENTS)
    saying = say_new(models, some)
    known = known_of(some, saying) or known_of(some, np.zeros_like(saying))
    return known or Collection(tuple(some), (), {})


def _with_background(model: SparseEncoder, domain: Collection, general: EncodedCollection) -> Groups:
    """The four measures, with known items for the queries of the corpus; background texts that activate a term."""
    known, terms = domain if domain.queries else None, _terms(model)
    groups = retention_of(model, encode_collection(model, domain), general, known, terms)
    return with_background(groups, model, terms)


def _terms(model: SparseEncoder) -> list[list[int]]:
    """The tokens that a model was given, each a term by itself."""
    return [[token] for token in new_terms(model)]


# -- known items ----------------------------------------------------------------------------------


def known_items(
    documents: Sequence[Document],
    rows: NDArray[np.int64],
    seed: int,
    kinds: Sequence[str] = KINDS,
    draws: int = 1,
) -> Collection:
    """Queries of each kind for each of these rows (rows,) of the documents, which alone is relevant to them.

    `draws`: how often words are drawn from a document.
    """
    queries, judgements = [], {}
    for row in rows:
        document = documents[row]
        for draw in range(draws):
            random = np.random.default_rng([seed, row, draw] if draw else [seed, row])
            by_kind = dict(zip(KINDS, _queries_from(document.full_text, random), strict=True))
            for kind in filter(
                by_kind.get, kinds
            ):  # a document of numbers and stop words has no telling words
                name = f"{document.document_id} {kind}" + (f" {draw}" if draw else "")
                queries.append(Query(name, by_kind[kind], kind))
                judgements[name] = {document.document_id: 1}
    return Collection(tuple(documents), tuple(queries), judgements)


def _queries_from(text: str, random: np.random.Generator) -> list[str]:
    """A query of each kind from the words of a document."""
    words = [word.lower() for word in WORD.findall(text)]
    telling = sorted({word for word in words if zipf_frequency(word, "en") < TELLING})
    drawn = [random.choice(telling, min(count, len(telling)), replace=False).tolist() for count in WORDS]
    starts = [int(random.integers(max(1, len(words) - count + 1))) for count in WINDOWS]
    windows = [words[start : start + count] for start, count in zip(starts, WINDOWS, strict=True)]
    return [" ".join(each) for each in (*drawn, *windows)]


def known_of(documents: Sequence[Document], saying: NDArray[np.bool_]) -> Collection | None:
    """Known items of the documents that say no new term, where there are some: `saying` (documents,) tells of each.

    Few documents have several each.
    """
    draws = max(1, KNOWN // len(documents))
    rows = np.flatnonzero(~saying)
    rows = rows[:: max(1, -(-len(rows) // KNOWN_DOCUMENTS))]
    known = known_items(documents, rows, seed=0, kinds=[TWO_WORDS], draws=draws)
    return known if known.queries else None


def say_new(models: Sequence[SparseEncoder], documents: Sequence[Document]) -> NDArray[np.bool_]:
    """Which documents say a token that one of the models was given: (documents,)."""
    texts = [document.full_text for document in documents]
    marks = [Activity.of(model, texts, "document").says_any for model in models]
    return np.asarray(np.any(marks, axis=0))


# -- as plain values ------------------------------------------------------------------------------


def retention_figures(
    ours: Groups, baseline: Groups | None = None, *, questions: Sequence[Query] = ()
) -> dict[str, Retained]:
    """Means by kind and measure; beside a baseline its means, and the differences with their intervals.

    questions: the general ones, whose figures then stand by kind and by question word as well.
    """
    figures: dict[str, Retained] = {
        kind: {"model": _means(values)} if baseline is None else _compared(values, baseline[kind])
        for kind, values in ours.items()
    }
    if questions:
        rows = general_rows(
            questions, ours[GENERAL.name], None if baseline is None else baseline[GENERAL.name]
        )
        figures[GENERAL.name]["rows"] = [row._asdict() for row in rows]
    return figures


def _compared(ours: Mapping[str, Values], theirs: Mapping[str, Values]) -> Retained:
    gaps = {name: paired(values, theirs[name]) for name, values in ours.items()}
    return {
        "queries": len(next(iter(ours.values()))),
        "model": _means(ours),
        "baseline": _means(theirs),
        "difference": {name: gap.value for name, gap in gaps.items()},
        "low": {name: gap.low for name, gap in gaps.items()},
        "high": {name: gap.high for name, gap in gaps.items()},
    }


def with_p_values(
    figures: dict[str, Retained], ours: Groups, baseline: Groups | None = None, seed: int = 0
) -> dict[str, Retained]:
    """The same with the p-value of each difference, as it is and with Holm's correction over all of them."""
    if baseline is None:
        return figures
    tests = [(kind, name) for kind, values in ours.items() for name in values]
    found = [
        randomisation_test(ours[kind][name] - baseline[kind][name], np.random.default_rng(seed))
        for kind, name in tests
    ]
    for (kind, name), p_value, adjusted in zip(tests, found, holm(found), strict=True):
        figures[kind].setdefault("p_value", {})[name] = p_value
        figures[kind].setdefault("adjusted", {})[name] = adjusted
    return figures


def _means(values: Mapping[str, Values]) -> dict[str, float]:
    return {name: float(each.mean()) for name, each in values.items()}
