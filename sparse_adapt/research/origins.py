"""Which training examples taught the new terms of a run, whose models and documents are those of its page."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sparse_adapt.api.results import CommandResult
from sparse_adapt.collection.examples import read_candidates
from sparse_adapt.errors import InputError, ModelError
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pages.subject import RunSubject
from sparse_adapt.pages.terms import find_terms, texts_of
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.report.sections import Bar, BarList, Fold, Part, Prose, Section
from sparse_adapt.report.tables import Row, percentage
from sparse_adapt.research.influence import Checkpoint, Influence, TrainingExample, influences, rates_of

EXAMPLES = 600
A_TERM = 4  # documents that say a term, among its training examples
TERMS = 6
SHOWN = 5  # training examples of a text
LONG = 160  # characters of a training example that are shown
ABOUT = (
    "A training example counts as far as one step on it would have raised the term's logit in the text, summed over "
    "the saved models (TracIn); its share is of all that raised it. The gradient is that of the term's own output row "
    "and bias, parameters that no other term has: what an example did to the layers that all terms share isn't "
    "counted. Shares lie near to each other, so their order tells more. A document that says a term counts as one."
)


class TermOrigin(NamedTuple):
    """A text in which a term has weight, what it is, and the training examples that raised it there, most first."""

    term: str
    title: str
    text: str
    found: list[Influence]


@dataclass(frozen=True, repr=False)
class Origins(CommandResult):
    """What taught the first terms of a run."""

    run: str
    origins: tuple[TermOrigin, ...]
    examples: int
    models: int

    @property
    def headline(self) -> str:
        """How many training examples and saved models there were."""
        return f"{self.run}: {self.examples:,} training examples, {self.models} saved models"

    def rows(self) -> list[Row]:
        """A row for each training example of each text."""
        return [
            {
                "term": each.term,
                "title": each.title,
                "example": influence.example.text,
                "source": influence.example.source,
                "share": influence.share,
            }
            for each in self.origins
            for influence in each.found
        ]

    def to_dict(self) -> dict[str, object]:
        """Every text with its training examples."""
        return {"run": self.run, "influences": self.rows()}

    def sections(self) -> Sequence[Section]:
        """A fold for each term, a list of bars for each of its texts."""
        folds: list[Part] = []
        for number, term in enumerate(dict.fromkeys(each.term for each in self.origins)):
            own = [each for each in self.origins if each.term == term]
            parts: list[Part] = []
            for each in own:
                parts += [Prose(f"{each.title}: {_short(each.text)}"), _bars(each.found)]
            folds.append(Fold(term, parts, open=number == 0))
        summary = f"{ABOUT} There were {self.examples:,} training examples and {self.models} saved models."
        return [
            Section("influence", "What taught the terms", [*folds, Prose(summary, "quiet")]),
        ]


def find_origins(subject: RunSubject, progress: Progress = no_progress) -> Origins:
    """What taught the first terms of a run. `progress` hears of each saved model.

    Raises InputError for a run without new terms, and where what it learnt from is no longer where it was.
    """
    examples = list(dict.fromkeys(_examples(subject)))[:EXAMPLES]
    checkpoints = list(_checkpoints(subject, examples, progress)) if examples else []
    if not checkpoints:
        raise InputError(subject.run.folder, "no new term, or what it learnt from is no longer where it was")
    origins = tuple(
        TermOrigin(
            each.token.term,
            title,
            text,
            [
                one
                for one in influences(checkpoints, examples, text, each.token.token_id)[:SHOWN]
                if one.value > 0
            ],
        )
        for each in find_terms(subject)[:TERMS]
        for title, text in texts_of(subject, each)
    )
    return Origins(Path(subject.run.folder).name, origins, len(examples), len(checkpoints))


def _checkpoints(
    subject: RunSubject, examples: Sequence[TrainingExample], progress: Progress
) -> Iterator[Checkpoint]:
    """The saved models that have the new tokens, each with its rate."""
    for stage, rate in zip(subject.stages, rates_of(subject.stages), strict=True):
        with suppress(ModelError, InputError):
            model = SparseEncoder.load(subject.run.folder / str(stage.get("folder", "")))
            if model.vocabulary_size == subject.final.model.vocabulary_size:
                yield Checkpoint.of(model, rate, examples)
        progress(1)


def _examples(subject: RunSubject) -> Iterator[TrainingExample]:
    """Texts that the stages learnt from: definitions, examples, queries, documents that say a term."""
    model = subject.final.model
    named = {token.term.casefold(): token.token_id for token in model.new_tokens}
    for term, definition in subject.definitions.items():
        teaches = frozenset({named[term]}) if term in named else frozenset()
        yield TrainingExample(definition.definition, "definition", teaches)
        yield from (TrainingExample(example, "example", teaches) for example in definition.examples)
    texts = {document.document_id: document.full_text for document in subject.documents}
    path = subject.file_of("candidates")
    if path is not None:
        with suppress(InputError):
            for entry in read_candidates(path):
                best = int(np.argmax(entry.teacher_scores))
                text = entry.texts[best] if entry.texts else texts.get(entry.document_ids[best], "")
                token_ids = {each for ids in model.tokenize([text]) for each in ids}
                yield TrainingExample(entry.query, "query", frozenset(token_ids & set(named.values())))
    for token_id, rows in subject.rows_with_term.items():
        for row in rows[:A_TERM]:
            yield TrainingExample(subject.documents[row].full_text, "document", frozenset({token_id}))


def _bars(rows: Sequence[Influence]) -> BarList:
    largest = max((each.share for each in rows), default=0.0) or 1.0
    bars = [
        Bar(_short(each.example.text), percentage(each.share), each.share / largest, each.example.source)
        for each in rows
    ]
    return BarList("Training examples that taught it", bars, "" if bars else "No training example raised it.")


def _short(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG - 1].rstrip()}…"
