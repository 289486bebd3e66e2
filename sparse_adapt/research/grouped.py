"""Texts in groups, an entity under several names or a topic for instance: what clusters are held against.

    {"group": "spending", "text": "what a team spent"}

Each line is a text; `seen` may say whether a model learnt from it.
"""

from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.lines import Unique, at_least_one, read_objects
from sparse_adapt.errors import InputError


class GroupedText(NamedTuple):
    """A text, the group that it belongs to, and whether it was among what a model learnt from, where that is known."""

    group: str
    text: str
    seen: bool | None = None


def read_members(path: str | Path) -> list[GroupedText]:
    """`group`, `text` and perhaps `seen` of each line of a JSONL file.

    Raises InputError with the line, for a text that occurs twice, and where there are fewer than two groups or none
    has two texts.
    """
    members, unique = [], Unique(path, "text")
    for record in at_least_one(read_objects(path), path, "groups"):
        seen = record.fields.get("seen")
        if seen is not None and not isinstance(seen, bool):
            raise record.needs("true or false as", "seen")
        member = GroupedText(record.words("group"), record.words("text"), seen)
        unique.add(member.text, record.line)
        members.append(member)
    names = [member.group for member in members]
    if len(set(names)) < 2:
        raise InputError(path, f'all texts are of one group, "{names[0]}"; compare at least two')
    if len(set(names)) == len(names):
        raise InputError(path, "no group has two texts; add another text of one of them")
    return members
