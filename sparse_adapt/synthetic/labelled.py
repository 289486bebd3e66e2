"""Synthetic queries of which a dense encoder tells how far they mean a term, whatever they were made from.

They are windows of a text with words replaced by words that the dense encoder finds alike, or by what the model
associates with their place; words near a text among others in any order; ordinary words at random; and background
texts, few of which mean a term. So wide are they drawn that users' own words are among them: a student follows the
labeller on what is like its examples alone.

Dimensions: B texts, S sources, D new tokens, V vocabulary, W ordinary words, F features, H width of a dense vector.
"""

from collections.abc import Sequence
from itertools import compress

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray

from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.model.idf import shares_of
from sparse_adapt.model.margins import SimilarityMargin
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.report.progress import passing
from sparse_adapt.synthetic.background import like_queries
from sparse_adapt.synthetic.labels import (
    ALIKE,
    LEAST_ALIKE,
    READING,
    Labeller,
    encoded_once,
    word_scores,
)
from sparse_adapt.synthetic.windows import (
    Profile,
    Samples,
    WordFeatures,
    associations,
    ends_of,
    paraphrase,
    starts_word,
)

REWORDED, NEAR, PARAPHRASED = 0.5, 0.35, 0.1  # shares of the kinds of texts; the rest are words at random
POOL, POOL_A_TERM, LARGEST_POOL = 8_000, 2_000, 80_000  # texts that are made, beside background ones
OWN, OTHERS = 32, 2000  # sources about each term, and about none, that they are made from
WORDS = 20_000  # ordinary words: the first of the vocabulary, which lists common ones first
GLUE = 150  # of these, the first: what joins words to queries
RARER = 0.25  # a word is drawn by its place among them to the power of minus this
NEIGHBOURS, NEARER = 1000, 0.05  # words near a source; by how much nearer a word is e times as likely
LONGEST = 40  # tokens of a reworded window
MOST_NEAR, MOST_ANY, MOST_GLUE = 8, 6, 16  # words of each kind in a text of words near a source
KEYWORDS, DROPPED = 0.3, 0.4  # share of reworded windows that lose words, and how many of them
SCORE_LENGTH = 10.0  # of words' scores for terms beside their vectors: so much faster they are learnt from
WORDS_AT_ONCE = 1024
BACKGROUND_ONE_IN = 2  # of the background texts that there are
DRAWN_ANYWHERE_ONE_IN = 4  # one background text in so many drawn from anywhere
FEWEST = 10  # texts that teach a term, even where the labeller finds fewer


class LabelledMeanings:
    """A pool of synthetic texts, and how near each is to what is about a term.

    Each source is one text as token ids in the extended vocabulary; `about` (S x D) tells which terms a source
    is about, even where it doesn't say them. `reference` is the model that knows the associations, `dense` the
    encoder that labels.
    """

    def __init__(
        self,
        reference: SparseEncoder,
        sources: Sequence[TokenIds],
        about: NDArray[np.bool_],
        dense: DenseEncoder,
        random: Generator,
        documents: Sequence[int] = (),
        a_term: int = POOL_A_TERM,
        share: float = 1.0,
    ) -> None:
        """`documents`: which of the sources are documents that a search is to find, as rows.

        `a_term`: texts that are made for each term, beside those that any stage makes. `share`: of the texts that are
        made, and of the ordinary words, where little is learnt.
        """
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
        words = (np.flatnonzero(is_word) if is_word.any() else plain)[: round(WORDS * share)]
        self.glue, self.words = words[:GLUE], words[GLUE:] if len(words) > GLUE else words
        often = np.arange(1, len(self.words) + 1, dtype=np.float64) ** -RARER
        background = like_queries()[::BACKGROUND_ONE_IN]
        of_background = encoded_once(dense, background)
        labeller = Labeller(dense, _texts(reference, self.cut), self.about, of_background)
        vectors = encoded_once(dense, tuple(_texts(reference, self.words[:, None].tolist())))
        self.near = [_profile(self.words, column, often) for column in labeller.nearest(vectors).T]
        self.alike = self._alike(vectors)
        self.vectors = vectors
        self.unknown = np.zeros_like(about)
        self.unknown[rows] = labeller.alike()
        count = min(LARGEST_POOL, POOL + a_term * about.shape[1])
        pool, by_model = self._made(max(1, round(share * count)), random)
        token_ids = reference.tokenize(list(background))
        of_pool = self._of_made(dense, _texts(reference, pool), by_model)
        self.made = len(pool)
        self.pool = pool + [[token for token in ids if token < self.first_new] for ids in token_ids]
        self.similarity_margin = labeller.of_vectors(np.concatenate([of_pool, of_background]))
        known = np.isin(rows, np.asarray(documents, dtype=np.int64))
        self.answered = _answered(of_pool, labeller.vectors[known])
        self.teaching = [
            _teaching(column, bool(own.any()))
            for column, own in zip(self.similarity_margin.T, about.T, strict=True)
        ]
        self.with_texts = np.flatnonzero([len(texts) > 0 for texts in self.teaching])

    def word_features(self) -> WordFeatures:
        """Of each ordinary word its vector and what it says for a term, less the mean."""
        known = np.concatenate([self.words, self.glue])
        scores = word_scores(self.pool, known, self.similarity_margin)[: len(self.words)]
        features = np.concatenate([self.vectors, SCORE_LENGTH * scores], axis=1)
        return WordFeatures(self.words, np.asarray(features - features.mean(axis=0)))

    def draw(self, count: int, random: Generator) -> Samples:
        """`count` texts and, where terms are taught, `count` more that mean one; how far they mean it.

        Of the first, a share of background ones comes first; the rest are as often near to one document as to another.
        """
        background = count // DRAWN_ANYWHERE_ONE_IN
        rows = random.integers(self.made, len(self.pool), background).tolist()
        answers = random.choice(len(self.answered), count - background)
        rows += [int(random.choice(self.answered[answer])) for answer in answers]
        if len(self.with_texts):
            terms = random.choice(self.with_texts, count)
            rows += [int(random.choice(self.teaching[term])) for term in terms]
        return self._samples(rows)

    def background(self) -> Samples:
        """All of the background texts, each once."""
        return self._samples(range(self.made, len(self.pool)))

    def _samples(self, rows: Sequence[int]) -> Samples:
        similarity_margin = torch.from_numpy(self.similarity_margin[list(rows)])
        return Samples(
            [self.pool[row] for row in rows], similarity_margin >= 0, similarity_margin < 0, similarity_margin
        )

    def _made(self, count: int, random: Generator) -> tuple[list[list[int]], NDArray[np.bool_]]:
        """So many texts made from sources, with special tokens at their ends; which of them (count,) the model worded.

        The others are the same for every model of these sources: what is drawn for one kind moves no other.
        """
        own, other = (np.flatnonzero(self.about.any(axis=1) == mentions) for mentions in (True, False))
        pool: list[list[int]] = []
        by_model = np.zeros(count, dtype=bool)
        random_by_model = random.spawn(1)[0]
        for place in range(count):
            group = own if len(own) and (random.random() < 0.5 or not len(other)) else other
            row = int(random.choice(group))
            kind = random.random()
            if kind < REWORDED:
                text = self._reworded(row, random)
            elif kind < REWORDED + NEAR:
                text = self._loose(row, random)
            elif kind < REWORDED + NEAR + PARAPHRASED:
                text = paraphrase(self.cut[row], self.substitutes[row], self.special, random_by_model)
                by_model[place] = True
            else:
                text = self._with_glue(self._any(int(random.integers(1, 5)), random), random)
            pool.append(text)
        return [[*self.ends[0], *text, *self.ends[1]] for text in pool], by_model

    @staticmethod
    def _of_made(
        dense: DenseEncoder, texts: Sequence[str], by_model: NDArray[np.bool_]
    ) -> NDArray[np.float32]:
        """Vectors (B, H) of synthetic texts, of which those that no model worded are kept for the next stage."""
        encoded = encoded_once(dense, tuple(compress(texts, ~by_model)))
        vectors = np.empty((len(texts), encoded.shape[1]), np.float32)
        vectors[~by_model] = encoded
        worded = list(compress(texts, by_model))
        vectors[by_model] = dense.encode(worded, progress=passing(READING, len(worded)))
        return vectors

    def _alike(self, vectors: NDArray[np.float32]) -> list[dict[int, list[int]]]:
        """For each source, by place, the words that may stand for the one there. `vectors`: (W, H)."""
        column = {int(word): number for number, word in enumerate(self.words)}
        tokens = sorted({token for text in self.cut for token in text} & column.keys())
        others: dict[int, list[int]] = {}
        for start in range(0, len(tokens), WORDS_AT_ONCE):
            chunk = tokens[start : start + WORDS_AT_ONCE]
            cosines = vectors[[column[word] for word in chunk]] @ vectors.T
            for word, row in zip(chunk, cosines, strict=True):
                row[column[word]] = -1.0
                alike = np.flatnonzero(row > LEAST_ALIKE)  # a few of 20,000, which alone are sorted
                best = alike[np.argsort(-row[alike], kind="stable")[:ALIKE]]
                others[word] = self.words[best].tolist()
        return [
            {place: others[token] for place, token in enumerate(text) if others.get(token)}
            for text in self.cut
        ]

    def _reworded(self, row: int, random: Generator) -> list[int]:
        """A window of a source in other words, few or many of them; now and then some are left out."""
        rate = random.random()
        text = paraphrase(
            self.cut[row], self.alike[row], self.special, random, replaced=rate, longest=LONGEST
        )
        if random.random() < KEYWORDS:
            text = [token for token in text if random.random() >= DROPPED] or text
        return text

    def _loose(self, row: int, random: Generator) -> list[int]:
        """Words near a source, among common ones and now and then a few of any kind."""
        near = self.near[row]
        words = random.choice(near.tokens, int(random.integers(1, MOST_NEAR + 1)), p=near.chances)
        others = self._any(int(random.integers(0, MOST_ANY + 1)), random)
        return self._with_glue(np.concatenate([words, others]), random)

    def _any(self, count: int, random: Generator) -> NDArray[np.int64]:
        """So many words of any kind, common ones more often: (count,)."""
        places = len(self.words) * random.random(count) ** (1.0 / (1.0 - RARER))
        return self.words[places.astype(np.int64)]

    def _with_glue(self, words: NDArray[np.int64], random: Generator) -> list[int]:
        """Words (n,) among common ones, in any order."""
        glue = random.choice(self.glue, int(random.integers(0, MOST_GLUE + 1)))
        return [int(word) for word in random.permutation(np.concatenate([words, glue]))]


def _answered(vectors: NDArray[np.float32], documents: NDArray[np.float32]) -> list[NDArray[np.int64]]:
    """Rows of the synthetic texts (B, H) by the document (N, H) nearest to them; of documents with any. All without."""
    if not len(documents):
        return [np.arange(len(vectors))]
    nearest = (vectors @ documents.T).argmax(axis=1)
    return [np.flatnonzero(nearest == document) for document in np.unique(nearest)]


def _texts(reference: SparseEncoder, token_ids: Sequence[TokenIds]) -> list[str]:
    """Token ids as a person reads them, without special tokens."""
    return [str(reference.tokenizer.decode(list(ids), skip_special_tokens=True)) for ids in token_ids]


def _chosen(about: NDArray[np.bool_], random: Generator) -> NDArray[np.int64]:
    """Rows (chosen,) of sources to make texts from: some about each term (S, D), some about none, in order."""
    chosen = np.zeros(len(about), dtype=bool)
    for column in about.T:
        own = np.flatnonzero(column)
        chosen[own if len(own) <= OWN else random.choice(own, OWN, replace=False)] = True
    others = np.flatnonzero(~about.any(axis=1))
    chosen[others if len(others) <= OTHERS else random.choice(others, OTHERS, replace=False)] = True
    return np.flatnonzero(chosen)


def _teaching(similarity_margin: SimilarityMargin, is_new: bool) -> NDArray[np.int64]:
    """Rows of the texts that mean a term, by its margin (B,): those nearer to its sources than others, or a few."""
    if not is_new:
        return np.zeros(0, dtype=np.int64)
    rows = np.flatnonzero(similarity_margin >= 0)
    return rows if len(rows) >= FEWEST else np.argsort(-similarity_margin, kind="stable")[:FEWEST]


def _profile(words: NDArray[np.int64], closeness: NDArray[np.float32], often: NDArray[np.float64]) -> Profile:
    """The words (W,) closest to a source, likelier by how much closer they are and how `often` they are said."""
    best = np.argsort(-closeness, kind="stable")[:NEIGHBOURS]
    chances = np.exp((closeness[best] - closeness.max(initial=-2.0)) / NEARER) * often[best]
    return Profile(words[best], chances / chances.sum())
