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


def penalty(kind: Penalised, encoder: SparseEncoder, share: NDArray[np.float64]) -> Tensor | None:
    """How much more each token costs than others (V), in [0, 1]; None where none does.

    share: (V) of the documents that give it weight. A corpus's frequent words are rare in an index with other texts,
    where a document without them sinks. Words that say nothing of a topic are known by name.
    """
    match kind:
        case "none":
            return None
        case "frequent":
            return losses.frequency_penalty(torch.from_numpy(share))
        case "function":
            costs = np.zeros(len(share), np.float32)
            costs[np.flatnonzero(function_tokens(encoder.tokenizer))] = 1.0
            return torch.from_numpy(costs)
