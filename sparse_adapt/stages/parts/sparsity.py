"""What it costs to score a text: expected work on each token, some tokens costing more than others.

Dimensions: Q queries, B documents, V vocabulary.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.terms.function_words import function_tokens
from sparse_adapt.training import losses

if TYPE_CHECKING:
    from sparse_adapt.stages.parts.matching import Reading

Penalised = Literal["none", "frequent", "function"]
COMMON, MOST = 0.1, 0.5  # share of the documents at which a word is half a common one: published, and at most
FEW = 10  # documents that a word may always be in: a page of results
USUAL_BATCH = 8  # queries of a step for which the weight of sparsity stands


@dataclass(frozen=True, slots=True)
class Cost:
    """What tokens cost: those of queries, of documents, and penalised ones (V, in [0, 1], or None for none).

    first_new: the first token that an extension added; a match costs on the tokens before it.
    """

    query: float
    document: float
    common: float
    penalty: Tensor | None
    first_new: int


def sparsity(read: "Reading") -> Tensor:
    """What a match costs on old tokens, and the squared means of queries and documents.

    The mean of a sparse weight over few texts has the larger square, about as many fold as they are fewer.
    """
    queries, documents, cost = read.queries, read.documents, read.task.cost
    fewer = min(1.0, len(queries) / USUAL_BATCH)
    old = torch.ones(queries.shape[1], device=queries.device)
    old[cost.first_new :] = 0.0
    penalty = None if cost.penalty is None else cost.penalty.to(queries.device)
    cross = losses.cross_sparsity(queries, documents, old if penalty is None else old * penalty)
    plain = cost.query * losses.flops(queries) + cost.document * losses.flops(documents)
    if penalty is None:
        return fewer * (cross + plain)
    common = losses.flops(queries, penalty) + losses.flops(documents, penalty)
    return fewer * (cost.common * (cross + common) + plain)


def penalty(
    kind: Penalised, encoder: SparseEncoder, share: NDArray[np.float64], documents: int
) -> Tensor | None:
    """How much more each token costs than others (V), in [0, 1]; None where none does.

    share: (V) of the documents that give it weight. A tenth of a small corpus is three documents, and the
    field's own words, which are in as many, tell them apart: a word of few documents costs no more than
    others, and words that say nothing of a topic are known by name.
    """
    shares = torch.from_numpy(share)
    match kind:
        case "none":
            return None
        case "frequent":
            return losses.frequency_penalty(shares)
        case "function":
            found = losses.frequency_penalty(shares, min(MOST, max(COMMON, FEW / documents)))
            found[np.flatnonzero(function_tokens(encoder.tokenizer))] = 1.0
            return found
