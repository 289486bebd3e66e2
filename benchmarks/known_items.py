"""Whether words of an ordinary document still find it: `python -m benchmarks.known_items`.

    python -m benchmarks.known_items MODEL [MODEL ...] --corpus DIR

Known-item search needs no labels: a few words are drawn from each document that says no new term, and its own rank
counts (MRR@10). What an adapted model loses there, users lose who type words that it knew before. The second row
of a model is by its old tokens alone: what is lost there no new term has taken.
"""

import argparse

import numpy as np
from numpy.typing import NDArray

from benchmarks.tables import line
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import evaluate_vectors
from sparse_adapt.selection.retention import KINDS, known_items


def main() -> None:
    """Print a table as Markdown: two rows a model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    print(line(["model", "documents", *KINDS, "non-zeros a query"]))
    print("| --- |" + " ---: |" * (len(KINDS) + 2))
    encoders = [SparseEncoder.load(model) for model in arguments.models]
    documents = tuple(read_documents(arguments.corpus))
    texts = [document.full_text for document in documents]
    saying = np.any([_says_new(encoder, texts) for encoder in encoders], axis=0)
    known = known_items(documents, np.flatnonzero(~saying), arguments.seed)
    for model, encoder in zip(arguments.models, encoders, strict=True):
        vectors, queries = (
            encode(encoder, texts, "document"),
            encode(encoder, [query.text for query in known.queries], "query"),
        )
        for name, size in ((model, None), (f"{model}, old tokens alone", encoder.old_size)):
            result = evaluate_vectors(queries[:, :size], vectors[:, :size], known)
            cells = (f"{result.means(kind)['mrr@10']:.3f}" for kind in KINDS)
            length = f"{result.means()['nonzero_query']:.0f}"
            print(line([name, str(np.sum(~saying)), *cells, length]), flush=True)


def _says_new(encoder: SparseEncoder, texts: list[str]) -> NDArray[np.bool_]:
    return np.array([any(token >= encoder.old_size for token in ids) for ids in encoder.tokenize(texts)])


if __name__ == "__main__":
    main()
