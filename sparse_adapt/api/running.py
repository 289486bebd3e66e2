"""Runs of several stages, and the pages that show them: `demo`, `run`, `report` and `explore`."""

from pathlib import Path
from typing import Annotated, Any

from sparse_adapt.api.checks import (
    a_corpus,
    a_run_file,
    check_output,
    run_file,
)
from sparse_adapt.api.following import exported, line, lines_to_measure
from sparse_adapt.api.options import (
    TRAINING,
    Html,
    Option,
    Overwrite,
    Resume,
    declared,
    model_option,
    out_option,
)
from sparse_adapt.api.runs import BASE, BUNDLED, RUNS, of_run, run_folder
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.registry import registry
from sparse_adapt.report.messages import note_told, say
from sparse_adapt.report.progress import progress_bars
from sparse_adapt.report.results import Result

CHANGES = "Change against the plan's own value"
Preset = Annotated[
    str,
    Option(
        "default, or published for the published recipe, experiment H4.", metavar="NAME", panel="Training"
    ),
]


@declared
def demo(
    corpus: Annotated[
        str,
        Option(
            "gatrocraptic, coined or a folder like them. Also as --corpus.",
            metavar="CORPUS",
            place=True,
            check=a_corpus,
        ),
    ] = BUNDLED,
    out: Annotated[str | Path | None, out_option("Run folder; by default runs/CORPUS.", "DIR")] = None,
    *,
    model: Annotated[str, model_option()] = BASE,
    overwrite: Overwrite = False,
    resume: Resume = False,
    preset: Preset = "default",
    alone: Annotated[
        bool, Option("Show also fine-tuning without new tokens; a minute or more of training.")
    ] = False,
    full: Annotated[
        bool, Option("Print every figure of the table, and not only the ten rows that decide.")
    ] = False,
    progress: bool | None = None,
    **settings: Annotated[Any, TRAINING],  # noqa: ANN401 - checked by their own types
) -> Result:
    """Adapt a model to a bundled corpus; show what each stage gains.

    The table at the end compares the base model and the model after each stage; a ruling says whether to use it.

    >>> import sparse_adapt as sa
    >>> sa.demo(out="my-demo").model  # doctest: +SKIP
    PosixPath('my-demo/4-distill')
    """
    from sparse_adapt.pipeline.demo_report import first_look, tabulate_demo
    from sparse_adapt.pipeline.plan import make_plan

    plan = make_plan(corpus, model=model, preset=preset, overrides=settings)
    place = Place(run_folder(corpus) if out is None else Path(out), overwrite, resume)
    note_told()  # general passages that are too long, which are read as well, don't matter to a user
    say(f"all stages on {corpus}")
    for each in first_look(plan):
        say(each)
    # only now: what measures is slow to import
    from sparse_adapt.pipeline.demo import run_demo
    from sparse_adapt.pipeline.estimate import of_plan
    from sparse_adapt.pipeline.report import ruling_parts
    from sparse_adapt.selection.questions import SOME

    if not resume:
        check_output(place)  # before the trial
        for each in of_plan(plan, len(plan.stages) + 1, SOME).lines():
            say(each)
    with progress_bars(progress) as bars:
        done = run_demo(plan, place, bars, alone=alone)
    folder, report = place.folder, done.report
    shown, named = report["demo"], of_run(done.model, folder, corpus)
    return Result(
        str(folder),
        dict(report),
        [tabulate_demo(report, full=full), *ruling_parts(report)],
        [(folder, f"a folder a stage, and {folder / 'report.json'}")],
        [
            line("explain", next(iter(shown["hard_queries"].values())), *named),
            line("diagnose", shown["terms"][0], *named),
            exported(str(done.model), corpus, f"{folder}-export"),
        ],
        rows=tabulate_demo(report).rows,
        run_folder=folder,
        folder=folder,
        model=done.model,
        corpus=corpus,
        report=report,
    )


@declared
def run(
    file: Annotated[
        str | Path | None,
        Option(
            "The stages, their settings and what they read; H1, H2, H3 or H4 for a published experiment.",
            metavar="RUN.TOML",
            place=True,
            check=a_run_file,
        ),
    ] = None,
    out: Annotated[
        str | Path | None, out_option("Run folder to write.", "DIR", shown="runs/ and the file's name")
    ] = None,
    *,
    template: Annotated[
        bool, Option("Print a run file to fill in, every key explained; with RUN.TOML that file.")
    ] = False,
    vary: Annotated[
        str | None,
        Option(
            "Carry the file out once for each of these values of a setting, and compare what they bring: "
            "distill.tau=0.5,2 or distill.weights.kd=0,2.",
            metavar="STAGE.SETTING=V,V",
        ),
    ] = None,
    html: Html = None,
    overwrite: Overwrite = False,
    resume: Resume = False,
    progress: bool | None = None,
    **settings: Annotated[Any, TRAINING],  # noqa: ANN401 - checked by their own types
) -> Result:
    """Carry out the stages that a file (run.toml) names.

    Options given here replace what the file says.

    >>> import sparse_adapt as sa
    >>> "stages" in sa.run(template=True).to_dict()
    True
    >>> sa.run("run.toml", "my-run", steps=100)  # doctest: +SKIP
    """
    if html is not None and vary is None:
        raise ConfigError("--html is for --vary; a run has a page of its own, report.html")
    if template:
        from sparse_adapt.pipeline.template import run_template

        text = run_template() if file is None else run_file(file).read_text(encoding="utf-8")
        return Result("a run file to fill in", text, [text.rstrip("\n")])
    if file is None:
        raise ConfigError("run needs a run file; make one with: sparse-adapt run --template > run.toml")
    from sparse_adapt.pipeline.runfile import read_plan

    plan = read_plan(run_file(file), settings)
    stem = Path(file).stem if vary is None else f"{Path(file).stem}-vary"
    folder = RUNS / stem if out is None else Path(out)
    place = Place(folder, overwrite, resume)
    check_output(place)
    if vary is not None:
        varied: Result = registry().find("options", "run --vary")(plan, vary, place, progress)
        return varied
    from sparse_adapt.pipeline.estimate import of_plan
    from sparse_adapt.pipeline.report import ruling_parts
    from sparse_adapt.pipeline.run import run as carry_out

    for each in () if resume else of_plan(plan).lines():
        say(each)
    with progress_bars(progress) as bars:
        done = carry_out(plan, place, bars)
    wrote = [(folder, f"{len(plan.stages)} stages, the last model in {done.model}")]
    steps = [] if done.corpus is None else lines_to_measure(plan.model, done.model, done.corpus)
    shown = ruling_parts(done.report)
    return Result(str(folder), done.report, shown, wrote, steps, run_folder=done.folder, quiet=not shown)
