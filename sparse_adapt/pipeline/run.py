"""A plan carried out: its stages in order, a folder each, in one run folder that resumes where it stopped.

    RUN/run.toml                     the plan, nothing left to assume
    RUN/1-extend/, 2-warmup/, ...    a model each, with what it was made from in stage.json
    RUN/report.json                  what was done; its presence says that the run is whole

While a run works, its folder is `RUN.partial`.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

from sparse_adapt import __version__
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.folders import write_json, write_text
from sparse_adapt.files.journal import other
from sparse_adapt.files.processes import common_folder, is_main
from sparse_adapt.pipeline.plan import Plan, plan_text
from sparse_adapt.stages.inputs import Inputs
from sparse_adapt.stages.record import RECORD_FILE, read_before, read_record
from sparse_adapt.stages.runner import Outcome, Place, carry_out
from sparse_adapt.stages.table import find_stage
from sparse_adapt.training.loop import Progress

PLAN_FILE = "run.toml"
REPORT_FILE = "report.json"


class Listener(Protocol):
    """Who wants to hear how a run goes."""

    def begin(self, stage: str) -> Progress | None:
        """A stage begins; what is returned hears of each of its training steps."""

    def end(self, stage: str, outcome: Outcome) -> None:
        """A stage is done, or was done before."""


class Silence:
    """A listener for runs that nobody watches."""

    def begin(self, stage: str) -> Progress | None:
        """Nothing to hear."""
        return None

    def end(self, stage: str, outcome: Outcome) -> None:
        """Nothing to say."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A whole run on disk: its folder, the model that it ended with, the corpus that it was for."""

    folder: Path
    model: Path
    corpus: str | None
    report: Mapping[str, Any]


def run(plan: Plan, place: Place, listener: Listener | None = None) -> Finished:
    """Carry out a plan. With `place.resume`, go on where a run of the same plan stopped.

    Raises what the readers raise for a file that is wrong, before the first stage begins.
    """
    if is_whole(place):
        return whole_run(plan, place.folder)
    check_files(plan)
    with common_folder(place.folder, overwrite=place.overwrite, resume=place.resume) as work:
        outcomes = run_stages(plan, work, listener or Silence())
        if is_main():
            write_report(work, place.folder, plan, outcomes, {})
    return read_finished(place.folder)


def check_files(plan: Plan) -> None:
    """Read every file of a plan once: a mistake in the last is better known before the first stage."""
    given = {"corpus": plan.corpus} if plan.corpus is not None else {}
    inputs = Inputs(plan.model, {**given, **plan.files})
    for stage in plan.stages:
        inputs.read(each for each in find_stage(stage).reads if each.needed or each.key == "corpus")


def run_stages(plan: Plan, work: Path, listener: Listener) -> list[Outcome]:
    """Each stage in a folder of its own, from the model that the one before left. What is done stays."""
    if is_main():
        write_text(work / PLAN_FILE, plan_text(plan))
    model, outcomes = plan.model, []
    for number, stage in enumerate(plan.stages, start=1):
        folder = work / f"{number}-{stage}"
        progress = listener.begin(stage)
        outcome = done_before(stage, plan, model, folder) or run_stage(
            stage, plan, model, Place(folder, resume=True), progress
        )
        listener.end(stage, outcome)
        outcomes.append(outcome)
        model = str(folder)
    return outcomes


def run_stage(stage: str, plan: Plan, model: str, place: Place, progress: Progress | None = None) -> Outcome:
    """One stage of a plan on a model of one's choice."""
    return carry_out(stage, model, plan.files_of(stage), place, plan.settings.get(stage), progress)


def write_report(
    work: Path, folder: Path, plan: Plan, outcomes: Sequence[Outcome], more: Mapping[str, Any]
) -> None:
    """Put what was done, and what else is known, into a run folder that is about to become `folder`."""
    for outcome in outcomes:
        record = {**(read_record(outcome.folder) or {}), "model": outcome.record["model"]}
        write_json(outcome.folder / RECORD_FILE, _at(record, work, folder))
    report = {
        "version": __version__,
        "written": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "model": plan.model,
        "corpus": _absolute(plan.corpus),
        "preset": plan.preset,
        "final": outcomes[-1].folder.name,
        "seconds": round(sum(float(outcome.record["seconds"]) for outcome in outcomes), 1),
        "stages": [
            {"folder": outcome.folder.name, "said": outcome.said, **outcome.record} for outcome in outcomes
        ],
        **more,
    }
    write_json(work / REPORT_FILE, _at(report, work, folder))


# -- runs that are there --------------------------------------------------------------------------


def is_whole(place: Place) -> bool:
    """Whether there is nothing left of a run to go on with."""
    return place.resume and not place.overwrite and (place.folder / REPORT_FILE).is_file()


def whole_run(plan: Plan, folder: Path) -> Finished:
    """A whole run of this plan. Raises ConfigError where it is one of another plan."""
    finished, model = read_finished(folder), plan.model
    for number, stage in enumerate(plan.stages, start=1):
        made = folder / f"{number}-{stage}"
        if done_before(stage, plan, model, made) is None:
            raise ConfigError(f"{folder}: a run of other stages (no {made.name}); choose another -o")
        model = str(made)
    if finished.model != Path(model):
        raise ConfigError(f"{folder}: a run of more stages (up to {finished.model.name}); choose another -o")
    return finished


def read_finished(folder: Path) -> Finished:
    """A whole run. Raises InputError where its report isn't one."""
    path = folder / REPORT_FILE
    try:
        report = json.loads(path.read_text(encoding="utf-8"))
        return Finished(folder, folder / report["final"], report["corpus"], report)
    except FileNotFoundError as error:
        raise InputError(folder, f"no {REPORT_FILE} here; a run that isn't whole has none") from error
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(path, f"not the report of a run ({error!r}); name --model and --corpus") from error


def latest_run(runs: Path) -> Finished | None:
    """The run in a folder of runs that was finished last, if there is one with a model and a corpus."""
    reports = sorted(runs.glob(f"*/{REPORT_FILE}"), key=lambda path: path.stat().st_mtime, reverse=True)
    found = (read_finished(path.parent) for path in reports)
    return next((each for each in found if each.corpus is not None and each.model.is_dir()), None)


def done_before(stage: str, plan: Plan, model: str, folder: Path) -> Outcome | None:
    """What a finished stage left, if it is there. Raises ConfigError if it was made from something else."""
    record = read_record(folder)
    if record is None:
        return None
    settings = plan.settings[stage].model_dump(mode="json") if stage in plan.settings else {}
    files = {name: Path(path).resolve() for name, path in plan.files_of(stage).items()}
    read = read_before(str(folder))  # more than is planned: what lies beside, what earlier stages read
    files |= {name: Path(entry["path"]) for name, entry in record["files"].items() if name not in read}
    made_from: dict[str, Any] = {
        "stage": stage,
        "model": Path(model).resolve() if Path(model).is_dir() else model,
        "settings": settings,
        "files": files,
    }
    found = {
        "stage": record["stage"],
        "model": Path(record["model"]) if Path(model).is_dir() else record["model"],
        "settings": record["settings"],
        "files": {name: Path(path).resolve() for name, path in read.items() if name in files},
    }
    for key, value in made_from.items():
        if found[key] != value:
            changed = f"{folder}: made with {other(key, found[key], value)}, or {key} that changed since"
            raise ConfigError(f"{changed}; pass --overwrite without --resume to start again")
    return Outcome(folder, "done before", record)


def _absolute(source: str | None) -> str | None:
    return str(Path(source).resolve()) if source is not None and Path(source).exists() else source


def _at(content: Mapping[str, Any], work: Path, folder: Path) -> dict[str, Any]:
    """The same with every path into the work folder pointing where that folder will be."""
    text = json.dumps(content, ensure_ascii=False)
    here, there = (json.dumps(str(path.resolve()), ensure_ascii=False)[1:-1] for path in (work, folder))
    return cast(dict[str, Any], json.loads(text.replace(here, there)))
