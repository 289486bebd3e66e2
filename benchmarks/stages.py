"""What the stages reach on corpora of invented words, over several seeds: `python -m benchmarks.stages --data DIR`.

Each corpus is put through all stages with default settings; the base model and the model after each stage are measured
as the demo measures them, and by general questions of `msmarco_pool` in DIR. What is done stays in
benchmarks/results/NAME.json, so that a benchmark goes on where it stopped and later corpora join it.
Another base model is named by the last part of its path.
`--development` takes the corpora and queries that settings are chosen on, and leaves test queries alone.
"""

import argparse
import itertools
import shutil
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.tables import CONTROL, MEASURE, Results, line, spread
from sparse_adapt.collection.sources import bundled
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.demo import run_demo
from sparse_adapt.pipeline.demo_report import ALONE, BASE, KINDS
from sparse_adapt.pipeline.plan import BASE_MODEL, make_plan
from sparse_adapt.retrieve.evaluate import evaluate_model, read_collection

DEVELOPMENT = Path(__file__).parent / "development"
MIXED = "mixed index"
SHOWN = {  # a figure of a row -> its name in the table, and its digits
    "semantic": ("semantic", 3),
    "explicit": ("explicit", 3),
    "control": ("control", 3),
    f"semantic, {MIXED}": ("hidden, mixed", 3),
    f"control, {MIXED}": ("control, mixed", 3),
    "two words": ("two words", 3),
    "general": ("general questions", 3),
    "general active": ("they activate a term", 2),
    CONTROL: ("MS MARCO", 3),
    "nonzero_document": ("non-zeros", 0),
}

Row = dict[str, Any]


def main() -> None:
    """Run every corpus with every seed and print a table as Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="*", default=["gatrocraptic", "coined"])
    parser.add_argument("--development", action="store_true", help="those of benchmarks/development instead")
    parser.add_argument("--data", type=Path, required=True, help=f"folder that holds {CONTROL}")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument(
        "--alone", action="store_true", help="beside them the last stage of the base model alone"
    )
    parser.add_argument("--model", default=BASE_MODEL, help="that is taught")
    parser.add_argument("--preset", default="default")
    parser.add_argument(
        "--runs", type=Path, help="folder that keeps the models, and from which whole runs are taken"
    )
    parser.add_argument("--name", help="of the results; by default stages, or development")
    arguments = parser.parse_args()
    results = Results(arguments.name or ("development" if arguments.development else "stages"))
    folders = sorted(str(path.parent) for path in DEVELOPMENT.glob("*/queries.jsonl"))
    corpora = folders if arguments.development else arguments.corpora
    general = GeneralQuestions(arguments.data / CONTROL)
    for seed, corpus in itertools.product(arguments.seeds, corpora):
        case = Case(corpus, arguments.model, seed, arguments.preset)
        if results.holds(case.named):
            continue
        with tempfile.TemporaryDirectory() as folder:
            for row in one(case, arguments.runs or Path(folder), general, alone=arguments.alone):
                results.add(row)
    results.conclude(table(results.rows))


class Case(NamedTuple):
    """What is taught to which model, and how."""

    corpus: str
    model: str
    seed: int
    preset: str

    @property
    def named(self) -> Row:
        """What every row of it says, without the paths of one machine."""
        return {**self._asdict(), "corpus": Path(self.corpus).name, "model": Path(self.model).name}


def one(case: Case, runs: Path, general: "GeneralQuestions", *, alone: bool = False) -> list[Row]:
    """All stages on one corpus with one seed: what the base model reaches, and the model after each stage."""
    name = case.named["corpus"]
    whole = with_other_queries(Path(case.corpus), runs / "queries" / name)
    plan = make_plan(whole, model=case.model, preset=case.preset, overrides={"seed": case.seed})
    place = Place(runs / f"{name}-{case.seed}", resume=True)
    columns = run_demo(plan, place, alone=alone).report["demo"]["columns"]
    rows = []
    for column in columns:
        row = {**case.named, "stage": column["name"]}
        row |= figures(column)
        if column in (columns[0], columns[-1]):
            model = plan.model if column["name"] == BASE else str(place.folder / column["model"])
            row[CONTROL] = general.base(model) if column["name"] == BASE else general.of(model)
        rows.append(
            {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
        )
        print(rows[-1], flush=True)
    return rows


class GeneralQuestions:
    """nDCG@10 of general questions; the base model, with which every run begins, is measured once."""

    def __init__(self, source: Path) -> None:
        self.collection = read_collection(source)
        self.base = cache(self.of)

    def of(self, model: str) -> float:
        """What a model reaches."""
        return evaluate_model(SparseEncoder.load(model), self.collection).means()[MEASURE]


def figures(column: Mapping[str, Any]) -> dict[str, float]:
    """What the benchmark keeps of a column of the demo."""
    retention = column["general"]
    return {
        **{kind: column[MEASURE]["test"][kind] for kind in KINDS},
        **{f"{kind}, {MIXED}": retention[f"{kind}, {MIXED}"][MEASURE] for kind in KINDS},
        "two words": retention["known items"]["mrr@10"],
        "general": retention["general"][MEASURE],
        "general active": retention["general"]["false_activations"],
        "control_active": column["control_active"],
        "background_active": column["general"]["background texts"]["false_activations"],
        "hard_queries_on_top": sum(query["all_on_top"] for query in column["hard_queries"].values()),
        "nonzero_document": column["nonzero_document"],
        "nonzero_query": column["nonzero_query"],
    }


def with_other_queries(queries_file: Path, folder: Path) -> str:
    """A corpus as it is; or, for a folder of queries alone, the bundled one of its name with these to measure by."""
    if not (queries_file / "queries.jsonl").is_file() or (queries_file / "corpus.jsonl").is_file():
        return str(queries_file)
    shutil.copytree(bundled(queries_file.name), folder, dirs_exist_ok=True)  # each seed writes it anew
    shutil.copy(queries_file / "qrels" / "test.tsv", folder / "qrels")
    with (folder / "queries.jsonl").open("a", encoding="utf-8") as queries:
        queries.write((queries_file / "queries.jsonl").read_text(encoding="utf-8"))
    return str(folder)


def table(rows: Sequence[Row]) -> str:
    """Each corpus before, and after the last stage: means over the seeds, from least to most."""
    lines = [
        line(["corpus", "model", "seeds", "", *(name for name, _ in SHOWN.values())]),
        "| --- | --- | ---: | --- |" + " ---: |" * len(SHOWN),
    ]
    kinds = ("corpus", "model", "preset")
    for kind in dict.fromkeys(tuple(row[each] for each in kinds) for row in rows):
        corpus, model, preset = kind
        own = [row for row in rows if tuple(row[each] for each in kinds) == kind]
        name = corpus if preset == "default" else f"{corpus}, {preset}"
        last = own[-1]["stage"]
        for stage, label in ((BASE, "before"), (ALONE, "fine-tuned alone"), (last, "after")):
            shown = [row for row in own if row["stage"] == stage]
            if shown:
                cells = (_cell([row.get(key) for row in shown], digits) for key, (_, digits) in SHOWN.items())
                lines.append(line([name, model, str(len(shown)), label, *cells]))
    return "\n".join(lines) + "\n"


def _cell(values: Sequence[float | None], digits: int) -> str:
    known = [value for value in values if value is not None]
    if not known:
        return ""
    return spread(known, digits) if len(set(known)) > 1 else f"{statistics.fmean(known):.{digits}f}"


if __name__ == "__main__":
    main()
