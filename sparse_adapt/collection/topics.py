"""Topics as TREC and NTCIR write them, the old ones in SGML without closing tags and the newer ones in XML."""

import re
from collections.abc import Iterator
from pathlib import Path

from sparse_adapt.collection.markup import fields_of, read_entries, unescaped
from sparse_adapt.errors import InputError

ENTRIES = ("top", "topic", "query", "doc")  # the last two as the outermost element of one
NUMBER = re.compile(r"""\b(?:number|id|qid)\s*=\s*["']([^"']*)["']""", re.IGNORECASE)
LABEL = re.compile(r"^\s*(Number|Topic|Title|Description|Query|Question)\s*:\s*", re.IGNORECASE)
NUMBERS = ("num", "number", "qid", "docno", "id")
TEXTS = ("title", "query", "content", "text", "desc", "description", "question")
OTHERS = ("narr", "narrative", "dom", "con", "smry")


def read_topics(path: str | Path) -> Iterator[tuple[int, str, str]]:
    """Line, id and text of every topic. The text is its title, or else its query, content or description."""
    for entry in read_entries(path, ENTRIES, "topic"):
        fields = fields_of(entry.body, (*NUMBERS, *TEXTS, *OTHERS))
        number = NUMBER.search(entry.attributes)
        values = {name: unescaped(LABEL.sub("", text)) for name, text in fields.items()}
        query_id = number[1] if number else next((values[each] for each in NUMBERS if values.get(each)), "")
        text = next((values[name] for name in (*TEXTS, "") if values.get(name)), "")
        if not query_id or not text:
            found = ", ".join(filter(None, fields)) or "none"
            problem = f"needs a <num> and a <title> or <query> (found: {found})"
            raise InputError(path, problem, line=entry.line)
        yield entry.line, query_id, text
