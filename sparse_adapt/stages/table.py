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
    Row("extend", "sparse_adapt.stages.extend:EXTEND", "Add a token to a model for each new term."),
    Row(
        "behaviour",
        "sparse_adapt.stages.behaviour:BEHAVIOUR",
        "Train an extended model to behave as before its extension.",
    ),
    Row("warmup", "sparse_adapt.stages.warmup:WARMUP", "Train the new tokens on the texts of a corpus."),
    Row(
        "dictionary", "sparse_adapt.stages.dictionary:DICTIONARY", "Train with definitions of the new terms."
    ),
    Row(
        "dynamic",
        "sparse_adapt.stages.dynamic:DYNAMIC",
        "Train on sentences whose hardest domain words are masked.",
    ),
    Row("joint", "sparse_adapt.stages.pairs:JOINT", "Train with pairs whose new words are masked."),
    Row("contrast", "sparse_adapt.stages.pairs:CONTRAST", "Train with pairs of a query and its document."),
    Row(
        "triplets",
        "sparse_adapt.stages.triplets:TRIPLETS",
        "Train sentences to be far from their contradictions.",
    ),
    Row(
        "labelled",
        "sparse_adapt.stages.triplets:LABELLED_PAIRS",
        "Train with labelled pairs: what follows, what contradicts.",
    ),
    Row(
        "table",
        "sparse_adapt.stages.query_side:TABLE",
        "Weigh queries by a learnt table of tokens, without a model.",
    ),
    Row(
        "imitate",
        "sparse_adapt.stages.imitate:IMITATE",
        "Train the whole model to rank documents as a teacher does.",
    ),
    Row(
        "distill",
        "sparse_adapt.stages.distill:DISTILL",
        "Train the whole model to score documents as a teacher does.",
    ),
    Row(
        "logits",
        "sparse_adapt.stages.logits:LOGITS",
        "Train each token's logits to be those of another model.",
    ),
    Row(
        "plain",
        "sparse_adapt.stages.plain:PLAIN",
        "Train with the six published loss terms, as they are.",
    ),
)
USUAL = ("extend", "warmup", "dictionary", "distill")  # of a run that names none
OF_ADAPT = tuple(
    row.name for row in STAGES if row.name not in ("logits", "triplets", "labelled", "distill", "plain")
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
