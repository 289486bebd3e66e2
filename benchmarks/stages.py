"""What the stages reach on corpora of invented words, over several seeds: `python -m benchmarks.stages`.

Each corpus is put through all stages with default settings; the rows are the criteria of the demo.
"""

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from diagnostics.usage import function_share
from sparse_adapt.demo import run_demo
from sparse_adapt.running.plan import make_plan
from sparse_adapt.stages.steps import Place

RESULTS = Path(__file__).parent / "results"
KINDS = ("hidden", "explicit", "control")


def main() -> None:
    """Run every corpus with every seed and print a table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=["gatrocraptic", "coined"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--name", default="stages")
    given = parser.parse_args()
    rows = []
    for corpus in given.corpora:
        for seed in range(given.seeds):
            rows.append(one(corpus, seed, given.preset))
            RESULTS.mkdir(exist_ok=True)
            (RESULTS / f"{given.name}.json").write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    print(table(rows))


def one(corpus: str, seed: int, preset: str) -> dict[str, Any]:
    """All stages on one corpus with one seed: nDCG@10 of the base and of the result, and the criteria."""
    started = time.monotonic()
    plan = make_plan(corpus, preset=preset, overrides={"seed": seed})
    with tempfile.TemporaryDirectory() as folder:
        finished = run_demo(plan, Place(Path(folder) / "run"), function_share)
    demo = finished.report["demo"]
    columns = {column["name"]: column for column in demo["columns"]}
    shown = {"base": columns["base"], "alone": columns["alone"], "adapted": demo["columns"][-1]}
    row: dict[str, Any] = {"corpus": Path(corpus).name, "seed": seed, "preset": preset}
    for kind in KINDS:
        for name, column in shown.items():
            row[f"{kind}_{name}"] = round(column["ndcg@10"]["test"][kind], 3)
    row["criteria"] = [criterion["holds"] for criterion in demo["criteria"]]
    row["found"] = [criterion["found"] for criterion in demo["criteria"]]
    row["seconds"] = round(time.monotonic() - started)
    print(row, flush=True)
    return row


def table(rows: list[dict[str, Any]]) -> str:
    """Means over the seeds of each corpus, with the spread."""
    lines = [
        "| corpus | unseen queries | base | fine-tuned alone | adapted (least to most) |",
        "|---|---|---|---|---|",
    ]
    for corpus in dict.fromkeys(row["corpus"] for row in rows):
        own = [row for row in rows if row["corpus"] == corpus]
        for kind in KINDS:
            adapted = [row[f"{kind}_adapted"] for row in own]
            alone = statistics.fmean(row[f"{kind}_alone"] for row in own)
            spread = f"{statistics.fmean(adapted):.3f} ({min(adapted):.3f} to {max(adapted):.3f})"
            lines.append(f"| {corpus} | {kind} | {own[0][f'{kind}_base']:.3f} | {alone:.3f} | {spread} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
