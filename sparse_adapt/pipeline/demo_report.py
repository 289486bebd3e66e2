"""What the demo shows: the base model's view of a new term, then what each stage gained and cost.

The look at the base model comes before anything is trained, so nothing here needs what measures, which takes longer to
import than it takes to look. Columns are the base model, fine-tuning alone without new vocabulary where that was asked
for, and the model after each stage; each holds what `demo.measure` found.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from sparse_adapt.collection.readers import Query, read_documents, read_judgements, read_queries
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.pipeline.report import ColumnFigures, Report
from sparse_adapt.report.tables import NOTHING, Column, Row, Table
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.terms.mining import read_terms

SPLITS = ("train", "test")
KINDS = ("control", "explicit", "semantic")
TOP = 5
SHOWN = 5  # documents on top of the ranking
BASE, ALONE = "base", "alone"
FULL = "every figure: the same command with --resume --full"

Read = Callable[[ColumnFigures], str]


def tabulate_demo(report: Report, *, full: bool = True) -> Table:
    """A row a figure, a column a model; not in full, the ten rows that decide.

    A column holds ranks, weights and shares, so its cells are text.
    """
    columns = report["demo"]["columns"]
    names = [each["name"] for each in columns]
    rows: list[Row] = []
    for title, read in _lines(report) if full else _deciding(report):
        cells = [read(each) if read is not None else "" for each in columns]
        rows.append({"figure": title, **dict(zip(names, cells, strict=True))})
    notes = [f"{BASE}: {Path(report['model']).name}"]
    notes += [f"{ALONE}: fine-tuned without new vocabulary"] if has_alone(report) else []
    notes += [] if full else [FULL]
    heads = (Column("figure", "", "text"), *(Column(name, name) for name in names))
    return Table("What each stage buys and costs", heads, rows, "; ".join(notes))


def has_alone(report: Report) -> bool:
    """Whether a column of a demo's report is fine-tuning without new vocabulary."""
    return any(column["name"] == ALONE for column in report["demo"]["columns"])


def _deciding(report: Report) -> Iterator[tuple[str, Read]]:
    """Title and reader of each of the ten rows that decide."""
    terms = report["demo"]["terms"]
    it = terms[0] if len(terms) == 1 else "the terms"
    yield _summary_of_ranks(report["demo"]["columns"][0])
    yield "unseen semantic queries, nDCG@10", _ndcg("test", "semantic")
    yield "  among general passages too", _retained("semantic, mixed index", "ndcg@10")
    yield "unseen explicit queries, nDCG@10", _ndcg("test", "explicit")
    yield "unseen control queries, nDCG@10", _ndcg("test", "control")
    yield f"weight of {it} where said", lambda figures: _number(_mean(_each(figures, "weights")), 2)
    yield f"weight of {it} where meant", lambda figures: _number(_mean(_each(figures, "meant")), 2)
    yield "general questions, nDCG@10", _retained("general", "ndcg@10")
    yield f"general questions that activate {_it(terms)}", _strays
    yield "weights a document", lambda figures: _number(figures["nonzero_document"], 0)


def _summary_of_ranks(first: ColumnFigures) -> tuple[str, Read]:
    """The ranks of one hard query's documents; of many queries, how many have theirs on top."""
    queries = first["hard_queries"]
    if len(queries) > 1:
        return f"hard queries with theirs on top, of {len(queries)}", lambda figures: str(_on_top(figures))
    count = sum(len(query["ranks"]) for query in queries.values())
    return f"hard query: ranks of its {count} documents", _span_of_ranks


def _span_of_ranks(figures: ColumnFigures) -> str:
    ranks = _ranks(figures)
    return f"{min(ranks):.0f} to {max(ranks):.0f}" if ranks else NOTHING


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
    yield "  where meant, mean", lambda figures: _number(_mean(_each(figures, "meant")), 2)
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


def _each(figures: ColumnFigures, key: Literal["weights", "meant", "hard_queries"]) -> list[float]:
    """A figure of every term in every text."""
    return [float(value) for term in figures["terms"] for value in term.get(key, {}).values()] or [math.nan]


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
