"""General questions that come with the package: questions of people, each with a passage that answers it.

`data/general_measure.jsonl.xz` measures what a model knows: questions of three kinds (forum, wiki, search) over
passages of which most are hard negatives. No stage learns from them. `data/README.md` names sources, licences and the
rules by which they were chosen.
"""

from functools import cache
from typing import NamedTuple

from sparse_adapt.collection.readers import Document, Judgements, Query
from sparse_adapt.files.records import JsonObject
from sparse_adapt.synthetic.background import packed_rows


class GeneralMeasure(NamedTuple):
    """Passages, questions about all of them, and which passage answers each."""

    documents: tuple[Document, ...]
    questions: tuple[Query, ...]
    judgements: Judgements


@cache
def general_measure() -> GeneralMeasure:
    """The passages and questions that measure; a question's kind says where people asked it. Read once a process."""
    rows = list(packed_rows("general_measure.jsonl.xz"))
    by_passage = {row["id"]: _questions(row) for row in rows}
    questions = tuple(question for of_passage in by_passage.values() for question in of_passage)
    judged: Judgements = {
        question.query_id: {name: 1} for name, of_passage in by_passage.items() for question in of_passage
    }
    return GeneralMeasure(tuple(Document(row["id"], row["text"]) for row in rows), questions, judged)


def _questions(row: JsonObject) -> list[Query]:
    """A passage's questions: the first has its id, the others a number behind it."""
    kind = row["id"].split("-")[0]
    names = (f"{row['id']} {number}" if number else row["id"] for number in range(len(row["questions"])))
    return [Query(name, text, kind) for name, text in zip(names, row["questions"], strict=True)]
