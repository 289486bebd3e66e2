"""TREC topics, the old ones in SGML without closing tags and the newer ones in XML."""

import html
import re
from collections.abc import Iterator
from pathlib import Path

from sparse_adapt.collection.lines import read_lines
from sparse_adapt.errors import InputError

TAG = re.compile(r"<(/?)(\w+)([^>]*)>")
NUMBER = re.compile(r"""number\s*=\s*["']([^"']*)["']""")
LABEL = re.compile(r"^\s*(Number|Topic|Title|Description|Query|Question)\s*:\s*", re.IGNORECASE)
TEXTS = ("title", "query", "desc", "description", "question")


def read_topics(path: str | Path) -> Iterator[tuple[int, str, str]]:
    """Line, id and text of every topic. The text is its title, or else its query or description."""
    fields: dict[str, str] | None = None
    start, inside = 0, ""
    for line, text in read_lines(path):
        position = 0
        for tag in TAG.finditer(text):
            closing, name = bool(tag[1]), tag[2].lower()
            if fields is not None:
                _append(fields, inside, text[position : tag.start()])
            position, inside = tag.end(), "" if closing else name
            if name in ("top", "topic") and closing:
                if fields is not None:
                    yield start, *_topic(fields, path, start)
                fields = None
            elif name in ("top", "topic"):
                if fields is not None:
                    problem = (
                        f"a topic starts here and that of line {start} has no end; add the missing </top>"
                    )
                    raise InputError(path, problem, line=line)
                number = NUMBER.search(tag[3])
                fields, start = {"num": number[1]} if number else {}, line
        if fields is not None:
            _append(fields, inside, text[position:])
    if fields is not None:
        raise InputError(
            path, "this topic has no end (no </top> or </topic>); is the file cut short?", line=start
        )


def _append(fields: dict[str, str], name: str, text: str) -> None:
    if name and text.strip():
        fields[name] = f"{fields.get(name, '')} {text}"


def _topic(fields: dict[str, str], path: str | Path, line: int) -> tuple[str, str]:
    values = {name: " ".join(html.unescape(LABEL.sub("", text)).split()) for name, text in fields.items()}
    query_id = values.get("num") or values.get("number") or ""
    text = next((values[name] for name in TEXTS if values.get(name)), "")
    if not query_id or not text:
        found = ", ".join(fields) or "none"
        raise InputError(path, f"needs a <num> and a <title> or <query> (found: {found})", line=line)
    return query_id, text
