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
from wordfreq import zipf_frequency

from benchmarks.tables import line
from sparse_adapt.collection.readers import Document, Query, read_documents
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, evaluate_vectors

WORD = re.compile(r"[^\W\d_]+")
TELLING = 5.8  # zipf frequency (Speer 2022, wordfreq) from which on a word tells no document from another
WORDS, WINDOWS = (2, 4), (6, 12)  # telling words in any order, and words in a row
KINDS = (*(f"{count} telling words" for count in WORDS), *(f"{count} words in a row" for count in WINDOWS))


def main() -> None:
    """Print a table as Markdown: two rows a model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(line(["model", "documents", *KINDS, "non-zeros a query"]))
    print("| --- |" + " ---: |" * (len(KINDS) + 2))
    encoders = [SparseEncoder.load(model) for model in given.models]
    documents = tuple(read_documents(given.corpus))
    texts = [document.full_text for document in documents]
    saying = np.any([_says_new(encoder, texts) for encoder in encoders], axis=0)
    known = known_items(documents, np.flatnonzero(~saying), given.seed)
    for model, encoder in zip(given.models, encoders, strict=True):
        found, asked = (
            encode(encoder, texts, "document"),
            encode(encoder, [query.text for query in known.queries], "query"),
        )
        for name, size in ((model, None), (f"{model}, old tokens alone", encoder.old_size)):
            result = evaluate_vectors(asked[:, :size], found[:, :size], known)
            cells = (f"{result.means(kind)['mrr@10']:.3f}" for kind in KINDS)
            length = f"{result.means()['nonzero_query']:.0f}"
            print(line([name, str(np.sum(~saying)), *cells, length]), flush=True)


def known_items(documents: tuple[Document, ...], rows: NDArray[np.int64], seed: int) -> Collection:
    """A query of each kind for each of these rows of the documents, which alone is relevant to it."""
    queries, judgements = [], {}
    for row in rows:
        document = documents[row]
        asked = _asked(document.full_text, np.random.default_rng([seed, row]))
        for kind, text in zip(KINDS, asked, strict=True):
            queries.append(Query(f"{document.document_id} {kind}", text, kind))
            judgements[queries[-1].query_id] = {document.document_id: 1}
    return Collection(documents, tuple(queries), judgements)


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
