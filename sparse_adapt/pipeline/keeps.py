"""Whether an adapted model keeps what the base model knew: the part of a verdict that needs no judgements.

Made-up queries share their documents' words, so they promise more than users see. Beside them stand general questions
that ship with the package, strays, known items of the corpus, and both in a mixed index (`retrieve.keeping`).
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pydantic import RootModel

from sparse_adapt.collection.readers import Document
from sparse_adapt.collection.streams import evenly
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.evaluate import Collection
from sparse_adapt.retrieve.keeping import (
    GENERAL,
    MAY_LOSE,
    Groups,
    encode_collection,
    everyday_strays,
    general_collection,
    keeping,
    kept_figures,
    known_of,
    new_terms,
    say_new,
)

QUESTIONS = 1_000  # general ones
DOCUMENTS = 500  # of the corpus, in the mixed index
KNOWN = 500  # known items, about
EVERYDAY = 1_000  # texts that mean anything, half of them like queries
STRAYS_ENOUGH = 0.05  # share of general questions that light a new term
KNOWN_ITEMS = "known items"

Figures = Mapping[str, Any]


class Keeps(RootModel[dict[str, dict[str, Any]]]):
    """What `keeps.json` holds: figures by the kind of queries; nothing where the base model is kept."""


def measure_keeps(base: SparseEncoder, kept: SparseEncoder, documents: Sequence[Document]) -> dict[str, Any]:
    """Both models' means by kind and measure, differences and p-values. `documents`: of the corpus."""
    some = evenly(documents, DOCUMENTS)
    draws = max(1, KNOWN // len(some))
    saying = say_new([base, kept], some)
    known = known_of(some, saying, draws) or known_of(some, np.zeros_like(saying), draws)
    general = general_collection(most=QUESTIONS)
    domain = known or Collection(tuple(some), (), {})
    return kept_figures(*(_groups(model, domain, general) for model in (kept, base)))


def _groups(model: SparseEncoder, domain: Collection, general: Collection) -> Groups:
    """The four measures, with known items for the queries of the corpus; everyday texts that light a term."""
    known = domain if domain.queries else None
    ours, there = encode_collection(model, domain), encode_collection(model, general)
    groups = keeping(model, ours, there, known, new_terms(model))
    strays = everyday_strays(model, EVERYDAY, new_terms(model))
    groups["everyday texts"] = {"strays": strays.astype(np.float64)}
    return groups


# -- in words -------------------------------------------------------------------------------------


def keeps_lines(keeps: Figures, others: Sequence[str] = ()) -> list[str]:
    """First any fall, by more than half a point; then what was measured. `others`: falls that are known besides."""
    if not keeps:
        return []
    fallen = [*_falls(keeps), *others]
    first = f"FALLS: {'; '.join(fallen)}" if fallen else "keeps what the base model knew"
    general, everyday = keeps[GENERAL]["model"]["strays"], keeps["everyday texts"]["model"]["strays"]
    told = [_told(keeps, kind, measure, name) for kind, measure, name in _measured(keeps)]
    strays = f"{general:.1%} of general questions and {everyday:.1%} of everyday texts light a new term"
    return [first, f"{'; '.join(told)}; {strays}"]


def _measured(keeps: Figures) -> Iterator[tuple[str, str, str]]:
    """Kind, measure and name of what may not fall."""
    yield GENERAL, "ndcg@10", "nDCG@10 of general questions"
    yield GENERAL, "recall@100", "their recall@100"
    yield f"{GENERAL}, mixed index", "ndcg@10", "nDCG@10 in a mixed index"
    if KNOWN_ITEMS in keeps:
        yield KNOWN_ITEMS, "mrr@10", "MRR@10 of two words of a document"


def _falls(keeps: Figures) -> Iterator[str]:
    for kind, measure, name in _measured(keeps):
        if keeps[kind]["difference"][measure] < -MAY_LOSE:
            yield _told(keeps, kind, measure, name)
    strays = keeps[GENERAL]["model"]["strays"]
    if strays > STRAYS_ENOUGH:
        yield f"{strays:.0%} of general questions light a new term"


def _told(keeps: Figures, kind: str, measure: str, name: str) -> str:
    return f"{name} {keeps[kind]['baseline'][measure]:.3f} -> {keeps[kind]['model'][measure]:.3f}"
