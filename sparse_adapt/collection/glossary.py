"""What the words of a domain mean, as sentences that a model can learn from.

`dictionary.jsonl` holds a `term`, its `definition` and optional `examples` (a list) a line. A glossary may also be a
table (CSV, TSV, XLSX, Parquet) with columns of these names; without headings they come in this order, and examples in
one cell have semicolons between them. TBX, SKOS (RDF/XML) and OBO files are read as well (`terminologies`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from sparse_adapt.collection.lines import (
    JsonLine,
    Unique,
    at_least_one,
    read_objects,
    readable,
    write_objects,
)
from sparse_adapt.collection.sheets import is_sheet, read_sheet
from sparse_adapt.collection.sources import bundled, locate
from sparse_adapt.collection.terminologies import is_terminology, read_terminology

DICTIONARY_FILES = ("dictionary.jsonl", "dictionary.jsonl.gz")
COLUMNS = {
    "term": ("word", "name"),
    "definition": ("meaning", "description"),
    "examples": ("example",),
}  # of a table, with other headings for them
STOPS = (".", "!", "?", "…", "\u3002", "\uff01", "\uff1f")  # the last three are full-width
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
    path = locate(source, DICTIONARY_FILES) if bundled(source).is_dir() else readable(source)
    assert isinstance(path, Path)
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


def _entries(path: Path) -> Iterator[JsonLine]:
    if is_terminology(path):
        yield from read_terminology(path)
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
