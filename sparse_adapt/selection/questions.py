"""General questions: those that come with the package, or a judged collection of one's own."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np

from sparse_adapt.collection.lines import say_taken
from sparse_adapt.retrieve.evaluate import Collection, plain, read_collection
from sparse_adapt.synthetic.background import background_pairs
from sparse_adapt.synthetic.general import general_measure

Item = TypeVar("Item")

PACKAGED = "general"  # names the questions that come with the package
MOST = 10_000  # questions at the most: all of the package's
SOME = 900  # questions, over a third of the passages, where nothing is taught or a demo has to be quick
SATURATED = 0.9  # nDCG@10 of a base model from which on questions are too easy to show a loss


def general_collection(source: str = PACKAGED, split: str = "test", most: int | None = None) -> Collection:
    """General questions over their passages: those that come with the package, or a judged collection.

    `most`: how many of the package's questions, `MOST` by default: an even share of each kind, over as large
    a share of the passages. Raises InputError as `read_collection` does.
    """
    if source != PACKAGED:
        return read_collection(source, split)
    documents, questions, judgements = general_measure()
    most = min(most or MOST, MOST)
    if most < len(questions):
        kinds = dict.fromkeys(question.kind for question in questions)
        every = [[each for each in questions if each.kind == kind] for kind in kinds]
        questions = tuple(each for of_kind in every for each in _evenly(of_kind, most // len(every)))
        wanted = {name for question in questions for name in judgements[question.query_id]}
        others = [each for each in documents if each.document_id not in wanted]
        share = most / len(general_measure().questions)
        beside = {each.document_id for each in _evenly(others, round(share * len(documents)) - len(wanted))}
        documents = tuple(each for each in documents if each.document_id in wanted | beside)
        judgements = {each.query_id: judgements[each.query_id] for each in questions}
    return Collection(documents, questions, judgements)


def _evenly(rows: Sequence[Item], count: int) -> list[Item]:
    """So many of the rows, at even distances; all where there are fewer."""
    places = np.linspace(0, len(rows) - 1, max(0, min(count, len(rows)))).astype(np.int64)
    return [rows[place] for place in places]


def say_cautions(source: str, collection: Collection, base: float | None) -> None:
    """Say what lessens what a collection of one's own can show, a line for each.

    `base`: nDCG@10 of the model that others are compared with.
    """
    for caution in cautions(collection, base):
        say_taken(source, caution)


def cautions(collection: Collection, base: float | None) -> Iterator[str]:
    """That it shares texts with what teaches, and that its questions are too easy to show a loss."""
    own_passages, own_questions = (
        {plain(each.text) for each in side} for side in zip(*background_pairs(), strict=True)
    )
    questions = sum(plain(each.text) in own_questions for each in collection.queries)
    passages = sum(plain(each.text) in own_passages for each in collection.documents)
    if questions or passages:
        yield (
            f"{questions:,} of {len(collection.queries):,} questions and {passages:,} of "
            f"{len(collection.documents):,} passages are among those that teach; what it shows isn't held out"
        )
    if base is not None and base > SATURATED:
        yield f"nDCG@10 of the first model is {base:.3f}: questions so easy hardly show a loss; `general` is harder"
