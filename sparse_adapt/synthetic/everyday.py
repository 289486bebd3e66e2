"""Everyday texts, made up: words of general language as often as people use them, in any order.

Texts for general language are seldom at hand where a corpus is, but word frequencies are (Speer 2022, wordfreq).
"""

from functools import cache

import numpy as np
from numpy.random import Generator

from sparse_adapt.synthetic.general import pairs

SEED = 0  # of texts that are the same in every stage
WINDOW = (4, 17)  # words of a window, least and one more than the most
TEXTS = 4_000  # as many as a stage takes
WORDS = 20_000  # of the most frequent ones
LENGTHS = ((2, 8), (16, 48))  # words of a text, least and most: every other one like a query, like a passage
LIKE_QUERIES, LIKE_PASSAGES = (slice(kind, None, len(LENGTHS)) for kind in range(len(LENGTHS)))


def made_up(count: int, seed: int) -> list[str]:
    """Rows of English words, each by the root of its frequency, or half of all would be stop words."""
    from wordfreq import get_frequency_dict, top_n_list

    frequency = get_frequency_dict("en")
    words = [word for word in top_n_list("en", WORDS) if word.isalpha() and word.isascii() and len(word) > 1]
    shares = np.sqrt([frequency[word] for word in words])
    random = np.random.default_rng(seed)
    least, most = np.array(LENGTHS)[np.arange(count) % len(LENGTHS)].T
    lengths = random.integers(least, most + 1)
    drawn = random.choice(len(words), int(lengths.sum()), p=shares / shares.sum())
    return [" ".join(words[row] for row in rows) for rows in np.split(drawn, np.cumsum(lengths)[:-1])]


@cache
def like_queries() -> tuple[str, ...]:
    """Short texts that mean anything: real questions, windows of real passages, and words in any order.

    The questions and passages are those of `synthetic.general` that teach.
    """
    random = np.random.default_rng(SEED)
    windows = [_window(passage.text.split(), random) for passage, _ in pairs("teaches")]
    questions = [question.text for _, question in pairs("teaches")]
    return (*questions, *windows, *made_up(TEXTS, SEED)[LIKE_QUERIES])


def _window(words: list[str], random: Generator) -> str:
    """A few neighbouring words of a passage."""
    length = int(random.integers(*WINDOW))
    start = int(random.integers(0, max(1, len(words) - length + 1)))
    return " ".join(words[start : start + length])
