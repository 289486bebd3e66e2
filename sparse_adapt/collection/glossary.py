"""What the words of a domain mean, as sentences that a model can learn from.

`dictionary.jsonl` holds a `term`, its `definition` and optional `examples` (a list) a line. A glossary may also be a
JSON list or a table (CSV, TSV, XLSX, Parquet) with keys or columns of these names or of others that mean the same;
without headings they come in this order, and examples in one cell have semicolons between them. An abbreviation with
an expansion and a description has two definitions. TBX, SKOS and OBO files are read as well (`terminologies`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from sparse_adapt.collection.columns import EXPANSIONS, GLOSSARIES, NONE, OF_GLOSSARIES, Keys
from sparse_adapt.collection.lines import (
    JSON,
    JsonLine,
    ending_of,
    is_json,
    no_such_ending,
    read_json,
    say_taken,
    write_objects,
)
from sparse_adapt.collection.opening import Location, variants
from sparse_adapt.collection.sheets import is_table, table_endings
from sparse_adapt.collection.sources import file_of
from sparse_adapt.collection.streams import at_least_one
from sparse_adapt.collection.tables import read_sheet
from sparse_adapt.errors import ConfigError
from sparse_adapt.registry import registry

DICTIONARY_FILES = variants("dictionary.jsonl")
SHOWN = 3  # entries that a message names
STOPS = (".", "!", "?", "…", "\u3002", "\uff01", "\uff1f")  # the last three are full-width
CLOSING = "\"'”\u2019»)]"
KEYS = {
    **OF_GLOSSARIES,
    "definition": tuple(name for name in OF_GLOSSARIES["definition"] if name not in EXPANSIONS),
    "examples": ("examples",),
}  # of an entry, which may lack what others of its file have


@dataclass(frozen=True, slots=True)
class Definition:
    """What a term means, and phrases that use it. A term of several meanings has several definitions."""

    term: str
    definition: str
    examples: tuple[str, ...] = ()


def read_dictionary(source: str | Path, chosen: Mapping[str, str] = NONE) -> list[Definition]:
    """Every definition of a glossary, of a folder that holds a `dictionary.jsonl`, or of a bundled corpus.

    chosen: the columns of a table, or the keys of JSON, by their fields. Entries without a term or a meaning are left
    out, and those that come again; that is said. Raises InputError with file and line for whatever else is wrong.
    """
    path = file_of(source, DICTIONARY_FILES)
    if chosen and not (is_table(path) or is_json(path)):
        raise ConfigError(
            f"{source}: is no table (CSV, TSV, XLSX, Parquet) and no JSON, so no column can be chosen"
        )
    return list(definitions_in(_entries(path, chosen), path, {} if is_table(path) else chosen))


def definitions_in(
    records: Iterable[JsonLine], source: str | Path, chosen: Mapping[str, str] = NONE
) -> Iterator[Definition]:
    """Each definition once, of at least one. Says which records have none, and which have one that was there.

    chosen: the keys of the records by their fields.
    """
    pairs = set[tuple[str, str]]()
    without, again = _LeftOut("have no term with a definition"), _LeftOut("come again")
    for record in (meaning for entry in _named(records, chosen) for meaning in _meanings(entry)):
        definition = definition_of(record)
        if definition is None:
            without.add(record)
        elif (pair := (definition.term, definition.definition)) in pairs:
            again.add(record)
        else:
            pairs.add(pair)
            yield definition
    if without.count and not pairs:
        first = without.first[0]
        raise first.needs("a string", "definition" if first.fields.get("term") else "term")
    list(at_least_one(pairs, source, "definitions"))
    without.say(source)
    again.say(source)


@dataclass(slots=True)
class _LeftOut:
    """Entries that are left out for one fault: how many there are, and the first of them."""

    fault: str
    count: int = 0
    first: list[JsonLine] = field(default_factory=list)

    def add(self, record: JsonLine) -> None:
        """Count one."""
        self.count += 1
        if self.count <= SHOWN:
            self.first.append(record)

    def say(self, source: str | Path) -> None:
        """Say how many there are, and which come first."""
        if self.count:
            shown = [str(each.fields.get("term", "")).strip() or f"line {each.line}" for each in self.first]
            named = ", ".join([*shown, *(["..."] if self.count > SHOWN else [])])
            say_taken(str(source), f"{self.count:,} entries {self.fault}, and are left out ({named})")


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


def _entries(path: Location, chosen: Mapping[str, str]) -> Iterator[JsonLine]:
    readers = registry().all_of("readers.entries")
    if (ending := ending_of(path)) in readers:
        entries: Iterator[JsonLine] = registry().find("readers.entries", ending)(path)
        return entries
    if is_table(path):
        return map(_with_examples, read_sheet(path, GLOSSARIES, chosen))
    if not is_json(path):
        raise no_such_ending(path, "entries", (*table_endings(), *JSON, *readers))
    return read_json(path, "entries")


def _with_examples(row: JsonLine) -> JsonLine:
    """A row whose cell of examples is a list of them."""
    examples = row.fields.get("examples")
    if isinstance(examples, str):
        row.fields["examples"] = [part for each in examples.split(";") if (part := each.strip())]
    return row


def _named(records: Iterable[JsonLine], chosen: Mapping[str, str]) -> Iterator[JsonLine]:
    """The same records with each field under our name as well."""
    keys = Keys(KEYS, chosen)
    for record in records:
        named = {field: record.fields[key] for field, key in keys.of(record).items() if key in record.fields}
        yield replace(record, fields={**record.fields, **named})


def _meanings(record: JsonLine) -> Iterator[JsonLine]:
    """What an entry defines: an abbreviation by what it stands for, and any term by what it means."""
    fields = dict(record.fields)
    expansion = fields.pop("expansion", None)
    if expansion:
        yield replace(record, fields={**fields, "definition": expansion})
    if not expansion or fields.get("definition"):
        yield replace(record, fields=fields)


def definition_of(record: JsonLine) -> Definition | None:
    """One entry of a glossary, None where it lacks the term or its meaning. Raises InputError for what is no text."""
    term, definition = (record.string(key, default="") for key in ("term", "definition"))
    examples = record.strings("examples")
    if not all(example.strip() for example in examples):
        raise record.error('"examples" holds an empty text; fill it in or remove it')
    return Definition(term.strip(), definition, examples) if term.strip() and definition.strip() else None


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _stopped(text: str) -> str:
    return text if text.rstrip(CLOSING).endswith(STOPS) else f"{text}."


def _unstopped(text: str) -> str:
    return text if text.endswith("..") else text.removesuffix(".")
