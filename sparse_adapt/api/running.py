"""Runs of several stages, and the pages that show them: `demo`, `run`, `report` and `explore`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from sparse_adapt.api.checks import (
    a_corpus,
    a_folder,
    a_run_file,
    check_free_file,
    check_output,
    run_file,
    some_queries,
)
from sparse_adapt.api.following import exported, line, lines_to_measure
from sparse_adapt.api.options import (
    MODEL_HELP,
    TRAINING,
    Html,
    LatestCorpus,
    Option,
    Overwrite,
    Resume,
    declared,
    model_option,
    out_option,
)
from sparse_adapt.api.results import After, CommandResult, Tables, Written
from sparse_adapt.api.runs import BASE, BUNDLED, RUNS, latest_folder, of_run, run_folder
from sparse_adapt.errors import ConfigError
from sparse_adapt.files.place import Place
from sparse_adapt.report.messages import say
from sparse_adapt.report.progress import duration, progress_bars
from sparse_adapt.report.sections import Picture, Section, untitled
from sparse_adapt.report.tables import Column, Row, Table

if TYPE_CHECKING:
    from sparse_adapt.api.models import ModelLike
    from sparse_adapt.pipeline.plan import Plan
    from sparse_adapt.pipeline.report import Report
    from sparse_adapt.pipeline.vary import Varied

CHANGES = "Change against the plan's own value"
Preset = Annotated[
    str,
    Option(
        "default, or published for the published recipe, experiment H4.", metavar="NAME", panel="Training"
    ),
]


@dataclass(frozen=True, repr=False)
class Demo(CommandResult):
    """A run of all stages on a bundled corpus, with what each gained."""

    folder: Path
    model: Path
    corpus: str
    report: "Report"
    full: bool = False

    @property
    def headline(self) -> str:
        """The folder of the run."""
        return str(self.folder)

    def to_dict(self) -> dict[str, object]:
        """The report of the run."""
        return dict(self.report)

    def rows(self) -> Sequence[Row]:
        """Each model that was measured."""
        from sparse_adapt.pipeline.demo_report import tabulate_demo

        return tabulate_demo(self.report).rows

    def sections(self) -> Sequence[Section]:
        """The table of what each stage gained, and the ruling."""
        from sparse_adapt.pipeline.demo_report import tabulate_demo
        from sparse_adapt.pipeline.report import ruling_parts

        return untitled(tabulate_demo(self.report, full=self.full), *ruling_parts(self.report))

    def after(self) -> After:
        """What was written; a question to ask the model, a term to look into, and how its vectors are written."""
        shown, named = self.report["demo"], of_run(self.model, self.folder, self.corpus)
        question = next(iter(shown["hard_queries"].values()))
        steps = [line("explain", question, *named), line("diagnose", shown["terms"][0], *named)]
        steps.append(exported(str(self.model), self.corpus, f"{self.folder}-export"))
        wrote = [(self.folder, f"a folder a stage, and {self.folder / 'report.json'}")]
        return After(wrote=wrote, run=self.folder, next_steps=steps)


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
) -> Demo:
    """Adapt a model to a bundled corpus; show what each stage gains.

    The table at the end compares the base model and the model after each stage; a ruling says whether to use it.

    >>> import sparse_adapt as sa
    >>> sa.demo(out="my-demo").model  # doctest: +SKIP
    PosixPath('my-demo/4-distill')
    """
    from sparse_adapt.pipeline.demo_report import first_look
    from sparse_adapt.pipeline.plan import make_plan

    plan = make_plan(corpus, model=model, preset=preset, overrides=settings)
    place = Place(run_folder(corpus) if out is None else Path(out), overwrite, resume)
    say(f"all stages on {corpus}")
    for each in first_look(plan):
        say(each)
    # only now: what measures is slow to import
    from sparse_adapt.pipeline.demo import expected_of_demo, run_demo
    from sparse_adapt.pipeline.estimate import describe

    if not resume:
        check_output(place)  # before the trial
        for each in describe(expected_of_demo(plan)):
            say(each)
    with progress_bars(progress) as bars:
        done = run_demo(plan, place, bars, alone=alone)
    return Demo(place.folder, done.model, corpus, done.report, full)


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
) -> "Tables | Sensitivity":
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
        return Tables(text, [text.rstrip("\n")])
    if file is None:
        raise ConfigError("run needs a run file; make one with: sparse-adapt run --template > run.toml")
    from sparse_adapt.pipeline.runfile import read_plan

    plan = read_plan(run_file(file), settings)
    stem = Path(file).stem if vary is None else f"{Path(file).stem}-vary"
    folder = RUNS / stem if out is None else Path(out)
    place = Place(folder, overwrite, resume)
    check_output(place)
    if vary is not None:
        return _varied(plan, vary, place, progress)
    from sparse_adapt.pipeline.estimate import describe, expected_of_run
    from sparse_adapt.pipeline.report import ruling_parts
    from sparse_adapt.pipeline.run import run as carry_out

    if not resume and (rows := expected_of_run(plan)):
        for each in describe(rows):
            say(each)
    with progress_bars(progress) as bars:
        done = carry_out(plan, place, bars)
    wrote = [(folder, f"{len(plan.stages)} stages, the last model in {done.model}")]
    steps = [] if done.corpus is None else lines_to_measure(plan.model, done.model, done.corpus)
    shown = ruling_parts(done.report)
    return Tables(
        done.report, shown, After(wrote=wrote, run=done.folder, next_steps=steps, shows=bool(shown))
    )


def _varied(plan: "Plan", values: str, place: Place, progress: bool | None) -> "Sensitivity":
    """A plan carried out for each value of a setting. What it may take is said first."""
    from sparse_adapt.pipeline.vary import expected_seconds, read_variation
    from sparse_adapt.pipeline.vary import vary as carry_out

    variation = read_variation(values, plan)
    shared = plan.stages[: plan.stages.index(variation.stage)]
    message = f"{variation.setting} with {len(variation.values)} values, the first the plan's own"
    message += f"; {', '.join(shared)} once" if shared else ""
    say(f"{message}; in all about {duration(expected_seconds(plan, variation))}")
    with progress_bars(progress) as bars:
        return Sensitivity(place.folder, carry_out(plan, variation, place, bars))


@dataclass(frozen=True, repr=False)
class Sensitivity(CommandResult):
    """What each value of a setting brings, and its change against the plan's own value, which comes first."""

    folder: Path
    record: "Varied"

    @property
    def headline(self) -> str:
        """The setting and its values."""
        return f"{self.record['setting']} = {', '.join(self.record['values'])}"

    def to_dict(self) -> dict[str, object]:
        """The setting, its values and the measures of each."""
        return dict(self.record)

    def rows(self) -> Sequence[Row]:
        """A row for each value and measure."""
        return [
            {"value": row["value"], "measure": name, "figure": figure, "change": row["change"].get(name)}
            for row in self.record["rows"]
            for name, figure in row["measures"].items()
        ]

    def sections(self) -> Sequence[Section]:
        """A table of figures, one of changes, and a picture of these."""
        return untitled(
            self._table("measures", "", 3), self._table("change", CHANGES, 3, signed=True), self._lines()
        )

    def _table(
        self, key: Literal["measures", "change"], title: str, decimals: int, *, signed: bool = False
    ) -> Table:
        """A row for each measure, a column for each value."""
        rows = self.record["rows"]
        names = list(dict.fromkeys(name for row in rows for name in row[key]))
        columns = [
            Column(
                str(place),
                row["value"] if place else f"{row['value']} (own)",
                decimals=decimals,
                signed=signed,
            )
            for place, row in enumerate(rows)
        ]
        cells: list[Row] = [
            {"measure": name, **{str(place): row[key].get(name) for place, row in enumerate(rows)}}
            for name in names
        ]
        return Table(title, (Column("measure", self.record["setting"], "text"), *columns), cells)

    def _lines(self) -> Picture:
        """The change of each measure over the values."""
        from sparse_adapt.report.charts import lines

        order = [row["value"] for row in self.record["rows"]]
        title = f"{CHANGES}, over the values of {self.record['setting']}"
        return lines(CHANGES, self.rows(), "value", "change", "measure", order=order, description=title)

    def after(self) -> After:
        """What was written."""
        contents = f"a folder for each of {len(self.record['rows'])} values, and vary.json"
        return After(wrote=[(self.folder, contents)], title=self.headline)


@declared
def write_report(
    run: Annotated[
        str | Path | None,
        Option(
            "The folder of a finished run; by default the latest. Also as --run.",
            metavar="RUN",
            place=True,
            check=a_folder,
        ),
    ] = None,
    out: Annotated[str | Path | None, out_option("The page to write; by default RUN/report.html.")] = None,
    *,
    queries: Annotated[
        str | Path | None,
        Option(
            "Queries of your users: which of them activate a new term.", metavar="FILE", check=some_queries
        ),
    ] = None,
    overwrite: Overwrite = False,
    progress: bool | None = None,
) -> Written:
    """Write the page of a run: what was gained and lost, and why.

    One HTML file that needs no network and no script. demo, adapt and run write it at their end.

    >>> import sparse_adapt as sa
    >>> sa.write_report("runs/gatrocraptic", "page.html").path  # doctest: +SKIP
    PosixPath('page.html')
    """
    folder = latest_folder() if run is None else Path(run)
    target = None if out is None else Path(out)
    check_free_file(None if target is None else Place(target, overwrite, reads=[queries]), "page")
    from sparse_adapt.pages.run import PARTS, write_run_page

    with progress_bars(progress) as bars:
        query_text = None if queries is None else str(queries)
        place = write_run_page(folder, target, query_text, bars.count("parts of the page", PARTS))
    return Written(place, "a page to open in a browser")


@declared
def explore(
    run: Annotated[
        str | None,
        Option(
            "A finished run, whose base model stands beside the final one, or a model; by default the latest run. "
            "Also as --run.",
            metavar="RUN_OR_MODEL",
            place=True,
        ),
    ] = None,
    *,
    baseline: Annotated["ModelLike | None", model_option(f"The model beside it. {MODEL_HELP}")] = None,
    corpus: LatestCorpus = None,
    port: Annotated[int, Option("Where to listen; 0 takes any that is free.", ge=0, le=65_535)] = 8765,
    saves: Annotated[str | Path, Option("The folder in which the slider saves models.", metavar="DIR")] = ".",
    progress: bool | None = None,
) -> None:
    """Open a local web page on which you ask a model why.

    Queries, terms, documents, and a slider for each term. It answers this machine alone, until Ctrl-C ends it.

    >>> import sparse_adapt as sa
    >>> sa.explore("adapted")  # doctest: +SKIP
    """
    place = str(latest_folder()) if run is None else run
    from sparse_adapt.pages.explorer.server import listen, serve
    from sparse_adapt.pages.explorer.subject import explored, find_places

    named = [None if each is None else str(each) for each in (baseline, corpus)]
    places = find_places(place, *named)
    listening = listen(port)
    with progress_bars(progress) as bars:
        subject = explored(places, bars.count)
    serve(subject, listening, Path(saves), lambda address: say(f"open {address} (Ctrl-C ends it)"))
