"""What a caller gives, resolved once: a place to read from, or things in memory, as the same records.

Whatever takes documents takes a place (a BEIR folder, a file, a bundled name, an `ir_datasets` id, an address), a
list of texts, a dictionary from ids to texts, a list of dictionaries with the keys of `corpus.jsonl`, a data frame
with these columns, or any iterable of `Document`. Queries, judgements and definitions likewise. Whatever is wrong
raises InputError that names the item, counted from 1 as lines of a file are: `documents:3: needs a string "text"`.
"""

import reprlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeVar

from sparse_adapt.collection.columns import (
    DOCUMENTS,
    GLOSSARIES,
    OF_DOCUMENTS,
    OF_JUDGEMENTS,
    OF_QUERIES,
    QUERIES,
    ColumnsLike,
    Keys,
    chosen_of,
)
from sparse_adapt.collection.glossary import Definition, definitions_in, read_dictionary
from sparse_adapt.collection.lines import JsonLine
from sparse_adapt.collection.readers import (
    Document,
    Judgements,
    Query,
    count_documents,
    document_of,
    query_of,
    read_documents,
    read_judgements,
    read_queries,
    write_documents,
)
from sparse_adapt.collection.streams import Unique, at_least_one
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.files.writing import plain_number

ATTRIBUTES = (
    "id",
    "document_id",
    "doc_id",
    "docno",
    "text",
    "title",
    "keywords",
    "journal",
)  # of ir_datasets' rows
MISSING = ("NAType", "NaTType")  # of pandas, which compare with nothing

Place = str | Path
Fields = TypeVar("Fields", Document, Query)
QueriesLike = Place | Iterable[str | Mapping[str, object] | Query] | Mapping[str, str]
JudgementsLike = Place | Mapping[str, Mapping[str, int] | Iterable[str]] | Iterable[Mapping[str, object]]
DefinitionsLike = Place | Iterable[Mapping[str, object] | tuple[str, str] | Definition] | Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus that was resolved: a place that is read anew each time, or documents in memory.

    A table whose columns somebody chose has no place for others, who would read it otherwise.
    """

    place: str | None
    documents: tuple[Document, ...] = ()
    table: str = ""
    chosen: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, source: "DocumentsLike", columns: ColumnsLike = ()) -> "Corpus":
        """Resolve what a caller gives. Things in memory are read once, here; a place is read when asked for.

        columns: those of a table, or the keys of JSON, by their fields.
        """
        chosen = chosen_of(columns, DOCUMENTS)
        if chosen and not isinstance(source, str | Path):
            raise ConfigError("columns: are chosen of a table in a file; documents in memory have keys")
        if isinstance(source, Corpus):
            return source
        if isinstance(source, str | Path):
            return cls(None, table=str(source), chosen=chosen) if chosen else cls(str(source))
        keys = Keys(OF_DOCUMENTS)
        documents = [_document(number, item, keys) for number, item in _numbered(source, "documents")]
        _check_ids("documents", "document id", (document.document_id for document in documents))
        return cls(None, tuple(documents))

    @property
    def name(self) -> str:
        """What messages and records call it."""
        return self.place or self.table or f"{len(self.documents):,} documents in memory"

    def read(self) -> Iterator[Document]:
        """Every document in its order. Raises InputError for the first thing that is wrong with a file."""
        if self.table:
            return read_documents(self.table, self.chosen)
        return iter(self.documents) if self.place is None else read_documents(self.place)

    def count(self) -> int | None:
        """How many documents there are; None where they would be fetched twice to be counted."""
        return sum(1 for _ in self.read()) if self.place is None else count_documents(self.place)

    def placed(self, folder: Path) -> str:
        """A place that holds the corpus: its own, or `corpus.jsonl` in a folder, written there."""
        if self.place is not None:
            return self.place
        write_documents(folder / "corpus.jsonl", self.read())
        return str(folder)


DocumentsLike = Place | Iterable[str | Mapping[str, object] | Document] | Mapping[str, str] | Corpus


def with_columns(source: DocumentsLike, columns: ColumnsLike) -> DocumentsLike:
    """The same documents, read by the columns that somebody named of them; as they are where nobody did."""
    return Corpus.of(source, columns) if chosen_of(columns, DOCUMENTS) else source


def queries_of(source: QueriesLike, columns: ColumnsLike = ()) -> list[Query]:
    """Queries from a place or from memory: texts, a dictionary from ids to texts, dictionaries, `Query`.

    columns: those of a table, or the keys of JSON, by their fields.
    """
    chosen = chosen_of(columns, QUERIES)
    if isinstance(source, str | Path):
        return list(read_queries(source, chosen))
    if chosen:
        raise ConfigError("columns: are chosen of a table in a file; queries in memory have keys")
    keys = Keys(OF_QUERIES)
    queries = [_query(number, item, keys) for number, item in _numbered(source, "queries")]
    _check_ids("queries", "query id", (query.query_id for query in queries))
    return queries


def judgements_of(source: JudgementsLike, split: str = "test") -> Judgements:
    """Judgements from a place or from memory.

    In memory: query ids to grades by document id, query ids to lists of relevant ids, or rows of three columns
    (`query_id`, `doc_id`, `grade`; the names of BEIR and TREC are known too).
    """
    if isinstance(source, str | Path):
        return read_judgements(source, split)
    if isinstance(source, Mapping):
        return {str(query): _grades(documents) for query, documents in source.items()}
    judgements: Judgements = {}
    keys = Keys(OF_JUDGEMENTS)
    for number, item in _numbered(source, "judgements"):
        record = _record("judgements", number, item)
        query, document, grade = keys.of(record).values()
        of_query = judgements.setdefault(record.identifier(query), {})
        of_query[record.identifier(document)] = int(record.number(grade))
    return judgements


def definitions_of(source: DefinitionsLike, columns: ColumnsLike = ()) -> list[Definition]:
    """Definitions from a place or from memory: a dictionary from terms to definitions, pairs, dictionaries.

    columns: those of a table, or the keys of JSON, by their fields.
    """
    if isinstance(source, str | Path):
        return read_dictionary(source, chosen_of(columns, GLOSSARIES))
    records = (_defining(number, item) for number, item in _numbered(source, "definitions"))
    return list(definitions_in(records, "definitions"))


def chooses_definitions(columns: ColumnsLike) -> bool:
    """Whether columns are those of a glossary, or some of them."""
    return bool(chosen_of(columns, GLOSSARIES))


def chooses_queries(columns: ColumnsLike) -> bool:
    """Whether columns are those of queries, or some of them."""
    return bool(chosen_of(columns, QUERIES))


# -- items ----------------------------------------------------------------------------------------


def _numbered(source: object, what: str) -> Iterator[tuple[int, object]]:
    """The items of a list, the pairs of a dictionary or the rows of a data frame, counted from 1."""
    return enumerate(at_least_one(items_of(source, what), what, what), start=1)


def items_of(source: object, what: str) -> Iterable[object]:
    """The items of a list, the pairs of a dictionary, the rows of a data frame as dictionaries. `what`: in messages."""
    if hasattr(source, "to_dicts"):  # polars, whose to_dict gives columns
        return list(source.to_dicts())
    if hasattr(source, "columns") and hasattr(source, "to_dict"):  # pandas
        return list(source.to_dict("records"))
    if isinstance(source, Mapping):
        if "text" in source or "definition" in source:
            raise InputError(what, "one dictionary, where a list of them is needed; put it in brackets")
        return list(source.items())
    if isinstance(source, bytes) or not isinstance(source, Iterable):
        problem = f"can't be read from {type(source).__name__}; give a path, a list or a data frame"
        raise InputError(what, problem)
    return source


def _document(number: int, item: object, keys: Keys) -> Document:
    if isinstance(item, Document):
        return _of_strings("documents", number, item)
    if isinstance(item, str):
        return Document(str(number), item)
    return document_of(_record("documents", number, _keyed(item, "_id", "text")), keys, str(number))


def _query(number: int, item: object, keys: Keys) -> Query:
    if isinstance(item, Query):
        return _of_strings("queries", number, item)
    fields = {"text": item} if isinstance(item, str) else _keyed(item, "_id", "text")
    return query_of(_record("queries", number, fields), keys, str(number))


def _of_strings(what: str, number: int, item: Fields) -> Fields:
    """A record of ours as it is. Raises InputError for one that holds anything but strings."""
    for each in fields(item):
        value = getattr(item, each.name)
        if not isinstance(value, str):
            raise InputError(what, f"needs a string {each.name} (found: {reprlib.repr(value)})", line=number)
    return item


def _defining(number: int, item: object) -> JsonLine:
    if isinstance(item, Definition):
        item = {"term": item.term, "definition": item.definition, "examples": item.examples}
    return _record("definitions", number, _keyed(item, "term", "definition"))


def _keyed(item: object, *names: str) -> object:
    """A pair as a dictionary under these names; anything else as it is."""
    return dict(zip(names, item, strict=True)) if type(item) is tuple and len(item) == 2 else item


def _record(what: str, number: int, item: object) -> JsonLine:
    """An item's fields by name. Raises InputError for one that has none."""
    if not isinstance(item, Mapping):
        item = {name: getattr(item, name) for name in ATTRIBUTES if hasattr(item, name)}
    return JsonLine(what, number, {str(key).replace("-", "_"): _plain(value) for key, value in item.items()})


def _plain(value: object) -> object:
    """A value without what numpy and pandas put around it; None for one that is missing."""
    if type(value).__name__ in MISSING or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, tuple):
        return list(value)
    return plain_number(value)


def _grades(documents: Mapping[str, int] | Iterable[str]) -> dict[str, int]:
    if not isinstance(documents, Iterable) or isinstance(documents, str):
        problem = f"needs grades by document, or a list of documents, for each query (found: {documents!r})"
        raise InputError("judgements", problem)
    if isinstance(documents, Mapping):
        rows = ({"document": document, "grade": grade} for document, grade in documents.items())
        records = [_record("judgements", number, row) for number, row in enumerate(rows, start=1)]
        return {str(each.fields["document"]): int(each.number("grade")) for each in records}
    return {str(document): 1 for document in documents}


def _check_ids(what: str, kind: str, ids: Iterable[str]) -> None:
    unique = Unique(what, kind)
    for number, identifier in enumerate(ids, start=1):
        unique.add(identifier, number)
