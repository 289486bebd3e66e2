"""An adaptation under way: its request, where it writes, and which of its steps are done."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from transformers import PreTrainedTokenizerFast

from sparse_adapt.collection.folder import CorpusFolder
from sparse_adapt.collection.readers import Document
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.steps import Done, Source, Step, carry_out, check_request, of_path
from sparse_adapt.heap import trim_heap
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.estimate import Forecast
from sparse_adapt.pipeline.request import Request
from sparse_adapt.pipeline.run import Listener
from sparse_adapt.report.progress import Progress
from sparse_adapt.selection.retention import EncodedCollection
from sparse_adapt.teachers.teacher import Teacher

RANKING = (
    "ranking"  # folder of what ranking is learnt from, or of the ranking itself where words are learnt, too
)


class AdaptListener(Listener, Protocol):
    """Who wants to hear how an adaptation goes: a run's listener that also hears the rest."""

    def count(self, what: str, total: int | None = None) -> Progress:
        """Something is counted; what is returned hears how many more are done."""

    def tell(self, step: str, message: str) -> None:
        """A step is done, or was done before."""

    def expect(self, forecast: Forecast) -> None:
        """About how long it will take, before it begins."""


def carry_out_and_tell(step: Step, folder: Path, watcher: AdaptListener, home: Path | None = None) -> Done:
    """Do a step in a run's folder unless it is done, and tell what came of it. `home`: as in `steps.carry_out`."""
    done, before = carry_out(step, folder, home)
    trim_heap()  # or what the step freed counts against what the next one takes
    watcher.tell(step.name, f"{done.message} (done before)" if before else done.message)
    return done


@dataclass(slots=True)
class Work:
    """An adaptation under way."""

    request: Request
    tokenizer: PreTrainedTokenizerFast  # of the model that is adapted
    folder: Path  # where this part writes
    watcher: AdaptListener
    corpus: CorpusFolder
    documents: list[Document]  # of the corpus, at most so many as are learnt from
    cache: Path  # vectors of a dense teacher
    run: Path  # the folder of the whole run, where queries and candidates are
    sources: Mapping[str, Source | None]  # what was named, each resolved and its model hashed once
    teacher: Teacher | None = None
    records: dict[str, Done] = field(default_factory=dict)
    with_new_terms: int = 0  # documents
    ranked: Path | None = None  # the model that learnt to rank beside words
    general: Sequence[EncodedCollection] = ()  # of the base model and the kept one, made by this process
    opened: SparseEncoder | None = None  # the base model, until its step has exact words put into it

    def step(
        self, name: str, sources: Mapping[str, object], makes: Sequence[str], do: Callable[[], str]
    ) -> None:
        """Do a step unless it is done, and tell what came of it."""
        step = Step(name, sources, makes, do)
        self.records[name] = carry_out_and_tell(step, self.folder, self.watcher, self.run)

    def read(self, key: str, file: str) -> Source | None:
        """What a step reads: a file of this run, or what was named under a word; None for what isn't there."""
        return self.made(file) if file else self.sources[key]

    def made(self, name: str) -> Source | None:
        """A file or folder of this run as what a step reads; None where no step made it."""
        path = self.folder / name
        return of_path(path) if path.exists() else None

    def ranking(self) -> "Work | None":
        """The part of the work that teaches ranking beside words, in a folder of its own; None where none does."""
        ranking = self.request.ranking
        if ranking is None:
            return None
        sources = {**self.sources, "glossary": None}
        return replace(self, request=ranking, folder=self.folder / RANKING, records={}, sources=sources)


def same_request(path: Path, request: Request) -> None:
    """Write the request; an unfinished run goes on only with the same."""
    fields = request.plain()
    check_request(path, fields)
    write_json(path, fields)
