"""How much a token tells: factors for weights, from the share of documents that have it.

Dimensions: B texts, V vocabulary.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

Factors = NDArray[np.float32]


def sqrt_idf(documents: csr_matrix) -> Factors:
    """A factor for each token (V): the square root of ln((N + 1) / (n + 1)), n documents giving it weight.

    Folded into the queries' weights once it takes from a SPLADE model's scores what is in every document.
    """
    present = np.bincount(documents.indices, minlength=documents.shape[1])
    factors: Factors = np.sqrt(np.log((documents.shape[0] + 1) / (present + 1))).astype(np.float32)
    return factors


def fourth_root(documents: csr_matrix) -> Factors:
    """A factor for each token (V), for queries and documents both: their product is the root of the idf."""
    return np.sqrt(sqrt_idf(documents))


def of_all(factors: Factors | None, size: int) -> Factors:
    """A factor for every token of a vocabulary (`size`): 1 without factors; one that is missing is the largest."""
    if factors is None:
        return np.ones(size, np.float32)
    return np.pad(factors, (0, size - len(factors)), constant_values=factors.max()).astype(np.float32)


def reciprocal(factors: Factors) -> Factors:
    """What undoes factors (V); 0 where they are 0."""
    return np.divide(1.0, factors, out=np.zeros_like(factors), where=factors > 0)


def scaled(vectors: csr_matrix, factors: Factors) -> csr_matrix:
    """Every weight (B, V) times the factor of its token (V); weights that become 0 are no longer stored."""
    product = vectors.copy()
    product.data = product.data * factors[product.indices]
    product.eliminate_zeros()
    return product
