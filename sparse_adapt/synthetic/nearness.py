"""Whether a text means a term: how much nearer it is to what is about the term than to anything else.

A dense encoder that knows ordinary language tells it, without a label and without the term itself: where the
texts nearest to a question are about the term, the question means it. Zero is where that changes. But something is
always nearest, so a question that has nothing to do with the domain would mean a term as often as not: to mean it, a
text has also to be nearer to it than most everyday texts are. With each further term something is nearer by chance, so
each asks for more (Bonferroni's correction).

Dimensions: B texts, S sources, E everyday texts, D terms, H width of a dense vector.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.model.dense import DenseEncoder

TEXTS_AT_ONCE = 1024
NEAREST = 3  # texts on either side that a text is compared with: one alone may be near by a word
NEAR = 0.15  # share of everyday texts that may be near enough to mean a term: of all terms together

Nearness = NDArray[np.float32]


class Judge:
    """Texts that are about terms, and texts that aren't, as a dense encoder sees them."""

    def __init__(
        self,
        encoder: DenseEncoder,
        sources: Sequence[str],
        about: NDArray[np.bool_],
        everyday: NDArray[np.float32] | None = None,
    ) -> None:
        """`sources`: texts with the terms cut out of them; `about`: (S, D), which terms each is about.

        `everyday`: vectors (E, H) of texts like queries that mean anything; without them nothing is too far.
        """
        self.encoder, self.about = encoder, about
        self.vectors = encoder.encode(sources)
        self.owned = [np.flatnonzero(column) for column in about.T]
        self.least = np.full(about.shape[1], -np.inf, dtype=np.float32)  # cosine to a term, to mean it
        if everyday is not None and len(everyday):
            far = 1.0 - NEAR / max(1, about.shape[1])
            for term, own in enumerate(self.owned):
                if len(own):
                    self.least[term] = np.quantile(_nearest(everyday @ self.vectors[own].T), far)

    def nearness(self, texts: Sequence[str]) -> Nearness:
        """(B, D) in [-2, 2]: mean cosine to the three nearest sources about a term, less that to as many others.

        Where fewer are about it, to as many on either side. Where none is it is -1: nothing means it. Where all
        are, the other cosine is 0. And less than what few everyday texts exceed, if that is more.
        """
        return self.of_vectors(self.encoder.encode(texts))

    def alike(self) -> NDArray[np.bool_]:
        """Sources that don't say a term but are as close to its own as the median of these: (S, D) booleans."""
        found = np.zeros_like(self.about)
        for term, own in enumerate(self.owned):
            if len(own) < 2:
                continue
            cosines = self.vectors @ self.vectors[own].T
            among = (cosines[own].sum(axis=1) - 1.0) / (len(own) - 1)
            found[:, term] = cosines.mean(axis=1) >= np.median(among)
        return np.asarray(found & ~self.about)

    def nearest(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosine of each text to each source, less the text's mean over all: what it has with that one. (B, S)."""
        cosines = vectors @ self.vectors.T
        return np.asarray(cosines - cosines.mean(axis=1, keepdims=True))

    def of_vectors(self, vectors: NDArray[np.float32]) -> Nearness:
        """The same of texts that are encoded (B, H), some at a time: sources may be thousands."""
        parts = [
            self._of_some(vectors[start : start + TEXTS_AT_ONCE])
            for start in range(0, len(vectors), TEXTS_AT_ONCE)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.about.shape[1]), np.float32)

    def _of_some(self, vectors: NDArray[np.float32]) -> Nearness:
        cosines = vectors @ self.vectors.T
        result = np.full((len(vectors), self.about.shape[1]), -1.0, dtype=np.float32)
        most = min(max((len(own) for own in self.owned), default=0) + NEAREST, len(self.vectors))
        best = np.argsort(-cosines, axis=1, kind="stable")[
            :, :most
        ]  # as many of these as asked aren't about the term
        for term, own in enumerate(self.owned):
            if len(own):
                nearest = _nearest(cosines[:, own])
                others = self._others(cosines, best, term, min(NEAREST, len(own)))
                result[:, term] = nearest - np.maximum(others, self.least[term])
        return result

    def _others(
        self, cosines: NDArray[np.float32], best: NDArray[Any], term: int, count: int
    ) -> NDArray[np.float32]:
        """Mean of so many largest cosines to sources that aren't about a term (B,), or 0 where every source is."""
        others = ~self.about[best, term]
        chosen = others & (others.cumsum(axis=1) <= count)
        total = (np.take_along_axis(cosines, best, axis=1) * chosen).sum(axis=1)
        return np.asarray(total / chosen.sum(axis=1).clip(1), dtype=np.float32)


def _nearest(cosines: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean of the largest few cosines (B, S) of each text: (B,)."""
    return np.asarray(np.sort(cosines, axis=1)[:, -NEAREST:].mean(axis=1))
