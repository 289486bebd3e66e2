"""Texts that mean a term without saying it, made from the texts that say it.

A user's query often describes a thing whose name the user doesn't know. Nothing in a corpus looks like such a
query, but two things come close: the words around a term, with the term cut out, and the words that the model
itself associates with those texts. Both are cheap, need no labels and no generator.

Dimensions: D new tokens, V vocabulary.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.random import Generator
from scipy.sparse import csr_matrix
from torch import Tensor

from sparse_adapt.model import SparseEncoder

NEAR = 16  # tokens on each side of a term that count as being about it
SHORTEST, LONGEST = 3, 16  # tokens of a cut-out window
PROFILE = 80  # associated words kept for a source
GLUE = 40  # most common tokens of the corpus: what joins words to queries
ALIKE = 0.5  # a text as close to a term's own texts as the median of them may mean it: no target


class Samples(NamedTuple):
    """Texts as token ids, and per new token whether the text means it (B, D) or should be silent on it (B, D)."""

    token_ids: list[list[int]]
    meant: Tensor
    quiet: Tensor


@dataclass(frozen=True, slots=True)
class Profile:
    """Words associated with a text: token ids and probabilities."""

    tokens: np.ndarray
    chances: np.ndarray


class Meanings:
    """A source of texts that mean a term, or that have nothing to do with any.

    Each source is one text as token ids in the extended vocabulary; `about` (sources x D) tells which terms a
    source is about, even where it doesn't say them.
    """

    def __init__(
        self, encoder: SparseEncoder, sources: Sequence[Sequence[int]], about: np.ndarray, weights: csr_matrix
    ) -> None:
        """`weights`: (sources, V) of the reference model on the sources without their new tokens."""
        self.first_new = encoder.old_size
        self.special = set(encoder.tokenizer.all_special_ids)
        self.ends = _ends(encoder)
        self.sources = [list(source) for source in sources]
        self.about = about
        self.said = np.array([self._says(source, about.shape[1]) for source in self.sources]).reshape(
            about.shape
        )
        share = np.asarray((weights > 0).mean(axis=0)).ravel()
        rarity = np.log(1.0 / (share + 0.01)).clip(0) * _starts_word(encoder, weights.shape[1])
        self.profiles = _profiles(weights.multiply(rarity[None, :]).tocsr())
        self.unknown = _alike(weights.multiply(rarity[None, :]).tocsr(), about)
        common = np.argsort(-share, kind="stable")
        self.glue = common[~np.isin(common, list(self.special))][:GLUE]
        self.by_term = [np.flatnonzero(column) for column in about.T]
        self.taught = np.flatnonzero([len(rows) > 0 for rows in self.by_term])

    def draw(self, count: int, random: Generator) -> Samples:
        """`count` texts that mean some term and `count` from anywhere, with what each should light up."""
        rows = [int(random.choice(self.by_term[term])) for term in random.choice(self.taught, count)]
        rows += [int(row) for row in random.choice(len(self.sources), count)]
        texts = [
            self._window(row, random) if random.random() < 0.5 else self._words(row, random) for row in rows
        ]
        meant = self.about[rows]
        return Samples(texts, torch.from_numpy(meant), torch.from_numpy(~meant & ~self.unknown[rows]))

    def _says(self, source: list[int], terms: int) -> np.ndarray:
        return np.isin(np.arange(terms) + self.first_new, source)

    def _window(self, row: int, random: Generator) -> list[int]:
        """A few neighbouring tokens of a source, new ones cut out."""
        tokens = [t for t in self.sources[row] if t < self.first_new and t not in self.special]
        length = int(random.integers(SHORTEST, LONGEST + 1))
        start = int(random.integers(0, max(1, len(tokens) - length + 1)))
        return [*self.ends[0], *tokens[start : start + length], *self.ends[1]]

    def _words(self, row: int, random: Generator) -> list[int]:
        """Associated words of a source among common ones, in any order: a query as far as the model can tell."""
        profile = self.profiles[row]
        if not len(profile.tokens):
            return self._window(row, random)
        words = random.choice(profile.tokens, int(random.integers(1, 6)), p=profile.chances)
        words = np.concatenate([words, random.choice(self.glue, int(random.integers(1, 7)))])
        return [*self.ends[0], *map(int, random.permutation(words)), *self.ends[1]]


def _ends(encoder: SparseEncoder) -> tuple[list[int], list[int]]:
    """Special tokens before and after a text."""
    ids = encoder.tokenize(["a"])[0]
    inner = encoder.tokenizer("a", add_special_tokens=False)["input_ids"]
    start = ids.index(inner[0])
    return ids[:start], ids[start + len(inner) :]


def _starts_word(encoder: SparseEncoder, size: int) -> np.ndarray:
    """1.0 for each token that can stand for a word (V), else 0.0."""
    tokens = [token or "" for token in encoder.tokenizer.convert_ids_to_tokens(list(range(size)))]
    marked = any(token.startswith(("\u0120", "\u2581")) for token in tokens)
    word = re.compile(r"[\u0120\u2581]\w\w+" if marked else r"\w\w+")
    return np.array([bool(word.fullmatch(token)) for token in tokens], dtype=np.float64)


def _profiles(weights: csr_matrix) -> list[Profile]:
    profiles = []
    for row in range(weights.shape[0]):
        line = slice(weights.indptr[row], weights.indptr[row + 1])
        tokens, values = weights.indices[line], weights.data[line].astype(np.float64)
        best = np.argsort(-values, kind="stable")[:PROFILE]
        best = best[values[best] > 0]
        profiles.append(Profile(tokens[best], values[best] / values[best].sum() if len(best) else values[:0]))
    return profiles


def _alike(weights: csr_matrix, about: np.ndarray) -> np.ndarray:
    """Sources so close to a term's own that they may mean it: (sources, D) booleans."""
    lengths = np.sqrt(np.asarray(weights.multiply(weights).sum(axis=1))).ravel().clip(1e-9)
    unit = weights.multiply(1.0 / lengths[:, None]).tocsr()
    likeness = np.asarray((unit @ (unit.T @ csr_matrix(about.astype(np.float64)))).todense())
    counts = about.sum(axis=0).clip(1)
    likeness = (likeness - about) / np.where(about, (counts - 1).clip(1), counts)
    unknown = np.zeros_like(about)
    for term in range(about.shape[1]):
        own = likeness[about[:, term], term]
        if len(own) > 1:
            unknown[:, term] = likeness[:, term] >= np.quantile(own, ALIKE)
    return unknown & ~about
