"""Every stage as a command, made from its row: options from what it reads and from its settings; and `run`.

A stage's file, which holds its settings, loads when its command is asked for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import Parameter, Signature
from pathlib import Path
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import typer

from sparse_adapt.api.checks import (
    a_corpus,
    a_device,
    a_file_or_folder,
    a_model,
    a_model_or_none,
    a_run_file,
    check_output,
    run_file,
)
from sparse_adapt.api.following import after_stage, flag_of, measured
from sparse_adapt.api.runs import RUNS
from sparse_adapt.cli.commands import page_of
from sparse_adapt.cli.console import show, then, wrote
from sparse_adapt.cli.options import (
    CORPUS_HELP,
    TRAINING,
    Model,
    Out,
    Overwrite,
    Resume,
    checked,
    is_given,
    overrides,
    trains,
)
from sparse_adapt.errors import ConfigError
from sparse_adapt.report.messages import say
from sparse_adapt.report.progress import Bars
from sparse_adapt.stages.table import STAGES, Row, find_stage

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from sparse_adapt.stages.inputs import Input
    from sparse_adapt.stages.runner import Outcome
    from sparse_adapt.stages.stage import Stage

BASE_MODEL = "splade-tiny"  # what a stage begins with that needs no stage before it
OWN = "Settings of this stage"
MARKS = {int: "N", float: "X", str: "NAME"}
CHECKS = {"device": a_device, "judge": a_model_or_none}  # of settings that name what may not be there


class Choice(NamedTuple):
    """One option of a command: the name of its parameter, its type with what typer knows of it, its default."""

    name: str
    kind: Any
    default: Any = Parameter.empty


def main_path() -> tuple[Row, ...]:
    """The rows of the stages that aren't research."""
    return tuple(row for row in STAGES if not row.is_research)


def stage_command(row: Row) -> Callable[..., None]:
    """The command of a stage."""
    stage = find_stage(row.name)
    choices = [Choice("invocation", typer.Context), *_places(stage), *_settings(stage)]
    if row.name == "dynamic":
        choices.append(THEN_PAIRS)

    def command(invocation: typer.Context, **options: object) -> None:
        _carry_out(stage, invocation)

    command.__name__ = row.name
    command.__doc__ = f"{row.summary}\n\n{stage.settings.__doc__ or ''}"
    command.__annotations__ = {each.name: each.kind for each in choices}
    command.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=each.kind)
            for each in choices
        ]
    )
    return command


# -- options ----------------------------------------------------------------------------------------


def _places(stage: "Stage[Any]") -> Iterator[Choice]:
    """Where a stage's model and inputs are, and where it writes."""
    yield Choice("model", Model) if stage.trains else Choice("model", Model, BASE_MODEL)
    for each in stage.reads:
        yield _input(each)
    yield Choice("out", Out)
    yield Choice("overwrite", Overwrite, False)
    yield Choice("resume", Resume, False)


def _input(wanted: "Input[Any]") -> Choice:
    description = f"{wanted.description[0].upper()}{wanted.description[1:]}"
    if wanted.key == "corpus":
        told, mark, check = CORPUS_HELP, "CORPUS", a_corpus
    elif wanted.file:
        told, mark, check = f"{description}: {wanted.file}, or a folder with one.", "FILE", a_file_or_folder
    else:
        told, mark, check = f"{description}.", "MODEL", a_model
    by_default = {
        "inherited": " By default what the stage before read.",
        "beside": " By default what lies beside the corpus.",
        "named": " By default what the model's folder says.",
    }
    option = typer.Option(
        flag_of(wanted.key),
        metavar=mark,
        help=told + by_default.get(wanted.source, ""),
        callback=checked(check),
    )
    if wanted.needed:
        return Choice(wanted.key, Annotated[str, option])
    return Choice(wanted.key, Annotated[str | None, option], None)


def _settings(stage: "Stage[Any]") -> Iterator[Choice]:
    """An option for each setting of a stage that trains, and one for its presets."""
    if not stage.trains:
        return
    from sparse_adapt.training.settings import Training

    for name, field in stage.settings.model_fields.items():
        yield _setting(name, field, TRAINING if name in Training.model_fields else OWN)
    if stage.presets:
        named = ", ".join(dict.fromkeys(["default", *stage.presets]))
        told = f"Settings under a name: {named}. Other options go before them."
        option = typer.Option("--preset", metavar="NAME", help=told, rich_help_panel=TRAINING)
        yield Choice("preset", Annotated[str, option], "default")


def _setting(name: str, field: "FieldInfo", panel: str) -> Choice:
    """The option of one setting; those of a table within are given as KEY=VALUE, any number of times."""
    kind, flag, told = _scalar(field.annotation), f"--{name.replace('_', '-')}", _told(name, field)
    if kind is bool:
        flags = f"{flag}/--no-{name.replace('_', '-')}" if field.default else flag
        option = typer.Option(flags, help=told, rich_help_panel=panel)
        return Choice(name, Annotated[bool, option], field.default)
    if kind in MARKS:
        check = checked(CHECKS[name]) if name in CHECKS else None
        option = typer.Option(flag, metavar=MARKS[kind], help=told, rich_help_panel=panel, callback=check)
        return Choice(name, Annotated[kind | None, option], field.default)
    keys = ", ".join(
        key if each.default is None else f"{key} {each.default:g}" for key, each in kind.model_fields.items()
    )
    option = typer.Option(
        flag, metavar="KEY=VALUE", help=f"{told} Keys, with their defaults: {keys}.", rich_help_panel=panel
    )
    return Choice(name, Annotated[list[str] | None, option], None)


def _scalar(annotation: Any) -> Any:  # noqa: ANN401 - types
    """The type of what is written on a command line: that of a choice is its names', None counts for nothing."""
    if get_origin(annotation) in (Union, UnionType):
        (annotation,) = (each for each in get_args(annotation) if each is not NoneType)
    return str if get_origin(annotation) is Literal else annotation


def _told(name: str, field: "FieldInfo") -> str:
    """What a setting means, its choices where it has some, and its unit where its description leaves it out."""
    told = field.description or ""
    extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
    unit = str(extra.get("unit", ""))
    if get_origin(field.annotation) is Literal:
        told += f" Choose {', '.join(map(str, get_args(field.annotation)))}."
    if unit and unit.casefold() not in f"{name} {told}".casefold():
        told += f" Unit: {unit}."
    return told


def _given(stage: "Stage[Any]", context: typer.Context) -> dict[str, Any]:
    """The settings that stand on the command line, under their own names."""
    given: dict[str, Any] = {}
    for name in stage.settings.model_fields if stage.trains else ():
        if is_given(context, name):
            value = context.params[name]
            given[name] = _table(name, value) if isinstance(value, list | tuple) else value
    return given


def _table(name: str, words: Iterable[str]) -> dict[str, Any]:
    """Settings of a table within, from words such as anchor=20."""
    table: dict[str, Any] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            raise ConfigError(
                f"--{name.replace('_', '-')} {word}: write KEY=VALUE, with the name of a key before ="
            )
        try:
            table[key.strip()] = float(value)
        except ValueError as error:
            raise ConfigError(f"--{name.replace('_', '-')} {word}: {value!r} is no number") from error
    return table


# -- carrying out -----------------------------------------------------------------------------------


def _carry_out(stage: "Stage[Any]", context: typer.Context) -> None:
    """Carry out one stage as it stands on the command line, and say what follows."""
    from sparse_adapt.pipeline.plan import settings_for

    options, given = context.params, _given(stage, context)
    preset = options.get("preset", "default")
    settings = settings_for(stage.name, preset, given) if stage.trains else None
    check_output(options["out"], overwrite=options["overwrite"], resume=options["resume"])
    if stage.name == "dynamic" and options["pairs"] is not None:
        _teach_both(options, given)
        return
    from sparse_adapt.files.place import Place
    from sparse_adapt.stages.runner import carry_out

    named = {each.key: options[each.key] for each in stage.reads if options[each.key] is not None}
    place = Place(options["out"], options["overwrite"], options["resume"])
    with Bars() as bars:
        progress = bars.begin(stage.name) if stage.trains else None
        outcome = carry_out(stage.name, options["model"], named, place, settings, progress)
    told(outcome)
    then(*after_stage(stage.name, options["model"], outcome.folder, named | outcome.files))


def told(outcome: "Outcome") -> None:
    """What a stage did, and where its model is."""
    say(outcome.said)
    wrote(outcome.folder, "a model for transformers, sentence-transformers and tokenizers")


THEN_PAIRS = Choice(
    "pairs",
    Annotated[
        str | None,
        typer.Option(
            "--pairs",
            metavar="FILE",
            help="Go on with `contrast --form nt-xent` on these pairs. DIR is a run then, with a folder a stage.",
            callback=checked(a_file_or_folder),
        ),
    ],
    None,
)


def _teach_both(options: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """The words and then the pairs, as a run of two stages."""
    from sparse_adapt.pipeline.plan import Plan, settings_for

    known = find_stage("contrast").settings.model_fields
    of_both = {key: value for key, value in given.items() if key in known and key != "weights"}
    plan = Plan(
        model=options["model"],
        corpus=options["corpus"],
        stages=("dynamic", "contrast"),
        preset="default",
        files={"pairs": options["pairs"]},
        settings={
            "dynamic": settings_for("dynamic", "default", given),
            "contrast": settings_for("contrast", "default", {**of_both, "form": "nt-xent"}),
        },
    )
    from sparse_adapt.files.place import Place
    from sparse_adapt.pipeline.run import run

    with Bars() as bars:
        finished = run(plan, Place(options["out"], options["overwrite"], options["resume"]), bars)
    wrote(finished.folder, f"a folder a stage; the model is in {finished.model}")
    then(*measured(options["model"], finished.model, options["corpus"]))


@trains
def run(
    context: typer.Context,
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN.TOML",
            help="The stages, their settings and what they read; H1, H2, H3 or H4 for a published experiment.",
            callback=checked(a_run_file),
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--out",
            metavar="DIR",
            help="Run folder to write.",
            show_default="runs/ and the file's name",
        ),
    ] = None,
    template: Annotated[
        bool,
        typer.Option(
            "--template", help="Print a run file to fill in, every key explained; with RUN.TOML that file."
        ),
    ] = False,
    overwrite: Overwrite = False,
    resume: Resume = False,
) -> None:
    """Carry out the stages that a file (run.toml) names.

    Options given here replace what the file says.
    """
    if template:
        from sparse_adapt.pipeline.template import run_template

        text = run_template() if file is None else run_file(file).read_text(encoding="utf-8")
        show(text.rstrip("\n"))
        return
    if file is None:
        raise ConfigError("run needs a run file; make one with: sparse-adapt run --template > run.toml")
    from sparse_adapt.pipeline.runfile import read_plan

    plan = read_plan(run_file(file), overrides(context))
    folder = out or RUNS / file.stem
    check_output(folder, overwrite=overwrite, resume=resume)
    from sparse_adapt.files.place import Place
    from sparse_adapt.pipeline.run import run as carry_out
    from sparse_adapt.selection.rule import keeps_lines

    with Bars() as bars:
        done = carry_out(plan, Place(folder, overwrite, resume), bars)
    for line in keeps_lines(done.report.get("keeps", {})):
        show(line)
    wrote(folder, f"{len(plan.stages)} stages, the last model in {done.model}")
    page_of(done.folder)
    if done.corpus is not None:
        then(*measured(plan.model, done.model, done.corpus))
