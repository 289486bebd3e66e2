"""Text files line by line, compressed or not, here or elsewhere, with the place of whatever is wrong in them.

Lines end in a line feed (a carriage return before it is dropped) and count from 1, blank ones too.
A byte order mark is skipped. Nothing but the current line is held.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path, PurePath
from typing import Any

from sparse_adapt.collection.opening import bare, broken, compressed_as, open_bytes, place_of
from sparse_adapt.errors import InputError, SparseAdaptError, first_line
from sparse_adapt.files.folders import open_output
from sparse_adapt.report.printable import is_unicode

STRUCTURED = re.compile(
    r"""\s*(?:\[\s*(?:["\[{]|$)|\{\s*(?:"|$)|<(?:\?xml|!--|!doctype|(?:top|topics?|doc)\b))""", re.IGNORECASE
)  # how JSON and markup begin
LONGEST_LINE = 1 << 25  # bytes: a few bytes of a compressed file may stand for gigabytes
LARGEST = 1 << 26  # of a file that is read whole
MOST_BLANK = 1_000_000  # lines in a row


def read_lines(path: str | Path) -> Iterator[tuple[int, str]]:
    """Every line with its number. Raises InputError for bytes that aren't UTF-8, a broken file or an endless line."""
    number = blank = 0
    try:
        with open_bytes(path) as file:
            for number, raw in enumerate(iter(partial(file.readline, LONGEST_LINE + 1), b""), start=1):
                if len(raw) > LONGEST_LINE:
                    endless = f"a line of over {LONGEST_LINE:,} bytes; break it, or check what the file is"
                    raise InputError(path, endless, line=number)
                blank = 0 if raw.strip() else blank + 1
                if blank > MOST_BLANK:
                    many = f"over {MOST_BLANK:,} blank lines in a row; remove them, or check what the file is"
                    raise InputError(path, many, line=number)
                yield number, _decode(raw, path, number)
    except SparseAdaptError:
        raise
    except Exception as error:
        problem = broken(place_of(path).name, error)
        if problem is not None:
            raise InputError(path, problem, line=number + 1) from error
        if not isinstance(error, OSError) and isinstance(place_of(path), Path):
            raise
        reason = (error.strerror if isinstance(error, OSError) else None) or first_line(error)
        raise InputError(
            path, f"can't be read ({reason}); check the file", line=number + 1 if number else None
        ) from error


def read_whole(path: str | Path) -> str:
    """All of a file. Raises InputError as `read_lines` does, and for one that is too large to be read at once."""
    lines, size = [], 0
    for _, text in read_lines(path):
        lines.append(text)
        size += len(text) + 1
        if size > LARGEST:
            raise InputError(
                path, f"is over {LARGEST:,} signs long, and is read whole; break it into several"
            )
    return "\n".join(lines)


def _decode(raw: bytes, path: str | Path, number: int) -> str:
    if number == 1:
        packed = compressed_as(raw)
        if packed is not None:
            raise InputError(
                path, f"is compressed; let its name end in {packed.ending} or decompress it", line=1
            )
        raw = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        return raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        problem = f"byte 0x{raw[error.start]:02x} in column {error.start + 1}"
        raise InputError(
            path, f"not UTF-8 ({problem}); save or convert the file as UTF-8", line=number
        ) from error


@dataclass(frozen=True, slots=True)
class JsonLine:
    """One JSON object of a file and where it stands, so that a bad field can be named with its place."""

    path: str | Path
    line: int
    fields: dict[str, object]

    def error(self, problem: str) -> InputError:
        """What is wrong here, with the place."""
        return InputError(self.path, problem, line=self.line)

    def needs(self, what: str, key: str) -> InputError:
        """The error for a field that is absent or of another kind than it should be."""
        if key in self.fields:
            return self.error(f'needs {what} "{key}" (found: {_shown(self.fields[key])})')
        keys = ", ".join(self.fields) or "none"
        return self.error(f'needs {what} "{key}" (keys found: {keys})')

    def string(self, key: str, default: str | None = None) -> str:
        """The text under a key; empty is fine. An absent or null one is an error if there is no default."""
        value = self.fields.get(key)
        if value is None and default is not None:
            return default
        if not isinstance(value, str):
            raise self.needs("a string", key)
        return value

    def words(self, key: str) -> str:
        """The text under a key, which must hold more than white space."""
        value = self.string(key)
        if not value.strip():
            raise self.error(f'"{key}" is empty; fill it in or remove the line')
        return value

    def identifier(self, key: str) -> str:
        """The id under a key; an integer is taken as its digits."""
        return self._identifier(self.fields.get(key), key)

    def identifiers(self, key: str) -> tuple[str, ...]:
        """The ids in the list under a key."""
        return tuple(
            self._identifier(value, key, "a list of ids") for value in self._list("a list of ids", key)
        )

    def strings(self, key: str) -> tuple[str, ...]:
        """The texts in the list under a key; empty where the key is absent or null."""
        if self.fields.get(key) is None:
            return ()
        values = self._list("a list of strings", key)
        if not all(isinstance(value, str) for value in values):
            raise self.needs("a list of strings", key)
        return tuple(values)

    def passages(self, key: str) -> str:
        """The text under a key, or the texts of a list, a line each."""
        return "\n".join(self.strings(key)) if isinstance(self.fields.get(key), list) else self.string(key)

    def listed(self, key: str) -> str:
        """The text under a key, or the texts of a list with commas between; empty where there is neither."""
        value = self.fields.get(key)
        if isinstance(value, list | tuple) and all(isinstance(each, str) for each in value):
            return ", ".join(value)
        return value if isinstance(value, str) else ""

    def numbers(self, key: str) -> tuple[float, ...]:
        """The finite numbers in the list under a key."""
        values = self._list("a list of numbers", key)
        for value in values:
            if isinstance(value, bool) or not isinstance(value, int | float):
                raise self.needs("a list of numbers", key)
        try:
            numbers = tuple(float(value) for value in values)
        except OverflowError as error:
            raise self.error(f'"{key}" holds a number that is too large; scores must be finite') from error
        for number in numbers:
            if not math.isfinite(number):
                raise self.error(f'"{key}" holds {number}; scores must be finite')
        return numbers

    def number(self, key: str) -> float:
        """The number under a key."""
        value = self.fields.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.needs("a number", key)
        return value

    def _list(self, what: str, key: str) -> list[Any]:
        value = self.fields.get(key)
        if not isinstance(value, list):
            raise self.needs(what, key)
        return value

    def _identifier(self, value: object, key: str, what: str = "a string") -> str:
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if (
            isinstance(value, float) and value.is_integer()
        ):  # as data frames write numbers where some are missing
            return str(int(value))
        if not isinstance(value, str):
            raise self.needs(what, key)
        if not value.strip():
            raise self.error(f'"{key}" holds an empty id; give every entry an id')
        return value


class ListEntry(JsonLine):
    """One entry of a JSON list, whose line is its number."""

    __slots__ = ()

    def error(self, problem: str) -> InputError:
        """What is wrong here, with the place."""
        return InputError(self.path, f"entry {self.line} of the list: {problem}")


def read_objects(path: str | Path) -> Iterator[JsonLine]:
    """The JSON object of every line that isn't blank. Raises InputError for any other line."""
    for number, line in read_lines(path):
        if line and not line.isspace():
            yield JsonLine(path, number, parse_object(line, path, number))


def read_words(path: str | Path) -> Iterator[JsonLine]:
    """Each line that isn't blank, under its number. Raises InputError for a line of something else by its looks."""
    for number, line in read_lines(path):
        if "\t" in line.strip() or STRUCTURED.match(line):
            sign = "tabs between columns" if "\t" in line.strip() else "what looks like JSON or markup"
            problem = (
                f"holds {sign}, where a .txt has one a line; let its name end in .tsv, .jsonl, .json or .trec"
            )
            raise InputError(path, problem, line=number)
        if line.strip():
            yield JsonLine(path, number, {"_id": str(number), "text": line.strip()})


def read_list(path: str | Path) -> Iterator[JsonLine]:
    """Each entry of a JSON list, by its number; a text has the key `text`. Raises InputError for anything else."""
    try:
        content = read_whole(path)
        entries = json.loads(content)
    except (ValueError, RecursionError) as error:
        problem = f"broken JSON ({error}); mend it, or let the name of JSON lines end in .jsonl"
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise InputError(path, problem, line=line) from error
    if not isinstance(entries, list):
        raise InputError(
            path, f"needs a JSON list (found: {_shown(entries)}); end the name of JSON lines in .jsonl"
        )
    halves = "\\ud" in content.lower()
    for number, entry in enumerate(entries, start=1):
        fields = {"text": entry} if isinstance(entry, str) else entry
        whole = not halves or is_unicode(json.dumps(entry, ensure_ascii=False))
        if not isinstance(fields, dict) or not whole:
            problem = f"no text and no object in Unicode (found: {_shown(entry)}); mend it"
            raise ListEntry(path, number, {}).error(problem)
        yield ListEntry(path, number, fields)


JSON: Mapping[str, Callable[[str | Path], Iterator[JsonLine]]] = {
    ".jsonl": read_objects,
    ".ndjson": read_objects,
    ".json": read_list,
}


def is_json(path: str | Path) -> bool:
    """Whether a file is JSON lines or a JSON list by its name, compressed or not."""
    return ending_of(path) in JSON


def ending_of(path: str | Path) -> str:
    """The end of a file's name in small letters, without that of its compression."""
    return PurePath(bare(place_of(path).name.lower())).suffix


def read_json(path: str | Path, what: str) -> Iterator[JsonLine]:
    """Each object of JSON lines or of a JSON list, as the end of a name says. `what`: the entries, in words.

    Raises InputError for a name that says neither.
    """
    if not is_json(path):
        raise no_such_ending(path, what, tuple(JSON))
    return JSON[ending_of(path)](path)


def no_such_ending(path: str | Path, what: str, known: Iterable[str]) -> InputError:
    """The error for a file whose name doesn't say what it is."""
    problem = f"the end of its name doesn't say what it is ({ending_of(path) or 'none'}); rename it, or link to it by a"
    return InputError(
        path, f"{problem} name that ends in one of {', '.join(known)}, whichever the {what} are"
    )


def parse_object(text: str, path: str | Path, number: int) -> dict[str, object]:
    """A JSON object. Raises InputError where the text is broken, or something other than an object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        problem = f"broken JSON ({reason}{where}); each line holds one object"
        raise InputError(path, problem, line=number) from error
    if not isinstance(value, dict):
        problem = f"not an object (found: {_shown(value)}); each line holds one object"
        raise InputError(path, problem, line=number)
    if "\\ud" in text.lower() and not is_unicode(json.dumps(value, ensure_ascii=False)):
        raise InputError(path, "half of a surrogate pair (\\ud800 to \\udfff alone); remove it", line=number)
    return value


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 40 else f"{text[:37]}..."


def write_objects(path: str | Path, objects: Iterable[Mapping[str, object]]) -> int:
    """Write one JSON object a line, all or nothing; says how many."""
    count = 0
    with open_output(path) as file:
        for fields in objects:
            file.write(json.dumps(fields, ensure_ascii=False, allow_nan=False) + "\n")
            count += 1
    return count


@cache
def say_taken(path: str, message: str) -> None:
    """Say once what was taken for what in a file."""
    from sparse_adapt.report.messages import say  # which loads Rich

    say(f"{path}: {message}")
