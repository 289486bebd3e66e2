"""Fields by the names that their columns have elsewhere, and files of fixed columns: judgements, TREC runs, TSV.

Of each field the names are listed here, the usual one first: where a table has two of them, the earlier one counts, in
all rows. Rows carry their line number.
"""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from sparse_adapt.collection.lines import JsonLine, ListEntry, read_lines, say_taken
from sparse_adapt.errors import ConfigError, InputError, OutputError, unknown
from sparse_adapt.files.folders import open_output

Names = Mapping[str, Sequence[str]]
ColumnsLike = Mapping[str, str | int] | Sequence[str]
NONE: Mapping[str, str] = MappingProxyType({})

IDS = ("sku", "key", "code", "uid", "uuid", "nr", "no", "number", "nummer", "numéro", "número", "numero")
TITLES = ("headline", "heading", "subject", "name", "titel", "titre", "título", "titulo", "titolo")
ROWS = ("index", "unnamed", "index_level_0")  # as data frames call the numbers of their rows
TEXTS = ("description", "beschreibung", "inhalt", "texte", "texto", "testo", "descripción", "descrizione")
OF_DOCUMENTS: Names = {
    "_id": ("_id", "id", "doc_id", "docno", "document_id", "corpus_id", "pid", "passage_id", *IDS, *ROWS),
    "title": ("title", "doc_title", *TITLES),
    "text": (
        *("text", "doc_text", "contents", "content", "body", "passage", "passage_text", "document"),
        *TEXTS,
    ),
    "keywords": ("keywords", "author_keywords", "index_terms"),
    "journal": ("journal", "journal_title", "venue"),
}
OF_QUERIES: Names = {
    "_id": ("_id", "id", "query_id", "qid", "question_id", "topic_id", "topic", *IDS, *ROWS),
    "text": (  # a passage may stand beside its question
        *("query", "query_text", "question", "text", "title"),
        *(
            "frage",
            "anfrage",
            "suchanfrage",
            "requête",
            "pregunta",
            "consulta",
            "domanda",
            "pergunta",
            "vraag",
        ),
    ),
    "kind": ("kind",),
}
OF_JUDGEMENTS: Names = {
    "query_id": ("query_id", "qid", "question_id", "query", "question", "topic", "topic_id"),
    "doc_id": (
        "doc_id",
        "corpus_id",
        "docno",
        "document_id",
        "doc",
        "document",
        "pid",
        "passage_id",
        "passage",
    ),
    "grade": ("grade", "score", "relevance", "rel", "label", "judgement", "judgment", "relevance_grade"),
}
EXPANSIONS = (
    *("expansion", "long_form", "full_form", "full_name", "stands_for", "langform", "ausschreibung"),
    *("bedeutet", "développement", "forma_completa"),
)
OF_GLOSSARIES: Names = {
    "term": (
        *("term", "terms", "word", "phrase", "headword", "entry", "name", "title", "label", "concept"),
        *("acronym", "abbreviation", "abbr", "short_form", "initialism"),
        *("begriff", "wort", "stichwort", "benennung", "fachbegriff", "fachwort", "ausdruck", "bezeichnung"),
        *("abkürzung", "akronym", "kürzel", "kurzform"),
        *("terme", "mot", "sigle", "acronyme", "abréviation"),
        *("término", "termino", "palabra", "sigla", "siglas", "acrónimo", "abreviatura", "termine", "parola"),
        *(
            "termo",
            "palavra",
            "acronimo",
            "begrip",
            "woord",
            "afkorting",
            "用語",
            "术语",
            "術語",
            "略語",
            "缩写",
        ),
    ),
    "definition": (
        *("definition", "definitions", "meaning", "description", "explanation", "gloss"),
        *("definitionen", "beschreibung", "bedeutung", "erklärung", "erläuterung"),
        *("définition", "signification", "explication", "definición", "significado", "descripción"),
        *("definizione", "significato", "descrizione", "definição", "descrição", "definitie", "betekenis"),
        *("omschrijving", "定義", "定义", "意味", "説明", "说明", *EXPANSIONS),
    ),
    "examples": ("examples", "example", "usage", "beispiel", "beispiele", "exemple", "exemples", "ejemplo"),
    "expansion": EXPANSIONS,
}


class Layout(NamedTuple):
    """What a table of some kind holds: the names of its fields, the fields that it can't lack, and their order.

    `orders`: the fields of columns without headings, by the number of columns. `numbered`: the field that is the row's
    number in a table without a column for it. `choices`: the fields that `--columns` chooses, by what it calls them.
    """

    names: Names
    needed: tuple[str, ...]
    orders: Mapping[int, tuple[str, ...]]
    numbered: str = ""
    choices: Mapping[str, str] = NONE

    @property
    def advice(self) -> str:
        """How somebody names the columns where nothing says which they are."""
        wanted = (self.numbered, *self.needed) if self.numbered else self.needed
        if not self.choices:
            return f"name them in the first row: {', '.join(map(bare_name, wanted))}"
        fields = ",".join(f"{called}=..." for called, field in self.choices.items() if field in wanted)
        numbers = "each by its heading, or by its number where the row is no headings"
        return f"name them: --columns {fields}, {numbers}; or write {', '.join(map(bare_name, wanted))} there"


def bare_name(field: str) -> str:
    """A field as people call it."""
    return field.lstrip("_")


DOCUMENTS = Layout(
    OF_DOCUMENTS,
    ("text",),
    {2: ("_id", "text"), 3: ("_id", "title", "text"), 4: ("_id", "url", "title", "text")},
    "_id",
    {bare_name(field): field for field in OF_DOCUMENTS},
)
JUDGEMENTS = Layout(
    OF_JUDGEMENTS,
    ("query_id", "doc_id", "grade"),
    {3: ("query_id", "doc_id", "grade"), 4: ("query_id", "iteration", "doc_id", "grade")},
)
QUERIES = Layout(
    OF_QUERIES, ("text",), {2: ("_id", "text")}, "_id", {"query_id": "_id", "query": "text", "kind": "kind"}
)
GLOSSARIES = Layout(
    OF_GLOSSARIES,
    ("term", "definition"),
    {2: ("term", "definition"), 3: ("term", "definition", "examples")},
    choices={field: field for field in OF_GLOSSARIES},
)
ASIDE = re.compile(r"[,(/:]")  # what a heading says beside its name
BETWEEN_SIGNS = re.compile(r"\w(?:.*\w)?", re.DOTALL)
LAYOUTS = (DOCUMENTS, QUERIES, GLOSSARIES)  # of files whose columns may be chosen
SCHEMAS = 1_000  # sets of keys that are remembered
SHORT = 40
OF_BEIR = ("query-id", "corpus-id", "score")


def chosen_columns(choice: ColumnsLike) -> dict[str, str]:
    """The column of each field that somebody named: `text=Inhalt`, or a dictionary. Raises ConfigError for others."""
    known = tuple(called for layout in LAYOUTS for called in layout.choices)
    if isinstance(choice, str) or not isinstance(choice, Mapping | Sequence):
        raise ConfigError(f"columns: needs FIELD=COLUMN, or a dictionary (found: {choice!r})")
    if not isinstance(choice, Mapping):
        pairs = [str(each).partition("=") for each in choice]
        choice = {field.strip(): column.strip() for field, _, column in pairs}
    for field, column in choice.items():
        if field not in known:
            raise ConfigError(f"columns: {unknown('field', str(field), known)}")
        if not isinstance(column, str | int) or not str(column):
            raise ConfigError(f"columns: {field} needs a heading, or a number from 1 on (found: {column!r})")
        if str(column).isdecimal() and int(column) == 0:
            raise ConfigError(f"columns: {field}={column}; columns are counted from 1")
    return {field: str(column) for field, column in choice.items()}


def chosen_of(choice: ColumnsLike, layout: Layout) -> dict[str, str]:
    """The columns that somebody named of one layout, by its fields."""
    chosen = chosen_columns(choice)
    return {field: chosen[called] for called, field in layout.choices.items() if called in chosen}


def plain(heading: str) -> str:
    """A heading as the names here are spelt: in small letters, with `_` for a hyphen or a space, no sign around it."""
    found = BETWEEN_SIGNS.search(unicodedata.normalize("NFC", heading))
    return re.sub(r"[\s-]+", "_", found[0].casefold()) if found else ""


def columns_of(
    cells: Iterable[str], names: Names, needed: Sequence[str], chosen: Mapping[str, str] | None = None
) -> dict[str, int]:
    """Where each field stands in a row of headings; nothing where the row isn't one, lacking a needed name.

    chosen: the heading of a field, whatever it is called elsewhere, or its number. No column stands for two fields.
    """
    cells = list(cells)
    own = {field: heading for field, heading in (chosen or {}).items() if field in names}
    places = places_of(cells, {**names, **{field: (plain(heading),) for field, heading in own.items()}})
    for field, heading in own.items():
        if heading in cells:
            places[field] = [cells.index(heading)]
        elif heading.isdecimal() and int(heading) <= len(cells):
            places[field] = [int(heading) - 1]
    columns: dict[str, int] = {}
    for field in sorted(names, key=lambda field: field not in own):
        free = [place for place in places[field] if place not in columns.values()]
        if free:
            columns[field] = free[0]
    lacks = any(field not in columns for field in (*needed, *own))
    return {} if lacks else {field: columns[field] for field in names if field in columns}


def places_of(cells: Sequence[str], names: Names) -> dict[str, list[int]]:
    """Which headings may stand for each field, the best first.

    The whole heading counts before its first words, each before the same without `_`: `docId` is `doc_id`.
    """
    headings = [plain(cell) for cell in cells]
    short = [ASIDE.split(heading)[0].strip("_") for heading in headings]
    rows = [_first_places(row) for row in (headings, short)]
    squeezed = [_first_places([each.replace("_", "") for each in row]) for row in (headings, short)]
    return {
        field: [
            places[name]
            for exact, loose in zip(rows, squeezed, strict=True)
            for places, own in ((exact, wanted), (loose, [each.replace("_", "") for each in wanted]))
            for name in own
            if name in places
        ]
        for field, wanted in names.items()
    }


def _first_places(row: Sequence[str]) -> dict[str, int]:
    """Where each text of a row stands first."""
    places: dict[str, int] = {}
    for place, text in enumerate(row):
        places.setdefault(text, place)
    return places


class Keys:
    """The key of each field in the objects of one file: the first of its names that an object has, in all alike.

    Keys are known as headings of tables are. `chosen`: the key of a field, whatever it is called elsewhere.
    """

    def __init__(self, names: Names, chosen: Mapping[str, str] = NONE) -> None:
        self.names = {**names, **{field: (plain(key),) for field, key in chosen.items() if field in names}}
        self.chosen, self.taken, self.numbered = chosen, dict[str, str](), False
        self.known = dict[tuple[str, ...], dict[str, list[str]]]()

    def of(self, record: JsonLine) -> dict[str, str]:
        """The key of each field. Raises InputError where an object has a field under another name than those before."""
        for field in self.names:
            taken = self.taken.get(field)
            if taken is not None and taken in record.fields:
                continue
            keys = self._known(tuple(record.fields))[field]
            used = self.taken.values()
            key = next(
                (each for each in keys if record.fields.get(each) is not None and each not in used), None
            )
            if taken is not None and key is not None:
                before = f'has its {bare_name(field)} under "{key}", those before under "{taken}"'
                raise record.error(f"{before}; give all the same name")
            if key is not None:
                self.taken[field] = key
                if bare_name(key) != bare_name(field):
                    say_taken(str(record.path), f'"{key}" taken for {bare_name(field)}')
        return {field: self.taken.get(field) or self.chosen.get(field, field) for field in self.names}

    def number_of(self, record: JsonLine) -> str | None:
        """The number of an entry of a JSON list, which is its id where it has none; that is said beside other keys."""
        if not isinstance(record, ListEntry) or "_id" in self.chosen:
            return None
        keys = self.of(record)
        others = record.fields.keys() - keys.values()
        if others and record.fields.get(keys["_id"]) is None and not self.numbered:
            self.numbered = True
            names = ", ".join(repr(each) for each in record.fields if each in others)
            say_taken(
                str(record.path), f"no key is taken for id (there are {names}); each id is the entry's number"
            )
        return str(record.line)

    def _known(self, keys: tuple[str, ...]) -> dict[str, list[str]]:
        """The keys of an object that may stand for each field, the best first; of most files all objects are alike."""
        if keys not in self.known:
            if len(self.known) >= SCHEMAS:
                self.known.clear()
            found = places_of(keys, self.names)
            self.known[keys] = {field: [keys[place] for place in found[field]] for field in self.names}
        return self.known[keys]


def taken_for(cells: Sequence[str], columns: Mapping[str, int]) -> str:
    """Which heading stands for which field, in words; a column without a heading by its number."""
    headings = {field: cells[place].strip() for field, place in columns.items()}
    return ", ".join(
        f"{repr(headings[field]) if headings[field] else f'column {place + 1}'} as {bare_name(field)}"
        for field, place in columns.items()
    )


def read_tsv(path: str | Path, width: int, layout: str) -> Iterator[tuple[int, list[str]]]:
    """Each line's columns, parted by tabs: so many, of which the first is filled. `layout`: what they are."""
    for line, text in _filled(path):
        columns = text.split("\t")
        if len(columns) != width:
            problem = f"needs columns with tabs between: {layout} (found: {len(columns)})"
            raise InputError(path, problem, line=line)
        if not columns[0].strip():
            raise InputError(path, "the first column is empty; fill it in or remove the line", line=line)
        yield line, columns


def read_qrels(path: str | Path) -> Iterator[tuple[int, str, str, int]]:
    """Query id, document id and grade, from three columns (BEIR, with or without a header) or four (TREC)."""
    headed: dict[str, int] = {}
    width = 0
    for line, text in _filled(path):
        columns = [column.strip() for column in (text.split("\t") if "\t" in text else text.split())]
        if _is_comment(columns, tabs="\t" in text):
            say_taken(str(path), f"line {line} taken for a comment")
            continue
        named = columns_of(columns, OF_JUDGEMENTS, ("query_id", "doc_id"))
        if named and not is_number(columns[-1]):
            headed, width = (named, len(columns)) if "grade" in named else ({}, 0)
            _say_columns(path, line, named, columns)
            continue
        if len(columns) != width and len(columns) not in (3, 4):
            wanted = "query, document, grade or, as TREC has it, query, 0, document, grade"
            raise InputError(path, f"needs 3 or 4 columns: {wanted} (found: {len(columns)})", line=line)
        order = (
            (headed["query_id"], headed["doc_id"], headed["grade"])
            if headed and len(columns) == width
            else (0, -2, -1)
        )
        query_id, document_id, grade = (columns[place] for place in order)
        if not query_id or not document_id:
            problem = "holds an empty id; give every judgement a query and a document"
            raise InputError(path, problem, line=line)
        yield line, query_id, document_id, grade_of(grade, path, line)


def grade_of(text: str, path: str | Path, line: int) -> int:
    """The grade of a judgement. Raises InputError for anything but a whole number."""
    number = _finite(text, "grade", path, line)
    if not number.is_integer():
        raise InputError(path, f"needs a whole number as grade (found: {text[:SHORT]})", line=line)
    return int(number)


def read_results(path: str | Path) -> Iterator[tuple[int, str, str, float]]:
    """Query id, document id and score, from the six columns of a TREC run."""
    for line, text in _filled(path):
        columns = text.split()
        is_heading = len(columns) == 6 and columns_of(columns, OF_JUDGEMENTS, ("query_id", "doc_id"))
        is_comment = columns[0].startswith("#") and len(columns) != 6
        if is_comment or (is_heading and not is_number(columns[4])):
            say_taken(str(path), f"line {line} taken for a heading or a comment")
            continue
        if len(columns) != 6:
            wanted = "query, Q0, document, rank, score, name"
            raise InputError(path, f"needs 6 columns: {wanted} (found: {len(columns)})", line=line)
        yield line, columns[0], columns[2], _finite(columns[4], "score", path, line)


def write_columns(path: str | Path, rows: Iterable[Iterable[str]], separator: str) -> int:
    """Write rows with a tab or a space between their columns; says how many rows.

    Raises OutputError for a value that holds the separator or a line break: nobody could read it back.
    """
    count = 0
    with open_output(path) as file:
        for row in rows:
            columns = list(row)
            for value in columns:
                if not _fits(value, separator):
                    reason = "empty" if not value else "parted by white space"
                    raise OutputError(f"{path}: can't hold the id {value!r}, which is {reason}; rename it")
            file.write(separator.join(columns) + "\n")
            count += 1
    return count


def _fits(value: str, separator: str) -> bool:
    if separator == " ":
        return value.split() == [value]
    return value == value.strip() != "" and not any(sign in value for sign in "\t\n\r")


def _filled(path: str | Path) -> Iterator[tuple[int, str]]:
    return ((line, text) for line, text in read_lines(path) if text and not text.isspace())


def _is_comment(columns: list[str], *, tabs: bool) -> bool:
    """Whether a line is words behind a `#`, which is a query's id in columns that end in a number.

    Words parted by spaces may end in a number too: a `#` that stands by itself begins a comment there.
    """
    if not columns[0].startswith("#") or columns_of(columns, OF_JUDGEMENTS, ("query_id", "doc_id")):
        return False
    is_row = len(columns) in (3, 4) and is_number(columns[-1])
    return not is_row or (columns[0] == "#" and not tabs)


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _say_columns(path: str | Path, line: int, columns: Mapping[str, int], cells: list[str]) -> None:
    """Say that a line was taken for headings, and for which; those that BEIR prescribes go without saying."""
    if tuple(cell.strip() for cell in cells) == OF_BEIR:
        return
    say_taken(str(path), f"line {line} taken for headings ({taken_for(cells, columns)})")


def _finite(text: str, kind: str, path: str | Path, line: int) -> float:
    try:
        number = float(text)
    except ValueError as error:
        raise InputError(path, f"needs a number as {kind} (found: {text[:SHORT]})", line=line) from error
    if not math.isfinite(number):
        raise InputError(path, f"{kind} {text[:SHORT]} is not finite; remove the line", line=line)
    return number
