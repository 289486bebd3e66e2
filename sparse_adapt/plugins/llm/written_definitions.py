"""Definitions of terms that a model writes from the passages which say them.

| refused beside what `answers` refuses | rule |
|---|---|
| another term | the term is the one of the prompt |
| doesn't know | a text that only says that the passages don't tell |
| repeats the term | the definition says the term or an inflection, or fewer than two words beside function words |
| defines something else | "X is ..." of an X that isn't the term and nothing else |
| says another term | a mined term that fewer than two of the documents shown say |

Of a definition of several sentences the first one stays.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from pathlib import Path
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict
from transformers import PreTrainedTokenizerFast

from sparse_adapt.collection.arguments import Corpus
from sparse_adapt.collection.lines import write_objects
from sparse_adapt.collection.readers import Document
from sparse_adapt.collection.sentences import CHARACTERS, sentences
from sparse_adapt.errors import InputError
from sparse_adapt.files.folders import way_to_file
from sparse_adapt.files.place import Place
from sparse_adapt.plugins.llm.answers import (
    PIPES,
    SHORTEST,
    Refused,
    Tally,
    as_data,
    check_text,
    in_lower_case,
    instructions_for,
    parsed,
    tally_of,
)
from sparse_adapt.plugins.llm.server import Prompt, Server, journal_beside
from sparse_adapt.report.progress import Bars
from sparse_adapt.synthetic.queries import WORD
from sparse_adapt.terms.function_words import FUNCTION_WORDS
from sparse_adapt.terms.mining import Term
from sparse_adapt.terms.words import VisibleText, find_words, singular

WRITTEN = "written"  # the form of a definition in dictionary.jsonl
PASSAGES, LONGEST_PASSAGE = 4, 500  # of a term; letters
DEFINITION_TOKENS = 120  # of an answer
LONGEST = 60  # words
STEM = 5  # letters of a term with which no other word begins by chance
AGREEING = 2  # documents that have to say another term before a definition may

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

A_DEFINITION = (
    '{"term": "flange", "definition": "A rim at the end of a pipe by which it is bolted to another pipe."}'
)


class DefinitionAnswer(BaseModel):
    """The answer to a prompt that asks what a term means."""

    model_config = ConfigDict(extra="forbid", strict=True)
    term: str
    definition: str


class WrittenDefinition(NamedTuple):
    """A definition that a model wrote, and the documents that its prompt showed."""

    term: str
    definition: str
    document_ids: tuple[str, ...]


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
    instructions = instructions_for("definition", _about("flange", [PIPES]), A_DEFINITION)
    answers = server.ask(instructions, DefinitionAnswer, prompts, DEFINITION_TOKENS, journal)
    tally, definitions = tally_of(server, answers), []
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
    return f"Term: {term}\n{as_data('passages', passages)}"


def _meaning(term: str, answer: str, names: Mapping[str, str], passages: Sequence[str]) -> str:
    """The definition that an answer holds, by the rules above. Raises Refused."""
    read = parsed(answer, DefinitionAnswer)
    forms = {surface for surface, owner in names.items() if owner == term}
    if in_lower_case(read.term) not in forms:
        raise Refused("defines something else")
    check_text(read.definition, A_DEFINITION)
    text = next(sentences(" ".join(read.definition.split())), "")
    if not WORD.search(text):
        raise Refused("empty")
    if NOT_KNOWN.search(text):
        raise Refused("doesn't know")
    subject = SUBJECT.match(text)
    if subject is not None and not FUNCTION_WORDS & set(in_lower_case(subject["subject"]).split()):
        if in_lower_case(subject["subject"]) not in {*forms, *map(singular, forms)}:
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


def define_into(
    llm: str,
    terms: Sequence[Term],
    corpus: Corpus,
    place: Place,
    tokenizer: PreTrainedTokenizerFast,
    bars: Bars,
) -> tuple[tuple[WrittenDefinition, ...], Tally]:
    """Have a server's model define terms, and write the definitions to a place, all or nothing.

    Raises ConfigError for a server that doesn't answer, InputError where no answer is a definition.
    """
    server, reads = Server(llm, bars.say, bars.count), [corpus.place or corpus.table or None]
    with way_to_file(place.reading(reads)) as work:
        journal = journal_beside(place.folder)
        definitions, tally = define(server, terms, corpus.read(), journal, VisibleText(tokenizer))
        if not definitions:
            raise InputError(corpus.name, f"no definition: {'; '.join(tally.lines('definitions written'))}")
        write_definitions(work / place.folder.name, definitions, server.model)
    return tuple(definitions), tally
