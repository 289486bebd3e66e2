"""What the words of a domain mean, as sentences that a model can learn from.

`dictionary.jsonl` holds a `term`, its `definition` and optional `examples` (a list) a line.
"""

from collections.abc import Iterable
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
from sparse_adapt.collection.sources import bundled, locate

DICTIONARY_FILES = ("dictionary.jsonl", "dictionary.jsonl.gz")
STOPS = (".", "!", "?", "…", "\u3002", "\uff01", "\uff1f")  # the last three are full-width
CLOSING = "\"'”\u2019»)]"


@dataclass(frozen=True, slots=True)
class Definition:
    """What a term means, and phrases that use it. A term of several meanings has several definitions."""

    term: str
    definition: str
    examples: tuple[str, ...] = ()


def read_dictionary(source: str | Path) -> list[Definition]:
    """Every definition of `dictionary.jsonl`, of a folder that holds one, or of a bundled corpus.

    Raises InputError with file and line for whatever is wrong, a definition that occurs twice included.
    """
    path = locate(source, DICTIONARY_FILES) if bundled(source).is_dir() else readable(source)
    assert isinstance(path, Path)
    unique = Unique(path, "definition of")
    definitions = []
    for record in at_least_one(read_objects(path), path, "definitions"):
        definition = _definition(record)
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


def _definition(record: JsonLine) -> Definition:
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
