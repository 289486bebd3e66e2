"""How much each word by itself says for a term: what its embedding can learn from, beside the lessons that name it.

A ridge regression (Hoerl and Kennard 1970) of the judge's nearness on the words of the judged texts, in any order. It
sees all texts at once, where a stage of training meets most words a few times: of many terms, words alone tell which
one is meant as often as a small model does that has learnt from the same texts.

Dimensions: B texts, W words, D terms, K directions, at most `MOST`.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, diags
from scipy.sparse.linalg import lsmr

from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.synthetic.nearness import Nearness

RIDGE = 1.0  # what a word's squared score costs, beside a text's squared error
SURE = (-0.2, 0.1)  # nearness beyond which a text is as far as any other, or means the term for sure
MOST = 64  # directions of nearness that are told apart, of more terms than that
ROUNDS = 60  # of the solver (Fong and Saunders 2011, arXiv:1006.0758), at most
EXACT = 1e-4  # or as soon as the residual is so small beside what was asked


def word_scores(
    token_ids: Sequence[TokenIds], words: NDArray[np.int64], nearness: Nearness
) -> NDArray[np.float32]:
    """(W, D), rows of length 1 in the mean square; of more than `MOST` terms (W, K), in their main directions.

    token_ids: B texts that hold `words` (W) among others; nearness: (B, D) of these texts. Zero for words that no
    text holds.
    """
    holding = _holding(token_ids, words)
    wanted = np.clip(nearness, *SURE).astype(np.float64)
    wanted -= wanted.mean(axis=0)
    if wanted.shape[1] > MOST:
        wanted = wanted @ np.linalg.eigh(wanted.T @ wanted).eigenvectors[:, -MOST:]
    solver = {"damp": RIDGE**0.5, "maxiter": ROUNDS, "atol": EXACT, "btol": EXACT}
    found = [lsmr(holding, column, **solver)[0] for column in wanted.T]
    scores = np.array(found, dtype=np.float32).reshape(-1, len(words)).T
    return np.asarray(scores / np.sqrt(np.square(scores).sum(axis=1).mean()).clip(1e-9))


def _holding(token_ids: Sequence[TokenIds], words: NDArray[np.int64]) -> csr_matrix:
    """(B, W): how often each text says each word, by the root of how many words it says."""
    starts = np.cumsum([0, *map(len, token_ids)])
    tokens = np.concatenate([np.asarray(ids, dtype=np.int64) for ids in token_ids])
    size = 1 + max(tokens.max(initial=0), words.max(initial=0))
    said = csr_matrix((np.ones(len(tokens)), tokens, starts), (len(token_ids), size))[:, words]
    said.sum_duplicates()
    counts = np.asarray(said.sum(axis=1)).ravel()
    return (diags(1.0 / np.sqrt(counts.clip(1.0))) @ said).tocsr()
