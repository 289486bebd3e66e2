"""Runs on this disk: where they go, and what a command looks at that names neither model nor corpus."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from sparse_adapt.errors import InputError
from sparse_adapt.report.messages import say

if TYPE_CHECKING:
    from sparse_adapt.pipeline.run import Finished

BASE = "splade-tiny"
BUNDLED = "gatrocraptic"  # the corpus for whoever names none
RUNS = Path("runs")  # where runs go, and the latest is looked for


class Subject(NamedTuple):
    """What a command looks at, and whether a finished run was found for it."""

    model: str
    corpus: str
    adapted: bool

    @property
    def flags(self) -> list[str]:
        """The options that name both."""
        return ["--model", self.model, "--corpus", self.corpus]


def subject_of(model: str | None, corpus: str | None) -> Subject:
    """The model and corpus named, else those of the latest run, else the base model and a bundled corpus."""
    if model is not None:
        from sparse_adapt.stages.record import read_before

        return Subject(model, corpus or read_before(model).get("corpus") or BUNDLED, adapted=True)
    latest_run = latest()
    if latest_run is None:
        say(f"no finished run under {RUNS}/, so this is the base model, {BASE}")
        return Subject(BASE, corpus or BUNDLED, adapted=False)
    return Subject(str(latest_run.model), corpus or latest_run.corpus or BUNDLED, adapted=True)


def latest() -> "Finished | None":
    """The latest finished run; where there is none, nothing heavy is loaded to find that out."""
    if not any(RUNS.glob("*/report.json")):
        return None
    from sparse_adapt.pipeline.run import latest_run

    return latest_run(RUNS)


def latest_folder() -> Path:
    """The folder of the latest run. Raises InputError where there is none."""
    latest_run = latest()
    if latest_run is None:
        raise InputError(
            RUNS, "holds no finished run; name the folder of one, or make one: sparse-adapt demo"
        )
    return latest_run.folder


def run_folder(corpus: object) -> Path:
    """Where a run on a corpus goes unless another place is named."""
    return RUNS / (Path(corpus).resolve().name if isinstance(corpus, str | Path) else "adapted")


def of_run(model: Path, folder: Path, corpus: str) -> list[str]:
    """The options that name a run's model and corpus, where commands don't find it as the latest by themselves."""
    in_runs = folder.resolve().parent == RUNS.resolve()
    return [] if in_runs else ["--model", str(model), "--corpus", corpus]
