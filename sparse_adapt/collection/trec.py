"""Topics and documents between tags, as TREC and NTCIR write them: old SGML without closing tags, and XML.

Only tags are markup: `p<0.05` and `vector<int>` are text.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.lines import read_lines
from sparse_adapt.collection.texts import is_page, text_of_page
from sparse_adapt.errors import InputError

TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*)((?:\s[^<>]*)?)/?>")
HIDDEN = re.compile(r"<!--.*?-->|<\?.*?\?>", re.DOTALL)
CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
TOPICS = ("top", "topic", "query", "doc")  # the last two as the outermost element of one
TOPIC_NUMBER = re.compile(r"""\b(?:number|id|qid)\s*=\s*["']([^"']*)["']""", re.IGNORECASE)
LABEL = re.compile(r"^\s*(Number|Topic|Title|Description|Query|Question)\s*:\s*", re.IGNORECASE)
NUMBER_FIELDS = ("num", "number", "qid", "docno", "id")
TOPIC_FIELDS = ("title", "query", "content", "text", "desc", "description", "question")
OTHER_FIELDS = ("narr", "narrative", "dom", "con", "smry")
DOCUMENT_NUMBER, DOCUMENT_HEADER = "docno", "dochdr"
TITLE_FIELDS = ("title", "headline", "head", "ttl", "hl", "ti")
TEXT_FIELDS = ("text", "leadpara", "abstract", "body", "content")


def read_topics(path: str | Path) -> Iterator[tuple[int, str, str]]:
    """Line, id and text of every topic. The text is its title, or else its query, content or description."""
    for entry in _entries(path, TOPICS, "topic"):
        fields = _fields(entry.body, (*NUMBER_FIELDS, *TOPIC_FIELDS, *OTHER_FIELDS))
        number = TOPIC_NUMBER.search(entry.attributes)
        values = {name: _unescaped(LABEL.sub("", text)) for name, text in fields.items()}
        query_id = number[1] if number else _first(values, NUMBER_FIELDS)
        text = _first(values, (*TOPIC_FIELDS, ""))
        if not query_id or not text:
            raise _lacks("a <num> and a <title> or <query>", fields, path, entry)
        yield entry.line, query_id, text


def read_trec_documents(path: str | Path) -> Iterator[tuple[int, str, str, str]]:
    """Line, id, text and title of every document. The text is what its fields for text hold, or all but the header.

    Raises InputError for a document without a number or without an end.
    """
    for entry in _entries(path, ("doc",), "document"):
        fields = _fields(entry.body, (DOCUMENT_NUMBER, DOCUMENT_HEADER, *TITLE_FIELDS, *TEXT_FIELDS))
        document_id = _unescaped(fields.pop(DOCUMENT_NUMBER, ""))
        if not document_id:
            raise _lacks("a <DOCNO>", fields, path, entry)
        title = next((_unescaped(fields[name]) for name in TITLE_FIELDS if name in fields), "")
        parts = [fields[name] for name in TEXT_FIELDS if name in fields] or [
            text for name, text in fields.items() if name not in (DOCUMENT_HEADER, *TITLE_FIELDS)
        ]
        text = " ".join(parts)
        yield entry.line, document_id, text_of_page(text).text if is_page(text) else _unescaped(text), title


def _first(values: Mapping[str, str], names: Sequence[str]) -> str:
    return next((values[name] for name in names if values.get(name)), "")


def _lacks(needed: str, fields: Mapping[str, str], path: str | Path, entry: "_Entry") -> InputError:
    found = ", ".join(filter(None, fields)) or "none"
    return InputError(path, f"needs {needed} (found: {found})", line=entry.line)


class _Entry(NamedTuple):
    """What stands between the tags of one entry, the attributes of the first, and the line where it begins."""

    line: int
    attributes: str
    body: str


def _entries(path: str | Path, names: Sequence[str], what: str) -> Iterator[_Entry]:
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
                yield _Entry(start, attributes, "".join([*parts, text[position : tag.start()]]))
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


def _fields(body: str, known: Sequence[str]) -> dict[str, str]:
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


def _unescaped(text: str) -> str:
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
