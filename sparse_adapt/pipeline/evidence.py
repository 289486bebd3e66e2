"""Whether a model that would be kept gains more than chance gives: what an adaptation rests on, without a label.

All made-up queries that were set aside have to show the gain beyond chance. They share words with the documents that
they were made from, each kind in its own way: a key phrase stays in its document, a title and a sentence are cut out of
it. So none of the kinds may fall beyond chance, nor may known items. A model that was taught by definitions has to find
what definitions in other words mean: made-up queries don't ask that.
Where the evidence lies within chance, the base model is kept. Dimensions: D terms.
"""

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.collection.streams import evenly
from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.choice import MEASURE, Choice, Maker, keep
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, Result, evaluate_vectors
from sparse_adapt.retrieve.keeping import DEPTH, MEANT, known_of, say_new
from sparse_adapt.retrieve.significance import Values
from sparse_adapt.synthetic.reworded import Reworded, reworded

ONE_SIDED = 1.645  # standard errors beyond which 1 chance in 20 lies
DOCUMENTS, DEFINITIONS, KNOWN = 2_000, 200, 500  # that are asked of at the most; known items, about
FEWEST = 16  # queries of a kind that speak for themselves
KNOWN_ITEMS, MADE_UP = "known items", "made-up queries"


class Evidence(NamedTuple):
    """One kind of query: how many there are, what both models reach, and the gain's standard error.

    Of a single query nothing is known of the error; it counts as the whole range of the measure.
    """

    kind: str
    queries: int
    base: float
    model: float
    error: float

    @property
    def least(self) -> float:
        """The gain that it shows beyond chance."""
        return self.model - self.base - ONE_SIDED * self.error

    @property
    def most(self) -> float:
        """The gain that chance leaves possible."""
        return self.model - self.base + ONE_SIDED * self.error

    def __str__(self) -> str:
        gain, margin = 100 * (self.model - self.base), 100 * ONE_SIDED * self.error
        return f"{self.kind} {gain:+.1f} ± {margin:.1f} points"


def evidence(kind: str, model: Values, base: Values) -> Evidence:
    """What two models reach on the queries of a kind: (queries,) each."""
    gaps = model - base
    error = float(gaps.std(ddof=1) / np.sqrt(len(gaps))) if len(gaps) > 1 else 1.0
    return Evidence(kind, len(gaps), float(base.mean()), float(model.mean()), error)


def of_made_up(model: Result, base: Result) -> list[Evidence]:
    """A row for all made-up queries, and one for each kind of which there are enough, where there are several."""
    ours, theirs = model.values[MEASURE], base.values[MEASURE]
    kinds = np.array([query.kind or "" for query in model.queries])
    enough = [str(kind) for kind in dict.fromkeys(kinds) if (kinds == kind).sum() >= FEWEST]
    apart = enough if len(enough) > 1 else []
    return [
        evidence(MADE_UP, ours, theirs),
        *(evidence(f"{MADE_UP} ({kind})", ours[kinds == kind], theirs[kinds == kind]) for kind in apart),
    ]


def refused(rows: Sequence[Evidence]) -> str | None:
    """Why the base model is kept, in words; None where a gain is beyond chance."""
    shown = {row.kind: row for row in rows}
    judging = shown.get(MEANT, shown.get(MADE_UP))
    assert judging is not None, "made-up queries are always asked"
    if judging.least <= 0.0:
        return f"no gain beyond chance: {judging}"
    fallen = [row for row in rows if row.most < 0.0]
    return f"a gain that costs others: {fallen[0]}" if fallen and judging.kind == MADE_UP else None


class Taught(NamedTuple):
    """The definitions that a model was taught, and the dense encoder that judged what its lessons mean."""

    definitions: Sequence[Definition] = ()
    judge: str = "none"


class Weighed(NamedTuple):
    """All the evidence, what the model knows of the definitions it was taught, and why it is refused, if it is."""

    rows: list[Evidence]
    meaning: dict[str, float]
    refused: str | None

    def plain(self) -> dict[str, Any]:
        """As JSON holds it."""
        return {
            "evidence": [row._asdict() for row in self.rows],
            "meaning": self.meaning,
            "refused": self.refused,
        }


def weigh(
    models: tuple[SparseEncoder, SparseEncoder],
    results: tuple[Result, Result],
    documents: Sequence[Document],
    taught: Taught,
    seed: int,
) -> Weighed:
    """The evidence for the second of two models, beside the first, the base model.

    `results`: on the made-up queries that were set aside. `taught`: what the second was taught; without a judge nobody
    tells whether other words mean the same.
    """
    base, model = results
    both = encoded(*models, evenly(documents, DOCUMENTS))
    rows = [*of_made_up(model, base), *of_known_items(both)]
    asks = taught.definitions and taught.judge != "none"
    meant, meaning = of_meaning(both, taught, seed) if asks else ([], {})
    rows += meant
    return Weighed(rows, meaning, refused(rows))


def keep_or_refuse(
    choice: Choice,
    makers: Sequence[Maker],
    documents: Sequence[Document],
    taught: Taught,
    seed: int,
    folder: Path,
) -> tuple[Choice, dict[str, Any]]:
    """Save the best model, or the base model where no gain shows beyond chance. What shows, as JSON holds it."""
    shutil.rmtree(folder, ignore_errors=True)
    best = keep(choice, makers, documents, folder)
    if choice.kept == 0:
        return choice, {}
    models, results = (makers[0].make(), best), (choice.tried[0].result, choice.best.result)
    found = weigh(models, results, documents, taught, seed)
    told = {**found.plain(), "best": choice.kept}
    if found.refused is not None:
        shutil.rmtree(folder)
        choice = Choice(choice.tried, 0)
        keep(choice, makers, None, folder)
    return choice, told


# -- what is asked of the models ------------------------------------------------------------------


class Encoded(NamedTuple):
    """Both models, and both models' vectors of some documents of the corpus."""

    models: tuple[SparseEncoder, SparseEncoder]  # base and adapted
    documents: Sequence[Document]
    vectors: tuple[csr_matrix, csr_matrix]  # (documents, V) each


def encoded(base: SparseEncoder, model: SparseEncoder, documents: Sequence[Document]) -> Encoded:
    """Documents by either model."""
    texts = [document.full_text for document in documents]
    return Encoded(
        (base, model), documents, (encode(base, texts, "document"), encode(model, texts, "document"))
    )


def of_known_items(both: Encoded) -> list[Evidence]:
    """Two words of a document that says no new term, where there are some."""
    draws = max(1, KNOWN // len(both.documents))
    known = known_of(both.documents, say_new(both.models, both.documents), draws)
    if known is None:
        return []
    base, model = (found.values["mrr@10"] for found in _found(both, known))
    return [evidence(KNOWN_ITEMS, model, base)]


def of_meaning(both: Encoded, taught: Taught, seed: int) -> tuple[list[Evidence], dict[str, float]]:
    """Whether definitions in other words find documents that say their term; how many of them light it first."""
    definitions = evenly(taught.definitions, DEFINITIONS)
    texts = reworded(definitions, DenseEncoder(taught.judge, rough=True), seed)
    adapted = both.models[1]
    says = _saying(adapted, both.documents)
    asked = [each for each in texts if says.get(each.term.casefold())]
    if not asked:
        return [], {}
    queries = tuple(Query(f"meant-{number}", each.text) for number, each in enumerate(asked))
    judged = {
        query.query_id: {both.documents[row].document_id: 1 for row in says[each.term.casefold()]}
        for query, each in zip(queries, asked, strict=True)
    }
    base, model = (
        found.values[MEASURE] for found in _found(both, Collection(tuple(both.documents), queries, judged))
    )
    row = _by_term(asked, model, base)
    return [row], {"texts": len(asked), "terms": row.queries, "lit": _lit_first(adapted, asked)}


def _by_term(asked: Sequence[Reworded], model: Values, base: Values) -> Evidence:
    """The texts of one term stand or fall together, so each term counts as one."""
    terms = np.array([each.term for each in asked])
    means = [
        np.array([values[terms == term].mean() for term in dict.fromkeys(terms)]) for values in (model, base)
    ]
    return evidence(MEANT, *means)


def _lit_first(model: SparseEncoder, asked: Sequence[Reworded]) -> float:
    """Share of texts that give the term that they mean more weight than any other new term, and some."""
    new = [token.token_id for token in model.new_tokens]
    place = {token.term.casefold(): row for row, token in enumerate(model.new_tokens)}
    weights = encode(model, [each.text for each in asked], "query")[:, new].toarray()  # (B, D)
    own = [place.get(each.term.casefold(), 0) for each in asked]
    return float(
        np.mean(
            [row[column] > 0 and row.argmax() == column for row, column in zip(weights, own, strict=True)]
        )
    )


def _saying(model: SparseEncoder, documents: Sequence[Document]) -> dict[str, list[int]]:
    """Rows of the documents that say each new term."""
    said = model.new_tokens_in([document.full_text for document in documents])
    rows = (np.flatnonzero(column).tolist() for column in said.T)
    return {
        token.term.casefold(): found for token, found in zip(model.new_tokens, rows, strict=True) if found
    }


def _found(both: Encoded, collection: Collection) -> Iterator[Result]:
    """What the base model and the adapted one find."""
    for model, vectors in zip(both.models, both.vectors, strict=True):
        asked = encode(model, [query.text for query in collection.queries], "query")
        yield evaluate_vectors(asked, vectors, collection, DEPTH)
