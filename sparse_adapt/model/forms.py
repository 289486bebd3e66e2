"""The form of a sparse model: how logits become weights, what is read before a text, how many weights it keeps.

| part | values |
|---|---|
| pooling | the largest activation over a text's positions (`max`), or their sum (`sum`) |
| activation | log(1 + relu(x)) (`relu`), or its logarithm once more (`log1p_relu`: Shen et al., arXiv:2504.14839) |
| entries | the heaviest entries of a text that count, where there is a limit |
| prompts | words that are put before a query or a document |

The names are those of sentence-transformers. Dimensions: B texts, V vocabulary.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy.sparse import csr_matrix
from torch import Tensor

from sparse_adapt.model.head.pooling import Activation
from sparse_adapt.model.head.pooling import activate as activate_by

Side = Literal["query", "document"]  # of a search, on which a text is
SIDES: tuple[Side, ...] = ("query", "document")
Pooling = Literal["max", "sum"]


@dataclass(frozen=True, slots=True)
class Form:
    """The form of one model; by default that of SPLADE (Formal et al. 2021, arXiv:2109.10086).

    `prompts` are by their names, as in the model's folder; `default_prompt` names one for other programs.
    """

    pooling: Pooling = "max"
    activation: Activation = "relu"
    entries: int | None = None
    prompts: Mapping[str, str] = field(default_factory=dict)
    default_prompt: str | None = None

    def activate(self, maximum: Tensor) -> Tensor:
        """Weights of largest logits (B, V), float32 and never negative: of a model that takes the maximum."""
        return activate_by(maximum, self.activation)

    def largest_logits(self, weights: Tensor) -> Tensor:
        """The largest logits that these weights come from (B, V): 0 where a weight is 0, as the logit is 0 or less."""
        once = weights.float().expm1()
        return once.expm1() if self.activation == "log1p_relu" else once

    def prompt(self, side: Side) -> str:
        """What stands before a text of that side, mostly nothing: the prompt of that name, and no other.

        sentence-transformers gives each sparse model both names, so that it never asks for another or for the default.
        """
        return self.prompts.get(side, "")

    @property
    def prompts_used(self) -> bool:
        """Whether anything is put before a text."""
        return bool(self.prompt("query") or self.prompt("document"))

    def pruned(self, vectors: csr_matrix) -> csr_matrix:
        """The heaviest entries of each row (B, V), as many as count; of equal ones the first."""
        return heaviest(vectors, self.entries)


def heaviest(vectors: csr_matrix, most: int | None) -> csr_matrix:
    """The `most` heaviest entries of each row (B, V), all of them with None; of equal ones the first."""
    if most is None or vectors.nnz == 0 or int(np.diff(vectors.indptr).max()) <= most:
        return vectors
    rows = np.repeat(np.arange(vectors.shape[0]), np.diff(vectors.indptr))
    order = np.lexsort((vectors.indices, -vectors.data, rows))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - vectors.indptr[rows]
    heavy = rank < most
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[heavy], minlength=vectors.shape[0]))])
    return csr_matrix((vectors.data[heavy], vectors.indices[heavy], starts), shape=vectors.shape)


USUAL = Form()
