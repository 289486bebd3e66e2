"""Made-up queries of which a dense encoder tells how far they mean a term, whatever they were made from.

They are windows of a text with words replaced by what the model associates with their place, words near a text
among common ones in any order, and ordinary words at random; drawn as those of `meanings` are.

Dimensions: B texts, S sources, D new tokens, V vocabulary.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from sparse_adapt.batches import TokenIds
from sparse_adapt.dense import DenseEncoder
from sparse_adapt.idf import shares_of
from sparse_adapt.meanings import Profile, Samples, associations, ends_of, paraphrase, starts_word
from sparse_adapt.meanings.nearness import Judge, Nearness
from sparse_adapt.model import SparseEncoder

PARAPHRASED, NEAR = 0.35, 0.5  # shares of windows, and of words near a text; the rest are words at random
STRAY = 0.3  # share of texts of near words that hold some of another source too
POOL, POOL_A_TERM, LARGEST_POOL = 11_000, 1_000, 60_000  # texts that are made
OWN, OTHERS = 32, 2000  # sources about each term, and about none, that they are made from
WORDS = 8000  # ordinary words: the first of the vocabulary, which lists common ones first
GLUE = 150  # of these, the first: what joins words to queries
NEIGHBOURS = 150  # words near a source
FEWEST = 10  # texts that teach a term, even where the judge finds fewer


class JudgedMeanings:
    """A pool of made-up texts, and how near each is to what is about a term.

    Each source is one text as token ids in the extended vocabulary; `about` (S x D) tells which terms a source
    is about, even where it doesn't say them. `reference` is the model that knows the associations, `dense` the
    encoder that judges.
    """

    def __init__(
        self,
        reference: SparseEncoder,
        sources: Sequence[TokenIds],
        about: NDArray[Any],
        dense: DenseEncoder,
        random: Generator,
    ) -> None:
        self.first_new = reference.old_size
        self.special = set(reference.tokenizer.all_special_ids)
        self.ends = ends_of(reference)
        rows = _chosen(about, random)
        self.about = about[rows]
        self.cut = [[token for token in sources[row] if token < self.first_new] for row in rows]
        is_word = starts_word(reference)
        is_word *= np.arange(len(is_word)) < self.first_new
        weights, self.substitutes = associations(reference, self.cut, is_word)
        self.document_share = shares_of(weights)
        plain = np.setdiff1d(np.arange(self.first_new), list(self.special))  # for scripts without such words
        self.words = (np.flatnonzero(is_word) if is_word.any() else plain)[:WORDS]
        judge = Judge(dense, _texts(reference, self.cut), self.about)
        words = dense.encode(_texts(reference, self.words[GLUE:, None].tolist()))
        self.near = [_profile(self.words[GLUE:], column) for column in judge.nearest(words).T]
        self.unknown = np.zeros_like(about)
        self.unknown[rows] = judge.alike()
        self.pool, self.nearness = self._made(reference, judge, random)
        self.teaching = [
            _teaching(column, bool(own.any())) for column, own in zip(self.nearness.T, about.T, strict=True)
        ]
        self.taught = np.flatnonzero([len(found) > 0 for found in self.teaching])

    def draw(self, count: int, random: Generator) -> Samples:
        """`count` texts from anywhere and, where terms are taught, `count` that mean one; how far they mean it."""
        rows = random.choice(len(self.pool), count).tolist()
        if len(self.taught):
            terms = random.choice(self.taught, count)
            rows += [int(random.choice(self.teaching[term])) for term in terms]
        nearness = torch.from_numpy(self.nearness[rows])
        return Samples([self.pool[row] for row in rows], nearness >= 0, nearness < 0, nearness)

    def _made(
        self, reference: SparseEncoder, judge: Judge, random: Generator
    ) -> tuple[list[list[int]], Nearness]:
        """The pool, and the nearness of its texts (B, D)."""
        own, other = (np.flatnonzero(self.about.any(axis=1) == said) for said in (True, False))
        count = min(LARGEST_POOL, POOL + POOL_A_TERM * self.about.shape[1])
        pool: list[list[int]] = []
        for _ in range(count):
            group = own if len(own) and (random.random() < 0.5 or not len(other)) else other
            row = int(random.choice(group))
            kind = random.random()
            if kind < PARAPHRASED + NEAR:
                text = (
                    self._paraphrase(row, random) if kind < PARAPHRASED else self._loose(row, other, random)
                )
            else:
                text = self._with_glue(random.choice(self.words, int(random.integers(1, 5))), random)
            pool.append(text)
        nearness = judge.nearness(_texts(reference, pool))
        return [[*self.ends[0], *text, *self.ends[1]] for text in pool], nearness

    def _paraphrase(self, row: int, random: Generator) -> list[int]:
        return paraphrase(self.cut[row], self.substitutes[row], self.special, random)

    def _loose(self, row: int, other: NDArray[Any], random: Generator) -> list[int]:
        """Words near a source among common ones, now and then with some that are near another."""
        profile = self.near[row]
        if not len(profile.tokens):
            return self._paraphrase(row, random)
        words = random.choice(profile.tokens, int(random.integers(1, 5)), p=profile.chances)
        stray = self.near[int(random.choice(other))] if len(other) and random.random() < STRAY else None
        if stray is not None and len(stray.tokens):
            also = random.choice(stray.tokens, int(random.integers(1, 3)), p=stray.chances)
            words = np.concatenate([words, also])
        return self._with_glue(words, random)

    def _with_glue(self, words: NDArray[Any], random: Generator) -> list[int]:
        """Words among common ones, in any order."""
        glue = random.choice(self.words[:GLUE], int(random.integers(1, 8)))
        return [int(word) for word in random.permutation(np.concatenate([words, glue]))]


def _texts(reference: SparseEncoder, token_ids: Sequence[TokenIds]) -> list[str]:
    """Token ids as a person reads them, without special tokens."""
    return [str(reference.tokenizer.decode(list(ids), skip_special_tokens=True)) for ids in token_ids]


def _chosen(about: NDArray[Any], random: Generator) -> NDArray[Any]:
    """Sources to make texts from: some about each term, some about none, in their order."""
    kept = np.zeros(len(about), dtype=bool)
    for column in about.T:
        own = np.flatnonzero(column)
        kept[own if len(own) <= OWN else random.choice(own, OWN, replace=False)] = True
    others = np.flatnonzero(~about.any(axis=1))
    kept[others if len(others) <= OTHERS else random.choice(others, OTHERS, replace=False)] = True
    return np.flatnonzero(kept)


def _teaching(nearness: Nearness, is_taught: bool) -> NDArray[Any]:
    """Rows of the texts that mean a term: those nearer to its sources than to any other, or the nearest few."""
    if not is_taught:
        return np.zeros(0, dtype=np.int64)
    found = np.flatnonzero(nearness >= 0)
    return found if len(found) >= FEWEST else np.argsort(-nearness, kind="stable")[:FEWEST]


def _profile(tokens: NDArray[Any], values: NDArray[Any]) -> Profile:
    """The tokens of the largest positive values, as likely as these are large."""
    best = np.argsort(-values, kind="stable")[:NEIGHBOURS]
    best = best[values[best] > 0]
    chances = values[best].astype(np.float64)
    return Profile(tokens[best], chances / chances.sum() if len(best) else chances)
