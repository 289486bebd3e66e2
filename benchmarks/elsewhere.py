"""How often queries that have nothing to do with a domain activate its terms: `python -m benchmarks.elsewhere`.

    python -m benchmarks.elsewhere MODEL [MODEL ...] --queries DIR [DIR ...]

A term that such a query activates finds the term's documents for it. Queries are read without their judgements.
"""

import argparse
from pathlib import Path

import numpy as np

from benchmarks.tables import line
from sparse_adapt.collection.readers import read_queries
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode

MUCH = 1.0  # weight that a query which means a term should give it


def main() -> None:
    """Print a table as Markdown: a row a model and folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument(
        "--queries", nargs="+", required=True, help="folders of collections, or queries.jsonl"
    )
    arguments = parser.parse_args()
    print(line(["model", "collection", "queries", "activate a term", f"above {MUCH}", "largest"]))
    print("| --- | --- |" + " ---: |" * 4)
    for model in arguments.models:
        encoder = SparseEncoder.load(model)
        for folder in arguments.queries:
            texts = [query.text for query in read_queries(folder)]
            differences = largest(encoder, texts)
            shares = (f"{share:.1%}" for share in ((differences > 0).mean(), (differences > MUCH).mean()))
            print(
                line([model, Path(folder).name, f"{len(texts):,}", *shares, f"{differences.max():.2f}"]),
                flush=True,
            )


def largest(encoder: SparseEncoder, texts: list[str]) -> np.ndarray:
    """The largest weight that any new term has in each text: (B,)."""
    rows = [token.token_id for token in encoder.new_tokens]
    return np.asarray(encode(encoder, texts, "document")[:, rows].max(axis=1).todense()).ravel()


if __name__ == "__main__":
    main()
