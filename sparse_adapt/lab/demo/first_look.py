"""What the base model makes of a new term, told before anything is trained.

Nothing here needs what measures, which takes longer to import than it takes to look.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from sparse_adapt.collection.readers import Query, read_documents, read_judgements, read_queries
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.terms.mining import read_terms

SHOWN = 5  # documents on top of the ranking


def first_look(plan: Plan) -> Iterator[str]:
    """The pieces that the first term falls into, and what the base model finds for a query that means a term.

    The query is the first of the train split that means a term without saying it; without one nothing is told of it.
    """
    assert plan.corpus is not None
    model = SparseEncoder.load(plan.model)
    term = read_terms(plan.files["terms"])[0].text
    pieces = model.tokenizer.tokenize(f" {term}")
    if len(pieces) > 1:
        yield f"{plan.model} has no token for {term} and reads {len(pieces)} pieces: {' '.join(pieces)}"
    judgements = read_judgements(plan.corpus, "train")
    hidden = (query for query in read_queries(plan.corpus) if query.kind == "hidden")
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
