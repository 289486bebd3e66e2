"""What the stages reach on corpora of invented words, over several seeds: `python -m benchmarks.stages`.

Each corpus is put through all stages with default settings; the rows are the criteria of the demo. What is done
stays in benchmarks/results/NAME.json, so that a benchmark goes on where it stopped and later corpora join it.
`--development` takes the corpora and queries that settings are chosen on, and leaves test queries alone.
"""

import argparse
import itertools
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.tables import Results, line, spread
from sparse_adapt.collection.sources import bundled
from sparse_adapt.lab.demo.demo import run_demo
from sparse_adapt.pipeline.plan import make_plan
from sparse_adapt.stages.runner import Place

KINDS = ("hidden", "explicit", "control")
DEVELOPMENT = Path(__file__).parent / "development"


def main() -> None:
    """Run every corpus with every seed and print a table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=["gatrocraptic", "coined"])
    parser.add_argument("--development", action="store_true", help="those of benchmarks/development instead")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--preset", default="default")
    parser.add_argument("--name", help="of the results; by default stages, or development")
    given = parser.parse_args()
    results = Results(given.name or ("development" if given.development else "stages"))
    folders = sorted(str(path.parent) for path in DEVELOPMENT.glob("*/queries.jsonl"))
    corpora = folders if given.development else given.corpora
    for corpus, seed in itertools.product(corpora, range(given.seeds)):
        if not results.holds({"corpus": Path(corpus).name, "seed": seed, "preset": given.preset}):
            results.add(one(corpus, seed, given.preset))
    results.conclude(table(results.found))


def one(corpus: str, seed: int, preset: str) -> dict[str, Any]:
    """All stages on one corpus with one seed: nDCG@10 of the base and of the result, and the criteria."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        whole = with_other_queries(Path(corpus), Path(folder) / "corpus")
        plan = make_plan(whole, preset=preset, overrides={"seed": seed})
        finished = run_demo(plan, Place(Path(folder) / "run"), alone=True)
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


def with_other_queries(given: Path, folder: Path) -> str:
    """A corpus as it is; or, for a folder of queries alone, the bundled one of its name with these to measure by."""
    if not (given / "queries.jsonl").is_file() or (given / "corpus.jsonl").is_file():
        return str(given)
    shutil.copytree(bundled(given.name), folder)
    shutil.copy(given / "qrels" / "test.tsv", folder / "qrels")
    with (folder / "queries.jsonl").open("a", encoding="utf-8") as queries:
        queries.write((given / "queries.jsonl").read_text(encoding="utf-8"))
    return str(folder)


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
