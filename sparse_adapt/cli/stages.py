"""Every stage as a command, made from its row: options from what it reads and from its settings.

A stage's file, which holds its settings, loads when its command is asked for.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from sparse_adapt.api.checks import a_corpus, a_file_or_folder, a_model, check_output
from sparse_adapt.api.following import after_stage, flag_of, lines_to_measure
from sparse_adapt.api.options import (
    CORPUS_HELP,
    Declared,
    Option,
    Out,
    Overwrite,
    Resume,
    model_option,
    options_of,
)
from sparse_adapt.api.runs import BASE
from sparse_adapt.cli.commands import (
    OptionField,
    choice_of,
    present,
    settings_choices,
    settings_given,
    typer_command,
)
from sparse_adapt.files.place import Place
from sparse_adapt.registry import StageRow
from sparse_adapt.report.messages import say
from sparse_adapt.report.progress import Bars
from sparse_adapt.report.results import written
from sparse_adapt.stages.table import find_stage

if TYPE_CHECKING:
    from sparse_adapt.stages.inputs import Input
    from sparse_adapt.stages.stage import Stage

OWN, TRAINING = "Settings of this stage", "Training"
WROTE = "a model for transformers, sentence-transformers and tokenizers"
BY_DEFAULT = {
    "inherited": " By default what the stage before read.",
    "beside": " By default what lies beside the corpus.",
    "named": " By default what the model's folder says.",
}
THEN_PAIRS = Option(
    "Go on with `contrast --form nt-xent` on these pairs. DIR is a run then, with a folder a stage.",
    metavar="FILE",
    check=a_file_or_folder,
)


def stage_command(row: StageRow) -> TyperCommand:
    """The command of a stage."""
    stage = find_stage(row.name)
    places = _places(stage)
    settings = list(_settings(stage)) if stage.has_settings else []

    def carry_out(context: typer.Context, options: Mapping[str, object]) -> None:
        for each in places:
            each.check(options[each.name], each.flag)
        names = (
            [name for name in stage.settings.model_fields if name in options] if stage.has_settings else []
        )
        _carry_out(stage, options, settings_given(context, names))

    description = f"{row.summary}\n\n{stage.settings.__doc__ or ''}"
    return typer_command(row.name, description, [*map(choice_of, places), *settings], carry_out)


def _written(out: Out, overwrite: Overwrite = False, resume: Resume = False) -> None:
    """What every stage takes of the place that it writes."""


def _places(stage: "Stage[Any]") -> list[Declared]:
    """Where a stage's model and inputs are, and where it writes."""
    model = Declared("model", str, model_option())
    places = [model if stage.trains else model._replace(default=BASE)]
    places += [_input(each) for each in stage.reads]
    places += options_of(_written).values()
    if stage.name == "dynamic":
        places.append(Declared("pairs", str, THEN_PAIRS, None))
    return places


def _input(wanted: "Input[object]") -> Declared:
    description = f"{wanted.description[0].upper()}{wanted.description[1:]}"
    if wanted.key == "corpus":
        about, mark, check = CORPUS_HELP, "CORPUS", a_corpus
    elif wanted.file:
        about, mark, check = f"{description}: {wanted.file}, or a folder with one.", "FILE", a_file_or_folder
    else:
        about, mark, check = f"{description}.", "MODEL", a_model
    about += BY_DEFAULT.get(wanted.source, "")
    declared = Declared(wanted.key, str, Option(about, flag_of(wanted.key), mark, check=check))
    return declared if wanted.needed else declared._replace(default=None)


def _settings(stage: "Stage[Any]") -> Iterator[OptionField]:
    """An option for each setting of a stage, and one for its presets."""
    from sparse_adapt.training.settings import Training

    shared = set(Training.model_fields)
    for each in settings_choices(stage.settings, tuple(stage.settings.model_fields)):
        yield each.in_panel(TRAINING if each.name in shared else OWN)
    if stage.presets and stage.trains:
        named = ", ".join(dict.fromkeys(["default", *stage.presets]))
        description = f"Settings under a name: {named}. Other options go before them."
        option = Option(description, metavar="NAME", panel=TRAINING)
        yield choice_of(Declared("preset", str, option, "default"))


def _carry_out(stage: "Stage[Any]", options: Mapping[str, Any], arguments: Mapping[str, object]) -> None:
    """Carry out one stage as it stands on the command line, and say what follows."""
    from sparse_adapt.pipeline.plan import settings_of

    preset, out = options.get("preset", "default"), Path(options["out"])
    name = stage.name
    settings = settings_of(name, preset, arguments) if stage.has_settings else None
    place = Place(out, options["overwrite"], options["resume"])
    check_output(place)
    if stage.name == "dynamic" and options["pairs"] is not None:
        _teach_both(options, arguments)
        return
    from sparse_adapt.stages.runner import carry_out_stage

    named = {each.key: options[each.key] for each in stage.reads if options[each.key] is not None}
    with Bars() as bars:
        progress = bars.begin(name) if stage.trains else None
        outcome = carry_out_stage(name, options["model"], named, place, settings, progress)
    for each in (*outcome.epochs, outcome.message):
        say(each)
    steps = after_stage(name, options["model"], outcome.folder, named | outcome.files)
    present(written(outcome.folder, WROTE, steps), json=False)


def _teach_both(options: Mapping[str, Any], arguments: Mapping[str, object]) -> None:
    """The words and then the pairs, as a run of two stages."""
    from sparse_adapt.pipeline.plan import Plan, settings_for
    from sparse_adapt.pipeline.run import run

    known = find_stage("contrast").settings.model_fields
    preset = options["preset"]
    of_both = {key: value for key, value in arguments.items() if key in known and key != "weights"}
    plan = Plan(
        model=options["model"],
        corpus=options["corpus"],
        stages=("dynamic", "contrast"),
        preset=preset,
        files={"pairs": options["pairs"]},
        settings={
            "dynamic": settings_for("dynamic", preset, arguments),
            "contrast": settings_for("contrast", preset, {**of_both, "form": "nt-xent"}),
        },
    )
    with Bars() as bars:
        place = Place(Path(options["out"]), options["overwrite"], options["resume"])
        finished = run(plan, place, bars)
    steps = lines_to_measure(options["model"], finished.model, options["corpus"])
    message = f"a folder a stage; the model is in {finished.model}"
    present(written(finished.folder, message, steps), json=False)
