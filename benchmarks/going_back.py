"""How much of a learnt table of queries to keep: by synthetic queries that were set aside, then counted on real ones.

    python -m benchmarks.going_back --data DIR --runs RUNS [--seeds 0 3 4]

DIR holds the collections; RUNS/NAME what `sparse-adapt adapt DIR/NAME --until candidates` left of each. The stage
`query-table` learns from the synthetic queries' candidates, and each interpolation weight towards the first table is
tried. Prints nDCG@10 by share; `chosen` is the share that is best for the synthetic queries, means over collections
and seeds.
"""

import argparse
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.tables import MEASURE, Results, line
from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, evaluate_vectors, read_collection
from sparse_adapt.selection.models import held_out_collection
from sparse_adapt.stages.query_table import QueryTable, TokenWeights
from sparse_adapt.training.loop import train

COLLECTIONS = ("scifact", "cranfield", "cacm", "medquad")
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
MODEL, SYNTHETIC, REAL = "splade-tiny", "synthetic", "real"

Score = Callable[[SparseEncoder], float]


def score_of(collection: Collection, reader: SparseEncoder) -> Score:
    """A function that scores an encoder's queries; documents are read once, by `reader`."""
    documents = encode(reader, [each.full_text for each in collection.documents], "document")
    query_texts = [query.text for query in collection.queries]

    def score(encoder: SparseEncoder) -> float:
        queries: csr_matrix = encode(encoder, query_texts, "query")
        return float(evaluate_vectors(queries, documents, collection).means()[MEASURE])

    return score


def measured(name: str, data: Path, run: Path, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """The scores of each share on a collection, seed by seed."""
    reader = SparseEncoder.load(MODEL)
    documents = {each.document_id: each for each in read_documents(run / "collection")}
    candidates, held_out = (
        list(read_candidates(run / f"{file}.jsonl", document_ids=documents))
        for file in ("candidates", "held")
    )
    scores = {
        SYNTHETIC: score_of(held_out_collection(documents, held_out), reader),
        REAL: score_of(read_collection(data / name), reader),
    }
    texts = {key: each.full_text for key, each in documents.items()}
    entries = []
    for seed in seeds:
        encoder = SparseEncoder.load(MODEL)
        task = TokenWeights(encoder, candidates, texts, QueryTable(seed=seed, device="cpu", shrinkage=0.0))
        with tempfile.TemporaryDirectory() as folder:
            train(encoder, task, Path(folder))
        task.conclude(encoder)
        learnt = encoder.query_side
        assert learnt is not None
        first, last = (weights.astype(np.float64) for weights in (task.start, learnt.weights))
        for share in SHARES:
            weights = (first**share * last ** (1.0 - share)).astype(np.float32)
            encoder.query_side = replace(learnt, weights=weights)
            scores_of = {kind: round(score(encoder), 5) for kind, score in scores.items()}
            entries.append({"collection": name, "seed": seed, "share": share, **scores_of})
    return entries


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Means over seeds by share, of synthetic queries and of real ones, and the share that the first choose."""
    names = [name for name in COLLECTIONS if any(each["collection"] == name for each in rows)]

    def means(kind: str, share: float) -> list[float]:
        of_each = [
            float(np.mean([e[kind] for e in rows if (e["collection"], e["share"]) == (name, share)]))
            for name in names
        ]
        return [*of_each, float(np.mean(of_each))]

    lines = [line(["queries", "interpolation weight", *names, "mean"]), line(["---"] * (len(names) + 3))]
    for kind in (SYNTHETIC, REAL):
        lines += [
            line([kind, f"{share:g}", *(f"{each:.4f}" for each in means(kind, share))]) for share in SHARES
        ]
    chosen = max(SHARES, key=lambda share: means(SYNTHETIC, share)[-1])
    return "\n".join([*lines, "", f"chosen: {chosen:g}"]) + "\n"


def main() -> None:
    """Measure what isn't there yet, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0, 3, 4])
    parser.add_argument("--collections", nargs="*", default=list(COLLECTIONS))
    parser.add_argument("--name", default="going-back", help="of the result files")
    arguments = parser.parse_args()
    results = Results(arguments.name)
    for name in arguments.collections:
        seeds = [seed for seed in arguments.seeds if not results.holds({"collection": name, "seed": seed})]
        if seeds:
            for entry in measured(name, arguments.data, arguments.runs / name, seeds):
                results.add(entry)
    results.conclude(table(results.rows))


if __name__ == "__main__":
    main()
