"""Documents on their way into an engine: in batches, and those that it refuses by name; the others get in.

Every load here can be run again: a document replaces its former self.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from sparse_adapt.collection.lines import read_lines
from sparse_adapt.errors import InputError, OutputError

MOST_NAMED = 3

Insert = Callable[[list[Any]], object]


class Refused(NamedTuple):
    """A document that an engine didn't take, and what it said."""

    document_id: str
    reason: str


def json_lines(path: Path) -> Iterator[Any]:
    """What each line of a part holds. Raises InputError with the line that isn't JSON."""
    for number, line in read_lines(path):
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(path, f"isn't JSON ({error}); export again", line=number) from error


def insert_all(
    rows: Iterable[Any],
    insert: Insert,
    *,
    batch: int,
    document_id: Callable[[Any], str],
    refusal: type[Exception] | tuple[type[Exception], ...],
) -> list[Refused]:
    """Insert rows a batch at a time; one that is refused goes in row by row, to find which are to blame."""
    refused: list[Refused] = []
    stream = iter(rows)
    while chunk := list(islice(stream, batch)):
        try:
            insert(chunk)
        except refusal:
            for row in chunk:
                try:
                    insert([row])
                except refusal as error:
                    refused.append(Refused(document_id(row), one_line(error)))
    return refused


def refuse(place: object, refused: list[Refused], documents: int) -> NoReturn:
    """Raise OutputError with the first of the refused documents."""
    shown = "; ".join(f"{row.document_id!r}: {row.reason}" for row in refused[:MOST_NAMED])
    more = f"; and {len(refused) - MOST_NAMED:,} more" if len(refused) > MOST_NAMED else ""
    raise OutputError(
        f"{place}: refused {len(refused):,} of {documents:,} documents ({shown}{more}); "
        "the others are in, mend the cause and load again"
    )


def one_line(error: BaseException) -> str:
    """What an exception says, in one line."""
    text = " ".join(str(getattr(error, "message", "") or error).split())
    return text[:300] or type(error).__name__
