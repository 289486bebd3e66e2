"""The stages in their order: one row, and one file, a stage.

A stage's file loads when the stage is asked for, and torch when it is built.
"""

from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple

from sparse_adapt.errors import ConfigError, unknown

if TYPE_CHECKING:
    from sparse_adapt.stages.stage import Stage


class Row(NamedTuple):
    """A stage's name, the place of its `Stage`, and what it does."""

    name: str
    place: str
    summary: str


STAGES = (
    Row("extend", "sparse_adapt.stages.extend:EXTEND", "Give each term a token of its own."),
    Row(
        "behaviour",
        "sparse_adapt.stages.behaviour:BEHAVIOUR",
        "Have an extended model do what it did before.",
    ),
    Row("warmup", "sparse_adapt.stages.warmup:WARMUP", "Teach the new rows from a corpus."),
    Row("dictionary", "sparse_adapt.stages.dictionary:DICTIONARY", "Teach the model from definitions."),
    Row("dynamic", "sparse_adapt.stages.dynamic:DYNAMIC", "Teach the words that the model finds hardest."),
    Row("joint", "sparse_adapt.stages.pairs:JOINT", "Teach from pairs whose new words are masked."),
    Row("contrast", "sparse_adapt.stages.pairs:CONTRAST", "Teach from pairs of a query and its document."),
    Row("triplets", "sparse_adapt.stages.triplets:TRIPLETS", "Teach from generated contradictions."),
    Row("labelled", "sparse_adapt.stages.triplets:LABELLED_PAIRS", "Teach from labelled inference pairs."),
    Row("distill", "sparse_adapt.stages.distill:DISTILL", "Teach the model to score as a teacher does."),
)
USUAL = ("extend", "warmup", "dictionary", "distill")  # of a run that names none
OF_ADAPT = tuple(
    row.name for row in STAGES if row.name not in ("triplets", "labelled")
)  # `adapt` makes their inputs


def names() -> tuple[str, ...]:
    """The names of all stages in their order."""
    return tuple(row.name for row in STAGES)


def trained() -> tuple[str, ...]:
    """The names of the stages that train, and have settings."""
    return tuple(name for name in names() if find_stage(name).trains)


def find_stage(name: str) -> "Stage[Any]":
    """The stage of that name. Raises ConfigError for a name that isn't in the table."""
    for row in STAGES:
        if row.name == name:
            return _loaded(row)
    raise ConfigError(unknown("stage", name, names()))


@cache
def _loaded(row: Row) -> "Stage[Any]":
    from sparse_adapt.stages.stage import Stage

    stage = resolve_name(row.place)
    assert isinstance(stage, Stage) and stage.name == row.name, row
    return stage
