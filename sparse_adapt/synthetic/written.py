"""What a model writes from a corpus: definitions of its terms, and queries of two kinds for its documents.

The model is asked by `server.Server`. Texts of documents go to it as data, between two tags whose mark depends on the
texts, so that no text can close them. An answer counts only as the JSON that was asked for, and only by rules that no
instruction in a document gets around; what they refuse is counted by its reason.

| refused | rule |
|---|---|
| no JSON, or another term | the answer is the object that was asked for, and its term the one that was asked |
| empty; doesn't know | no definition, or one that only says that the texts don't tell |
| repeats the term | the definition says the term or an inflection, or fewer than two words beside function words |
| repeats the example | the answer that the prompt gives as an example |
| a link or markup | addresses, tags, Markdown, code |
| defines something else | "X is ..." of an X that isn't the term and nothing else |
| says another term | a mined term that fewer than two of the documents shown say |

Of a definition of several sentences the first one stays.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from heapq import nlargest
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from sparse_adapt.collection.lines import write_objects
from sparse_adapt.collection.readers import Document
from sparse_adapt.collection.sentences import CHARACTERS, sentences
from sparse_adapt.synthetic.queries import WORD
from sparse_adapt.synthetic.server import Answers, Prompt, Server
from sparse_adapt.terms.entries import listed
from sparse_adapt.terms.function_words import FUNCTION_WORDS
from sparse_adapt.terms.mining import Term
from sparse_adapt.terms.words import find_words, singular

EXPLICIT, SEMANTIC = "explicit", "semantic"  # kinds of queries: that say the term, that mean it without
WRITTEN = "written"  # the form of a definition in dictionary.jsonl
PASSAGES, LONGEST_PASSAGE, LONGEST_TEXT = 4, 500, 3_000  # of a term; letters; letters of a document
DEFINITION_TOKENS, QUERY_TOKENS = 120, 160  # of an answer
SHORTEST, LONGEST, LONGEST_QUERY, LONGEST_TERM = 3, 60, 32, 5  # words
STEM = 5  # letters of a term with which no other word begins by chance
AGREEING = 2  # documents that have to say another term before a definition may
SHOWN = 8  # names of a kind in a message

FENCE = re.compile(r"^```(?:json)?\s*(.*?)\s*```$", re.S)
MARKUP = re.compile(
    r"[a-z][a-z0-9+.-]*://|\bwww\.|\bmailto:|\S@\S|\b[\w-]+(?:\.[\w-]+)*\.[a-z]{2,6}/\S"
    r"|\.(?:com|org|net|info|biz|io|ai|co|app|dev|xyz|top|site|shop|online|link)\b"
    r"|</?[a-z!]|&[a-z#0-9]+;|\]\(|\]\[|`|\*\*|__\w|^\s*(?:[#>*|-]\s|\d+\.\s)|[{}\\]",
    re.I | re.M,
)
NOT_KNOWN = re.compile(
    r"^(?:unknown|unclear|undefined|none|n/?a|not applicable|no (?:definition|information|meaning))\b"
    r"|\b(?:I|we)\s(?:do not|don't|can't|cannot|am not|could not|couldn't)\b"
    r"|\b(?:isn't|aren't|is not|are not|not)\s(?:clear|defined|specified|explained|mentioned|known|stated|provided)\b"
    r"|\b(?:these|the|this)\s(?:given\s|provided\s)?(?:passages?\b|(?:context|text|documents?)\sd(?:o|oes|id)\b)",
    re.I,
)
SUBJECT = re.compile(
    r"^(?:(?:an?|the)\s)?(?P<subject>[^\s,;:()]+(?:\s[^\s,;:()]+){0,4}?)\s"
    r"(?:is|are|was|were|means|refers to|stands for)\s",
    re.I,
)
SAYS_NOTHING = {
    "term",
    "word",
    "name",
    "phrase",
    "concept",
    "definition",
    "refer",
    "mean",
    "thing",
    "type",
    "kind",
}

PIPES = "Two pipes are joined by a flange: a rim at the end of each, through which bolts are put."
A_DEFINITION = (
    '{"term": "flange", "definition": "A rim at the end of a pipe by which it is bolted to another pipe."}'
)
TWO_QUERIES = (
    '{"term": "flange", "says": "what holds a flange", "means": "how to fasten one tube to the next"}'
)

T = TypeVar("T", bound=BaseModel)


class Definition(BaseModel):
    """The answer to a prompt that asks what a term means."""

    model_config = ConfigDict(extra="forbid", strict=True)
    term: str
    definition: str


class Queries(BaseModel):
    """The answer to a prompt that asks for queries of a document: its term, one that says it, one that doesn't."""

    model_config = ConfigDict(extra="forbid", strict=True)
    term: str
    says: str
    means: str


class WrittenDefinition(NamedTuple):
    """A definition that a model wrote, and the documents that its prompt showed."""

    term: str
    definition: str
    document_ids: tuple[str, ...]


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
        return {name: getattr(self, name) for name in self.__slots__}


# -- definitions ----------------------------------------------------------------------------------


def define(
    server: Server,
    terms: Sequence[Term],
    documents: Iterable[Document],
    journal: Path,
    seen: Callable[[str], str] = str,
) -> tuple[list[WrittenDefinition], Tally]:
    """A definition of each term that the model can write from passages which say it, in the order of the terms.

    seen: what the tokenizer makes of texts before it finds words in them. Raises ConfigError where no server answers.
    """
    names = _names(terms)
    shown = {term.text: tuple(passages) for term, passages in _passages(terms, documents, names, seen)}
    prompts = [
        Prompt(term.text, _about(term.text, (text for _, text in shown[term.text])))
        for term in terms
        if shown[term.text]
    ]
    instructions = _instructions("definition", _about("flange", [PIPES]), A_DEFINITION)
    answers = server.ask(instructions, Definition, prompts, DEFINITION_TOKENS, journal)
    tally, definitions = _tally(server, answers), []
    tally.refused |= {term.text: "no document says it" for term in terms if not shown[term.text]}
    for prompt, answer in zip(prompts, answers.texts, strict=True):
        passages = shown[prompt.name]
        try:
            if answer is not None:
                meaning = _meaning(prompt.name, answer, names, [text for _, text in passages])
                definitions.append(WrittenDefinition(prompt.name, meaning, tuple(key for key, _ in passages)))
        except Refused as refused:
            tally.refused[prompt.name] = str(refused)
    tally.taken = len(definitions)
    return definitions, tally


def write_definitions(path: str | Path, definitions: Iterable[WrittenDefinition], model: str) -> int:
    """Write `dictionary.jsonl`: each definition with the model that wrote it and the documents that it was shown."""
    return write_objects(
        path,
        (
            {
                "term": each.term,
                "definition": each.definition,
                "form": WRITTEN,
                "model": model,
                "doc_ids": each.document_ids,
            }
            for each in definitions
        ),
    )


def _names(terms: Iterable[Term]) -> dict[str, str]:
    """The term of each surface, in lower case."""
    names: dict[str, str] = {}
    for term in terms:
        variants = term.evidence.variants if term.evidence is not None else ()
        for surface in (term.text, *variants):
            names.setdefault(surface.casefold(), term.text)
    return names


def _passages(
    terms: Sequence[Term], documents: Iterable[Document], names: Mapping[str, str], seen: Callable[[str], str]
) -> Iterator[tuple[Term, list[tuple[str, str]]]]:
    """For each term the documents that say it most often, as id and passage, in the order of the corpus."""
    passages: dict[str, list[tuple[int, int, str, str]]] = {}
    for row, document in enumerate(documents):
        text = seen(document.full_text[:CHARACTERS])
        mentions = Counter(names[word] for word in map(str.casefold, find_words(text)) if word in names)
        for term, times in mentions.items():
            best_passages = passages.setdefault(term, [])
            best_passages.append((times, -row, document.document_id, text))
            if len(best_passages) > 2 * PASSAGES:
                passages[term] = nlargest(PASSAGES, best_passages)
    for each in terms:
        best = sorted(nlargest(PASSAGES, passages.get(each.text, [])), key=lambda passage: -passage[1])
        yield each, [(key, _passage(text, each.text, names)) for _, _, key, text in best]


def _passage(text: str, term: str, names: Mapping[str, str]) -> str:
    """The first sentences that say a term, each with the one behind it, as long as there is room."""
    parts, length, wanted = list[str](), 0, -1
    for row, sentence in enumerate(sentences(text)):
        if any(names.get(word.casefold()) == term for word in find_words(sentence)):
            wanted = row + 1
        if row <= wanted and length < LONGEST_PASSAGE:
            parts.append(" ".join(sentence.split()))
            length += len(parts[-1])
    return " ".join(parts)[:LONGEST_PASSAGE]


def _about(term: str, passages: Iterable[str]) -> str:
    return f"Term: {term}\n{_as_data('passages', passages)}"


def _meaning(term: str, answer: str, names: Mapping[str, str], passages: Sequence[str]) -> str:
    """The definition that an answer holds, by the rules above. Raises Refused."""
    read = _parsed(answer, Definition)
    forms = {surface for surface, owner in names.items() if owner == term}
    if _folded(read.term) not in forms:
        raise Refused("defines something else")
    _check_text(read.definition, A_DEFINITION)
    text = next(sentences(" ".join(read.definition.split())), "")
    if not WORD.search(text):
        raise Refused("empty")
    if NOT_KNOWN.search(text):
        raise Refused("doesn't know")
    subject = SUBJECT.match(text)
    if subject is not None and not FUNCTION_WORDS & set(_folded(subject["subject"]).split()):
        if _folded(subject["subject"]) not in {*forms, *map(singular, forms)}:
            raise Refused("defines something else")
        text = text[subject.end() :]
    words = [word.casefold() for word in WORD.findall(text)]
    telling = {singular(word) for word in words} - SAYS_NOTHING - FUNCTION_WORDS
    repeated = any(word.startswith(singular(form)) for form in forms for word in words if len(form) >= STEM)
    if repeated or forms & {*words, *telling} or len(telling) < 2 or len(words) < SHORTEST:
        raise Refused("repeats the term")
    if len(words) > LONGEST:
        raise Refused("longer than a definition")
    others = {names[word] for word in map(str.casefold, find_words(text)) if word in names} - {term}
    for other in others:
        saying = sum(any(names.get(w.casefold()) == other for w in find_words(each)) for each in passages)
        if saying < AGREEING:
            raise Refused("says another term")
    return text


# -- queries --------------------------------------------------------------------------------------


class QueryWriter:
    """Writes two queries for each document, one that says a term of it and one that means it, and counts refusals."""

    def __init__(self, server: Server, journal: Path) -> None:
        self.server, self.journal = server, journal
        self.tally = Tally(server.model)

    def __call__(self, documents: Sequence[Document]) -> list[list[tuple[str, str]]]:
        """For each document the queries that were taken, each with its kind. Raises as `Server.ask`."""
        prompts = [
            Prompt(each.document_id, _as_data("document", [each.full_text[:LONGEST_TEXT]]))
            for each in documents
        ]
        instructions = _instructions("queries", _as_data("document", [PIPES]), TWO_QUERIES)
        answers = self.server.ask(instructions, Queries, prompts, QUERY_TOKENS, self.journal)
        self.tally = _tally(self.server, answers)
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
    read = _parsed(answer, Queries)
    term = _stems(read.term)
    if not term or len(term) > LONGEST_TERM or not _says(_stems(document.full_text), term):
        raise Refused("its term isn't one of the document")
    for kind, text in ((EXPLICIT, read.says), (SEMANTIC, read.means)):
        _check_text(text, TWO_QUERIES)
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


# -- both -----------------------------------------------------------------------------------------


def _instructions(name: str, example: str, answer: str) -> list[dict[str, str]]:
    """What is said before each prompt: what to do, and one example of it, which small models need."""
    text = (files("sparse_adapt.synthetic") / "prompts" / f"{name}.txt").read_text(encoding="utf-8").strip()
    turns = (("system", text), ("user", example), ("assistant", answer))
    return [{"role": role, "content": content} for role, content in turns]


def _as_data(what: str, texts: Iterable[str]) -> str:
    """Texts between tags that none of them can hold, each on a line of its own."""
    lines = [" ".join(text.split()) for text in texts]
    mark = sha256("\n".join(lines).encode()).hexdigest()[:12]
    return "\n".join([f"<{what}-{mark}>", *lines, f"</{what}-{mark}>"])


def _parsed(answer: str, form: type[T]) -> T:
    text = answer.strip()
    fenced = FENCE.match(text)
    if not text:
        raise Refused("empty")
    try:
        return form.model_validate_json(fenced[1] if fenced is not None else text)
    except ValidationError as error:
        raise Refused("not the JSON that was asked for") from error


def _check_text(text: str, example: str) -> None:
    if text.strip() and f'"{text.strip()}"' in example:
        raise Refused("repeats the example")
    if MARKUP.search(text) or not " ".join(text.split()).isprintable():
        raise Refused("a link or markup")


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _tally(server: Server, answers: Answers) -> Tally:
    return Tally(
        server.model,
        len(answers.texts),
        answers.before,
        answers.requests,
        unanswered=dict(answers.unanswered),
    )
