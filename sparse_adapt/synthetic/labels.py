"""What a dense encoder tells of texts: whether one means a term, what each word says for it, the same in other words.

A text means a term where it is much nearer to what is about the term than to anything else (`model.margins`).
A dense encoder that knows ordinary language tells it, without a label and without the term itself: where the
texts nearest to a question are about the term, the question means it.

Dimensions: B texts, S sources, E background texts, D terms or definitions, H width of a dense vector, W words,
K directions, at most `MOST`.
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import lsmr
from wordfreq import top_n_list, zipf_frequency

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.model.margins import Margins, SimilarityMargin
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.report.progress import passing

TEXTS_AT_ONCE = 1024
RIDGE = 1.0  # what a word's squared score costs, beside a text's squared error
SURE = (-0.2, 0.1)  # similarity margin beyond which a text is as far as any other, or means the term for sure
MOST = 64  # directions of similarity margin that are told apart, of more terms than that
ROUNDS = 60  # of the solver (Fong and Saunders 2011, arXiv:1006.0758), at most
EXACT = 1e-4  # or as soon as the residual is so small beside what was asked
ALIKE, LEAST_ALIKE = 11, 0.4  # words that may stand for another in training, and the least cosine to it
COMMON = 8_000  # common ones that may stand for another
FURTHER = 8  # words that a word is drawn from, after the `ALIKE` that examples draw from
SAMPLES, TEXTS = 24, 3  # texts of a definition: those made, and those of them that stay
TELLING = 5.8  # zipf frequency (Speer 2022, wordfreq) from which on a word stays as it is

READING = "texts read by the semantic labeller"
WORD = re.compile(r"[^\W\d_]+")


class Labeller:
    """Texts that are about terms, and texts that aren't, as a dense encoder sees them."""

    def __init__(
        self,
        encoder: DenseEncoder,
        sources: Sequence[str],
        about: NDArray[np.bool_],
        background: NDArray[np.float32] | None = None,
    ) -> None:
        """`sources`: texts with the terms cut out of them; `about`: (S, D), which terms each is about.

        `background`: vectors (E, H) of texts like queries that mean anything; without them nothing is too far.
        """
        self.encoder, self.about = encoder, about
        self.vectors = encoded_once(encoder, tuple(sources))
        self.margins = Margins.of(self.vectors, about, background)

    def similarity_margin(self, texts: Sequence[str]) -> SimilarityMargin:
        """How far each text means each term: (B, D), as `Margins` counts it."""
        return self.of_vectors(self.encoder.encode(texts))

    def alike(self) -> NDArray[np.bool_]:
        """Sources that don't say a term but are as close to its own as the median of these: (S, D) booleans."""
        similar = np.zeros_like(self.about)
        for term, own in enumerate(map(np.flatnonzero, self.about.T)):
            if len(own) < 2:
                continue
            cosines = self.vectors @ self.vectors[own].T
            among = (cosines[own].sum(axis=1) - 1.0) / (len(own) - 1)
            similar[:, term] = cosines.mean(axis=1) >= np.median(among)
        return np.asarray(similar & ~self.about)

    def nearest(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Cosine of each text to each source, less the text's mean over all: what it has with that one. (B, S)."""
        cosines = vectors @ self.vectors.T
        return np.asarray(cosines - cosines.mean(axis=1, keepdims=True))

    def of_vectors(self, vectors: NDArray[np.float32]) -> SimilarityMargin:
        """The same of texts that are encoded (B, H), some at a time: sources may be thousands."""
        advance, parts = passing("texts compared with the sources of each term", len(vectors)), []
        for start in range(0, len(vectors), TEXTS_AT_ONCE):
            parts.append(self.margins.of_texts(vectors[start : start + TEXTS_AT_ONCE]))
            advance(len(parts[-1]))
        return np.concatenate(parts) if parts else np.zeros((0, self.about.shape[1]), np.float32)


@lru_cache(maxsize=4)
def encoded_once(dense: DenseEncoder, texts: tuple[str, ...]) -> NDArray[np.float32]:
    """Vectors (B, H) of what is the same in every stage, kept for the next: sources, words, texts of two kinds."""
    return dense.encode(texts, progress=passing(READING, len(texts)))


def word_scores(
    token_ids: Sequence[TokenIds], words: NDArray[np.int64], similarity_margin: SimilarityMargin
) -> NDArray[np.float32]:
    """How much each word by itself says for a term: (W, D), rows of length 1 in the mean square.

    Of more than `MOST` terms (W, K), in their main directions. A ridge regression (Hoerl and Kennard 1970) of the
    labeller's similarity margin on the words of the labelled texts, in any order. It sees all texts at once, where a
    stage of training meets most words a few times: of many terms, words alone tell which one is meant as often as a
    small model does that has learnt from the same texts.

    token_ids: B texts that hold `words` (W) among others; similarity margin: (B, D) of these texts. Zero for words
    that no text holds.
    """
    holding = _holding(token_ids, words)
    wanted = np.clip(similarity_margin, *SURE).astype(np.float64)
    wanted -= wanted.mean(axis=0)
    if wanted.shape[1] > MOST:
        wanted = wanted @ np.linalg.eigh(wanted.T @ wanted).eigenvectors[:, -MOST:]
    solver = {"damp": RIDGE**0.5, "maxiter": ROUNDS, "atol": EXACT, "btol": EXACT}
    columns = [lsmr(holding, column, **solver)[0] for column in wanted.T]
    scores = np.array(columns, dtype=np.float32).reshape(-1, len(words)).T
    return np.asarray(scores / np.sqrt(np.square(scores).sum(axis=1).mean()).clip(1e-9))


def _holding(token_ids: Sequence[TokenIds], words: NDArray[np.int64]) -> csr_matrix:
    """(B, W): how often each text says each word, by the root of how many words it says."""
    starts = np.cumsum([0, *map(len, token_ids)])
    tokens = np.concatenate([np.asarray(ids, dtype=np.int64) for ids in token_ids])
    size = 1 + max(tokens.max(initial=0), words.max(initial=0))
    mentions = csr_matrix((np.ones(len(tokens)), tokens, starts), (len(token_ids), size))[:, words]
    mentions.sum_duplicates()
    counts = np.asarray(mentions.sum(axis=1)).ravel()
    return (diags(1.0 / np.sqrt(counts.clip(1.0))) @ mentions).tocsr()


class Reworded(NamedTuple):
    """A definition in other words, and the term that it defines."""

    term: str
    text: str


def reworded(definitions: Sequence[Definition], dense: DenseEncoder, seed: int) -> list[Reworded]:
    """A few texts for each definition, nearer to it than to any other definition as the dense encoder sees them.

    Training examples are made of the definitions' own words and of words that the labeller finds most like them, so
    neither tells whether the meaning was learnt. Here each telling word of a definition gives way to one that the
    labeller finds further off, beyond all that examples draw from, and of many such texts the few nearest to their
    definition stay. There may be none for a definition whose words aren't common ones, or that is much like another.
    """
    random = np.random.default_rng([seed, 5])
    others = _others(definitions, dense)
    made = [
        (row, text)
        for row, each in enumerate(definitions)
        for _ in range(SAMPLES)
        if (text := _in_other_words(each.definition, others, random))
    ]
    if not made:
        return []
    own, candidates = np.array([row for row, _ in made]), [text for _, text in made]
    cosines = dense.encode(candidates) @ dense.encode([each.definition for each in definitions]).T  # (B, D)
    right = cosines.argmax(axis=1) == own
    similarity_margin = cosines[np.arange(len(own)), own]
    sentences = []
    for row, definition in enumerate(definitions):
        able = [int(place) for place in np.flatnonzero((own == row) & right)]
        best = sorted(able, key=lambda place: -float(similarity_margin[place]))
        texts = dict.fromkeys(candidates[place] for place in best)
        sentences += [Reworded(definition.term, text) for text in list(texts)[:TEXTS]]
    return sentences


def _others(definitions: Sequence[Definition], dense: DenseEncoder) -> Mapping[str, list[str]]:
    """For each telling word of the definitions, the words that may stand for it."""
    words = sorted({word for each in definitions for word in _words(each.definition) if _tells(word)})
    if not words:
        return {}
    common = [word for word in top_n_list("en", COMMON) if WORD.fullmatch(word) and _tells(word)]
    cosines: NDArray[np.float32] = dense.encode(words) @ dense.encode(common).T  # (said, W)
    definitions_of = {}
    for word, row in zip(words, cosines, strict=True):
        order = [int(place) for place in np.argsort(-row, kind="stable") if common[place] != word]
        alike = [common[place] for place in order[ALIKE : ALIKE + FURTHER] if row[place] > LEAST_ALIKE]
        definitions_of[word] = alike
    return definitions_of


def _in_other_words(definition: str, others: Mapping[str, list[str]], random: Generator) -> str:
    """A text with another word for each telling one; one that nothing may stand for is left out."""
    words = []
    for word in _words(definition):
        if not _tells(word):
            words.append(word)
        elif others[word]:
            words.append(str(random.choice(others[word])))
    return " ".join(words) if any(map(_tells, words)) else ""


def _words(text: str) -> list[str]:
    return [word.lower() for word in WORD.findall(text)]


def _tells(word: str) -> bool:
    return zipf_frequency(word, "en") < TELLING
