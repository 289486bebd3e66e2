"""A run as its page looks at it: both models, documents, judged queries, and what was learnt from."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from sparse_adapt.collection.glossary import Definition, read_dictionary
from sparse_adapt.collection.readers import Document, Query, read_queries
from sparse_adapt.errors import InputError
from sparse_adapt.files.place import source_in
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.report import Report
from sparse_adapt.pipeline.run import Finished, read_finished
from sparse_adapt.report.progress import Progress, ProgressFor, no_progress, no_progress_for
from sparse_adapt.retrieve.activity import Activity, Bools, background_queries
from sparse_adapt.retrieve.evaluate import Collection, ModelResult, evaluate_vectors
from sparse_adapt.retrieve.hybrid import (
    document_vectors,
    query_vectors,
    with_words_of_documents,
    with_words_of_queries,
)
from sparse_adapt.retrieve.search import Searcher
from sparse_adapt.selection.comparison import JudgedDocuments
from sparse_adapt.stages.record import StageRecord


@dataclass(frozen=True)
class EncodedSubject:
    """What a model makes of the documents, the judged queries and background ones: vectors (texts, V)."""

    model: SparseEncoder
    documents: csr_matrix
    queries: csr_matrix
    background: csr_matrix

    @cached_property
    def searcher(self) -> Searcher:
        """The documents, ready to be searched."""
        return Searcher(self.documents)


@dataclass(frozen=True)
class RunSubject:
    """A run's models and texts. `judged` is None where nothing says which documents a query means.

    `progress` hears how many texts the models have read.
    """

    run: Finished
    documents: tuple[Document, ...]
    all_documents: int
    judged: Collection | None
    own_queries: tuple[Query, ...]
    progress: Progress = no_progress

    @property
    def report(self) -> Report:
        """What the run wrote of itself."""
        return self.run.report

    @property
    def stages(self) -> list[StageRecord]:
        """The record of each stage."""
        return list(self.report.get("stages", ()))

    @cached_property
    def background_texts(self) -> list[str]:
        """Texts like queries that mean anything."""
        return background_queries()

    @cached_property
    def base(self) -> EncodedSubject:
        """The model that the run began with."""
        return self._encoded(SparseEncoder.load(source_in(str(self.report["model"]), self.run.folder)))

    @cached_property
    def final(self) -> EncodedSubject:
        """The model that it ended with. What exact words alone tell from the first model isn't read again."""
        model, base = SparseEncoder.load(str(self.run.model)), self.base
        if not model.adds_words_to(base.model):
            return self._encoded(model)
        self.progress(self.texts_of_a_model)
        return EncodedSubject(
            model,
            with_words_of_documents(model, base.documents, self.documents),
            with_words_of_queries(model, base.queries, self.query_texts),
            with_words_of_queries(model, base.background, self.background_texts),
        )

    def _encoded(self, model: SparseEncoder) -> EncodedSubject:
        return EncodedSubject(
            model,
            document_vectors(model, self.documents, progress=self.progress),
            query_vectors(model, self.query_texts, progress=self.progress),
            query_vectors(model, self.background_texts, progress=self.progress),
        )

    @cached_property
    def results(self) -> tuple[ModelResult, ModelResult] | None:
        """What both models reach on the judged queries, the base model first."""
        if self.judged is None:
            return None
        of_base = evaluate_vectors(self.base.queries, self.base.documents, self.judged)
        return of_base, evaluate_vectors(self.final.queries, self.final.documents, self.judged)

    @cached_property
    def definitions(self) -> dict[str, Definition]:
        """What the run was told of each term, by the term in lower case; empty where it was told nothing."""
        path = self.file_of("dictionary")
        if path is None:
            return {}
        with suppress(InputError):
            return {each.term.casefold(): each for each in reversed(read_dictionary(path))}
        return {}

    @cached_property
    def documents_activity(self) -> Activity:
        """What the documents say and activate of the new terms."""
        texts = [each.full_text for each in self.documents]
        return Activity.of(self.final.model, texts, "document", vectors=self.final.documents)

    @cached_property
    def queries_activity(self) -> Activity:
        """The same of the judged queries; of none where nothing is judged."""
        texts = [] if self.judged is None else [query.text for query in self.judged.queries]
        return Activity.of(self.final.model, texts, "query", vectors=self.final.queries)

    @cached_property
    def background_activity(self) -> Activity:
        """The same of the background queries."""
        return Activity.of(self.final.model, self.background_texts, "query", vectors=self.final.background)

    @cached_property
    def means(self) -> Bools:
        """Which judged query means which new term, doesn't say it, and its relevant documents do: (queries, T)."""
        says = self.queries_activity.says
        means = np.zeros_like(says)
        row_of = {document.document_id: row for row, document in enumerate(self.documents)}
        for row, query in enumerate(() if self.judged is None else self.judged.queries):
            assert self.judged is not None, "else there is no query"
            grades = self.judged.judgements[query.query_id]
            relevant = [row_of[name] for name, grade in grades.items() if grade > 0 and name in row_of]
            means[row] = self.documents_activity.says[relevant].any(axis=0)
        return means & ~says

    # -- where it comes from ----------------------------------------------------------------------

    @property
    def query_texts(self) -> list[str]:
        """The judged queries; none where nothing is judged."""
        return [] if self.judged is None else [query.text for query in self.judged.queries]

    @property
    def texts_of_a_model(self) -> int:
        """How many texts each model reads."""
        return len(self.documents) + len(self.query_texts) + len(self.background_texts)

    def file_of(self, key: str) -> Path | None:
        """A file that a stage read, where it still is there."""
        for stage in reversed(self.stages):
            entry = stage.get("files", {}).get(key)
            if entry is not None:
                path = Path(source_in(str(entry["path"]), self.run.folder))
                if path.exists():
                    return path
        return None


def read_subject(
    folder: str | Path, queries: str | None = None, progress_for: ProgressFor = no_progress_for
) -> RunSubject:
    """A finished run and all that its page needs. `queries`: a file of the user's own.

    Raises InputError for a folder that is no whole run, for a run without a corpus and for a corpus that is gone.
    """
    place = Path(folder)
    if not place.is_dir():
        raise InputError(folder, "no such folder; name the folder of a finished run")
    run = read_finished(place)
    if not isinstance(run.report.get("model"), str) or not isinstance(run.report.get("stages"), list):
        raise InputError(place / "report.json", "not the report of a run; make the run again")
    if run.corpus is None:
        raise InputError(place, "a run without a corpus, so a page has nothing to show it on")
    if not run.model.is_dir():
        raise InputError(run.model, "no such model; the run isn't whole")
    own = () if queries is None else tuple(read_queries(queries))
    judged = JudgedDocuments.of(run.corpus, run.folder)
    subject = RunSubject(run, judged.documents, judged.all_documents, judged.queries, own)
    texts = 2 * subject.texts_of_a_model
    return replace(subject, progress=progress_for("texts of the page, read by both models", texts))
