"""All stages on a corpus of new terms, and every model measured."""

from pathlib import Path
from typing import Any

from sparse_adapt.errors import ConfigError
from sparse_adapt.files.folders import output_folder
from sparse_adapt.files.place import Place, portable
from sparse_adapt.lab.demo.scorecard import measure, read_scene
from sparse_adapt.lab.demo.verdict import ALONE, BASE, criteria, has_alone
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import Plan
from sparse_adapt.pipeline.run import (
    Finished,
    Listener,
    Silence,
    check_files,
    is_whole,
    read_by,
    read_finished,
    run_stage,
    run_stages,
    whole_run,
    write_report,
)
from sparse_adapt.selection.asked import Judged, judged_evidence
from sparse_adapt.terms.mining import read_terms


def run_demo(plan: Plan, place: Place, listener: Listener | None = None, *, alone: bool = False) -> Finished:
    """Carry out a plan on a corpus of new terms, and measure the base model and the model after each stage.

    `alone`: measure also the base model after the last stage alone, so what training does without new tokens.
    Raises InputError, before anything is trained, for a corpus that isn't of this design.
    """
    if is_whole(place):
        return _checked(whole_run(plan, place.folder), alone)
    listener = listener or Silence()
    check_files(plan)
    assert plan.corpus is not None
    scene = read_scene(plan.corpus, [term.text for term in read_terms(plan.files["terms"])])
    with output_folder(place.reading(read_by(plan))) as work:
        outcomes = run_stages(plan, work, listener)
        models = {BASE: plan.model}
        if alone:
            models[ALONE] = str(_fine_tuned_alone(plan, work, listener))
        models |= {stage: str(outcome.folder) for stage, outcome in zip(plan.stages, outcomes, strict=True)}
        progress = listener.begin("measure")
        columns = []
        for number, (name, model) in enumerate(models.items(), start=1):
            figures = measure(SparseEncoder.load(model), scene)
            columns.append({"name": name, "model": portable(model, work, work), **figures})
            if progress is not None:
                progress(number, len(models), {})
        shown: dict[str, Any] = {
            "terms": [texts.term for texts in scene.terms],
            "hard_queries": {query.query_id: query.text for query in scene.hard_queries},
            "columns": columns,
            "criteria": [each._asdict() for each in criteria(columns[0], columns[-1])],
        }
        base, final = SparseEncoder.load(plan.model), SparseEncoder.load(outcomes[-1].folder)
        evidence = judged_evidence(base, final, Judged.of(plan.corpus, work))
        write_report(work, plan, outcomes, {"demo": shown, "evidence": evidence})
    return read_finished(place.folder)


def _fine_tuned_alone(plan: Plan, work: Path, listener: Listener) -> Path:
    """The folder of the base model after the last stage alone."""
    last = plan.stages[-1]
    return run_stage(last, plan, plan.model, work / f"{last}-{ALONE}", listener, name=ALONE).folder


def _checked(finished: Finished, alone: bool) -> Finished:
    """A finished run that is a demo, and has what was asked for."""
    if "demo" not in finished.report:
        raise ConfigError(f"{finished.folder}: a run that isn't the demo's; choose another -o")
    if alone and not has_alone(finished.report):
        raise ConfigError(
            f"{finished.folder}: finished without fine-tuning alone; choose another -o, or leave out --alone"
        )
    return finished
