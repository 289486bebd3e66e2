"""Collections as others publish them: StackExchange's posts, and SMART's files of Cranfield, CACM, MED and CISI."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from sparse_adapt.collection.lines import JsonLine, read_lines, say_taken
from sparse_adapt.errors import InputError
from sparse_adapt.plugins.files.markup import text_of_page

POSTS = {"1": "question", "2": "answer"}  # kinds that have words of their own
ENTRY = re.compile(r"\.I\s+(\S+)\s*")
FIELD = re.compile(r"\.([A-Z])\s*")
OF_SMART = {"T": "title", "W": "text", "K": "keywords"}


def read_posts(path: str | Path) -> Iterator[JsonLine]:
    """Every question and answer of a `Posts.xml`, a row a line, its body as a reader sees it.

    How many posts are of other kinds is said. Raises InputError for a row that is broken.
    """
    others = 0
    for line, text in read_lines(path):
        if not text.lstrip().startswith("<row"):
            continue
        try:
            row = ElementTree.fromstring(text)
        except ElementTree.ParseError as error:
            raise InputError(path, f"broken XML ({error}); copy the file again", line=line) from error
        if row.get("PostTypeId") not in POSTS:
            others += 1
            continue
        body = text_of_page(row.get("Body", ""), path).text
        yield JsonLine(path, line, {"_id": row.get("Id", ""), "title": row.get("Title", ""), "text": body})
    if others:
        say_taken(str(path), f"{others:,} posts are no {' and no '.join(POSTS.values())}, and are left out")


def read_smart(path: str | Path) -> Iterator[JsonLine]:
    """Every entry of a SMART file, documents and queries alike: number, title, text and keywords.

    Which fields were left out is said. Raises InputError for words before the first entry.
    """
    left_out = Counter[str]()
    number, start, name = "", 0, ""
    parts: dict[str, list[str]] = {}

    def entry() -> JsonLine:
        left_out.update(parts.keys() - OF_SMART)
        words = {name: " ".join(" ".join(parts.get(key, ())).split()) for key, name in OF_SMART.items()}
        return JsonLine(path, start, {"_id": number, **words})

    for line, text in read_lines(path):
        if begins := ENTRY.fullmatch(text):
            if number:
                yield entry()
            number, start, name, parts = begins[1], line, "", {}
        elif match := FIELD.fullmatch(text):
            name = match[1]
            parts.setdefault(name, [])
        elif text.strip() and not name:
            raise InputError(
                path, "words outside a field; SMART entries begin with .I and a number", line=line
            )
        elif name:
            parts[name].append(text)
    if number:
        yield entry()
    if left_out:
        say_taken(str(path), f"the fields .{', .'.join(sorted(left_out))} are left out")
