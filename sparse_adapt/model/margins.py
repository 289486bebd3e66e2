"""How much nearer a text is to what is about a term than to anything else, as a dense encoder sees texts.

Zero is where that changes. But something is always nearest, so a question that has nothing to do with the domain would
mean a term as often as not: to mean it, a text has also to be nearer to it than most background texts are. With each
further term something is nearer by chance, so each asks for more (Bonferroni's correction).

Dimensions: B texts, S sources, E background texts, D terms, H width of a dense vector.
"""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

NEAREST = 3  # texts on either side that a text is compared with: one alone may be near by a word
NEAR = 0.15  # share of background texts that may be near enough to mean a term: of all terms together

SimilarityMargin = NDArray[np.float32]


class Margins(NamedTuple):
    """Texts that are about terms, and texts that aren't.

    vectors: (S, H) of length 1; about: (S, D), which terms each is about; least: (D) cosine to a term, to mean it.
    """

    vectors: NDArray[np.float32]
    about: NDArray[np.bool_]
    least: NDArray[np.float32]

    @classmethod
    def of(
        cls,
        vectors: NDArray[np.float32],
        about: NDArray[np.bool_],
        background: NDArray[np.float32] | None = None,
    ) -> Self:
        """`background`: vectors (E, H) of texts like queries that mean anything; without them nothing is too far."""
        least = np.full(about.shape[1], -np.inf, dtype=np.float32)
        if background is not None and len(background):
            far = 1.0 - NEAR / max(1, about.shape[1])
            for term, column in enumerate(about.T):
                if column.any():
                    least[term] = np.quantile(_nearest(background @ vectors[column].T), far)
        return cls(vectors, about, least)

    def of_texts(self, texts: NDArray[np.float32]) -> SimilarityMargin:
        """The similarity margins (B, D) in [-2, 2] of a few texts, given as vectors (B, H).

        Mean cosine to the three nearest sources about a term, less that to as many others. Where fewer are about it,
        to as many on either side. Where none is it is -1: nothing means it. Where all are, the other cosine is 0. And
        less than what few background texts exceed, if that is more.
        """
        cosines = texts @ self.vectors.T
        result = np.full((len(texts), self.about.shape[1]), -1.0, dtype=np.float32)
        owned = [np.flatnonzero(column) for column in self.about.T]
        most = min(max((len(own) for own in owned), default=0) + NEAREST, len(self.vectors))
        best = np.argsort(-cosines, axis=1, kind="stable")[
            :, :most
        ]  # as many of these as asked aren't about the term
        for term, own in enumerate(owned):
            if len(own):
                nearest = _nearest(cosines[:, own])
                reached = best[:, : len(own) + NEAREST]  # whose others are `NEAREST`, or all there are
                others = self._others(cosines, reached, term, min(NEAREST, len(own)))
                result[:, term] = nearest - np.maximum(others, self.least[term])
        return result

    def _others(
        self, cosines: NDArray[np.float32], best: NDArray[np.int64], term: int, count: int
    ) -> NDArray[np.float32]:
        """Mean of so many largest cosines to sources that aren't about a term (B,), or 0 where every source is."""
        others = ~self.about[best, term]
        chosen = others & (others.cumsum(axis=1) <= count)
        total = (np.take_along_axis(cosines, best, axis=1) * chosen).sum(axis=1)
        return np.asarray(total / chosen.sum(axis=1).clip(1), dtype=np.float32)


def _nearest(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean of the largest few cosines (B, S) of each text: (B,)."""
    return np.asarray(np.sort(cosines, axis=1)[:, -NEAREST:].mean(axis=1))
