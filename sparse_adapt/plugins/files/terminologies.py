"""Glossaries of terminology tools and ontologies: the terms of each concept with its definition in their language.

| ending | format | read by |
|---|---|---|
| `.rdf`, `.skos`, `.ttl`, `.nt`, `.n3`, `.jsonld` | SKOS in any of its syntaxes | rdflib |
| `.obo` | OBO 1.4 | fastobo |
| `.tbx`, `.xml` | TBX of 2008 and of 2019, both of its styles | the grammar below |

Of a concept in several languages the English terms are read, or else those of its first language. A definition is in
the term's language, the nearest region's first, or says no language; a concept without one is counted and left out.
What a format calls obsolete is left out, as are synonyms that mean more or less than the term. Nothing outside a file
is read.
"""

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from sparse_adapt.collection.lines import JsonLine, say_taken
from sparse_adapt.collection.opening import Location, bare, open_bytes
from sparse_adapt.errors import InputError, MissingExtraError, first_line

if TYPE_CHECKING:  # libraries of the extra `files`
    from fastobo.term import TermFrame
    from lxml.etree import _Element, _Entity
    from rdflib import Graph, URIRef
    from rdflib.namespace import NamespaceManager
    from rdflib.term import Node

ENGLISH = "en"
LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"
# N-Triples is Turtle, too; rdflib's parser of its own takes time that grows with the square of a line's length.
SYNTAXES = {
    ".rdf": "xml",
    ".skos": "xml",
    **dict.fromkeys((".ttl", ".nt"), "turtle"),
    ".n3": "n3",
    ".jsonld": "json-ld",
}
NAMES = 1_000  # prefixes in XML, or names of a context in JSON-LD: rdflib takes the square of them in time
TAGS = 200  # and attributes within a value of XML, which rdflib parses again at each
OF_MARKUP = "http://www.w3.org/1999/02/22-rdf-syntax-ns#parseType"
BASE = "http://localhost/"  # of the names in a file that says none; nothing is asked there
TBX_ROOTS, TBX_ENTRIES = ("martif", "tbx"), ("termEntry", "conceptEntry")
TBX_TERMS = ("tig", "termGrp", "termSec")  # that hold a term
SAME = "EXACT"  # scope of a synonym


@dataclass(slots=True)
class Concept:
    """One entry: its terms and definitions, each with its language."""

    terms: list[tuple[str, str]] = field(default_factory=list)
    definitions: list[tuple[str, str]] = field(default_factory=list)
    obsolete: bool = False

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each term of one language with its definitions; with an empty one where there is none."""
        languages = [_language(tag) for tag, _ in self.terms]
        chosen = ENGLISH if ENGLISH in languages else next(iter(languages), "")
        for tag, term in dict.fromkeys(each for each in self.terms if _language(each[0]) == chosen):
            for definition in self._definitions(tag) or [""]:
                yield term, definition

    def _definitions(self, tag: str) -> list[str]:
        """The definitions of one language: the tag's own, then that without a region, then others' and no one's."""
        tags = dict.fromkeys(of for of, _ in self.definitions)
        same = [of for of in tags if _language(of) == _language(tag)]
        ranked = sorted(same, key=lambda of: (_folded(of) != _folded(tag), "-" in _folded(of)))
        ranked += [of for of in tags if not of or (not tag and _language(of) == ENGLISH)]
        ranked += [of for of in tags if not tag]
        return [text for of, text in self.definitions if of in ranked[:1]]


def _folded(tag: str) -> str:
    return tag.strip().casefold().replace("_", "-")


def _language(tag: str) -> str:
    return _folded(tag).split("-")[0]


def read_terminology(path: Location) -> Iterator[JsonLine]:
    """Each term of a file with a definition, an entry a line. Raises InputError for a file that is broken."""
    obsolete, seen = 0, set[tuple[str, str]]()
    for number, concept in enumerate(READERS[_ending(path)](path), start=1):
        obsolete += concept.obsolete
        for term, definition in () if concept.obsolete else concept.pairs():
            if (term, definition) not in seen:
                seen.add((term, definition))
                yield JsonLine(path, number, {"term": term, "definition": definition})
    if obsolete:
        say_taken(str(path), f"{obsolete:,} obsolete entries are left out")


def _ending(path: Location) -> str:
    return Path(bare(path.name)).suffix.lower()


def _broken(path: Location, kind: str, error: Exception) -> InputError:
    line = getattr(error, "lineno", None)
    return InputError(path, f"broken {kind} ({first_line(error)}); mend it or export it again", line=line)


# -- OBO -----------------------------------------------------------------------------------------


def _obo(path: Location) -> Iterator[Concept]:
    try:
        import fastobo
    except ImportError as error:
        raise MissingExtraError("fastobo", "files") from error
    others = 0
    try:
        with open_bytes(path) as file:
            for frame in fastobo.iter(file, ordered=True, threads=1):
                if isinstance(frame, fastobo.term.TermFrame):
                    concept, left = _of_frame(frame)
                    others += left
                    yield concept
    except (SyntaxError, ValueError, TypeError, OSError, EOFError) as error:
        raise _broken(path, "OBO", error) from error
    if others:
        say_taken(str(path), f"{others:,} synonyms that mean more, less or something related are left out")


def _of_frame(frame: "TermFrame") -> tuple[Concept, int]:
    """The concept of a frame, and how many synonyms it has of other scopes."""
    concept, others = Concept(), 0
    for clause in frame:
        kind = clause.raw_tag()
        if kind == "name":
            concept.terms.append(("", clause.name.strip()))
        elif kind == "def":
            concept.definitions.append(("", " ".join(clause.definition.split())))
        elif kind == "is_obsolete":
            concept.obsolete = clause.obsolete
        elif kind == "synonym" and clause.synonym.scope == SAME:
            concept.terms.append(("", clause.synonym.desc.strip()))
        else:
            others += kind == "synonym"
    return concept, others


# -- SKOS ----------------------------------------------------------------------------------------


def _skos(path: Location) -> Iterator[Concept]:
    try:
        from rdflib import OWL, RDF, RDFS, Graph, Literal, Namespace
        from rdflib.namespace import SKOS
    except ImportError as error:
        raise MissingExtraError("rdflib", "files") from error
    with open_bytes(path) as file:
        content = file.read()
    syntax, xl, graph = SYNTAXES[_ending(path)], Namespace("http://www.w3.org/2008/05/skos-xl#"), Graph()
    graph.namespace_manager = _without_prefixes(graph)
    logging.getLogger("rdflib.term").setLevel(logging.ERROR)  # a traceback for each number that it can't read
    for check in CHECKS.get(syntax, ()):
        check(path, content)
    try:
        graph.parse(BytesIO(content), format=syntax, publicID=BASE)
    except Exception as error:  # rdflib's parsers raise errors of all kinds
        raise _broken(path, "RDF", error) from error

    def texts(subject: "Node", *kinds: "URIRef") -> list[tuple[str, str]]:
        """What a concept says of itself under the first of these names that it has: texts, or things that have one."""
        for kind in kinds:
            things = graph.objects(subject, kind)
            nodes = [next((graph[thing : xl.literalForm | RDF.value]), thing) for thing in things]
            literals = [each for each in nodes if isinstance(each, Literal)]
            if literals:
                return sorted((each.language or "", " ".join(each.split())) for each in literals)
        return []

    named = (SKOS.prefLabel, xl.prefLabel, RDFS.label), (SKOS.altLabel,), (xl.altLabel,)
    concepts = [
        Concept(
            [each for kinds in named for each in texts(subject, *kinds)],
            texts(subject, SKOS.definition, SKOS.scopeNote),
            (subject, OWL.deprecated, Literal(True)) in graph,
        )
        for subject in {*graph.subjects()}
    ]
    yield from sorted(concepts, key=lambda each: (each.terms, each.definitions))  # a graph has no order


def _without_prefixes(graph: "Graph") -> "NamespaceManager":
    """What keeps no prefix for a graph that is never written: keeping them takes the square of their number in time."""
    from rdflib.namespace import NamespaceManager

    class WithoutPrefixes(NamespaceManager):
        def bind(self, *prefix: object, **how: object) -> None:
            pass

    return WithoutPrefixes(graph, bind_namespaces="none")


@dataclass(slots=True)
class Markup:
    """What rdflib copies for each prefix or tag of XML: prefixes at one place, tags and attributes within one value."""

    prefixes: int = 0
    most_prefixes: int = 0
    depth: int = 0  # within a value
    tags: int = 0
    most_tags: int = 0

    def declare(self, change: int) -> None:
        """A prefix begins or ends."""
        self.prefixes += change
        self.most_prefixes = max(self.most_prefixes, self.prefixes)

    def begin(self, attributes: Mapping[str, str]) -> None:
        """A tag begins."""
        if self.depth:
            self.depth += 1
            self.count(1 + len(attributes))
        elif attributes.get(OF_MARKUP) not in (None, "Resource", "Collection"):
            self.depth, self.tags = 1, 0

    def end(self) -> None:
        """A tag ends."""
        self.depth -= self.depth > 0

    def count(self, more: int) -> None:
        """A value goes on with more marks."""
        self.tags += more * (self.depth > 0)
        self.most_tags = max(self.most_tags, self.tags)


def _check_markup(path: Location, content: bytes) -> None:
    """Raise InputError for XML with many prefixes at one place, or many tags in one value."""
    from xml.parsers import expat

    parser, markup = expat.ParserCreate(namespace_separator=""), Markup()
    parser.StartNamespaceDeclHandler = lambda *_: markup.declare(1)
    parser.EndNamespaceDeclHandler = lambda *_: markup.declare(-1)
    parser.StartElementHandler = lambda _, attributes: markup.begin(attributes)
    parser.EndElementHandler = lambda _: markup.end()
    parser.ProcessingInstructionHandler = lambda *_: markup.count(1)
    with suppress(expat.ExpatError):  # rdflib says what is broken
        parser.Parse(content, True)
    _check_names(path, markup.most_prefixes)
    if markup.most_tags > TAGS:
        raise InputError(
            path, f"has a value of {markup.most_tags:,} tags, where {TAGS:,} are read; write it as text"
        )


def _check_names(path: Location, names: int) -> None:
    if names > NAMES:
        raise InputError(
            path, f"declares {names:,} prefixes, where {NAMES:,} are read; leave out those without use"
        )


def _check_entities(path: Location, content: bytes) -> None:
    """Raise InputError for XML whose entities stand for one another, or for what lies elsewhere."""
    for entity in _entities(path, content):
        if entity.content is None or "&" in entity.orig:
            problem = f"the entity {entity.name} stands for others or for another file; write the text out"
            raise InputError(path, problem)


def _entities(path: Location, content: bytes) -> "Iterator[_Entity]":
    etree = _etree()
    try:
        begin = etree.iterparse(BytesIO(content), events=("start",), resolve_entities=False, no_network=True)
        _, root = next(begin)
    except (etree.XMLSyntaxError, StopIteration) as error:
        raise _broken(path, "XML", error) from error
    declared = root.getroottree().docinfo.internalDTD
    return iter(()) if declared is None else declared.iterentities()


def _check_context(path: Location, content: bytes) -> None:
    """Raise InputError for JSON-LD that takes the meaning of its keys from another place, or gives very many."""
    names = 0
    try:
        left = [json.loads(content)]
    except (ValueError, RecursionError) as error:
        raise _broken(path, "JSON", error) from error
    while left:
        value = left.pop()
        left += value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
        contexts = value.get("@context") if isinstance(value, Mapping) else None
        named = contexts if isinstance(contexts, list) else [contexts]
        names = max(names, sum(len(each) for each in named if isinstance(each, Mapping)))
        if any(isinstance(each, str) for each in named) or (
            isinstance(value, Mapping) and "@import" in value
        ):
            raise InputError(path, "takes its @context from another place; write the context out")
    _check_names(path, names)


CHECKS = {"xml": (_check_entities, _check_markup), "json-ld": (_check_context,)}


# -- TBX -----------------------------------------------------------------------------------------


def _tbx(path: Location) -> Iterator[Concept]:
    """The concepts of a file: entries of one id are one, and each text has the language of what it stands in."""
    root, concepts = _tree(path), dict[str, Concept]()
    if _name(root) not in TBX_ROOTS:
        problem = f"is no TBX (it begins with <{_name(root)}>); SKOS needs the ending .rdf"
        raise InputError(path, problem)
    for number, entry in enumerate(each for each in root.iter() if _name(each) in TBX_ENTRIES):
        concept = concepts.setdefault(entry.get("id") or f"entry {number}", Concept())
        for element in entry.iter():
            text = " ".join("".join(element.itertext()).split())
            if _name(element) == "term" and _name(element.getparent()) in TBX_TERMS and text:
                concept.terms.append((_tag_of(element), text))
            elif _is_definition(element) and text:
                concept.definitions.append((_tag_of(element), text))
    yield from concepts.values()


def _is_definition(element: "_Element") -> bool:
    """Whether an element is a definition: by its type in the older style, by its name in the newer one."""
    name = _name(element)
    return name == "definition" or (name == "descrip" and element.get("type") == "definition")


def _tag_of(element: "_Element") -> str:
    """The language of an element, which may be that of an outer one."""
    near = (element, *element.iterancestors())
    return next((tag for each in near if (tag := each.get(LANGUAGE))), "")


def _tree(path: Location) -> "_Element":
    """The outermost element of an XML file. Raises InputError for one that is broken or uses entities."""
    etree = _etree()
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        with open_bytes(path) as file:
            root = etree.parse(file, parser).getroot()
    except (etree.XMLSyntaxError, OSError, EOFError, ValueError) as error:
        raise _broken(path, "XML", error) from error
    for entity in root.iter(etree.Entity):
        line = entity.getparent().sourceline
        raise InputError(path, f"uses the entity {entity.text}; write the text out", line=line)
    return root


def _etree() -> ModuleType:
    try:
        from lxml import etree
    except ImportError as error:
        raise MissingExtraError("lxml", "files") from error
    module: ModuleType = etree
    return module


def _name(element: "_Element") -> str:
    """The name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


READERS: Mapping[str, Callable[[Location], Iterator[Concept]]] = {
    **dict.fromkeys(SYNTAXES, _skos),
    ".obo": _obo,
    **dict.fromkeys((".tbx", ".xml"), _tbx),
}
