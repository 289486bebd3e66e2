"""Glossaries as terminology tools and ontologies keep them: TBX, SKOS in RDF/XML, and OBO.

An entry's synonyms are terms with the same definition. Where a file has several languages, English is read, or else
the language of each entry's first term. Entries without a definition teach nothing, and how many there are is said.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sparse_adapt.collection.addresses import open_bytes
from sparse_adapt.collection.compression import bare
from sparse_adapt.collection.lines import JsonLine, read_lines
from sparse_adapt.collection.names import say_taken
from sparse_adapt.errors import InputError, first_line

LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
ENGLISH = "en"
OBO_TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')
TBX_ENTRIES, TBX_LANGUAGES = ("termEntry", "conceptEntry"), ("langSet", "langSec")


@dataclass(slots=True)
class Concept:
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


def is_terminology(path: str | Path) -> bool:
    """Whether a file is one by its name, compressed or not."""
    return bare(Path(path).name).lower().endswith(tuple(READERS))


def read_terminology(path: Path) -> Iterator[JsonLine]:
    """Each term of a file with its definition. Raises InputError for a file that is broken."""
    ending = Path(bare(path.name)).suffix.lower()
    without, given = 0, set[tuple[str, str]]()
    for concept in READERS[ending](path):
        records = list(concept.records(path))
        without += not records
        for record in records:
            pair = record.fields["term"], record.fields["definition"]
            if pair not in given:
                given.add(pair)
                yield record
    if without:
        say_taken(str(path), f"{without:,} entries have no term with a definition, and are left out")


def _obo(path: Path) -> Iterator[Concept]:
    concept: Concept | None = None
    for line, text in read_lines(path):
        if text.startswith("["):
            if concept is not None:
                yield concept
            concept = Concept(line) if text.strip() == "[Term]" else None
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


def _tbx(path: Path) -> Iterator[Concept]:
    for entry in (each for each in _elements(path) if _name(each) in TBX_ENTRIES):
        concept = Concept(entry.sourceline)
        for element in entry.iter():
            near = (entry, *element.iterancestors())
            of = next((each.get(LANGUAGE, "") for each in near if _name(each) in TBX_LANGUAGES), "")
            if _name(element) == "term":
                concept.terms += [(of, text)] if (text := _text(element)) else []
            elif _name(element) == "descrip" and element.get("type") == "definition":
                concept.definitions += [(of, text)] if (text := _text(element)) else []
        yield concept


def _skos(path: Path) -> Iterator[Concept]:
    labels, definitions = ("prefLabel", "altLabel"), ("definition", "scopeNote")
    for entry in _elements(path):
        children = {_name(child) for child in entry}
        if not children & {*labels}:
            continue
        concept = Concept(entry.sourceline)
        for name in (*labels, *definitions):
            held = concept.terms if name in labels else concept.definitions
            held += [
                (child.get(LANGUAGE, ""), text)
                for child in entry
                if _name(child) == name and (text := _text(child))
            ]
        yield concept


def _elements(path: Path) -> Iterator[Any]:
    """Every element of an XML file; nothing outside the file is read."""
    from lxml import etree

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


READERS = {".tbx": _tbx, ".obo": _obo, ".skos": _skos, ".rdf": _skos, ".xml": _tbx}
