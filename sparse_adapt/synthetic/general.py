"""General questions that come with the package: questions of people, each with a passage that answers it.

`data/general_measure.jsonl.xz` measures what a model knows: questions of three kinds (forum, wiki, search) over
passages of which most are hard negatives. `data/general_teach.jsonl.xz` teaches: a passage a line with one question.
Nothing that measures also teaches. `data/README.md` names sources, licences and the rules by which both were chosen.
"""

import json
import lzma
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from sparse_adapt.collection.readers import Document, Judgements, Query

DATA = files("sparse_adapt.synthetic") / "data"


class GeneralMeasure(NamedTuple):
    """Passages, the questions that are asked of all of them, and which passage answers each."""

    documents: tuple[Document, ...]
    questions: tuple[Query, ...]
    judgements: Judgements


@cache
def general_pairs() -> tuple[tuple[Document, Query], ...]:
    """The passages that teach, each beside the question that it answers; both carry one id. Read once a process."""
    return tuple((_passage(row), question) for row in _rows("teach") for question in _questions(row))


@cache
def general_measure() -> GeneralMeasure:
    """The passages and questions that measure; a question's kind says where people asked it. Read once a process."""
    rows = list(_rows("measure"))
    asked = {row["id"]: _questions(row) for row in rows}
    questions = tuple(question for found in asked.values() for question in found)
    judged: Judgements = {question.query_id: {name: 1} for name, found in asked.items() for question in found}
    return GeneralMeasure(tuple(map(_passage, rows)), questions, judged)


def _rows(name: str) -> Iterator[dict[str, Any]]:
    with (DATA / f"general_{name}.jsonl.xz").open("rb") as packed, lzma.LZMAFile(packed) as lines:
        yield from map(json.loads, lines)


def _passage(row: dict[str, Any]) -> Document:
    return Document(row["id"], row["text"], row.get("title", ""))


def _questions(row: dict[str, Any]) -> list[Query]:
    """A passage's questions: the first has its id, the others a number behind it."""
    kind = row["id"].split("-")[0]
    names = (f"{row['id']} {number}" if number else row["id"] for number in range(len(row["questions"])))
    return [Query(name, text, kind) for name, text in zip(names, row["questions"], strict=True)]
