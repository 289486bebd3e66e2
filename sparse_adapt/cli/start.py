"""Commands to start with: see it work, check what one has, adapt a model to it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from sparse_adapt.api.checks import a_corpus, a_file_or_folder, some_queries
from sparse_adapt.cli.commands import page_of
from sparse_adapt.cli.console import show, show_json, show_table, then, wrote
from sparse_adapt.cli.options import (
    BUNDLED,
    RUNS,
    CorpusArgument,
    GeneratorOption,
    Json,
    Model,
    Overlap,
    Overwrite,
    Preset,
    Resume,
    TeacherOption,
    WindowsOption,
    checked,
    is_given,
    overrides,
    trains,
)
from sparse_adapt.errors import ConfigError, unknown
from sparse_adapt.files.place import free
from sparse_adapt.report.messages import say
from sparse_adapt.report.progress import Bars
from sparse_adapt.stages.table import OF_ADAPT

FILES = {  # steps of adapt that it can stop after, and what to read then
    "terms": "terms.json",
    "dictionary": "dictionary.jsonl",
    "queries": "collection/queries.jsonl",
    "candidates": "candidates.jsonl",
    "stages": "run.toml",
}
INPUTS = ("model", "glossary", "queries", "candidates", "teacher")
NAMED = {  # what the function takes, and the options that name it
    **{
        key: key
        for key in (*INPUTS, "documents", "max_tokens", "only_new", "query_side", "windows", "overlap")
    },
    "generator": "query_generator",
}
DEMO_TAKES = "about four minutes on an idle machine"


@trains
def demo(
    context: typer.Context,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Run folder; by default runs/CORPUS.")
    ] = None,
    corpus: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help="gatrocraptic, coined or a folder like them. Also as --corpus.",
            callback=checked(a_corpus),
        ),
    ] = BUNDLED,
    model: Model = "splade-tiny",
    json: Json = False,
    overwrite: Overwrite = False,
    resume: Resume = False,
    preset: Preset = "default",
    alone: Annotated[
        bool,
        typer.Option(
            "--alone", help="Show also fine-tuning without new tokens; a minute or more of training."
        ),
    ] = False,
) -> None:
    """Adapt a model to a bundled corpus; show what each stage gains.

    The table at the end compares the base model and the model after each stage.
    """
    from sparse_adapt.files.place import Place
    from sparse_adapt.pipeline.demo_report import first_look
    from sparse_adapt.pipeline.plan import make_plan

    plan = make_plan(corpus, model=model, preset=preset, overrides=overrides(context))
    place = Place(out or RUNS / Path(corpus).resolve().name, overwrite, resume)
    say(f"all stages on {corpus}; {DEMO_TAKES if corpus == BUNDLED else 'it takes minutes'}")
    for line in first_look(plan):
        say(line)
    from sparse_adapt.pipeline.demo import run_demo  # only now: what measures is slow to import
    from sparse_adapt.pipeline.demo_report import tabulate, verdict_lines

    with Bars() as bars:
        done = run_demo(plan, place, bars, alone=alone)
    if json:
        show_json(done.report)
    else:
        show_table(tabulate(done.report))
        show("\n".join(verdict_lines(done.report)))
    wrote(place.folder, f"a folder a stage, and {place.folder / 'report.json'}")
    page_of(done.folder)
    question = next(iter(done.report["demo"]["hard_queries"].values()))
    term, named = done.report["demo"]["terms"][0], _of_run(done.model, place.folder, corpus)
    then(
        ["diagnose", term, *named],
        ["explain", question, *named],
        ["search", question, *named],
        [
            "export",
            "anserini",
            "--model",
            str(done.model),
            "--corpus",
            corpus,
            "-o",
            free(f"{place.folder}-export"),
        ],
    )


def _of_run(model: Path, folder: Path, corpus: str) -> list[str]:
    """The options that name a run's model and corpus, where commands don't find it as the latest by themselves."""
    is_found = folder.resolve().parent == RUNS.resolve()
    return [] if is_found else ["--model", str(model), "--corpus", corpus]


@trains
def adapt(
    context: typer.Context,
    corpus: CorpusArgument,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", metavar="DIR", help="Run folder; by default runs/CORPUS.")
    ] = None,
    model: Model = "splade-tiny",
    glossary: Annotated[
        str | None,
        typer.Option(
            "--glossary",
            metavar="FILE",
            help="Terms and their definitions: dictionary.jsonl, a table, TBX, SKOS or OBO. Each term gets a token "
            "and the model learns what it means.",
            callback=checked(a_file_or_folder),
        ),
    ] = None,
    queries: Annotated[
        str | None,
        typer.Option(
            "--queries",
            metavar="FILE",
            help="Queries of your users, to learn from beside made-up ones.",
            callback=checked(some_queries),
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(
            "--candidates",
            metavar="FILE",
            help="Queries with scored documents (candidates.jsonl), to learn from instead of made-up ones.",
            callback=checked(a_file_or_folder),
        ),
    ] = None,
    teacher: TeacherOption = "ensemble",
    query_generator: GeneratorOption = None,
    documents: Annotated[
        int | None,
        typer.Option(
            "--documents",
            min=8,
            help="Documents to learn from; a larger corpus is sampled.",
            show_default="20000",
        ),
    ] = None,
    stages: Annotated[
        str | None,
        typer.Option(
            "--stages",
            metavar="NAMES",
            help=f"Stages to carry out, with commas between them. There are {', '.join(OF_ADAPT)}. By default the "
            "model learns to rank, and with --glossary it learns the words as well. extend,behaviour,imitate gives "
            "words of the corpus a token that nothing defines.",
            show_default="imitate; with --glossary also extend,dictionary",
        ),
    ] = None,
    query_side: Annotated[
        str | None,
        typer.Option(
            "--query-side",
            metavar="NAME",
            help="What weighs queries of the adapted model: the model, or a table, where each token of a query has a "
            "learnt weight and no model runs.",
            show_default="model",
        ),
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(
            "--max-tokens",
            min=8,
            help="Tokens of a text that the adapted model reads; the rest is cut off.",
            show_default="as many as the base model reads",
        ),
    ] = None,
    windows: WindowsOption = None,
    overlap: Overlap = None,
    only_new: Annotated[
        bool,
        typer.Option(
            "--only-new", help="Train new tokens only, so that documents without one keep their vectors."
        ),
    ] = False,
    until: Annotated[
        str | None,
        typer.Option(
            "--until",
            metavar="STEP",
            help=f"Stop after a step, to read and edit what it made: {', '.join(FILES)}.",
        ),
    ] = None,
    json: Json = False,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Adapt a model to your own corpus. Nothing else is needed.

    Terms, definitions, queries and candidates are made from the corpus. The adapted model ends in DIR/model.
    """
    if until is not None and until not in FILES:
        raise ConfigError(unknown("step", until, tuple(FILES)))
    folder = out or RUNS / Path(corpus).resolve().name
    given = _given(context)
    _check_settings(given, folder if resume else None)
    from sparse_adapt.api.adapting import adapt as adapt_now

    done = adapt_now(corpus, folder, until=until, overwrite=overwrite, resume=resume, progress=True, **given)
    if done.stopped:
        file = done.folder / FILES[done.stopped]
        wrote(done.folder, f"up to the step {done.stopped}; read {file}, and edit it if you like")
        then(["adapt", corpus, "-o", str(folder), "--resume"])
        return
    if json:
        show_json(done.to_dict())
    else:
        show(done.renderable())
    model_folder = folder / str(done.report["final"])
    wrote(folder, f"the model in {model_folder}, and {folder / 'report.json'}")
    page_of(folder)
    named = _of_run(model_folder, folder, corpus)
    question = _question(folder / "collection")
    then(
        *([["explain", question, *named], ["search", question, *named]] if question else []),
        [
            "export",
            "anserini",
            "--model",
            str(model_folder),
            "--corpus",
            corpus,
            "-o",
            free(f"{folder}-export"),
        ],
    )


def _question(collection: Path) -> str | None:
    """A made-up query that nothing was learnt from."""
    from sparse_adapt.synthetic.queries import HELD, read_pseudo_queries

    return next((query.text for query in read_pseudo_queries(collection) if query.split == HELD), None)


def _given(context: typer.Context) -> dict[str, Any]:
    """What stands on the command line of an adaptation, as the function takes it; what was left out is left out."""
    options = context.params
    given = {key: options[option] for key, option in NAMED.items() if is_given(context, option)}
    if options["stages"] is not None:
        given["stages"] = _stages(options["stages"])
    return given | overrides(context)


def _check_settings(given: Mapping[str, Any], folder: Path | None) -> None:
    """Raise ConfigError for a value that can't be, before anything heavy loads; on top of what `folder` was asked."""
    from sparse_adapt.pipeline.request import begun, chosen_settings

    settings = {key: value for key, value in given.items() if key not in (*INPUTS, "generator", "seed")}
    if "only_new" in settings:
        settings["frozen"] = settings.pop("only_new")
    chosen_settings(None if folder is None else begun(folder), settings, given.get("seed"))


def _stages(words: str) -> tuple[str, ...]:
    """Stages that are named with commas between them, in the order in which they are carried out."""
    named = tuple(name.strip() for name in words.split(","))
    for name in named:
        if name not in OF_ADAPT:
            raise ConfigError(unknown("stage", name, OF_ADAPT))
    return tuple(name for name in OF_ADAPT if name in named)
