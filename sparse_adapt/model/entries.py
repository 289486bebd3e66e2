"""Entries beside their pieces: terms that have a dimension of their own, while the tokenizer stays the base model's.

A text says an entry where its pieces stand in a row and no word goes on at either end. Entries that stand inside one
another ("access key", "access key ID") are said both. Which texts say an entry follows from token ids alone.

    MODEL/entries.json    the entries, in the order of their dimensions, which follow those of the tokenizer's tokens
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from pydantic import Field
from transformers import PreTrainedTokenizerFast

from sparse_adapt.errors import InputError, ModelError
from sparse_adapt.files.folders import write_json
from sparse_adapt.files.place import is_there
from sparse_adapt.files.records import Record, read_record
from sparse_adapt.model.tokens import TokenIds, names_of
from sparse_adapt.terms.words import SPACE_MARK

ENTRIES_FILE = "entries.json"
LARGEST = 1 << 26  # bytes of such a file, which is read whole
ANEW = "repeat the extension"
SPACE_MARKS = (SPACE_MARK, "\u0120")  # before a piece that begins a word, where a tokenizer marks it
INSIDE = "##"  # before a piece that goes on with a word, in WordPiece
PLURALS = ("", "s", "es")
BEFORE = ("", " ", "(")  # some tokenizers spell a text's first word otherwise, and a word behind a sign
UNSPACED = re.compile(  # Thai to Lao, Burmese, Khmer, Japanese kana, Chinese
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9f"
    "\U00020000-\U0003ffff]"
)


class Said(NamedTuple):
    """Places of a text, from `start` to before `stop`, at which its pieces say the entry of a dimension."""

    start: int
    stop: int
    dimension: int


class Spelling(NamedTuple):
    """Pieces that say an entry, and whether a word may go on before and behind them."""

    pieces: tuple[int, ...]
    dimension: int
    glued: tuple[bool, bool]


class Entries:
    """Where texts say entries: names by dimension, and how this tokenizer spells each."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, names: Mapping[int, str]) -> None:
        """`names`: of each dimension, as the tokenizer's normalizer leaves it."""
        self.tokenizer = tokenizer
        self._by_first: dict[int, list[Spelling]] = {}
        self._ends: dict[int, tuple[bool, bool]] = {}
        spelt = [(name + plural, dimension) for dimension, name in names.items() for plural in PLURALS]
        found = set[Spelling]()
        for before in BEFORE:
            first = _pieces(tokenizer, [before.strip()])[0]
            ids = _pieces(tokenizer, [before + name for name, _ in spelt])
            for (name, dimension), pieces in zip(spelt, ids, strict=True):
                if pieces[: len(first)] == first:
                    glued = UNSPACED.match(name[0]) is not None, UNSPACED.match(name[-1]) is not None
                    found.add(Spelling(pieces[len(first) :], dimension, glued))
        for spelling in sorted(found, key=lambda each: (-len(each.pieces), each)):
            if spelling.pieces:
                self._by_first.setdefault(spelling.pieces[0], []).append(spelling)

    def said_in(self, token_ids: TokenIds) -> Iterator[Said]:
        """Every place where a text says an entry: by their beginning, longest first."""
        if not self._by_first:
            return
        ids = tuple(token_ids)
        for start, first in enumerate(ids):
            for pieces, dimension, glued in self._by_first.get(first, ()):
                stop = start + len(pieces)
                if ids[start:stop] == pieces and self._is_whole(ids, start, stop, glued):
                    yield Said(start, stop, dimension)

    def parts(self, token_ids: TokenIds) -> Iterator[tuple[int, TokenIds]]:
        """A text as the entries that it says, with the pieces that say each, and the other tokens, each by itself.

        Of entries that overlap the first is told, and of those the longest.
        """
        place = 0
        for said in self.said_in(token_ids):
            if said.start >= place:
                yield from ((each, [each]) for each in token_ids[place : said.start])
                yield said.dimension, token_ids[said.start : said.stop]
                place = said.stop
        yield from ((each, [each]) for each in token_ids[place:])

    def _is_whole(self, ids: tuple[int, ...], start: int, stop: int, glued: tuple[bool, bool]) -> bool:
        """Whether no word goes on at either end of some places, unless it may."""
        begins = (
            glued[0] or start == 0 or self._starts_word(ids[start]) or not self._ends_of(ids[start - 1])[1]
        )
        return begins and (glued[1] or stop == len(ids) or not self._ends_of(ids[stop])[0])

    def _starts_word(self, token_id: int) -> bool:
        """Whether a piece says itself that a word begins, which in WordPiece each does but those inside a word."""
        name = str(self.tokenizer.convert_ids_to_tokens(token_id))
        return name.startswith(SPACE_MARKS) or (_is_wordpiece(self.tokenizer) and not name.startswith(INSIDE))

    def _ends_of(self, token_id: int) -> tuple[bool, bool]:
        """Whether a piece goes on with the word before it, and whether one could go on behind it."""
        ends = self._ends.get(token_id)
        if ends is None:
            name = names_of(self.tokenizer, [token_id])[0]
            if token_id in self.tokenizer.all_special_ids or not name:
                ends = False, False
            elif _is_wordpiece(self.tokenizer):
                ends = name.startswith(INSIDE), False
            else:
                bare = name.lstrip("".join(SPACE_MARKS))
                ends = bare == name and bare[:1].isalnum(), bare[-1:].isalnum()
            self._ends[token_id] = ends
        return ends


def _is_wordpiece(tokenizer: PreTrainedTokenizerFast) -> bool:
    return type(tokenizer.backend_tokenizer.model).__name__ == "WordPiece"


def _pieces(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> list[tuple[int, ...]]:
    encoded = tokenizer.backend_tokenizer.encode_batch(list(texts), add_special_tokens=False)
    return [tuple(each.ids) for each in encoded]


# -- in files ---------------------------------------------------------------------------------------


class StoredEntry(Record):
    """An entry: its dimension, its name there, the term as it was given, and the base model's pieces of it."""

    dimension: int = Field(ge=1)
    name: str = Field(min_length=1)
    term: str = Field(min_length=1)
    category: str
    pieces: Annotated[tuple[int, ...], Field(min_length=1)]


class StoredEntries(Record):
    """What `entries.json` holds."""

    format: Literal["entries"] = "entries"
    format_version: Literal[1] = 1
    entries: tuple[StoredEntry, ...]


def read_entries(folder: Path) -> tuple[StoredEntry, ...]:
    """The entries of a model folder; none where it has no such file. Raises ModelError for a damaged one."""
    path = folder / ENTRIES_FILE
    if not is_there(path) and not path.is_symlink():
        return ()
    if not path.is_file():
        raise ModelError(f"{path}: is no file that can be read; {ANEW}")
    if (size := path.stat().st_size) > LARGEST:
        raise ModelError(f"{path}: has {size:,} bytes, where {LARGEST:,} are read; {ANEW}")
    try:
        return read_record(path, StoredEntries, ANEW).entries
    except InputError as error:
        raise ModelError(str(error)) from error


def check_entries(
    folder: Path, entries: Sequence[StoredEntry], tokenizer: PreTrainedTokenizerFast, rows: int
) -> None:
    """Raise ModelError for entries that don't go with their folder's model. `rows`: of its decoder."""
    path = folder / ENTRIES_FILE
    first = 1 + max(tokenizer.get_vocab().values())
    for number, entry in enumerate(entries):
        if entry.dimension != entries[0].dimension + number or not first <= entry.dimension < rows:
            raise ModelError(
                f"{path}: {entry.name!r} has dimension {entry.dimension:,}, where the tokenizer's end at {first:,} "
                f"and the model's at {rows:,}; {ANEW}"
            )
    inside = "" if _is_wordpiece(tokenizer) else " "
    spelt = _pieces(tokenizer, [inside + entry.name for entry in entries])
    for entry, pieces in zip(entries, spelt, strict=True):
        if pieces != entry.pieces:
            raise ModelError(f"{path}: {entry.name!r} has other pieces by this tokenizer; {ANEW}")
    if len({entry.name for entry in entries}) < len(entries):
        raise ModelError(f"{path}: names an entry twice; {ANEW}")


def write_entries(folder: Path, entries: Sequence[StoredEntry]) -> None:
    """Write the entries beside a model."""
    write_json(folder / ENTRIES_FILE, StoredEntries(entries=tuple(entries)).model_dump(mode="json"))
