"""Whether words of an ordinary document still find it: `python -m benchmarks.known_items`.

    python -m benchmarks.known_items MODEL [MODEL ...] --corpus DIR

Known-item search needs no labels: a few words are drawn from each document that says no new term, and its own rank
counts (MRR@10). What an adapted model loses there, users lose who type words that it knew before. The second row
of a model is by its old tokens alone: what is lost there no new term has taken.
"""

import argparse
import re

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from wordfreq import zipf_frequency

from benchmarks.tables import line
from sparse_adapt.corpus import read_documents
from sparse_adapt.encode import encode
from sparse_adapt.model import SparseEncoder

WORD = re.compile(r"[^\W\d_]+")
TELLING = 5.8  # zipf frequency (Speer 2022, wordfreq) from which on a word tells no document from another
WORDS, WINDOWS = (2, 4), (6, 12)  # telling words in any order, and words in a row
TOP = 10


def main() -> None:
    """Print a table as Markdown: two rows a model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    kinds = [
        *(f"{count} telling words" for count in WORDS),
        *(f"{count} words in a row" for count in WINDOWS),
    ]
    print(line(["model", "documents", *kinds, "non-zeros a query"]))
    print("| --- |" + " ---: |" * (len(kinds) + 2))
    encoders = [SparseEncoder.load(model) for model in given.models]
    texts = [document.full_text for document in read_documents(given.corpus)]
    saying = np.any([_says_new(encoder, texts) for encoder in encoders], axis=0)
    rows = np.flatnonzero(~saying)
    queries = [_asked(texts[row], np.random.default_rng([given.seed, row])) for row in rows]
    for model, encoder in zip(given.models, encoders, strict=True):
        documents = encode(encoder, texts)
        asked = encode(encoder, [query for several in queries for query in several])
        for name, size in ((model, None), (f"{model}, old tokens alone", encoder.old_size)):
            found = reciprocal_ranks(asked[:, :size], documents[:, :size], np.repeat(rows, len(kinds)))
            means = found.reshape(len(rows), len(kinds)).mean(axis=0)
            length = asked[:, :size].getnnz() / asked.shape[0]
            print(
                line([name, str(len(rows)), *(f"{mean:.3f}" for mean in means), f"{length:.0f}"]), flush=True
            )


def reciprocal_ranks(
    queries: csr_matrix, documents: csr_matrix, own: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Of each query's `own` document (Q,), the first of those that score alike; 0 beyond the first ten."""
    scores = (queries @ documents.T).toarray()
    ranks = 1 + (scores > scores[np.arange(len(own)), own][:, None]).sum(axis=1)
    return np.where(ranks <= TOP, 1.0 / ranks, 0.0)


def _says_new(encoder: SparseEncoder, texts: list[str]) -> NDArray[np.bool_]:
    return np.array([any(token >= encoder.old_size for token in ids) for ids in encoder.tokenize(texts)])


def _asked(text: str, random: np.random.Generator) -> list[str]:
    """A query of each kind from the words of a document."""
    words = [word.lower() for word in WORD.findall(text)]
    telling = sorted({word for word in words if zipf_frequency(word, "en") < TELLING})
    drawn = [random.choice(telling, min(count, len(telling)), replace=False) for count in WORDS]
    starts = [int(random.integers(max(1, len(words) - count + 1))) for count in WINDOWS]
    windows = [words[start : start + count] for start, count in zip(starts, WINDOWS, strict=True)]
    return [" ".join(each) for each in (*drawn, *windows)]


if __name__ == "__main__":
    main()
