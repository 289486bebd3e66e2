"""What the demo shows: the base model's view of a new term, then what each stage gained and cost, and the criteria.

The look at the base model comes before anything is trained, so nothing here needs what measures, which takes longer to
import than it takes to look. Columns are the base model, fine-tuning alone without new vocabulary where that was asked
for, and the model after each stage; each holds what `demo.measure` found.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np

from sparse_adapt.collection.readers import Query, read_documents, read_judgements, read_queries
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.pipeline.report import ColumnFigures, Report
from sparse_adapt.report.tables import NOTHING, Column, Row, Table
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.selection.general import GeneralRow, general_sentences
from sparse_adapt.selection.rule import MAY_LOSE
from sparse_adapt.terms.mining import read_terms

SPLITS = ("train", "test")
KINDS = ("control", "explicit", "semantic")
TOP = 5
SHOWN = 5  # documents on top of the ranking
BASE, ALONE = "base", "alone"
SEMANTIC_ENOUGH, SEMANTIC_ENOUGH_OF_MANY = (
    0.90,
    0.75,
)  # nDCG@10 of unseen semantic queries: one term, many terms
HEAVIEST_ENOUGH = 0.8  # share of a term's documents whose heaviest token it is
WEIGHT_ENOUGH = 1.0  # weight of the term in a hard query
GROWTH_ENOUGH = 1.25  # non-zeros a document, times the base model's
NOISE_ENOUGH = 0.05  # of the top scores of semantic queries

Read = Callable[[ColumnFigures], str]


class Criterion(NamedTuple):
    """One thing that an adapted model must reach: what was found beside what is needed."""

    number: int
    name: str
    holds: bool
    found: str


def criteria(
    base: ColumnFigures, final: ColumnFigures, general_rows: Sequence[GeneralRow]
) -> list[Criterion]:
    """The four things that adapting must reach, for the last model beside the base model.

    general_rows: what both reach on general questions.
    """
    return [_finds(final), _retains(base, final, general_rows), _learns(final), _stays_small(base, final)]


def _finds(final: ColumnFigures) -> Criterion:
    queries, on_top = final["hard_queries"], _on_top(final)
    ndcg = final["ndcg@10"]["test"]["semantic"]
    needed = SEMANTIC_ENOUGH if len(final["terms"]) == 1 else SEMANTIC_ENOUGH_OF_MANY
    result = f"{on_top} of {len(queries)} hard queries have their documents on top; "
    result += f"unseen semantic queries reach nDCG@10 {ndcg:.3f} (needs {needed:.2f})"
    return Criterion(1, "finds what is meant", on_top == len(queries) and ndcg >= needed, result)


def _retains(base: ColumnFigures, final: ColumnFigures, general_rows: Sequence[GeneralRow]) -> Criterion:
    pairs = {
        split: (base["ndcg@10"][split]["control"], final["ndcg@10"][split]["control"]) for split in SPLITS
    }
    changes = ", ".join(f"{split} {before:.3f} to {after:.3f}" for split, (before, after) in pairs.items())
    holds = all(after >= before - 1e-9 for before, after in pairs.values())
    before, after = (figures["general"]["general"]["ndcg@10"] for figures in (base, final))
    result = f"nDCG@10 of control queries: {changes}; of general questions: {before:.3f} to {after:.3f} "
    result += f"(the mean may lose {MAY_LOSE}); the model {next(general_sentences(general_rows))}"
    return Criterion(2, "loses little", holds and after >= before - MAY_LOSE - 1e-9, result)


def _learns(final: ColumnFigures) -> Criterion:
    terms = final["terms"]
    documents, heaviest = _mentioning(final), _heaviest(final)
    enough = all(
        term["heaviest_in"] >= math.ceil(HEAVIEST_ENOUGH * len(term["weights"]) - 1e-9) for term in terms
    )
    logits = [term["least_logit"] for term in terms if term["least_logit"] is not None]
    least = min(logits) if len(logits) == len(terms) else -math.inf
    least_weight = min((weight for term in terms for weight in term["hard_queries"].values()), default=0.0)
    false_activation = max(max(term["others_largest"], term["control_largest"]) for term in terms)
    result = (
        f"heaviest token in {heaviest} of {documents} documents; least logit where it stands {least:.1f}; "
    )
    result += f"weight in hard queries at least {least_weight:.2f} (needs {WEIGHT_ENOUGH}), "
    result += f"elsewhere at most {false_activation:.2f}"
    if false_activation:
        result += f" ({final['control_active']:.0%} of control queries activate {_it(terms)})"
    holds = enough and least > 0 and least_weight >= WEIGHT_ENOUGH and false_activation == 0.0
    return Criterion(3, "knows the term", holds, result)


def _stays_small(base: ColumnFigures, final: ColumnFigures) -> Criterion:
    growth = final["nonzero_document"] / base["nonzero_document"]
    shares, before = final["function_share"], base["function_share"]
    changes = ", ".join(f"{kind} {before[kind]:.1%} to {shares[kind]:.1%}" for kind in KINDS)
    least = {kind: NOISE_ENOUGH if kind == "semantic" else max(NOISE_ENOUGH, before[kind]) for kind in KINDS}
    holds = growth <= GROWTH_ENOUGH and all(shares[kind] <= least[kind] for kind in KINDS)
    result = f"non-zeros a document x {growth:.2f} (at most {GROWTH_ENOUGH}); "
    result += (
        f"stop words in the top {TOP} scores: {changes} (at most {NOISE_ENOUGH:.0%}, or no more than before)"
    )
    return Criterion(4, "stays short and to the point", holds, result)


# -- the table ------------------------------------------------------------------------------------


def tabulate_demo(report: Report) -> Table:
    """A row a figure, a column a model. A column holds ranks, weights and shares, so its cells are text."""
    columns = report["demo"]["columns"]
    names = [each["name"] for each in columns]
    rows: list[Row] = []
    for title, read in _lines(report):
        cells = [read(each) if read is not None else "" for each in columns]
        rows.append({"figure": title, **dict(zip(names, cells, strict=True))})
    note = f"{BASE}: {report['model']}"
    if has_alone(report):
        note += f"; {ALONE}: fine-tuned without new vocabulary"
    heads = (Column("figure", "", "text"), *(Column(name, name) for name in names))
    return Table("What each stage buys and costs", heads, rows, note)


def has_alone(report: Report) -> bool:
    """Whether a column of a demo's report is fine-tuning without new vocabulary."""
    return any(column["name"] == ALONE for column in report["demo"]["columns"])


def verdict_lines(report: Report) -> Iterator[str]:
    """The criteria, one a line."""
    for each in report["demo"]["criteria"]:
        word = "holds" if each["holds"] else "FALLS SHORT"
        yield f"{word}: {each['number']} {each['name']}: {each['found']}"


def _lines(report: Report) -> Iterator[tuple[str, Read | None]]:
    """Title and reader of each row; a title without a reader heads those below it."""
    yield from _rank_lines(report["demo"]["columns"][0])
    terms = report["demo"]["terms"]
    yield f"weight of {terms[0] if len(terms) == 1 else 'the terms'}", None
    yield "  where said, mean", lambda figures: _number(_mean(_each(figures, "weights")), 2)
    yield "  where said, least", lambda figures: _number(min(_each(figures, "weights")), 2)
    yield (
        "  is the heaviest there",
        lambda figures: f"{_heaviest(figures)} of {_mentioning(figures)}",
    )
    yield "  other documents, largest", lambda figures: _number(_largest(figures, "others_largest"), 2)
    yield "  control queries, largest", lambda figures: _number(_largest(figures, "control_largest"), 2)
    yield f"  control queries that activate {_it(terms)}", lambda figures: _percent(figures["control_active"])
    yield f"  background queries that activate {_it(terms)}", _background
    yield f"  general questions that activate {_it(terms)}", _strays
    if len(terms) > 1:
        yield "  hard queries, mean", lambda figures: _number(_mean(_each(figures, "hard_queries")), 2)
    yield "  hard queries, least", lambda figures: _number(min(_each(figures, "hard_queries")), 2)
    for split, title in zip(SPLITS, ("seen", "unseen"), strict=True):
        yield f"nDCG@10, {title} queries", None
        for kind in KINDS:
            yield f"  {kind}", _ndcg(split, kind)
    yield "nDCG@10, general questions", None
    yield "  among general passages", _retained("general", "ndcg@10")
    yield "  their first passage is right", _retained("general", "p@1")
    yield "  in a mixed index", _retained("general, mixed index", "ndcg@10")
    yield "  top tens that the corpus enters", _entered
    yield "nDCG@10, unseen queries in a mixed index", None
    for kind in KINDS:
        yield f"  {kind}", _retained(f"{kind}, mixed index", "ndcg@10")
    yield "MRR@10, two words of a document", _retained("known items", "mrr@10")
    yield "non-zeros", None
    yield "  a document", lambda figures: _number(figures["nonzero_document"], 0)
    yield "  a query", lambda figures: _number(figures["nonzero_query"], 0)
    yield f"stop words in top {TOP} scores", None
    for kind in KINDS:
        yield f"  {kind}", _noise(kind)


def _rank_lines(first: ColumnFigures) -> Iterator[tuple[str, Read | None]]:
    """The rank of each document for one hard query; a summary of many."""
    queries = first["hard_queries"]
    if len(queries) > 1:
        yield f"{len(queries)} hard queries", None
        yield "  mean rank of their documents", lambda figures: _number(_mean(_ranks(figures)), 1)
        yield "  have theirs on top", lambda figures: str(_on_top(figures))
        return
    yield "rank for the hard query", None
    for query_id, query in queries.items():
        for document_id in query["ranks"]:
            yield f"  {document_id}", _rank(query_id, document_id)


def _rank(query_id: str, document_id: str) -> Read:
    def read(figures: ColumnFigures) -> str:
        rank = figures["hard_queries"][query_id]["ranks"][document_id]
        return NOTHING if rank is None else str(rank)

    return read


def _ndcg(split: str, kind: str) -> Read:
    return lambda figures: _number(figures["ndcg@10"][split][kind], 3)


def _it(terms: Sequence[object]) -> str:
    """What is active: the only term, or one of many."""
    return "it" if len(terms) == 1 else "one"


def _retained(kind: str, measure: str) -> Read:
    return lambda figures: _number(_general(figures, kind, measure), 3)


def _strays(figures: ColumnFigures) -> str:
    return _percent(_general(figures, "general", "false_activations"))


def _background(figures: ColumnFigures) -> str:
    return _percent(_general(figures, "background texts", "false_activations"))


def _entered(figures: ColumnFigures) -> str:
    return _percent(_general(figures, "general, mixed index", "domain enters"))


def _general(figures: ColumnFigures, kind: str, measure: str) -> float:
    """A figure of what a model keeps; a corpus may have no known items."""
    return float(figures["general"].get(kind, {}).get(measure, math.nan))


def _noise(kind: str) -> Read:
    return lambda figures: _percent(figures["function_share"][kind])


def _ranks(figures: ColumnFigures) -> list[float]:
    ranks = [rank for query in figures["hard_queries"].values() for rank in query["ranks"].values()]
    return [float(rank) for rank in ranks if rank is not None]


def _on_top(figures: ColumnFigures) -> int:
    return sum(query["all_on_top"] for query in figures["hard_queries"].values())


def _each(figures: ColumnFigures, key: Literal["weights", "hard_queries"]) -> list[float]:
    """A figure of every term in every text."""
    return [float(value) for term in figures["terms"] for value in term[key].values()] or [0.0]


def _heaviest(figures: ColumnFigures) -> int:
    return sum(term["heaviest_in"] for term in figures["terms"])


def _mentioning(figures: ColumnFigures) -> int:
    """How many times a document says a term, over all terms."""
    return sum(len(term["weights"]) for term in figures["terms"])


def _largest(figures: ColumnFigures, key: Literal["others_largest", "control_largest"]) -> float:
    return max(float(term[key]) for term in figures["terms"])


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


def _number(value: float, decimals: int) -> str:
    return f"{value:.{decimals}f}" if math.isfinite(value) else NOTHING


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if math.isfinite(share) else NOTHING


# -- before anything is trained -------------------------------------------------------------------


def first_look(plan: Plan) -> Iterator[str]:
    """The pieces that the first term falls into, and what the base model finds for a query that means a term.

    The query is the first of the train split that means a term without saying it; without one there is no such line.
    """
    assert plan.corpus is not None
    model = SparseEncoder.load(plan.model)
    term = read_terms(plan.files["terms"])[0].text
    pieces = model.tokenizer.tokenize(f" {term}")
    if len(pieces) > 1:
        yield f"{plan.model} has no token for {term} and reads {len(pieces)} pieces: {' '.join(pieces)}"
    judgements = read_judgements(plan.corpus, "train")
    hidden = (query for query in read_queries(plan.corpus) if query.kind == "semantic")
    query = next((each for each in hidden if each.query_id in judgements), None)
    if query is not None:
        relevant = {name for name, grade in judgements[query.query_id].items() if grade > 0}
        yield from _found(_ranking(model, plan.corpus, query), query, relevant)


def _ranking(model: SparseEncoder, corpus: str, query: Query) -> list[str]:
    """Ids of all documents, best first."""
    documents = list(read_documents(corpus))
    vectors = encode(model, [document.full_text for document in documents], "document")
    scores = (vectors @ encode(model, [query.text], "query").T).toarray().ravel()
    return [documents[row].document_id for row in np.argsort(-scores, kind="stable")]


def _found(ranking: Sequence[str], query: Query, relevant: set[str]) -> Iterator[str]:
    """The query, the documents on top of its ranking, and the ranks of those that it should find."""
    yield f'for "{query.text}" it finds:'
    for rank, name in enumerate(ranking[:SHOWN], start=1):
        yield f"  {rank} {name}" + ("" if name in relevant else "  (not relevant)")
    ranks = [rank for rank, name in enumerate(ranking, start=1) if name in relevant]
    yield f"  the {len(relevant)} relevant documents have the ranks {', '.join(map(str, ranks))}"
