"""The stages in their order: one row, and one file, a stage.

A stage's file loads when the stage is named, and torch when it is built.
"""

from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from sparse_adapt.errors import ConfigError, unknown
from sparse_adapt.registry import StageRow, registry

if TYPE_CHECKING:
    from sparse_adapt.stages.stage import Stage


STAGES = (
    StageRow(
        "extend",
        "sparse_adapt.stages.extend:EXTEND",
        "Add a token to a model for each new term.",
        usual=("default", "published"),
        in_adapt=True,
        of_glossary=True,
    ),
    StageRow(
        "preserve",
        "sparse_adapt.stages.preserve:PRESERVE",
        "Train an extended model to behave as before its extension.",
        in_adapt=True,
    ),
    StageRow(
        "warmup",
        "sparse_adapt.stages.warmup:WARMUP",
        "Train the new tokens on the texts of a corpus.",
        usual=("default", "published"),
        in_adapt=True,
    ),
    StageRow(
        "dictionary",
        "sparse_adapt.stages.dictionary:DICTIONARY",
        "Train with definitions of the new terms.",
        usual=("default", "published"),
        in_adapt=True,
        of_glossary=True,
    ),
    StageRow(
        "rank",
        "sparse_adapt.stages.rank:RANK",
        "Train the whole model to rank documents as a teacher does.",
        in_adapt=True,
        without_terms=True,
    ),
    StageRow(
        "distill",
        "sparse_adapt.stages.distill:DISTILL",
        "Train the whole model to score documents as a teacher does.",
        usual=("default",),
    ),
)


def every_stage() -> tuple[StageRow, ...]:
    """The rows of all stages in their order, each of a plug-in behind the stage that it follows."""
    rows = [*STAGES]
    for added in registry().stages:
        places = [place for place, row in enumerate(rows, start=1) if row.name == added.after]
        rows.insert(places[0] if places else len(rows), added)
    return tuple(rows)


def stages_of_adapt() -> tuple[str, ...]:
    """The names of the stages whose inputs `adapt` makes."""
    return tuple(row.name for row in every_stage() if row.in_adapt)


def usual_stages(preset: str = "default") -> tuple[str, ...]:
    """The stages of a run that names none; a preset without stages of its own has those of the default."""
    usual = tuple(row.name for row in every_stage() if preset in row.usual)
    return usual or usual_stages()


def row_of(name: str) -> StageRow:
    """The row of a stage. Raises ConfigError for a name that isn't in the table."""
    for row in every_stage():
        if row.name == name:
            return row
    raise ConfigError(unknown("stage", name, stage_names()))


def stage_names() -> tuple[str, ...]:
    """The names of all stages in their order."""
    return tuple(row.name for row in every_stage())


def trained() -> tuple[str, ...]:
    """The names of the stages that train, and have settings."""
    return tuple(name for name in stage_names() if find_stage(name).trains)


def find_stage(name: str) -> "Stage[Any]":
    """The stage of that name. Raises ConfigError for a name that isn't in the table."""
    return _loaded(row_of(name))


@cache
def _loaded(row: StageRow) -> "Stage[Any]":
    from sparse_adapt.stages.stage import Stage

    stage = resolve_name(row.place)
    assert isinstance(stage, Stage) and stage.name == row.name, row
    return stage
