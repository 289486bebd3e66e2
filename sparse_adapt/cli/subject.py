"""What a command looks at: the model and the corpus that are named, or those of the latest run."""

from typing import TYPE_CHECKING, NamedTuple

from sparse_adapt.cli.console import say
from sparse_adapt.cli.options import BUNDLED, RUNS

if TYPE_CHECKING:
    from sparse_adapt.pipeline.run import Finished

BASE = "splade-tiny"


class Subject(NamedTuple):
    """What a command looks at, and whether a finished run was found for it."""

    model: str
    corpus: str
    adapted: bool


def subject_of(model: str | None, corpus: str | None) -> Subject:
    """The model and corpus named, else those of the latest run, else the base model and a bundled corpus."""
    if model is not None:
        from sparse_adapt.stages.record import read_before

        return Subject(model, corpus or read_before(model).get("corpus") or BUNDLED, adapted=True)
    found = latest()
    if found is None:
        say(f"no finished run under {RUNS}/, so this is the base model, {BASE}")
        return Subject(BASE, corpus or BUNDLED, adapted=False)
    return Subject(str(found.model), corpus or found.corpus or BUNDLED, adapted=True)


def latest() -> "Finished | None":
    """The latest finished run; where there is none, nothing heavy is loaded to find that out."""
    if not any(RUNS.glob("*/report.json")):
        return None
    from sparse_adapt.pipeline.run import latest_run

    return latest_run(RUNS)
