"""What the rows of a glossary mean: entries, each with the forms in which texts say it, its acronym and its senses.

| in the file | becomes |
|---|---|
| `access control list (ACL)`, `ACL (access control list)`, `ACL - access control list` | a phrase and its acronym |
| `VPC`, defined as "Virtual private cloud. An elastic network ..." | the same |
| `Amazon Simple Storage Service (Amazon S3)` | a phrase whose acronym is `S3`, and a form `Amazon S3` |
| `AAD`, defined as "See additional authenticated data" | a further form of that entry |
| a definition that says "also called labeling" | a further form |
| senses that are numbered, that begin with another entry and a colon, or that stand in rows of their own | several |

Plural, case and hyphens make no difference (`EntryKeys`): `e-mail` is `email`, and `access keys` an `access key`. An
en dash between letters is a hyphen, and so is a place where a line may break (U+200B): `flux gate` is said by both.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from sparse_adapt.collection.glossary import Definition
from sparse_adapt.terms.cleaning import cleaned, common_beginning
from sparse_adapt.terms.definitions import long_form
from sparse_adapt.terms.words import SPACE_MARK, VisibleText, find_words, parts_of, singular

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

BRACKETS = re.compile(r"(?<!\s)\s*+\(([^()]*)\)\s*")
DASHED = re.compile(r"^(\S{2,12})(?:\s+[-\u2013\u2014]\s+|:\s+)(\S.*)$")
REFERENCE = re.compile(r"^(?:see(?:\s+also)?|same as|refer to|->|\u2192)[:\s]\s*(.{1,80}?)\s*\.?$", re.I)
FRAGMENT = re.compile(
    r"^([^\W_][\w-]{1,11})\)\s*(?=\S)"
)  # what is left of a term that was cut at its bracket
FIRST_SENTENCE = re.compile(r"^(.{4,80}?)(?:\.(?:\s+|$)|$)")
ALSO = re.compile(
    r"\balso (?:called|known as|referred to as)\s+(?:an?\s|the\s)?([^.,;:()]{2,40}?)\s*(?=[.,;:)](?:\s|$))",
    re.I,
)
JOINED = re.compile(r"\b(?:or|and)\b", re.I)  # two forms at once
ALSO_WORDS = 3  # of a further form in a definition, at the most
NUMBERED = re.compile(r"(?:^|(?<=\s))\(?([1-9])[.)]\s+")
LABEL = re.compile(r"(?:^|(?<=[.!?]\s))([A-Z][^.:;]{2,70}):\s+")
MOST_FORMS = 12  # of one entry

HYPHENS = re.compile(r"(?<=[^\W_])(?:[\u200b\u2010\u2011\uff0d-]{2,}|[\u200b\u2010\u2011\uff0d])(?=[^\W_])")
DASH = re.compile(r"(?<=[^\W\d_])\u2013(?=[^\W\d_])")  # between numbers it says from where to where

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that a glossary defines: how it is said, and what it means. `see`: what it is referred to, if it is."""

    term: str
    forms: tuple[str, ...]  # the term, its acronym and whatever else says it
    acronym: str = ""  # one word
    senses: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    see: str = ""
    written: str = ""  # the term as the glossary has it

    @property
    def definition(self) -> str:
        """All senses together."""
        return " ".join(self.senses)

    @property
    def is_phrase(self) -> bool:
        """Whether it is more than one word."""
        return len(self.term.split()) > 1


class Glossary(NamedTuple):
    """The entries of a glossary in their order, and remarks on what was odd, each with its count."""

    entries: tuple[Entry, ...]
    remarks: tuple[str, ...] = ()


class EntryKeys:
    """What makes two ways to write a thing the same: its words as a tokenizer's normaliser makes them, in singular."""

    def __init__(self, tokenizer: "PreTrainedTokenizerFast") -> None:
        self.visible, self.normalizer = VisibleText(tokenizer), tokenizer.backend_tokenizer.normalizer
        self.known: dict[str, tuple[Key, str]] = {}

    def of(self, text: str) -> Key:
        """The words of a text; empty for one without any."""
        return tuple(word for surface in self.words(text) for word in self.parts(surface)[0])

    def words(self, text: str) -> Iterator[str]:
        """The words of a text as they are written, whatever sign joins their parts as a hyphen."""
        if not text.isascii():
            text = DASH.sub("-", HYPHENS.sub("-", text))
        return find_words(self.visible(text))

    def parts(self, surface: str) -> tuple[Key, str]:
        """The words that a word of a text is made of, and the word written as one where a hyphen joins it."""
        if surface not in self.known:
            pieces = parts_of(surface) if "-" in surface else []
            words = tuple(word for piece in pieces or [surface] if (word := self._word(piece)))
            self.known[surface] = words, self._word("".join(pieces)) if len(words) > 1 else ""
        return self.known[surface]

    def _word(self, piece: str) -> str:
        if self.normalizer is not None:
            piece = str(self.normalizer.normalize_str(piece)).replace(SPACE_MARK, " ").strip()
        return singular(piece.casefold())


def read_entries(definitions: Sequence[Definition], keys: EntryKeys) -> Glossary:
    """The entries that rows of a glossary make, and what was odd about them. Rows of one term are one entry."""
    begins = common_beginning([each.definition for each in definitions])
    rows = [_entry(each, begins) for each in definitions]
    names = {keys.of(form) for row in rows for form in row.forms}
    joined: dict[Key, Entry] = {}
    long = {keys.of(row.acronym): keys.of(row.term) for row in rows[::-1] if row.written == row.acronym}
    for row in rows:
        row = replace(row, senses=tuple(part for sense in row.senses for part in _senses(sense, names, keys)))
        key = keys.of(row.term) or (row.term,)
        key = (
            key if row.acronym else long.get(key, key)
        )  # a row of an acronym whose long form another row has
        joined[key] = row if key not in joined else _both(joined[key], row)
    entries, remarks = _referred(joined, keys)
    return Glossary(tuple(entries), (*remarks, *_claimed_twice(entries)))


# -- one row --------------------------------------------------------------------------------------


def _entry(row: Definition, begins: str) -> Entry:
    """What one row says, its senses not yet parted."""
    term, acronym, forms = _head(" ".join(row.term.split()))
    text = cleaned(row.definition.removeprefix(begins))
    fragment = FRAGMENT.match(text)
    if fragment is not None and not acronym:
        acronym, text = fragment[1], text[fragment.end() :]
    reference = REFERENCE.match(text)
    if reference is not None:
        return Entry(term, _distinct(term, acronym, *forms), acronym, see=reference[1], written=row.term)
    first = FIRST_SENTENCE.match(text)
    if not acronym and first is not None and term.isupper() and _is_short_for(term, first[1]):
        term, acronym = first[1], term
    also = (each[1].strip("\"'\u201c\u201d ") for each in ALSO.finditer(text) if not JOINED.search(each[1]))
    forms = [*forms, *(each for each in also if each and len(each.split()) <= ALSO_WORDS)]
    examples = tuple(filter(None, map(cleaned, row.examples)))
    return Entry(
        term, _distinct(term, acronym, *forms), acronym, (text,) if text else (), examples, "", row.term
    )


def _head(term: str) -> tuple[str, str, list[str]]:
    """A term without brackets, its acronym if it names one, and further forms."""
    match = BRACKETS.search(term)
    if match is not None:
        inside, outside = match[1].strip(), BRACKETS.sub(" ", term, count=1).strip()
        for long, short in ((outside, inside), (inside, outside)):
            lead = _shared_lead(long, short)
            bare = short[len(lead) :]
            if long != short and _is_short_for(bare, long[len(lead) :]):
                return long, bare, [short] if lead else []
        is_part = inside and f" {inside.casefold()}" in f" {outside.casefold()}"
        return outside or inside, "", [inside] if is_part else []
    dashed = DASHED.match(term)
    if dashed is not None and _is_short_for(dashed[1], dashed[2]):
        return dashed[2], dashed[1], []
    return term, "", []


def _shared_lead(long: str, short: str) -> str:
    """The words with which both begin, the last word of the short one aside: `Amazon ` of `Amazon S3`."""
    lead = ""
    for word, other in zip(long.split(), short.split()[:-1], strict=False):
        if word != other:
            break
        lead += f"{word} "
    return lead


def _is_short_for(short: str, long: str) -> bool:
    """Whether a word stands for a phrase: by its letters, or in capitals that begin with one of the phrase's."""
    words = long.split()
    if not short or " " in short or len(words) < 2 or len(short) > 12:
        return False
    if long_form(short, long) is not None:
        return True
    capitals = sum(sign.isupper() or sign.isdigit() for sign in short)
    begins = any(word[0].casefold() == short[0].casefold() for word in words)
    return begins and capitals >= 2 and 2 * capitals >= len(short) and len(short) <= 2 * len(words)


def _senses(text: str, names: set[Key], keys: EntryKeys) -> list[str]:
    """The senses that a definition numbers, or begins with another entry and a colon; else all of it."""
    marks = list(NUMBERED.finditer(text))
    if len(marks) > 1 and [int(mark[1]) for mark in marks] == list(range(1, len(marks) + 1)):
        return _cut(text, [mark.start() for mark in marks], [mark.end() for mark in marks])
    starts = [mark.start() for mark in LABEL.finditer(text) if keys.of(BRACKETS.sub(" ", mark[1])) in names]
    return _cut(text, starts, starts) if len(starts) > 1 else [text]


def _cut(text: str, starts: Sequence[int], begins: Sequence[int]) -> list[str]:
    """What stands before the first start, and then from each beginning to the next start."""
    ends = [*starts[1:], len(text)]
    parts = [text[: starts[0]], *(text[begin:end] for begin, end in zip(begins, ends, strict=True))]
    return [part.strip() for part in parts if part.strip()]


# -- rows that belong together --------------------------------------------------------------------


def _both(entry: Entry, other: Entry) -> Entry:
    """One entry of two rows of the same term: all forms, all senses."""
    entry = replace(entry, term=other.term) if entry.term == other.acronym else entry
    return replace(
        entry,
        forms=_distinct(*entry.forms, *other.forms),
        acronym=entry.acronym or other.acronym,
        senses=_distinct(*entry.senses, *other.senses),
        examples=_distinct(*entry.examples, *other.examples),
        see="" if entry.senses or other.senses else entry.see,
    )


def _referred(joined: Mapping[Key, Entry], keys: EntryKeys) -> tuple[list[Entry], Iterator[str]]:
    """Entries that are referred to take the forms of those that refer to them; remarks on circles and lost ends."""
    by_form = {keys.of(form): key for key, entry in [*joined.items()][::-1] for form in entry.forms}
    by_form |= {key: key for key in joined}
    targets, circles, lost = dict(joined), list[str](), list[str]()
    for key, entry in joined.items():
        passed, target = {key}, key
        while joined[target].see and not joined[target].senses:
            following = by_form.get(keys.of(joined[target].see))
            if following is None or following in passed:
                (lost if following is None else circles).append(entry.term)
                targets[key] = replace(entry, see="")
                break
            passed.add(following)
            target = following
        else:
            if target != key:
                targets[target] = replace(
                    targets[target], forms=_distinct(*targets[target].forms, *entry.forms)[:MOST_FORMS]
                )
                targets[key] = replace(entry, see=joined[target].term)
    remarks = (
        ("refer to each other in a circle", circles),
        ("refer to what the glossary doesn't hold", lost),
    )
    return list(targets.values()), (
        f"{len(names):,} entries {what}: {listed(names)}" for what, names in remarks if names
    )


def _claimed_twice(entries: Iterable[Entry]) -> Iterator[str]:
    """A remark where an acronym stands for several long forms, all of which are taught."""
    claims: dict[str, list[str]] = {}
    for entry in entries:
        if entry.acronym:
            claims.setdefault(entry.acronym.casefold(), []).append(entry.acronym)
    several = [names[0] for names in claims.values() if len(names) > 1]
    if several:
        yield f"{len(several):,} with an acronym of several entries, each of which is taught: {listed(several)}"


def listed(names: Sequence[str], shown: int = 5) -> str:
    """The first of some names, with dots behind them where there are more."""
    return ", ".join([*names[:shown], *(["..."] if len(names) > shown else [])])


def _distinct(*texts: str) -> tuple[str, ...]:
    """Texts that hold something, each once, in their order."""
    return tuple(dict.fromkeys(filter(None, texts)))
