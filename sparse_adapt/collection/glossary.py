"""What the words of a domain mean, as sentences that a model can learn from.

`dictionary.jsonl` holds a `term`, its `definition` and optional `examples` (a list) a line. A glossary may also be a
table (CSV, TSV, XLSX, Parquet) with columns of these names; without headings they come in this order, and examples in
one cell have semicolons between them. TBX, SKOS (RDF/XML) and OBO files are read as well (`terminologies`).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparse_adapt.collection.lines import JsonLine, read_lines, read_objects, say_taken, write_objects
from sparse_adapt.collection.opening import Location, bare, open_bytes, variants
from sparse_adapt.collection.sources import file_of
from sparse_adapt.collection.streams import Unique, at_least_one
from sparse_adapt.collection.tables import is_sheet, read_sheet
from sparse_adapt.errors import InputError, MissingExtraError, first_line

DICTIONARY_FILES = variants("dictionary.jsonl")
COLUMNS = {
    "term": ("word", "name"),
    "definition": ("meaning", "description"),
    "examples": ("example",),
}  # of a table, with other headings for them
STOPS = (".", "!", "?", "…", "\u3002", "\uff01", "\uff1f")  # the last three are full-width
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
ENGLISH = "en"
OBO_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
TBX_ENTRIES, TBX_LANGUAGES = ("termEntry", "conceptEntry"), ("langSet", "langSec")
CLOSING = "\"'”\u2019»)]"


@dataclass(frozen=True, slots=True)
class Definition:
    """What a term means, and phrases that use it. A term of several meanings has several definitions."""

    term: str
    definition: str
    examples: tuple[str, ...] = ()


def read_dictionary(source: str | Path) -> list[Definition]:
    """Every definition of `dictionary.jsonl` or a table, of a folder that holds the first, or of a bundled corpus.

    Raises InputError with file and line for whatever is wrong, a definition that occurs twice included.
    """
    path = file_of(source, DICTIONARY_FILES)
    unique = Unique(path, "definition of")
    definitions = []
    for record in at_least_one(_entries(path), path, "definitions"):
        definition = definition_of(record)
        unique.add(f"{definition.term}\t= {definition.definition}", record.line)
        definitions.append(definition)
    return definitions


def write_dictionary(path: str | Path, definitions: Iterable[Definition]) -> int:
    """Write `dictionary.jsonl`; says how many definitions."""
    return write_objects(
        path,
        (
            {"term": d.term, "definition": d.definition, **({"examples": d.examples} if d.examples else {})}
            for d in definitions
        ),
    )


def sentence(definition: Definition) -> str:
    """[TERM] is defined as [DEFINITION]. [TERM] is used in contexts such as [EXAMPLES].

    Each sentence ends in one stop, whether or not the definition brings its own; examples are parted by
    semicolons, and without any the second sentence is left out.
    """
    term = _one_line(definition.term)
    first = _stopped(f"{term} is defined as {_one_line(definition.definition)}")
    examples = [_unstopped(_one_line(example)) for example in definition.examples if example.strip()]
    if not examples:
        return first
    return f"{first} " + _stopped(f"{term} is used in contexts such as {'; '.join(examples)}")


def _entries(path: Location) -> Iterator[JsonLine]:
    if Path(bare(path.name)).suffix.lower() in TERMINOLOGIES:
        yield from _read_terminology(path)
        return
    if not is_sheet(path):
        yield from read_objects(path)
        return
    for record in read_sheet(path, COLUMNS):
        if isinstance(examples := record.fields.get("examples"), str):
            parts = (part.strip() for part in examples.split(";"))
            record.fields["examples"] = [part for part in parts if part]
        yield record


def definition_of(record: JsonLine) -> Definition:
    """One entry of a glossary. Raises InputError, with the entry's place, where the term or its meaning is missing."""
    examples = record.strings("examples")
    if not all(example.strip() for example in examples):
        raise record.error('"examples" holds an empty text; fill it in or remove it')
    return Definition(record.words("term").strip(), record.words("definition"), examples)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _stopped(text: str) -> str:
    return text if text.rstrip(CLOSING).endswith(STOPS) else f"{text}."


def _unstopped(text: str) -> str:
    return text if text.endswith("..") else text.removesuffix(".")


# -- of terminology tools ------------------------------------------------------------------------


@dataclass(slots=True)
class _Concept:
    """One entry: where it begins, and its terms and definitions, each with its language."""

    line: int
    terms: list[tuple[str, str]] = field(default_factory=list)
    definitions: list[tuple[str, str]] = field(default_factory=list)

    def records(self, path: str | Path) -> Iterator[JsonLine]:
        """Each term with its definition, in one language."""
        language = self._language()
        terms = dict.fromkeys(text for of, text in self.terms if of == language)
        said = [text for of, text in self.definitions if of in (language, "")]
        definition = next(iter(said or [text for _, text in self.definitions]), "")
        for term in terms if definition else ():
            yield JsonLine(path, self.line, {"term": term, "definition": definition})

    def _language(self) -> str:
        languages = [language for language, _ in self.terms]
        english = next((each for each in languages if each.split("-")[0] == ENGLISH), None)
        return english if english is not None else next(iter(languages), "")


def _read_terminology(path: Location) -> Iterator[JsonLine]:
    """Each term of a file with its definition. Raises InputError for a file that is broken."""
    ending = Path(bare(path.name)).suffix.lower()
    without, given = 0, set[tuple[str, str]]()
    for concept in TERMINOLOGIES[ending](path):
        records = list(concept.records(path))
        without += not records
        for record in records:
            pair = record.fields["term"], record.fields["definition"]
            if pair not in given:
                given.add(pair)
                yield record
    if without:
        say_taken(str(path), f"{without:,} entries have no term with a definition, and are left out")


def _obo(path: Location) -> Iterator[_Concept]:
    concept: _Concept | None = None
    for line, text in read_lines(path):
        if text.startswith("["):
            if concept is not None:
                yield concept
            concept = _Concept(line) if text.strip() == "[Term]" else None
            continue
        key, _, value = text.partition(":")
        if concept is None or key not in ("name", "def", "synonym"):
            continue
        quoted = OBO_TEXT.match(value.strip())
        found = value.strip() if key == "name" else re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else ""
        if found:
            (concept.definitions if key == "def" else concept.terms).append(("", found))
    if concept is not None:
        yield concept


def _tbx(path: Location) -> Iterator[_Concept]:
    for entry in (each for each in _elements(path) if _name(each) in TBX_ENTRIES):
        concept = _Concept(entry.sourceline)
        for element in entry.iter():
            near = (entry, *element.iterancestors())
            of = next((each.get(LANGUAGE, "") for each in near if _name(each) in TBX_LANGUAGES), "")
            if _name(element) == "term":
                concept.terms += [(of, text)] if (text := _text(element)) else []
            elif _name(element) == "descrip" and element.get("type") == "definition":
                concept.definitions += [(of, text)] if (text := _text(element)) else []
        yield concept


def _skos(path: Location) -> Iterator[_Concept]:
    labels, definitions = ("prefLabel", "altLabel"), ("definition", "scopeNote")
    for entry in _elements(path):
        children = {_name(child) for child in entry}
        if not children & {*labels}:
            continue
        concept = _Concept(entry.sourceline)
        for name in (*labels, *definitions):
            held = concept.terms if name in labels else concept.definitions
            held += [
                (child.get(LANGUAGE, ""), text)
                for child in entry
                if _name(child) == name and (text := _text(child))
            ]
        yield concept


def _elements(path: Location) -> Iterator[Any]:
    """Every element of an XML file; nothing outside the file is read."""
    try:
        from lxml import etree
    except ImportError as error:
        raise MissingExtraError("lxml", "files") from error
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True)
    try:
        with open_bytes(path) as file:
            yield from etree.parse(file, parser).getroot().iter(etree.Element)
    except (etree.XMLSyntaxError, OSError, EOFError, ValueError) as error:
        line = getattr(error, "lineno", None)
        raise InputError(
            path, f"broken XML ({first_line(error)}); mend it or export it again", line=line
        ) from error


def _name(element: Any) -> str:  # noqa: ANN401 - an element of lxml
    """The name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _text(element: Any) -> str:  # noqa: ANN401
    return " ".join("".join(element.itertext()).split())


TERMINOLOGIES = {".tbx": _tbx, ".obo": _obo, ".skos": _skos, ".rdf": _skos, ".xml": _tbx}
