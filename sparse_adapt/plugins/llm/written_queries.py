"""Two queries for each document that a model writes: one that says a term of it, and one that means it without.

| refused beside what `answers` refuses | rule |
|---|---|
| its term | the document says it, in at most five words |
| too short or too long | a query of 3 to 32 words |
| lacks or says the term | the explicit query says it, the semantic one doesn't |
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from sparse_adapt.collection.readers import Document
from sparse_adapt.plugins.llm.answers import (
    PIPES,
    SHORTEST,
    Refused,
    Tally,
    as_data,
    check_text,
    instructions_for,
    parsed,
    tally_of,
)
from sparse_adapt.plugins.llm.server import Prompt, Server, Tell, journal_beside
from sparse_adapt.report.progress import ProgressFor
from sparse_adapt.synthetic.queries import WORD
from sparse_adapt.terms.words import singular

EXPLICIT, SEMANTIC = "explicit", "semantic"  # kinds of queries: that say the term, that mean it without
LONGEST_TEXT, QUERY_TOKENS = 3_000, 160  # letters of a document; tokens of an answer
LONGEST_QUERY, LONGEST_TERM = 32, 5  # words

TWO_QUERIES = (
    '{"term": "flange", "says": "what holds a flange", "means": "how to fasten one tube to the next"}'
)


class Queries(BaseModel):
    """The answer to a prompt that asks for queries of a document: its term, one that says it, one that doesn't."""

    model_config = ConfigDict(extra="forbid", strict=True)
    term: str
    says: str
    means: str


class QueryWriter:
    """Writes two queries for each document, one that says a term of it and one that means it, and counts refusals."""

    def __init__(self, server: Server, journal: Path) -> None:
        self.server, self.journal = server, journal
        self.tally = Tally(server.model)

    def __call__(self, documents: Sequence[Document]) -> list[list[tuple[str, str]]]:
        """For each document the queries that were taken, each with its kind. Raises as `Server.ask`."""
        prompts = [
            Prompt(each.document_id, as_data("document", [each.full_text[:LONGEST_TEXT]]))
            for each in documents
        ]
        instructions = instructions_for("queries", as_data("document", [PIPES]), TWO_QUERIES)
        answers = self.server.ask(instructions, Queries, prompts, QUERY_TOKENS, self.journal)
        self.tally = tally_of(self.server, answers)
        return [self._taken(*pair) for pair in zip(documents, answers.texts, strict=True)]

    def _taken(self, document: Document, answer: str | None) -> list[tuple[str, str]]:
        queries: list[tuple[str, str]] = []
        try:
            if answer is not None:
                for kind, text in _queries(document, answer):
                    queries.append((kind, text))
        except Refused as refused:
            self.tally.refused[document.document_id] = str(refused)
        self.tally.taken += len(queries)
        return queries


def _queries(document: Document, answer: str) -> Iterator[tuple[str, str]]:
    """The queries of an answer with their kinds, by the rules above. Raises Refused at the first that isn't one."""
    read = parsed(answer, Queries)
    term = _stems(read.term)
    if not term or len(term) > LONGEST_TERM or not _says(_stems(document.full_text), term):
        raise Refused("its term isn't one of the document")
    for kind, text in ((EXPLICIT, read.says), (SEMANTIC, read.means)):
        check_text(text, TWO_QUERIES)
        text = " ".join(text.split())
        words = _stems(text)
        if not SHORTEST <= len(words) <= LONGEST_QUERY:
            raise Refused(f"the {kind} query is too short or too long")
        if _says(words, term) != (kind == EXPLICIT):
            raise Refused(f"the {kind} query {'lacks' if kind == EXPLICIT else 'says'} the term")
        yield kind, text


def _stems(text: str) -> list[str]:
    return [singular(word.casefold()) for word in WORD.findall(text)]


def _says(words: Sequence[str], term: Sequence[str]) -> bool:
    """Whether words hold a term: its words in a row."""
    return any(
        list(words[start : start + len(term)]) == list(term) for start in range(len(words) - len(term) + 1)
    )


def query_writer(llm: str, tell: Tell, progress_for: ProgressFor, place: Path) -> QueryWriter:
    """The writer of queries of a server, whose journal lies beside a place. Raises ConfigError for no address."""
    return QueryWriter(Server(llm, tell, progress_for), journal_beside(place))
