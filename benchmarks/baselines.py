"""Measure the bundled model, as it ships, on judged collections, against the figures it is known to reach.

    python benchmarks/baselines.py --data DIR [COLLECTION ...]

DIR holds a folder in BEIR layout for each collection; those that aren't there are passed over. Exits with 1
where a figure is off by more than the tolerance.
"""

import argparse
import time
from pathlib import Path

from rich.console import Console

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.tables import Column, Table, to_markdown
from sparse_adapt.report.terminal import to_rich
from sparse_adapt.retrieve.evaluate import evaluate_model

MODEL = "splade-tiny"
NDCG = {"scifact": 0.644, "cranfield": 0.361, "cacm": 0.431, "medquad": 0.382, "msmarco_pool": 0.726}
TOLERANCE = 0.002
COLUMNS = (
    Column("collection", "collection", "text"),
    Column("documents", "documents"),
    Column("queries", "queries"),
    Column("expected", "expected nDCG@10", decimals=3),
    Column("measured", "measured", decimals=4),
    Column("difference", "difference", decimals=4, signed=True),
    Column("holds", "holds", "text"),
    Column("nonzero_document", "non-zeros a document", decimals=1),
    Column("nonzero_query", "a query", decimals=1),
    Column("seconds", "time", unit="s", decimals=1),
)


def measure(model: SparseEncoder, folder: Path) -> dict[str, str | int | float | bool]:
    """One row: a collection's nDCG@10 beside the expected figure, and the size of its vectors."""
    started = time.perf_counter()
    result = evaluate_model(model, folder)
    means, expected = result.means(), NDCG[folder.name]
    return {
        "collection": folder.name,
        "documents": len(result.values["nonzero_document"]),
        "queries": len(result.queries),
        "expected": expected,
        "measured": means["ndcg@10"],
        "difference": means["ndcg@10"] - expected,
        "holds": abs(means["ndcg@10"] - expected) <= TOLERANCE,
        "nonzero_document": means["nonzero_document"],
        "nonzero_query": means["nonzero_query"],
        "seconds": time.perf_counter() - started,
    }


def main() -> int:
    """Print the table for every collection that is there; 0 if all figures hold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of collections in BEIR layout")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("collections", nargs="*", help=f"some of: {', '.join(NDCG)}")
    arguments = parser.parse_args()
    model = SparseEncoder.load(MODEL)
    rows = []
    for name in arguments.collections or NDCG:
        if (arguments.data / name).is_dir():
            rows.append(measure(model, arguments.data / name))
            print(f"{name}: {rows[-1]['measured']:.4f} (expected {rows[-1]['expected']:.3f})", flush=True)
    table = Table(f"{MODEL}, unadapted", COLUMNS, rows, f"holds: within {TOLERANCE}")
    if arguments.markdown:
        print(to_markdown(table), end="")
    else:
        Console(width=140).print(to_rich(table))
    return 0 if rows and all(row["holds"] for row in rows) else 1


if __name__ == "__main__":
    raise SystemExit(main())
