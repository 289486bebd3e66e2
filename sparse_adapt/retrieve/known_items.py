"""Known items: a few words of a document, which alone is relevant to them.

Known-item search needs no labels. What an adapted model loses there, users lose who type words that it knew before.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from wordfreq import zipf_frequency

from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.retrieve.evaluate import Collection

WORD = re.compile(r"[^\W\d_]+")
TELLING = 5.8  # zipf frequency (Speer 2022, wordfreq) from which on a word tells no document from another
WORDS, WINDOWS = (2, 4), (6, 12)  # telling words in any order, and words in a row
KINDS = (*(f"{count} telling words" for count in WORDS), *(f"{count} words in a row" for count in WINDOWS))
TWO_WORDS = KINDS[0]


def known_items(
    documents: Sequence[Document],
    rows: NDArray[np.int64],
    seed: int,
    kinds: Sequence[str] = KINDS,
    draws: int = 1,
) -> Collection:
    """Queries of each kind for each of these rows of the documents, which alone is relevant to them.

    `draws`: how often words are drawn from a document.
    """
    queries, judgements = [], {}
    for row in rows:
        document = documents[row]
        for draw in range(draws):
            random = np.random.default_rng([seed, row, draw] if draw else [seed, row])
            asked = dict(zip(KINDS, _asked(document.full_text, random), strict=True))
            for kind in filter(asked.get, kinds):  # a document of numbers and stop words has no telling words
                name = f"{document.document_id} {kind}" + (f" {draw}" if draw else "")
                queries.append(Query(name, asked[kind], kind))
                judgements[name] = {document.document_id: 1}
    return Collection(tuple(documents), tuple(queries), judgements)


def _asked(text: str, random: np.random.Generator) -> list[str]:
    """A query of each kind from the words of a document."""
    words = [word.lower() for word in WORD.findall(text)]
    telling = sorted({word for word in words if zipf_frequency(word, "en") < TELLING})
    drawn = [random.choice(telling, min(count, len(telling)), replace=False).tolist() for count in WORDS]
    starts = [int(random.integers(max(1, len(words) - count + 1))) for count in WINDOWS]
    windows = [words[start : start + count] for start, count in zip(starts, WINDOWS, strict=True)]
    return [" ".join(each) for each in (*drawn, *windows)]
