"""Which entries of a glossary the texts of a corpus say, in whatever form, and what becomes of each entry by that.

| kind | becomes |
|---|---|
| a new word, or a phrase's acronym without a token | a term: it gets a token, and its definition teaches it |
| a word with a token, a phrase | queries: its forms and its meaning, and the model learns what they find |

`entries.jsonl` holds an entry a line with its forms, its senses and what becomes of it, to be read and edited: a line
deleted is an entry that isn't used.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from sparse_adapt.collection.lines import JsonLine, read_objects, write_objects
from sparse_adapt.collection.streams import at_least_one
from sparse_adapt.terms.entries import Entry, EntryKeys, Key, listed
from sparse_adapt.terms.function_words import FUNCTION_WORDS

Kind = Literal["phrase with an acronym", "phrase", "new word", "word with a token", "reference"]
KINDS: Mapping[Kind, tuple[str, str]] = {
    "phrase with an acronym": ("phrase with an acronym", "phrases with an acronym"),
    "phrase": ("phrase", "phrases"),
    "new word": ("new word", "new words"),
    "word with a token": ("word with a token", "words with a token"),
    "reference": ("only refers to another", "only refer to others"),
}
ENTRIES_FILE = "entries.jsonl"
LEAST_DOCUMENTS = 2  # that say an entry, for it to be taught


class Finder:
    """Finds entries in texts by the words of their forms, whatever their case, plural or hyphens."""

    def __init__(self, entries: Sequence[Entry], keys: EntryKeys) -> None:
        self.keys, self.entries = keys, entries
        self.saying: dict[Key, list[int]] = {}
        for number, entry in enumerate(entries):
            for key in {key for form in entry.forms if tells(key := keys.of(form))}:
                self.saying.setdefault(key, []).append(number)
        self.lengths: dict[str, set[int]] = {}  # of forms, by their first word
        for key in self.saying:
            self.lengths.setdefault(key[0], set()).add(len(key))

    def in_text(self, text: str) -> Counter[tuple[int, Key]]:
        """How often a text says each entry, by the entry's place and the words that say it."""
        words, keys = list[str](), list[Key]()
        for surface in self.keys.words(text):
            parts, whole = self.keys.parts(surface)
            words += parts
            keys.append((whole,))
        for place, word in enumerate(words):
            keys += [tuple(words[place : place + length]) for length in self.lengths.get(word, ())]
        return Counter((number, key) for key in keys for number in self.saying.get(key, ()))


def tells(key: Key) -> bool:
    """Whether the words of a form are more than stop words."""
    return any(word not in FUNCTION_WORDS for word in key)


@dataclass(frozen=True, slots=True)
class Use:
    """What becomes of an entry: its kind, the documents that say it, the word that gets a token; why not, if not."""

    entry: Entry
    kind: Kind
    documents: int
    token: str = ""  # a word that is to get one
    refused: str = ""

    @property
    def makes_queries(self) -> bool:
        """Whether queries are made of it: its words have tokens, which are to find what it means."""
        return not self.refused and self.kind != "reference"


def uses(
    entries: Sequence[Entry],
    texts: Iterable[str],
    keys: EntryKeys,
    is_token: Callable[[str], bool],
) -> list[Use]:
    """What becomes of each entry. The texts are read once."""
    occurrences, by_key = Counter[int](), Counter[Key]()
    finder = Finder(entries, keys)
    for text in texts:
        in_text = finder.in_text(text)
        occurrences.update({number for number, _ in in_text})
        by_key.update({key for _, key in in_text})
    return [_use(entry, occurrences[number], by_key, keys, is_token) for number, entry in enumerate(entries)]


def _use(
    entry: Entry, documents: int, by_key: Mapping[Key, int], keys: EntryKeys, is_token: Callable[[str], bool]
) -> Use:
    if entry.see and not entry.senses:
        return Use(entry, "reference", documents)
    kind: Kind = "phrase with an acronym" if entry.acronym else "phrase"
    if not entry.is_phrase:
        kind = "word with a token" if is_token(entry.term) else "new word"
    refused = _refused(entry, documents, keys)
    word = entry.acronym if entry.is_phrase else entry.term
    wants = word and not refused and not is_token(word) and by_key.get(keys.of(word), 0) >= LEAST_DOCUMENTS
    return Use(entry, kind, documents, word if wants else "", refused)


def _refused(entry: Entry, documents: int, keys: EntryKeys) -> str:
    """Why an entry can't be used; empty where it can."""
    if not any(tells(keys.of(form)) for form in entry.forms):
        return "it is only stop words or signs"
    if not entry.senses:
        return "nothing defines it"
    return "" if documents else "the corpus never says it"


def summary(uses: Sequence[Use]) -> Iterator[str]:
    """How many entries there are of each kind and what becomes of them; how many aren't used, and why."""
    counts = Counter(use.kind for use in uses)
    kinds = [f"{counts[kind]:,} {KINDS[kind][counts[kind] > 1]}" for kind in KINDS if counts[kind]]
    yield f"{len(uses):,} entries: {', '.join(kinds)}"
    tokens, queries = sum(bool(use.token) for use in uses), sum(use.makes_queries for use in uses)
    yield f"{tokens:,} words of them get a token, {queries:,} entries make queries"
    reasons: dict[str, list[str]] = {}
    for use in uses:
        if use.refused:
            reasons.setdefault(use.refused, []).append(use.entry.term)
    for reason, names in reasons.items():
        yield f"{len(names):,} aren't used, for {reason}: {listed(names)}"


# -- as a file ------------------------------------------------------------------------------------


def write_uses(path: str | Path, uses: Iterable[Use]) -> int:
    """Write `entries.jsonl`; says how many entries."""
    return write_objects(path, map(_line, uses))


def _line(use: Use) -> dict[str, object]:
    fields = asdict(use.entry) | {"kind": use.kind, "documents": use.documents}
    more = {"token": use.token, "not used": use.refused}
    return {key: value for key, value in (fields | more).items() if value or key == "documents"}


def read_uses(path: str | Path) -> list[Use]:
    """What `write_uses` wrote and a person may have edited. Raises InputError for a line that is no entry."""
    return [_read(record) for record in at_least_one(read_objects(path), path, "entries")]


def _read(record: JsonLine) -> Use:
    kinds: dict[str, Kind] = {kind: kind for kind in KINDS}
    kind = kinds.get(record.string("kind"))
    if kind is None:
        raise record.error(f'"kind" is none of {", ".join(kinds)} (found: {record.string("kind")!r})')
    acronym, see, written, token, refused = (
        record.string(key, default="") for key in ("acronym", "see", "written", "token", "not used")
    )
    forms, senses, examples = (record.strings(key) for key in ("forms", "senses", "examples"))
    entry = Entry(record.words("term"), forms, acronym, senses, examples, see, written)
    return Use(entry, kind, int(record.number("documents")), token, refused)
