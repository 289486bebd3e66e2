"""Entries between tags, as TREC, NTCIR and others write topics and documents: old SGML without closing tags, and XML.

Only tags are markup: `p<0.05` and `vector<int>` are text.
"""

import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.lines import read_lines
from sparse_adapt.errors import InputError

TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*)((?:\s[^<>]*)?)/?>")
HIDDEN = re.compile(r"<!--.*?-->|<\?.*?\?>", re.DOTALL)
CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)


class Entry(NamedTuple):
    """What stands between the tags of one entry, the attributes of the first, and the line where it begins."""

    line: int
    attributes: str
    body: str


def read_entries(path: str | Path, names: Sequence[str], what: str) -> Iterator[Entry]:
    """Every entry of a file: what stands in the outermost elements of these names. `what`: one in words.

    Raises InputError for an entry that doesn't end.
    """
    border = re.compile(rf"<(/?)({'|'.join(names)})((?:\s[^<>]*)?)>", re.IGNORECASE)
    name, attributes, start = "", "", 0
    parts: list[str] = []
    for line, text in read_lines(path):
        position = 0
        for tag in border.finditer(text):
            closing, found = bool(tag[1]), tag[2].lower()
            if name and found == name and closing:
                yield Entry(start, attributes, "".join([*parts, text[position : tag.start()]]))
                name, parts = "", []
            elif name and found == name:
                problem = (
                    f"a {what} starts here and that of line {start} has no end; add the missing </{name}>"
                )
                raise InputError(path, problem, line=line)
            elif not name and not closing:
                name, attributes, start, position = found, tag[3], line, tag.end()
        if name:
            parts.append(text[position:] + "\n")
    if name:
        raise InputError(path, f"this {what} has no end (no </{name}>); is the file cut short?", line=start)


def fields_of(body: str, known: Sequence[str]) -> dict[str, str]:
    """The text of each field of an entry by its name in small letters; under "" what stands in none.

    A field begins with a tag of a known name, of one that is closed too, or of any at the beginning of a line; tags
    that are closed within a field are left out, and what else looks like a tag is text. A field that comes twice is
    joined.
    """
    body = CDATA.sub(lambda found: html.escape(found[1]), HIDDEN.sub(" ", body))
    tags = [tag for tag in TAG.finditer(body) if _is_tag(tag, body, known)]
    fields: dict[str, str] = {}
    inside, position = "", 0
    for tag in tags:
        name, closing = tag[2].lower(), bool(tag[1])
        begins = name in known or inside == "" or _begins_a_line(tag, body)
        _append(fields, inside, body[position : tag.start()])
        position = tag.end()
        if closing and (name == inside or name in known):
            inside = ""
        elif not closing and begins:
            inside = name
    _append(fields, inside, body[position:])
    return fields


def unescaped(text: str) -> str:
    """A field's text with signs for their names (`&amp;`), and single spaces."""
    return " ".join(html.unescape(text).split())


def _is_tag(tag: re.Match[str], body: str, known: Sequence[str]) -> bool:
    name = tag[2].lower()
    if name in known or (not tag[1] and _begins_a_line(tag, body)):
        return True
    return f"</{name}>" in body.lower() and f"<{name}" in body.lower()


def _begins_a_line(tag: re.Match[str], body: str) -> bool:
    return body[: tag.start()].rpartition("\n")[2].strip() == "" and "\n" in body[: tag.start()]


def _append(fields: dict[str, str], name: str, text: str) -> None:
    if text.strip():
        fields[name] = f"{fields.get(name, '')} {text}"
