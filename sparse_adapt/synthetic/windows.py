"""Texts that mean a term without saying it, made from the texts that say it.

A user's query often describes a thing whose name the user doesn't know. Nothing in a corpus looks like such a
query, but three things come close: the words around a term, with the term cut out and some of them replaced by
what the model associates with their place; associated words in any order; and, two steps away, words whose own
associations are those of the term, dropped into a text about something else. All are cheap, and need no labels
and no generator.

Dimensions: B texts, S sources, D new tokens, V vocabulary, W ordinary words, F features.
"""

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, vstack
from torch import Tensor

from sparse_adapt.model.encoder import Encoder
from sparse_adapt.model.idf import shares_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds

SHORTEST, LONGEST = 3, 16  # tokens of a synthetic query
REPLACED = 0.4  # share of words that give way to an associated one
LOOSE = 0.3  # share of synthetic queries that are associated words in any order
NEAR = 0.4  # share of those that mean a term which are made from words near it
NEIGHBOURS = 100  # words near a term
TEXTS_AT_ONCE = 64
PROFILE = 80  # associated words kept for a source
GLUE = 40  # most common tokens of the corpus: what joins words to queries
ALIKE = 0.5  # a text as close to a term's own texts as the median of them may mean it: no target


Ends = tuple[list[int], list[int]]


class Samples(NamedTuple):
    """Texts as token ids, and per new token whether the text means it (B, D) or should be inactive on it (B, D).

    Where a labeller says it by degrees, `similarity margin` (B, D) tells how far each means it, 0 being the threshold.
    """

    token_ids: list[list[int]]
    meaning: Tensor
    inactive: Tensor
    similarity_margin: Tensor | None = None

    def of(self, rows: NDArray[np.int64]) -> "Samples":
        """Some of these texts, by their rows (some,)."""
        places = torch.from_numpy(rows)
        similarity_margin = None if self.similarity_margin is None else self.similarity_margin[places]
        return Samples(
            [self.token_ids[row] for row in rows],
            self.meaning[places],
            self.inactive[places],
            similarity_margin,
        )

    def beside(self, others: "Samples") -> "Samples":
        """These texts and then others, whose similarity margin is known where that of these is."""
        similarity_margin = None
        if self.similarity_margin is not None and others.similarity_margin is not None:
            similarity_margin = torch.cat([self.similarity_margin, others.similarity_margin])
        meaning, inactive = (
            torch.cat(both) for both in ((self.meaning, others.meaning), (self.inactive, others.inactive))
        )
        return Samples([*self.token_ids, *others.token_ids], meaning, inactive, similarity_margin)


class WordFeatures(NamedTuple):
    """Ordinary words as token ids (W), and what tells them apart (W, F)."""

    token_ids: NDArray[np.int64]
    features: NDArray[np.float32]


class SyntheticTexts(Protocol):
    """Texts made from the sources of a stage.

    document_share: (V) share of the sources in which a token has weight; unknown: (S, D) terms that a source may
    mean though nothing says so.
    """

    document_share: NDArray[np.float64]
    unknown: NDArray[np.bool_]

    def draw(self, count: int, random: Generator) -> Samples:
        """`count` texts from anywhere and, where terms are taught, `count` that mean one."""

    def word_features(self) -> WordFeatures | None:
        """What is known of ordinary words; None where no dense encoder has read them."""


@dataclass(frozen=True, slots=True)
class Profile:
    """Words associated with a text: token ids and probabilities."""

    tokens: NDArray[np.int64]
    chances: NDArray[np.float64]


class Meanings:
    """A source of texts that mean a term, or that have nothing to do with any.

    Each source is one text as token ids in the extended vocabulary; `about` (sources x D) tells which terms a
    source is about, even where it doesn't say them. `reference` is the model that knows the associations.
    """

    def __init__(
        self, reference: SparseEncoder, sources: Sequence[TokenIds], about: NDArray[np.bool_]
    ) -> None:
        self.first_new = reference.old_size
        self.special = set(reference.tokenizer.all_special_ids)
        self.ends = ends_of(reference)
        self.about = about
        self.cut = [[token for token in source if token < self.first_new] for source in sources]
        words = starts_word(reference)
        old = np.arange(len(words)) < self.first_new  # a model that knows a term associates it with its texts
        old_words = words * old
        weights, self.substitutes = associations(reference, self.cut, old_words)
        self.document_share = shares_of(weights)
        rarity = np.log(1.0 / (self.document_share + 0.01)).clip(0)
        telling = weights.multiply((rarity * words)[None, :]).tocsr()
        self.unknown = _alike(telling, about)
        telling = telling.multiply(old_words[None, :]).tocsr()
        self.profiles = _profiles(telling)
        common = np.argsort(-self.document_share, kind="stable")
        self.glue = common[old[common] & ~np.isin(common, list(self.special))][:GLUE]
        self.by_term = [np.flatnonzero(column) for column in about.T]
        self.with_texts = np.flatnonzero([len(rows) > 0 for rows in self.by_term])
        self.elsewhere = np.flatnonzero(~about.any(axis=1))
        self.near = _neighbours(reference, telling, about, self.ends, old_words)

    def word_features(self) -> WordFeatures | None:
        """None: no dense encoder has read any word."""
        return None

    def draw(self, count: int, random: Generator) -> Samples:
        """`count` texts from anywhere and, where terms are taught, `count` that mean one; what each should activate."""
        rows = random.choice(len(self.cut), count)
        texts = [
            self._loose(int(row), random) if random.random() < LOOSE else self._paraphrase(int(row), random)
            for row in rows
        ]
        targets, unknown = self.about[rows], self.unknown[rows]
        if len(self.with_texts):
            terms = random.choice(self.with_texts, count)
            examples = [self._about(int(term), random) for term in terms]
            texts += [text for text, _ in examples]
            targets = np.concatenate([targets, [also for _, also in examples]])
            unknown = np.concatenate([unknown, np.zeros((count, unknown.shape[1]), dtype=bool)])
        return Samples(texts, torch.from_numpy(targets), torch.from_numpy(~targets & ~unknown))

    def _about(self, term: int, random: Generator) -> tuple[list[int], NDArray[np.bool_]]:
        """A text that means a term, and all the terms that it means (D,)."""
        profile = self.near[term]
        if random.random() < NEAR and len(profile.tokens):
            words = [
                int(word)
                for word in random.choice(profile.tokens, int(random.integers(1, 4)), p=profile.chances)
            ]
            return self._among_others(words, random), np.arange(self.about.shape[1]) == term
        row = int(random.choice(self.by_term[term]))
        text = self._loose(row, random) if random.random() < LOOSE else self._paraphrase(row, random)
        return text, self.about[row]

    def _among_others(self, words: list[int], random: Generator) -> list[int]:
        """Words dropped into the common words of the corpus, or into a few words about something else."""
        if len(self.elsewhere) and random.random() < 0.5:
            text = self._paraphrase(int(random.choice(self.elsewhere)), random)
            text = text[len(self.ends[0]) : len(text) - len(self.ends[1])][:6]
        else:
            text = [int(word) for word in random.choice(self.glue, int(random.integers(1, 6)))]
        for word in words:
            text.insert(int(random.integers(0, len(text) + 1)), word)
        return [*self.ends[0], *text, *self.ends[1]]

    def _paraphrase(self, row: int, random: Generator) -> list[int]:
        text = paraphrase(self.cut[row], self.substitutes[row], self.special, random)
        return [*self.ends[0], *text, *self.ends[1]]

    def _loose(self, row: int, random: Generator) -> list[int]:
        """Associated words of a source among common ones, in any order."""
        profile = self.profiles[row]
        if not len(profile.tokens):
            return self._paraphrase(row, random)
        words = random.choice(profile.tokens, int(random.integers(1, 6)), p=profile.chances)
        words = np.concatenate([words, random.choice(self.glue, int(random.integers(1, 7)))])
        return [*self.ends[0], *map(int, random.permutation(words)), *self.ends[1]]


def paraphrase(
    source: Sequence[int],
    substitutes: Mapping[int, Sequence[int]],
    special: Container[int],
    random: Generator,
    *,
    replaced: float = REPLACED,
    longest: int = LONGEST,
) -> list[int]:
    """A few neighbouring tokens of a source, a share of them replaced by one of the substitutes at their place."""
    places = [place for place, token in enumerate(source) if token not in special]
    length = int(random.integers(SHORTEST, longest + 1))
    start = int(random.integers(0, max(1, len(places) - length + 1)))
    text = []
    for place in places[start : start + length]:
        others = substitutes.get(place, ())
        other = len(others) and random.random() < replaced
        text.append(int(random.choice(others)) if other else source[place])
    return text


@torch.no_grad()
def associations(
    reference: SparseEncoder, token_ids: Sequence[TokenIds], words: NDArray[np.float64]
) -> tuple[csr_matrix, list[dict[int, list[int]]]]:
    """Weights of the texts (B, V), and for each text the words that the model found at each of its places."""
    parts: list[csr_matrix] = []
    neighbours: list[dict[int, list[int]]] = []
    for start in range(0, len(token_ids), TEXTS_AT_ONCE):
        chunk = token_ids[start : start + TEXTS_AT_ONCE]
        pooled = reference(chunk)
        part = csr_matrix(pooled.weights.cpu().numpy())
        positions = pooled.position.cpu().numpy()
        for row, text in enumerate(chunk):
            tokens = part.indices[part.indptr[row] : part.indptr[row + 1]]
            places: dict[int, list[int]] = {}
            for token in tokens[words[tokens] > 0]:
                place = int(positions[row, token])
                if token != text[place]:
                    places.setdefault(place, []).append(int(token))
            neighbours.append(places)
        parts.append(part)
    empty = csr_matrix((0, reference.vocabulary_size), dtype=np.float32)
    return vstack(parts, format="csr") if parts else empty, neighbours


def ends_of(encoder: Encoder) -> Ends:
    """Special tokens before and after a text."""
    ids = encoder.tokenize(["a"])[0]
    inner = encoder.tokenizer("a", add_special_tokens=False)["input_ids"]
    start = ids.index(inner[0])
    return ids[:start], ids[start + len(inner) :]


def starts_word(encoder: SparseEncoder) -> NDArray[np.float64]:
    """1.0 for each token that can stand for a word (V), else 0.0."""
    tokens = encoder.tokens
    marked = any(token.startswith(("\u0120", "\u2581")) for token in tokens)
    word = re.compile(r"[\u0120\u2581]\w\w+" if marked else r"\w\w+")
    return np.array([bool(word.fullmatch(token)) for token in tokens], dtype=np.float64)


def _profiles(weights: csr_matrix) -> list[Profile]:
    """The heaviest words of each row of weights (rows, V)."""
    profiles = []
    for row in range(weights.shape[0]):
        line = slice(weights.indptr[row], weights.indptr[row + 1])
        tokens, values = weights.indices[line], weights.data[line].astype(np.float64)
        best = np.argsort(-values, kind="stable")[:PROFILE]
        best = best[values[best] > 0]
        profiles.append(Profile(tokens[best], values[best] / values[best].sum() if len(best) else values[:0]))
    return profiles


def _neighbours(
    reference: SparseEncoder,
    telling: csr_matrix,
    about: NDArray[np.bool_],
    ends: Ends,
    words: NDArray[np.float64],
) -> list[Profile]:
    """For each term, words whose own associations are the term's rather than the other texts'.

    Two steps from the term: what is associated with the texts about it, and what is associated with that.
    telling: (S, V) weights; about: (S, D); words: (V) 1 for each token that is a word.
    """
    if not about.any():
        return [Profile(np.array([], dtype=np.int64), np.array([])) for _ in range(about.shape[1])]
    wanted = csr_matrix(about.T.astype(np.float64)) @ telling
    first = {int(token) for profile in _profiles(wanted) for token in profile.tokens}
    second = associations(reference, [[*ends[0], word, *ends[1]] for word in sorted(first)], words)[0]
    chosen = np.flatnonzero(np.asarray((second > 0).sum(axis=0)).ravel() * words)
    vectors = associations(reference, [[*ends[0], int(word), *ends[1]] for word in chosen], words)[0]
    vectors = vectors.multiply(words[None, :]).tocsr()
    rarity = np.log(max(1, len(chosen)) / (1.0 + np.asarray((vectors > 0).sum(axis=0)).ravel())).clip(0)
    vectors = vectors.multiply(rarity[None, :]).tocsr()
    lengths = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel()).clip(1e-6)
    neighbours = []
    for column in about.T:
        own, other = (_direction(telling, rows, rarity) for rows in (column, ~column))
        closeness = np.asarray(vectors @ (own - other)).ravel() / lengths
        best = np.argsort(-closeness, kind="stable")[:NEIGHBOURS]
        best = best[closeness[best] > 0] if column.any() else best[:0]
        neighbours.append(Profile(chosen[best], closeness[best] / max(1e-9, float(closeness[best].sum()))))
    return neighbours


def _direction(
    weights: csr_matrix, rows: NDArray[np.bool_], rarity: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Mean of some rows as a unit vector (V)."""
    if not rows.any():
        return np.zeros(weights.shape[1])
    mean: NDArray[np.float64] = np.asarray(weights[np.flatnonzero(rows)].mean(axis=0)).ravel() * rarity
    return np.asarray(mean / max(1e-9, float(np.linalg.norm(mean))))


def _alike(weights: csr_matrix, about: NDArray[np.bool_]) -> NDArray[np.bool_]:
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
    return np.asarray(unknown & ~about)
