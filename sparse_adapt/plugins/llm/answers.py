"""Answers of a model that writes: its prompt, the rules that refuse an answer, and counts of both.

Texts of documents go to the model as data, between two tags whose mark depends on the texts, so that no text can close
them. An answer counts only as the JSON that was asked for, and only by rules that no instruction in a document gets
around; what they refuse is counted by its reason.

| refused | rule |
|---|---|
| no JSON | the answer is the object that the prompt names |
| empty | no text |
| repeats the example | the answer that the prompt gives as an example |
| a link or markup | addresses, tags, Markdown, code |
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from importlib.resources import files
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from sparse_adapt.plugins.llm.server import Answers, Server
from sparse_adapt.terms.entries import listed

SHORTEST = 3  # words of an answer
SHOWN = 8  # names of a kind in a message
PIPES = "Two pipes are joined by a flange: a rim at the end of each, through which bolts are put."
FENCE = "```"
MARKUP = re.compile(
    r"[a-z0-9+.-]://|\bwww\.|\bmailto:|\S@\S|[\w-]\.[a-z]{2,6}/\S"
    r"|\.(?:com|org|net|info|biz|io|ai|co|app|dev|xyz|top|site|shop|online|link)\b"
    r"|</?[a-z!]|&[a-z#0-9]+;|\]\(|\]\[|`|\*\*|__\w|^[^\S\n]*+(?:[#>*|-]\s|\d++\.\s)|[{}\\]",
    re.I | re.M,
)

T = TypeVar("T", bound=BaseModel)


class Refused(Exception):
    """An answer that isn't taken, and why."""


@dataclass(slots=True)
class Tally:
    """What became of the answers of a model: how much was taken, and why the rest wasn't, by the things asked about."""

    model: str
    prompts: int = 0
    before: int = 0  # answers that were kept from an earlier run
    requests: int = 0
    taken: int = 0
    refused: dict[str, str] = field(default_factory=dict)
    unanswered: dict[str, str] = field(default_factory=dict)

    def lines(self, what: str) -> Iterator[str]:
        """The same in words; `what` was written."""
        earlier = f", {self.before:,} of which were kept from an earlier run" if self.before else ""
        yield f"{self.taken:,} {what} by {self.model} ({self.prompts:,} prompts{earlier}; {self.requests:,} requests)"
        for verb, reasons in (("refused", self.refused), ("unanswered", self.unanswered)):
            by_reason: dict[str, list[str]] = {}
            for name, reason in reasons.items():
                by_reason.setdefault(reason, []).append(name)
            if by_reason:
                summaries = (
                    f"{len(names):,}: {why} ({listed(names, SHOWN)})" for why, names in by_reason.items()
                )
                yield f"{verb}: {'; '.join(summaries)}"

    def plain(self) -> dict[str, object]:
        """The same as data."""
        return asdict(self)


def instructions_for(name: str, example: str, answer: str) -> list[dict[str, str]]:
    """What is said before each prompt: what to do, and one example of it, which small models need."""
    text = (files("sparse_adapt.plugins.llm") / "prompts" / f"{name}.txt").read_text(encoding="utf-8").strip()
    turns = (("system", text), ("user", example), ("assistant", answer))
    return [{"role": role, "content": content} for role, content in turns]


def as_data(what: str, texts: Iterable[str]) -> str:
    """Texts between tags that none of them can hold, each on a line of its own."""
    lines = [" ".join(text.split()) for text in texts]
    mark = sha256("\n".join(lines).encode()).hexdigest()[:12]
    return "\n".join([f"<{what}-{mark}>", *lines, f"</{what}-{mark}>"])


def parsed(answer: str, form: type[T]) -> T:
    """The answer as the object that the prompt names. Raises Refused."""
    text = answer.strip()
    if not text:
        raise Refused("empty")
    if text.startswith(FENCE) and text.endswith(FENCE):
        text = text.removeprefix(FENCE).removesuffix(FENCE).removeprefix("json").strip()
    try:
        return form.model_validate_json(text)
    except ValidationError as error:
        raise Refused("not the JSON that was asked for") from error


def check_text(text: str, example: str) -> None:
    """Raise Refused for a text that repeats the example, or has markup."""
    if text.strip() and f'"{text.strip()}"' in example:
        raise Refused("repeats the example")
    if MARKUP.search(text) or not " ".join(text.split()).isprintable():
        raise Refused("a link or markup")


def in_lower_case(text: str) -> str:
    """A text in lower case, with single spaces."""
    return " ".join(text.casefold().split())


def tally_of(server: Server, answers: Answers) -> Tally:
    """What is known of answers before any is read."""
    return Tally(
        server.model,
        len(answers.texts),
        answers.before,
        answers.requests,
        unanswered=dict(answers.unanswered),
    )
