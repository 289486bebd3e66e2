"""Background texts: general passages with questions, and background texts that are made up of words alone.

`data/background.jsonl.xz` holds 2,603 passages of 12 to 90 words, each with one question that it answers: paragraphs of
Wikipedia, the World Factbook on countries, and WordNet on common words. They anchor a model while it learns.
`data/README.md` names their sources and licences.

Texts for general language are seldom at hand where a corpus is, but word frequencies are (Speer 2022, wordfreq):
background texts are words of general language as often as people use them, in any order.
"""

import json
import lzma
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator

from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.errors import ModelError
from sparse_adapt.files.records import JsonObject

if TYPE_CHECKING:
    from sparse_adapt.model.health import Head
    from sparse_adapt.model.sparse import SparseEncoder

DATA = files("sparse_adapt.synthetic") / "data"
SEED = 0  # of texts that are the same in every stage
WINDOW = (4, 17)  # words of a window, least and one more than the most
TEXTS = 4_000  # as many as a stage takes
WORDS = 20_000  # of the most frequent ones
LENGTHS = ((2, 8), (16, 48))  # words of a text, least and most: every other one like a query, like a passage
LIKE_QUERIES, LIKE_PASSAGES = (slice(kind, None, len(LENGTHS)) for kind in range(len(LENGTHS)))
PASSAGES = 32  # that the health of a head is seen by


@cache
def background_pairs() -> tuple[tuple[Document, Query], ...]:
    """General passages, each beside the question that it answers; both carry one id.

    Read once a process. Sources: Wikipedia; Central Intelligence Agency, The World Factbook; Miller 1995, WordNet.
    """
    rows = ((f"general-{number}", row) for number, row in enumerate(packed_rows("background.jsonl.xz")))
    return tuple(
        (Document(name, row["text"], row.get("title", "")), Query(name, row["question"], "general"))
        for name, row in rows
    )


def packed_rows(name: str) -> Iterator[JsonObject]:
    """The rows of a file that comes with the package."""
    with (DATA / name).open("rb") as packed, lzma.LZMAFile(packed) as lines:
        yield from map(json.loads, lines)


def synthetic(count: int, seed: int) -> list[str]:
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
    """Short texts that mean anything: real questions, windows of real passages, and words in any order."""
    random = np.random.default_rng(SEED)
    windows = [_window(passage.text.split(), random) for passage, _ in background_pairs()]
    questions = [question.text for _, question in background_pairs()]
    return (*questions, *windows, *synthetic(TEXTS, SEED)[LIKE_QUERIES])


def _window(words: list[str], random: Generator) -> str:
    """A few neighbouring words of a passage."""
    length = int(random.integers(*WINDOW))
    start = int(random.integers(0, max(1, len(words) - length + 1)))
    return " ".join(words[start : start + length])


def head_of(encoder: "SparseEncoder") -> "Head":
    """What an encoder makes of some of the general passages and questions that come with the package."""
    from sparse_adapt.model.health import measure_head

    some = background_pairs()[:: len(background_pairs()) // PASSAGES][:PASSAGES]
    return measure_head(
        encoder, [passage.full_text for passage, _ in some], [question.text for _, question in some]
    )


def check_head(encoder: "SparseEncoder", source: str, *, taught: bool = False) -> None:
    """Raise ModelError, naming `source`, for a model whose head is sick: before it learns, or `taught` by a stage."""
    from sparse_adapt.model.health import sickness

    fault = sickness(head_of(encoder), taught=taught)
    if fault is not None:
        raise ModelError(f"{source}: {fault}")
