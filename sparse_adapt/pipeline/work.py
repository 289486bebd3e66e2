"""An adaptation under way: what was asked for, where it writes, and which of its steps are done."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sparse_adapt.collection.readers import Document
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.journal import check_same
from sparse_adapt.pipeline.estimate import Expected
from sparse_adapt.pipeline.request import Request, read_request
from sparse_adapt.pipeline.run import Listener
from sparse_adapt.pipeline.step import Done, Step, carry_out
from sparse_adapt.report.watching import Heard
from sparse_adapt.stages.made_from import Source, of_path
from sparse_adapt.teachers.teacher import Teacher


class Watcher(Listener, Protocol):
    """Who wants to hear how an adaptation goes: a run's listener that also hears the rest."""

    def count(self, what: str, total: int | None = None) -> Heard:
        """Something is counted; what is returned hears how many more are done."""

    def tell(self, step: str, said: str) -> None:
        """A step is done, or was done before."""

    def expect(self, rows: Sequence[Expected]) -> None:
        """How long it may take, before it begins."""


def carry_out_and_tell(step: Step, folder: Path, watcher: Watcher) -> Done:
    """Do a step in a run's folder unless it is done, and tell what came of it."""
    done, before = carry_out(step, folder)
    watcher.tell(step.name, f"{done.said} (done before)" if before else done.said)
    return done


@dataclass(slots=True)
class Work:
    """An adaptation under way."""

    request: Request
    folder: Path
    watcher: Watcher
    documents: list[Document]
    kept: Path  # vectors of a dense teacher
    teacher: Teacher | None = None
    records: dict[str, Done] = field(default_factory=dict)
    with_new_terms: int = 0  # documents

    def step(
        self, name: str, sources: Mapping[str, object], makes: Sequence[str], do: Callable[[], str]
    ) -> None:
        """Do a step unless it is done, and tell what came of it."""
        self.records[name] = carry_out_and_tell(Step(name, sources, makes, do), self.folder, self.watcher)

    def named(self, *keys: str) -> dict[str, Source | None]:
        """What a step reads of what was named; None for what wasn't."""
        sources = self.request.sources()
        return {key: sources[key] for key in keys}

    def made(self, name: str) -> Source | None:
        """A file or folder of this run as what a step reads; None where no step made it."""
        path = self.folder / name
        return of_path(path) if path.exists() else None


def same_request(path: Path, request: Request) -> None:
    """Write what was asked for; an unfinished run goes on only with the same."""
    asked = request.plain()
    if path.is_file():
        write_json(path, read_request(path).plain())  # as it reads now
    check_same(path, asked)
    write_json(path, asked)
