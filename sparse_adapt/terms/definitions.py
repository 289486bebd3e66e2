"""What a corpus itself says that its terms mean: definitions, each with the sentence it comes from.

| form | example |
|---|---|
| is | "A semaphore is a counter that processes share." |
| long form | "splicing by overlap extension (SOE)", "SOE (splicing by overlap extension)" |
| apposition | "Calpain, a protease of the cytosol, cuts ..." |
| naming | "... programs that read their own input, known as quines" |
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.collection.lines import write_objects
from sparse_adapt.collection.readers import Document
from sparse_adapt.collection.sentences import CHARACTERS, sentences

SHORTEST, LONGEST = 3, 40  # words of a definition
A_TERM = 2  # definitions kept of one term
NAME = r"(?:an?\s|the\s)?(?P<term>[^\W_][\w.+#-]{0,80})"
ARTICLE = r"(?:an?|one of)\s"
FAR = 400  # characters of a meaning, so that a sentence without an end is read in a time that its length says
FORMS = (
    (
        "is",
        re.compile(rf"^(?:[^,;]{{0,40}},\s)?{NAME}\s(?:is|are)\s(?P<meaning>{ARTICLE}[^;:()]+?)[.;]", re.I),
    ),
    ("apposition", re.compile(rf"\b{NAME},\s(?P<meaning>{ARTICLE}[^,;:()]{{1,{FAR}}}),", re.I)),
    (
        "naming",
        re.compile(
            rf"\b(?P<meaning>(?:an?|the)\s[^,;:()]{{1,{FAR}}}),?\s(?:(?:also|often|is|are)\s)?"
            rf"(?:known as|called|termed|referred to as)\s{NAME}",
            re.I,
        ),
    ),
)
SHORT_IN_BRACKETS = re.compile(r"\(\s*(?P<term>[^\W_][\w.-]{1,11})\s*\)")
LONG_IN_BRACKETS = re.compile(r"\b(?P<term>[^\W_][\w.-]{1,11})\s\((?P<meaning>[^()]{6,120})\)")


class Mined(NamedTuple):
    """A definition, the form it was found by, and the document and sentence that hold it."""

    definition: Definition
    form: str
    document_id: str
    sentence: str


def mine_definitions(documents: Iterable[Document], terms: Sequence[str]) -> list[Mined]:
    """At most two definitions of each term, in the order of the terms, longer forms of abbreviations first."""
    wanted = {term.casefold(): term for term in terms}
    definitions: dict[str, list[Mined]] = {}
    for document in documents:
        for sentence in sentences(document.text[:CHARACTERS]):
            for form, name, meaning in _readings(" ".join(sentence.split())):
                term = wanted.get(name.casefold())
                if term is None or not _is_meaning(meaning, term):
                    continue
                entry = Mined(Definition(term, meaning), form, document.document_id, sentence)
                mined = definitions.setdefault(term, [])
                if all(each.definition.definition.casefold() != meaning.casefold() for each in mined):
                    mined.append(entry)
    ranked = {
        term: sorted(entries, key=lambda entry: entry.form != "long form")
        for term, entries in definitions.items()
    }
    return [entry for term in wanted.values() for entry in ranked.get(term, ())[:A_TERM]]


def _readings(sentence: str) -> Iterable[tuple[str, str, str]]:
    """(form, term, meaning) of whatever looks like a definition in a sentence."""
    for form, pattern in FORMS:
        for match in pattern.finditer(sentence):
            yield form, match["term"].rstrip("."), match["meaning"].strip()
    for match in SHORT_IN_BRACKETS.finditer(sentence):
        long = long_form(match["term"], sentence[: match.start()])
        if long:
            yield "long form", match["term"], long
    for match in LONG_IN_BRACKETS.finditer(sentence):
        if long_form(match["term"], match["meaning"]) == match["meaning"].strip():
            yield "long form", match["term"], match["meaning"].strip()


def long_form(short: str, before: str) -> str | None:
    """The words at the end of a text that an abbreviation stands for: its letters in order, the first at a start.

    Schwartz and Hearst 2003, "A simple algorithm for identifying abbreviation definitions in biomedical text".
    """
    letters = [sign.casefold() for sign in short if sign.isalnum()]
    if len(letters) < 2 or not any(map(str.isalpha, letters)):
        return None
    words = before.split()[-min(len(letters) + 5, 2 * len(letters)) :]
    text = " ".join(words)
    place = len(text) - 1
    for number, letter in reversed(list(enumerate(letters))):
        while place >= 0 and (
            text[place].casefold() != letter or (number == 0 and place > 0 and text[place - 1].isalnum())
        ):
            place -= 1
        if place < 0 or (
            number == len(letters) - 1 and " " in text[place:]
        ):  # the last word has the last letter
            return None
        place -= 1
    words_before = text[place + 1 :].strip()
    return words_before if len(words_before.split()) >= 2 else None


def _is_meaning(meaning: str, term: str) -> bool:
    words = meaning.split()
    named = term.casefold() in (word.strip(".,").casefold() for word in words)
    return not named and len(words) <= LONGEST and (len(words) >= SHORTEST or len(meaning) > 2 * len(term))


def write_mined(path: str | Path, mined: Iterable[Mined], definitions: Iterable[Definition] = ()) -> int:
    """Write `dictionary.jsonl`: definitions that were given first, then mined ones with their evidence."""
    rows: list[dict[str, object]] = [
        {"term": each.term, "definition": each.definition}
        | ({"examples": each.examples} if each.examples else {})
        for each in definitions
    ]
    pairs = {(row["term"], row["definition"]) for row in rows}
    for each in mined:
        term, definition = each.definition.term, each.definition.definition
        if (term, definition) not in pairs:
            evidence = {"form": each.form, "doc_id": each.document_id, "sentence": each.sentence}
            rows.append({"term": term, "definition": definition, **evidence})
    return write_objects(path, rows)
