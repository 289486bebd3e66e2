"""The inner loops of the head on a processor, compiled by numba: maxima out of logits, gradients back.

Dimensions: B texts, L positions, T unmasked positions of all texts, H hidden, V vocabulary.
A maximum reads each logit once while it is still in the cache, and remembers where it was; a library's
`max(dim)` with indices on the same layout takes seven times as long. Gradients visit only what is not zero.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

Array = NDArray[np.floating]
Indices = NDArray[np.integer]


@njit(cache=True, nogil=True)
def pool_rows(logits: Array, starts: Indices, places: Indices, maximum: Array, position: Indices) -> None:
    """Write the largest logit of each column and text, and the place of the first row that held it.

    logits: (T, width); starts: (B + 1) first row of each text; places: (T) position of each row in its text;
    maximum, position: (B, width), written. A text without rows gets -inf and 0; a NaN wins and stays.
    """
    width = logits.shape[1]
    for text in range(len(starts) - 1):
        best, where = maximum[text], position[text]
        for token in range(width):
            best[token] = -np.inf
            where[token] = 0
        for row in range(starts[text], starts[text + 1]):
            values, place = logits[row], places[row]
            for token in range(width):
                value = values[token]
                if (value > best[token]) | (value != value):
                    best[token] = value
                    where[token] = place


@njit(cache=True, nogil=True)
def hidden_gradient(gradient: Array, position: Indices, weight: Array, out: Array) -> None:
    """Add to each winning position the gradient of the maxima it won.

    gradient, position: (B, V); weight: (V, H); out: (B, L, H), added to.
    """
    for text in range(gradient.shape[0]):
        for token in range(gradient.shape[1]):
            value = gradient[text, token]
            if value != 0:
                target, row = out[text, position[text, token]], weight[token]
                for unit in range(len(row)):
                    target[unit] += value * row[unit]


@njit(cache=True, nogil=True)
def weight_gradient(gradient: Array, position: Indices, hidden: Array, out: Array) -> None:
    """Add to each vocabulary row the hidden states that won its maximum.

    gradient, position: (B, V); hidden: (B, L, H); out: (V, H), added to.
    """
    for token in range(gradient.shape[1]):
        for text in range(gradient.shape[0]):
            value = gradient[text, token]
            if value != 0:
                target, row = out[token], hidden[text, position[text, token]]
                for unit in range(len(row)):
                    target[unit] += value * row[unit]
