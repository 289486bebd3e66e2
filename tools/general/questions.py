"""Passages with the questions of people that each answers, of kinds whose licence is stated."""

import hashlib
import json
import re
from dataclasses import dataclass, replace
from pathlib import Path

SEED = 57
WORDS = range(8, 201)  # of a passage
SPAN, WORD = (
    10,
    re.compile(r"\w+"),
)  # words in a row that no passage of the measure shares with one that teaches
PER_PASSAGE = {
    "forum": 1,
    "wiki": 2,
    "search": 1,
    "selqa": 2,
    "sentence": 1,
}  # kinds, and questions of a passage


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage, the article that it is of where one is named, and questions that it answers."""

    name: str
    title: str
    text: str
    questions: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """Where its questions come from."""
        return self.name.split("-")[0]

    @property
    def full_text(self) -> str:
        """Title and text."""
        return f"{self.title} {self.text}".strip()


def spans(text: str) -> set[str]:
    """Every ten words in a row."""
    words = WORD.findall(text.lower())
    return {" ".join(words[start : start + SPAN]) for start in range(len(words) - SPAN + 1)}


def drawn(key: str, sides: int = 2**32) -> int:
    """A number below `sides` that depends on the key alone: the same on every machine."""
    return int.from_bytes(hashlib.sha256(f"{SEED} {key}".encode()).digest()[:8], "big") % sides


def read(folder: Path) -> list[Passage]:
    """The passages of a length that a search index has, kind after kind, each with some of its questions.

    `folder`: a collection in BEIR's layout whose ids begin with the kind, one relevant passage to a question.
    """
    passages = {
        row["_id"]: Passage(row["_id"], row["title"].replace("_", " "), row["text"])
        for row in _rows(folder / "corpus.jsonl")
    }
    texts = {row["_id"]: row["text"] for row in _rows(folder / "queries.jsonl")}
    questions: dict[str, list[str]] = {name: [] for name in passages}
    judged = (folder / "qrels" / "train.tsv").read_text(encoding="utf-8").splitlines()[1:]
    for query_id, passage, _ in (line.split("\t") for line in judged):
        questions[passage].append(texts[query_id])
    fit = [
        replace(passage, questions=_some(passage.kind, questions[name]))
        for name, passage in passages.items()
        if passage.kind in PER_PASSAGE and len(passage.text.split()) in WORDS
    ]
    return sorted(fit, key=lambda passage: list(PER_PASSAGE).index(passage.kind))


def _rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _some(kind: str, questions: list[str]) -> tuple[str, ...]:
    """So many of a passage's questions as its kind gives, drawn."""
    return tuple(sorted(dict.fromkeys(questions), key=drawn)[: PER_PASSAGE[kind]])
