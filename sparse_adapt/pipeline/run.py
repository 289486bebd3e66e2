"""A plan carried out: its stages in order, a folder each, in one run folder that resumes where it stopped.

    RUN/run.toml                     the plan, nothing left to assume
    RUN/1-extend/, 2-warmup/, ...    a model each, with what it was made from in stage.json
    RUN/report.json                  what was done; its presence says that the run is whole

While a run works, its folder is `RUN.partial`.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Protocol, cast

from sparse_adapt import __version__
from sparse_adapt.collection.folder import CorpusFolder
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.folders import discard, tidy
from sparse_adapt.files.marker import vouching
from sparse_adapt.files.place import Place, absolute, is_there, portable, source_in
from sparse_adapt.files.processes import common_folder, is_main
from sparse_adapt.files.steps import made_from_same, stamps_of, to_record
from sparse_adapt.files.writing import write_json, write_text
from sparse_adapt.model.folder import ModelFolder, ModelSource, of_model
from sparse_adapt.pipeline.plan import Plan, plan_text
from sparse_adapt.pipeline.report import Report, ruling_of
from sparse_adapt.stages.card import making_of, write_card
from sparse_adapt.stages.inputs import Inputs
from sparse_adapt.stages.record import made_from, read_stage_record, source_of, sources
from sparse_adapt.stages.runner import Outcome, carry_out_stage
from sparse_adapt.stages.runner import files_of_stage as files_for_stage
from sparse_adapt.stages.table import find_stage
from sparse_adapt.training.loop import StepProgress

PLAN_FILE = "run.toml"
WRITTEN = "%Y-%m-%dT%H:%M:%S%z"
CLOCKS_DIFFER = 600.0  # seconds by which the clocks of two machines may differ
REPORT_FILE = "report.json"


class Listener(Protocol):
    """Who wants to hear how a run goes."""

    def begin(self, stage: str) -> StepProgress | None:
        """A stage begins; what is returned hears of each of its training steps."""

    def end(self, stage: str, outcome: Outcome) -> None:
        """A stage is done, or was done before."""


class NoListener:
    """A listener for runs that nobody watches."""

    def begin(self, stage: str) -> StepProgress | None:
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
    report: Report


def run(
    plan: Plan,
    place: Place,
    listener: Listener | None = None,
    measured: Callable[[Sequence[Outcome], Path], Mapping[str, object]] | None = None,
) -> Finished:
    """Carry out a plan. With `place.resume`, go on where a run of the same plan stopped.

    `measured`: what is measured once all stages are done, for the report; by default the verdict on the last model.
    Raises what the readers raise for a file that is wrong, before the first stage begins.
    """
    if is_whole(place):
        tidy(place.folder)
        return whole_run(plan, place.folder)
    check_files(plan)
    with common_folder(place.reading(read_by(plan))) as work:
        outcomes = run_stages(plan, work, listener or NoListener())
        if is_main():
            measure = measured or (lambda done, run: verdict_of(plan, done[-1].folder, run))
            write_report(work, plan, outcomes, measure(outcomes, work))
    return read_finished(place.folder)


def verdict_of(plan: Plan, last: Path, work: Path) -> dict[str, object]:
    """What the last model gains beside the first, and keeps of what it knew, as `report.json` holds it.

    Nothing for a dense model, or without a corpus.
    """
    from sparse_adapt.model.kinds import load_encoder  # all of it is slow to import
    from sparse_adapt.model.sparse import SparseEncoder
    from sparse_adapt.selection.comparison import JudgedDocuments, judged_evidence
    from sparse_adapt.selection.retention import measure_retention

    if plan.corpus is not None:
        corpus = CorpusFolder(plan.corpus)
        match load_encoder(plan.model), load_encoder(last):
            case SparseEncoder() as before, SparseEncoder() as after:
                return {
                    "retention": measure_retention(before, after, list(corpus.read())),
                    "evidence": judged_evidence(before, after, JudgedDocuments.of(corpus, work)),
                }
    return {"retention": {}}


def check_files(plan: Plan) -> None:
    """Read every file of a plan once: a mistake in the last is better known before the first stage."""
    named = {"corpus": plan.corpus} if plan.corpus is not None else {}
    inputs = Inputs(plan.model, {**named, **plan.files})
    for stage in plan.stages:
        inputs.read(each for each in find_stage(stage).reads if each.needed or each.key == "corpus")


def read_by(plan: Plan) -> list[str | Path | None]:
    """Where all that a plan reads lies, of what has a place."""
    inputs = {"corpus": plan.corpus} if plan.corpus is not None else {}
    read = [of_model(plan.model), *(source_of(key, path) for key, path in {**inputs, **plan.files}.items())]
    return [source.place for source in read]


def run_stages(
    plan: Plan, work: Path, listener: Listener, *, again: bool = False, home: Path | None = None
) -> list[Outcome]:
    """Each stage in a folder of its own, from the model that the one before left. What is done stays.

    `again`: what was made from something else is made again; else it is refused. `home`: the run's folder, where
    `work` is a part of it.
    """
    if is_main():
        write_text(work / PLAN_FILE, plan_text(plan, work, home))
    model, outcomes = ModelFolder.of(plan.model), []
    for number, stage in enumerate(plan.stages, start=1):
        folder = stage_folder(work, number, stage)
        outcomes.append(run_stage(stage, plan, model, folder, listener, again=again, home=home))
        model = ModelFolder.of(folder)
    return outcomes


def stage_folder(run: Path, number: int, stage: str) -> Path:
    """Where the stage of a number is made in a run's folder."""
    return run / f"{number}-{stage}"


def run_stage(
    stage: str,
    plan: Plan,
    model: ModelSource,
    folder: Path,
    listener: Listener,
    *,
    name: str = "",
    again: bool = False,
    home: Path | None = None,
) -> Outcome:
    """One stage of a plan on a model of one's choice, in a folder of a run, unless it is done there.

    `name`: what the listener hears it called; `home`: the run's folder, by default the one above.
    Raises ConfigError where it was made from something else, unless it is to be made `again`.
    """
    progress, settings = listener.begin(name or stage), plan.settings.get(stage)
    outcome = done_before(stage, plan, model, folder, again=again)
    if outcome is None:
        if again and folder.is_dir() and is_main():
            discard(folder)
        place = Place(folder, resume=True, home=home or folder.parent, again=again)
        outcome = carry_out_stage(stage, model, plan.files_of(stage), place, settings, progress)
    listener.end(name or stage, outcome)
    return outcome


def write_report(work: Path, plan: Plan, outcomes: Sequence[Outcome], more: Mapping[str, object]) -> None:
    """Put what was done, what else is known, and the ruling into a run folder, whose paths are named from there.

    The card of the final model has the ruling too.
    """
    report: dict[str, Any] = {
        "version": __version__,
        "written": time.strftime(WRITTEN),
        "model": absolute(plan.model),
        "corpus": None if plan.corpus is None else portable(plan.corpus, work, work),
        "preset": plan.preset,
        "final": outcomes[-1].folder.name if outcomes else "",
        "seconds": round(sum(outcome.record["seconds"] for outcome in outcomes), 1),
        "stages": [_record_of(outcome, work) for outcome in outcomes],
        **more,
    }
    ruling = ruling_of(cast("Report", report))
    if ruling is not None:
        report["ruling"] = ruling.plain()
        model = work / report["final"]
        with vouching(model):
            write_card(model, making_of(model)._replace(ruling=list(map(str, ruling.lines))))
    write_json(work / REPORT_FILE, report)


def _record_of(outcome: Outcome, work: Path) -> dict[str, object]:
    record, entries = outcome.record, {"": outcome.record["model"], **outcome.record["files"]}
    near = to_record(entries, work, work)
    outcome_fields = {"folder": str(outcome.folder.relative_to(work)), "message": outcome.message}
    return {**outcome_fields, **record, "model": near.pop(""), "files": near}


# -- runs that are there --------------------------------------------------------------------------


def is_whole(place: Place) -> bool:
    """Whether there is nothing left of a run to go on with."""
    return place.resume and not place.overwrite and (place.folder / REPORT_FILE).is_file()


def whole_run(plan: Plan, folder: Path) -> Finished:
    """A whole run of this plan. Raises ConfigError where it is one of another plan."""
    finished, model = read_finished(folder), plan.model
    for number, stage in enumerate(plan.stages, start=1):
        made = stage_folder(folder, number, stage)
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
        report = json.loads(path.read_bytes())
        final, corpus = report["final"], report["corpus"]
        if not isinstance(final, str) or Path(final).name != final or not isinstance(corpus, str | None):
            raise ValueError(f"final: {final}, corpus: {corpus}")
    except FileNotFoundError as error:
        raise InputError(folder, f"no {REPORT_FILE} here; a run that isn't whole has none") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(path, f"not the report of a run ({error!r}); name --model and --corpus") from error
    return Finished(folder, folder / final, None if corpus is None else source_in(corpus, folder), report)


def latest_run(runs: Path) -> Finished | None:
    """The run in a folder of runs that was finished last, if there is one with a model and a corpus.

    The report says when; one that says a time that is yet to come is the last to be taken.
    """
    there = []
    for path in sorted(runs.glob(f"*/{REPORT_FILE}")):
        with suppress(InputError):
            there.append(read_finished(path.parent))
    usable = [each for each in there if each.corpus is not None and is_there(each.model)]
    return max(usable, key=_written, default=None)


def _written(finished: Finished) -> float:
    """When a run was finished, in seconds since 1970; 0 where its report doesn't say, or says a time to come."""
    try:
        moment = datetime.strptime(finished.report["written"], WRITTEN).timestamp()
    except (KeyError, TypeError, ValueError, OverflowError):
        moment = (finished.folder / REPORT_FILE).stat().st_mtime
    return moment if moment <= time.time() + CLOCKS_DIFFER else 0.0


def done_before(
    stage: str, plan: Plan, model: ModelSource, folder: Path, *, again: bool = False
) -> Outcome | None:
    """What a finished stage left, if it is there, made from the same.

    Raises ConfigError if it was made from something else, unless it is to be made `again`.
    """
    record = read_stage_record(folder)
    if record is None:
        return None
    settings = plan.settings[stage].model_dump(mode="json") if stage in plan.settings else {}
    files = files_for_stage(find_stage(stage), model, plan.files_of(stage))
    now = stamps_of(sources(stage, model, files, settings))
    same = made_from_same(folder, made_from(record), now, again=again)
    return Outcome(folder, "done before", record) if same else None
