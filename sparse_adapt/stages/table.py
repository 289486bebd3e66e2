"""The stages in their order: one row, and one file, a stage.

A stage's file loads when the stage is named, and torch when it is built.
"""

from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple

from sparse_adapt.errors import ConfigError, unknown

if TYPE_CHECKING:
    from sparse_adapt.stages.stage import Stage


class Row(NamedTuple):
    """A stage's name, the place of its `Stage`, what it does, and where it is carried out.

    usual: the presets under which a run that names no stages has the stage; in_adapt: whether `adapt` makes its inputs;
    of_glossary: whether `adapt` carries it out where a glossary is given; without_terms: whether it has something to
    teach where there is no new term; is_research: whether it is beside the main path.
    """

    name: str
    place: str
    summary: str
    usual: tuple[str, ...] = ()
    in_adapt: bool = False
    of_glossary: bool = False
    without_terms: bool = False
    is_research: bool = False


STAGES = (
    Row(
        "extend",
        "sparse_adapt.stages.extend:EXTEND",
        "Add a token to a model for each new term.",
        usual=("default", "published"),
        in_adapt=True,
        of_glossary=True,
    ),
    Row(
        "preserve",
        "sparse_adapt.stages.preserve:PRESERVE",
        "Train an extended model to behave as before its extension.",
        in_adapt=True,
    ),
    Row(
        "warmup",
        "sparse_adapt.stages.warmup:WARMUP",
        "Train the new tokens on the texts of a corpus.",
        usual=("default", "published"),
        in_adapt=True,
    ),
    Row(
        "dictionary",
        "sparse_adapt.stages.dictionary:DICTIONARY",
        "Train with definitions of the new terms.",
        usual=("default", "published"),
        in_adapt=True,
        of_glossary=True,
    ),
    Row(
        "dynamic",
        "sparse_adapt.stages.dynamic:DYNAMIC",
        "Train on sentences whose hardest domain words are masked.",
        in_adapt=True,
        is_research=True,
    ),
    Row(
        "joint",
        "sparse_adapt.stages.pairs:JOINT",
        "Train with pairs whose new words are masked.",
        in_adapt=True,
        is_research=True,
    ),
    Row(
        "contrast",
        "sparse_adapt.stages.pairs:CONTRAST",
        "Train with pairs of a query and its document.",
        in_adapt=True,
        without_terms=True,
    ),
    Row(
        "triplets",
        "sparse_adapt.stages.triplets:TRIPLETS",
        "Train sentences to be far from their contradictions.",
        is_research=True,
    ),
    Row(
        "labelled",
        "sparse_adapt.stages.triplets:LABELLED_PAIRS",
        "Train with labelled pairs: what follows, what contradicts.",
        is_research=True,
    ),
    Row(
        "rank",
        "sparse_adapt.stages.rank:RANK",
        "Train the whole model to rank documents as a teacher does.",
        in_adapt=True,
        without_terms=True,
    ),
    Row(
        "distill",
        "sparse_adapt.stages.distill:DISTILL",
        "Train the whole model to score documents as a teacher does.",
        usual=("default",),
    ),
    Row(
        "published",
        "sparse_adapt.stages.published:PUBLISHED",
        "Train with the six published loss terms, as they are.",
        usual=("published",),
        is_research=True,
    ),
)
OF_ADAPT = tuple(row.name for row in STAGES if row.in_adapt)


def usual_stages(preset: str = "default") -> tuple[str, ...]:
    """The stages of a run that names none; a preset without stages of its own has those of the default."""
    usual = tuple(row.name for row in STAGES if preset in row.usual)
    return usual or usual_stages()


def row_of(name: str) -> Row:
    """The row of a stage. Raises ConfigError for a name that isn't in the table."""
    for row in STAGES:
        if row.name == name:
            return row
    raise ConfigError(unknown("stage", name, stage_names()))


def stage_names() -> tuple[str, ...]:
    """The names of all stages in their order."""
    return tuple(row.name for row in STAGES)


def trained() -> tuple[str, ...]:
    """The names of the stages that train, and have settings."""
    return tuple(name for name in stage_names() if find_stage(name).trains)


def find_stage(name: str) -> "Stage[Any]":
    """The stage of that name. Raises ConfigError for a name that isn't in the table."""
    return _loaded(row_of(name))


@cache
def _loaded(row: Row) -> "Stage[Any]":
    from sparse_adapt.stages.stage import Stage

    stage = resolve_name(row.place)
    assert isinstance(stage, Stage) and stage.name == row.name, row
    return stage
