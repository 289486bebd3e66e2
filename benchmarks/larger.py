"""What one word brings to models of several sizes: `python -m benchmarks.larger MODEL ... [--runs runs/larger]`.

Each model learns the demo's word by the demo's stages up to `dictionary`, with default settings and seed 0, and is
measured before and after: the demo's unseen queries, and general questions of the package. Texts are read in bfloat16
where the processor multiplies it. A run that was stopped goes on. Prints a Markdown table, and saves the figures in
benchmarks/results/larger.json; a model is named by the last part of its path.
"""

import argparse
from pathlib import Path
from typing import Any

import torch

from benchmarks.tables import MEASURE, Results, line
from sparse_adapt.model.dense import fast_precision
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.demo_report import KINDS
from sparse_adapt.pipeline.plan import make_plan
from sparse_adapt.pipeline.run import NoListener, run_stages
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, evaluate_vectors, read_collection
from sparse_adapt.selection.questions import general_collection

CORPUS, STAGES = "gatrocraptic", ("extend", "warmup", "dictionary")
QUESTIONS = 300  # general ones
PRECISION = fast_precision(torch.device("cpu"))

Row = dict[str, Any]


def main() -> None:
    """Teach and measure every model that isn't in the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--runs", type=Path, default=Path("runs/larger"))
    arguments = parser.parse_args()
    results = Results("larger")
    collections = {"unseen": read_collection(CORPUS, "test"), "general": general_collection(most=QUESTIONS)}
    for model in arguments.models:
        name = Path(model).name
        if results.holds({"model": name}):
            continue
        plan = make_plan(CORPUS, model=model, stages=STAGES, overrides={"precision": PRECISION})
        folder = arguments.runs / name
        folder.mkdir(parents=True, exist_ok=True)
        outcomes = run_stages(plan, folder, NoListener())
        seconds = {stage: round(each.record["seconds"]) for stage, each in zip(STAGES, outcomes, strict=True)}
        before, after = (
            measured(SparseEncoder.load(each), collections) for each in (model, outcomes[-1].folder)
        )
        results.add({"model": name, "seconds": seconds, "before": before, "after": after})
    results.conclude(table(results.rows))


def measured(model: SparseEncoder, collections: dict[str, Collection]) -> Row:
    """Parameters, nDCG@10 of each kind of query and of general questions, the share of these that activate the word."""
    row: Row = {"parameters": sum(each.numel() for each in model.parameters())}
    for name, collection in collections.items():
        with torch.autocast("cpu", torch.bfloat16, enabled=PRECISION == "bfloat16"):
            documents = encode(model, [each.full_text for each in collection.documents], "document")
            queries = encode(model, [each.text for each in collection.queries], "query")
        result = evaluate_vectors(queries, documents, collection)
        if name == "general":
            new = [token.token_id for token in model.new_tokens]
            row |= {
                name: result.means()[MEASURE],
                "active": float((queries[:, new].getnnz(axis=1) > 0).mean()),
            }
        else:
            row |= {kind: result.means(kind)[MEASURE] for kind in KINDS}
            row["nonzero_document"] = documents.nnz / documents.shape[0]
    return {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}


def table(rows: list[Row]) -> str:
    """A row a model: before and after."""
    shown = (*KINDS, "general", "active", "nonzero_document")
    lines = [line(["model", "parameters", *shown]), "|---|---:|" + " ---: |" * len(shown)]
    for row in rows:
        before, after = row["before"], row["after"]
        cells = (f"{before[key]:.3g} to {after[key]:.3g}" for key in shown)
        lines.append(line([row["model"], f"{before['parameters'] / 1e6:.1f} M", *cells]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
