"""What the stages reach on corpora of invented words, over several seeds: `python -m benchmarks.stages`.

Each corpus is put through all stages with default settings; the rows are the criteria of the demo. What is done
stays in benchmarks/results/NAME.json, so that a benchmark goes on where it stopped and later corpora join it.
"""

import argparse
import itertools
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.tables import Results, line, spread
from sparse_adapt.demo import run_demo
from sparse_adapt.running.plan import make_plan
from sparse_adapt.stages.steps import Place

KINDS = ("hidden", "explicit", "control")


def main() -> None:
    """Run every corpus with every seed and print a table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=["gatrocraptic", "coined"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--name", default="stages")
    given = parser.parse_args()
    results = Results(given.name)
    for corpus, seed in itertools.product(given.corpora, range(given.seeds)):
        if not results.holds({"corpus": Path(corpus).name, "seed": seed, "preset": given.preset}):
            results.add(one(corpus, seed, given.preset))
    results.conclude(table(results.found))


def one(corpus: str, seed: int, preset: str) -> dict[str, Any]:
    """All stages on one corpus with one seed: nDCG@10 of the base and of the result, and the criteria."""
    started = time.monotonic()
    plan = make_plan(corpus, preset=preset, overrides={"seed": seed})
    with tempfile.TemporaryDirectory() as folder:
        finished = run_demo(plan, Place(Path(folder) / "run"))
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
    """Means over the seeds of each corpus, with the spread, and with how many seeds each criterion holds."""
    lines = [
        "| corpus | seeds | unseen queries | base | fine-tuned alone | adapted (least to most) |",
        "| --- | ---: | --- | ---: | ---: | ---: |",
    ]
    held = [
        "| corpus | finds what is meant | loses nothing | knows the term | stays short |",
        "| --- |" + " ---: |" * 4,
    ]
    for corpus, preset in dict.fromkeys((row["corpus"], row["preset"]) for row in rows):
        own = [row for row in rows if (row["corpus"], row["preset"]) == (corpus, preset)]
        name = corpus if preset == "default" else f"{corpus}, {preset}"
        for kind in KINDS:
            alone = statistics.fmean(row[f"{kind}_alone"] for row in own)
            adapted = spread([row[f"{kind}_adapted"] for row in own])
            cells = [f"{own[0][f'{kind}_base']:.3f}", f"{alone:.3f}", adapted]
            lines.append(line([name, str(len(own)), kind, *cells]))
        counts = [sum(each) for each in zip(*(row["criteria"] for row in own), strict=True)]
        held.append(line([name, *(f"{count} of {len(own)}" for count in counts)]))
    return "\n".join([*lines, "", *held]) + "\n"


if __name__ == "__main__":
    main()
