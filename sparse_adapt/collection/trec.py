"""Topics and documents between tags, as TREC and NTCIR write them: old SGML without closing tags, and XML.

The grammar: an entry stands between `<top>`, `<topic>` or `<DOC>` and its end, and holds fields. A field begins with a
tag of the grammar where a tag may stand: at the beginning of a line, or behind another tag. It ends with its own end
tag, or, where it has none, before the next tag of the grammar that begins a line. Nowhere else does a name of the
grammar mean anything, and only what is closed is markup: `p<0.05`, `vector<int>` and `curl /users/<id>` are text.
"""

import html
import re
from bisect import bisect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from sparse_adapt.collection.lines import LONGEST_LINE, JsonLine, read_lines, say_taken
from sparse_adapt.errors import InputError
from sparse_adapt.registry import registry

TAG = re.compile(r"(?:(^)[ \t]*+)?<(/?)([A-Za-z][\w.:-]*+)((?:\s[^<>]*)?)>", re.MULTILINE)
ATTRIBUTE = re.compile(r"""(?<![\w:-])([\w:-]++)\s*=\s*(?:"([^"]*)"|'([^']*)')""")
HIDDEN = re.compile(r"<!--|<!\[CDATA\[|<\?")
CLOSING = {"<!--": "-->", "<![CDATA[": "]]>", "<?": "?>"}
CDATA = "<![CDATA["
MARKUP_ALONE = re.compile(r"\s*(?:<[^<>]*>\s*)*")
ENDS = re.compile(r"\s*(?:<|$)")  # what may follow an end tag: nothing in its line, or another tag
LABEL = re.compile(r"^\s*(Number|Topic|Title|Description|Query|Question)\s*:\s*", re.IGNORECASE)
SIGNS = {"&blank;": " ", "&hyph;": "-"}  # of TREC's own SGML
UNCLOSED = frozenset(
    {
        *("p", "br", "hr", "li", "dt", "dd"),
        *("tr", "td", "th", "rowrule", "cellrule", "tablerow", "tablecell"),
    }
)  # tags that nobody closes: of paragraphs, and of tables as HTML and the newspapers of TREC have them
WITHIN_LINES = frozenset({"a", "b", "em", "font", "i", "span", "strong", "sub", "sup", "u"})


class Grammar(NamedTuple):
    """What an entry may hold: the names of its element, of its numbers, and of its fields, the best first.

    `beside`: fields that are known and never read.
    """

    what: str
    entries: tuple[str, ...]
    attributes: tuple[str, ...]
    numbers: tuple[str, ...]
    titles: tuple[str, ...]
    texts: tuple[str, ...]
    beside: tuple[str, ...]

    @property
    def fields(self) -> frozenset[str]:
        """The names of all fields."""
        return frozenset((*self.numbers, *self.titles, *self.texts, *self.beside))


TOPICS = Grammar(
    "topic",
    ("top", "topic", "query", "doc"),  # the last two as the outermost element of one
    ("number", "id", "qid"),
    ("num", "number", "qid", "docno", "id"),
    (),
    ("title", "query", "content", "text", "desc", "description", "question"),
    ("narr", "narrative", "dom", "con", "smry", "head", "fac", "def", "nat", "time", "date"),
)
HEADER = "dochdr"
END_OF_HEADER = re.compile(rf"</{HEADER}\s*>", re.IGNORECASE)  # behind which a document is a page
DOCUMENTS = Grammar(
    "document",
    ("doc",),
    ("id", "number"),
    ("docno",),
    ("title", "headline", "head", "ttl", "hl", "ti"),
    ("text", "leadpara", "lp", "abstract", "abst", "summary", "body", "content", "detd"),
    (HEADER,),
)


def read_topics(path: str | Path) -> Iterator[JsonLine]:
    """Id and text of every topic. The text is its title, or else its query, content or description.

    Raises InputError for a topic without a number, a text or an end.
    """
    for entry in _entries(path, TOPICS):
        fields = _fields(entry.body, TOPICS)
        query_id = entry.attribute(TOPICS.attributes) or _first(fields, TOPICS.numbers)
        text = _first(fields, (*TOPICS.texts, ""))
        if not query_id or not text:
            raise _lacks("a <num> and a <title> or <query>", fields, path, entry)
        yield JsonLine(path, entry.line, {"_id": query_id, "text": text})


def read_trec_documents(path: str | Path) -> Iterator[JsonLine]:
    """Id, title and text of every document. The text is what its fields for text hold, or all but number and title.

    Which elements beside them were left out is said. Raises InputError for a document without a number or an end.
    """
    left_out = set[str]()
    for entry in _entries(path, DOCUMENTS):
        header = END_OF_HEADER.search(entry.body)
        fields = _fields(entry.body[: header.end()] if header else entry.body, DOCUMENTS)
        document_id = _first(fields, DOCUMENTS.numbers) or entry.attribute(DOCUMENTS.attributes)
        if not document_id:
            raise _lacks("a <DOCNO>", fields, path, entry)
        title = _first(fields, DOCUMENTS.titles) or entry.attribute(("title",))
        if header:
            page = registry().find("readers.markup", "html")(entry.body[header.end() :], path)
            title, text = title or page.title, page.text
        else:
            text, beside = _words(fields)
            left_out |= beside
        yield JsonLine(path, entry.line, {"_id": document_id, "title": title, "text": text})
    if left_out:
        say_taken(str(path), f"what stands beside the texts is left out ({', '.join(sorted(left_out))})")


class _Field(NamedTuple):
    """A field of an entry, by its name in small letters, or what stands between fields, without a name.

    `within`: the elements that were closed in it.
    """

    name: str
    text: str
    within: Sequence[str]


def _first(fields: Sequence[_Field], names: Sequence[str]) -> str:
    """The text of the first of some fields that has one; of a field that comes twice, all of it."""
    texts = {
        name: " ".join(each.text for each in fields if each.name == name and each.text) for name in names
    }
    return next((text for name in names if (text := LABEL.sub("", texts[name]))), "")


def _words(fields: Sequence[_Field]) -> tuple[str, set[str]]:
    """The text of a document, titles beside the first included, and the elements that were left out of it."""
    names = [each.name for each in fields]
    title = next((name for name in DOCUMENTS.titles if name in names), "")
    texts = [each for each in fields if each.name in DOCUMENTS.texts]
    others = [each for each in fields if each.name in DOCUMENTS.titles and each.name != title]
    rest = [each for each in fields if not each.name]
    read = [*others, *(texts or rest)]
    return " ".join(each.text for each in read), {name for each in rest if texts for name in each.within}


def _lacks(needed: str, fields: Sequence[_Field], path: str | Path, entry: "_Entry") -> InputError:
    names = ", ".join(dict.fromkeys(each.name for each in fields if each.name)) or "none"
    return InputError(path, f"needs {needed} (found: {names})", line=entry.line)


# -- entries -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Entry:
    """What stands between the tags of one entry: its element, the line where it begins, and its attributes."""

    name: str
    line: int
    attributes: str
    body: str = ""
    parts: list[str] = field(default_factory=list)
    size: int = 0

    def attribute(self, names: Sequence[str]) -> str:
        """The first of some attributes that there is."""
        values = {each[1].lower(): each[2] or each[3] or "" for each in ATTRIBUTE.finditer(self.attributes)}
        return next((_text(values[name]) for name in names if values.get(name)), "")

    def add(self, text: str, path: str | Path) -> None:
        """Add what is left of a line. Raises InputError for an entry that is too long."""
        self.size += len(text) + 1
        if self.size > LONGEST_LINE:
            problem = (
                f"an entry of over {LONGEST_LINE:,} signs; add the missing </{self.name}>, or break it up"
            )
            raise InputError(path, problem, line=self.line)
        self.parts.append(f"{text}\n")

    def ended(self, text: str) -> "_Entry":
        """The whole entry, whose last line begins so."""
        self.body, self.parts = "".join([*self.parts, text]), []
        return self


def _entries(path: str | Path, grammar: Grammar) -> Iterator[_Entry]:
    """Every entry of a file. How many lines stand in none is said. Raises InputError for one that doesn't end."""
    border = re.compile(rf"<(/?)({'|'.join(grammar.entries)})((?:\s[^<>]*)?)>", re.IGNORECASE)
    entry: _Entry | None = None
    beside = 0
    for line, text in read_lines(path):
        position, indent = 0, len(text) - len(text.lstrip())
        for tag in border.finditer(text):
            closing, first = bool(tag[1]), tag.start() == indent
            if entry is None and not closing and MARKUP_ALONE.fullmatch(text, position, tag.start()):
                entry, position = _Entry(tag[2].lower(), line, tag[3]), tag.end()
            elif entry is None or entry.name != tag[2].lower():
                continue
            elif closing and (first or ENDS.match(text, tag.end())):
                yield entry.ended(text[position : tag.start()])
                entry, position = None, tag.end()
            elif first and not closing:
                before = f"that of line {entry.line} has no end; add the missing </{entry.name}>"
                raise InputError(path, f"a {grammar.what} starts here and {before}", line=line)
        if entry is not None:
            entry.add(text[position:], path)
        else:
            beside += not MARKUP_ALONE.fullmatch(text, position)
    if entry is not None:
        problem = f"this {grammar.what} has no end (no </{entry.name}>); is the file cut short?"
        raise InputError(path, problem, line=entry.line)
    if beside:
        say_taken(str(path), f"{beside:,} lines stand in no {grammar.what}, and are left out")


# -- fields --------------------------------------------------------------------------------------


def _fields(body: str, grammar: Grammar) -> list[_Field]:
    """The fields of an entry in their order, with what stands between them. Time is linear in the entry's length."""
    body = _uncovered(body)
    tags = list(TAG.finditer(body))
    known = [number for number, tag in enumerate(tags) if tag[3].lower() in grammar.fields]
    ends: dict[str, list[int]] = {}
    for number in known:
        if tags[number][2]:
            ends.setdefault(tags[number][3].lower(), []).append(number)
    borders = [number for number in known if tags[number][1] is not None]
    fields: list[_Field] = []
    number, position, behind = 0, 0, 0  # a tag; where what was read ends, and where the tag before it does
    while number < len(tags):
        tag, name = tags[number], tags[number][3].lower()
        may_stand = tag[1] is not None or not body[behind : tag.start()].strip()
        number, behind = number + 1, tag.end()
        if tag[2] or name not in grammar.fields or not may_stand:
            continue
        fields += _between(body[position : tag.start()])
        own = ends.get(name, [])
        if (place := bisect(own, number - 1)) < len(own):
            last, position = tags[own[place]].start(), tags[own[place]].end()
            number = own[place] + 1
        else:
            place = bisect(borders, number - 1)
            last = tags[borders[place]].start() if place < len(borders) else len(body)
            if name in grammar.numbers and (sign := body.find("<", tag.end(), last)) >= 0:
                last = sign  # an id holds no tags
            position = last
            while number < len(tags) and tags[number].end() <= last:
                number += 1
        behind = position
        fields.append(_field(name, body[tag.end() : last]))
    return [*fields, *_between(body[position:])]


def _between(text: str) -> list[_Field]:
    return [_field("", text)] if text.strip() else []


def _field(name: str, text: str) -> _Field:
    """A field without its markup: tags that are closed in it, and those that nobody closes."""
    tags = [(bool(tag[2]), tag[3].lower()) for tag in TAG.finditer(text)]
    closed = {each for closing, each in tags if closing} & {each for closing, each in tags if not closing}

    def without(tag: re.Match[str]) -> str:
        within = tag[3].lower()
        if within not in closed and within not in UNCLOSED and not tag[0].endswith("/>"):
            return tag[0]
        return "" if within in WITHIN_LINES else " "

    return _Field(name, _text(TAG.sub(without, text)), sorted(closed - UNCLOSED))


def _text(text: str) -> str:
    """A field's text with signs for their names (`&amp;`), and single spaces."""
    for name, sign in SIGNS.items():
        text = text.replace(name, sign)
    return " ".join(html.unescape(text).split())


def _uncovered(body: str) -> str:
    """An entry without comments and instructions, CDATA as text."""
    parts, position, lacking = list[str](), 0, set[str]()
    for mark in HIDDEN.finditer(body):
        opening = mark[0]
        if mark.start() < position or opening in lacking:
            continue
        end = body.find(CLOSING[opening], mark.end())
        if end < 0:
            lacking.add(opening)
            continue
        text = html.escape(body[mark.end() : end]) if opening == CDATA else " "
        parts += [body[position : mark.start()], text]
        position = end + len(CLOSING[opening])
    return "".join([*parts, body[position:]])
