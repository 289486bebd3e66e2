"""Documents, queries, judgements and runs, read and written in any of the usual layouts.

| what | layouts |
|---|---|
| documents | BEIR folder, JSONL (`_id`, optional `title`, `text`), a JSON list, tables (TSV, CSV, XLSX, |
|  | Parquet), TREC `<DOC>`, `Posts.xml`, SMART, a folder of text, Markdown, HTML and PDF files, or of |
|  | the parts of one corpus (JSONL, Parquet, CSV, TSV) |
| queries | BEIR folder, JSONL (`_id`, `text`, optional `kind`), a JSON list, tables, TREC and NTCIR topics, |
|  | a text file with a query a line |
| judgements | BEIR folder and split, TSV of three columns, TREC qrels of four, JSONL, other tables |
| runs | TREC run of six columns |

The end of a file's name says what the file is, never its contents: a name that doesn't say it is refused, and so is a
file that isn't what its name says. The first three are also read from an `ir_datasets` id and from the name of a
bundled corpus, and any file may be compressed (`.gz`, `.bz2`, `.xz`, `.zst`) and lie at any address that fsspec reads.
Readers stream: they hold one line, and of the documents before it 8 bytes each. Whatever is wrong raises InputError
with file and line; a missing file does so at the call, before anything is read.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from sparse_adapt.collection.columns import (
    DOCUMENTS,
    JUDGEMENTS,
    NONE,
    OF_BEIR,
    OF_JUDGEMENTS,
    QUERIES,
    Keys,
    Layout,
    grade_of,
    read_qrels,
    read_results,
    write_columns,
)
from sparse_adapt.collection.lines import (
    JSON,
    JsonLine,
    ending_of,
    is_json,
    no_such_ending,
    read_json,
    read_words,
    say_taken,
    write_objects,
)
from sparse_adapt.collection.opening import (
    Address,
    Location,
    bare,
    check_ending,
    place_of,
    reachable,
    variants,
)
from sparse_adapt.collection.sheets import is_table, table_endings
from sparse_adapt.collection.sources import Dataset, bundled, is_folder, lies_at, locate, split_file
from sparse_adapt.collection.streams import Unique, UniqueAmongMany, at_least_one
from sparse_adapt.collection.tables import read_sheet
from sparse_adapt.collection.texts import parts_in, read_loose
from sparse_adapt.collection.trec import read_topics, read_trec_documents
from sparse_adapt.errors import ConfigError, InputError
from sparse_adapt.registry import registry

DOCUMENT_FILES = (*variants("corpus.jsonl", "corpus.tsv", "corpus.csv"), "corpus.parquet", "corpus.xlsx")
QUERY_FILES = (*variants("queries.jsonl", "queries.tsv", "queries.csv"), "queries.parquet", "queries.xlsx")


@dataclass(frozen=True, slots=True)
class Document:
    """One text to be found. All but the first two may be empty; `keywords` and `journal` are never encoded."""

    document_id: str
    text: str
    title: str = ""
    keywords: str = ""
    journal: str = ""

    @property
    def full_text(self) -> str:
        """Title and text joined by one space: what is encoded."""
        return f"{self.title} {self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class Query:
    """One information need in words. `kind` ("control", "semantic"), where given, groups queries in reports."""

    query_id: str
    text: str
    kind: str = ""


Judgements = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


# -- documents -----------------------------------------------------------------------------------


def read_documents(source: str | Path, chosen: Mapping[str, str] = NONE) -> Iterator[Document]:
    """Every document of a corpus in its order. Each id occurs once, and there is at least one document.

    chosen: the columns of a table, or the keys of JSON, by their fields.
    """
    place = locate(source, DOCUMENT_FILES)
    parts: list[Path] = []
    if isinstance(place, Path) and place.is_dir():
        parts = parts_in(place)
        files = f"{len(parts):,} {ending_of(parts[0])}" if parts else "text, Markdown, HTML and PDF"
        say_taken(str(place), f"no corpus.jsonl, so its {files} files are read")
    _check_chosen(source, parts[0] if parts else place, chosen)
    return _unique_documents(
        partial(_numbered_documents, place, parts, chosen), _name(place), in_parts=bool(parts)
    )


def _check_chosen(source: str | Path, place: Location | Dataset, chosen: Mapping[str, str]) -> None:
    """Raise ConfigError where columns were named of what has neither columns nor keys."""
    if chosen and (isinstance(place, Dataset) or not (is_table(place) or is_json(place))):
        raise ConfigError(
            f"{source}: is no table (CSV, TSV, XLSX, Parquet) and no JSON, so no column can be chosen"
        )


def documents_at(source: str | Path) -> Location | None:
    """Where the documents of a corpus lie, of one that has a place of its own."""
    return lies_at(source, DOCUMENT_FILES)


def count_documents(source: str | Path) -> int | None:
    """How many documents a corpus on this machine has; None where it would be fetched twice for that.

    Raises InputError for the first thing that is wrong with it.
    """
    return None if isinstance(place_of(source), Address) else sum(1 for _ in read_documents(source))


def write_documents(path: str | Path, documents: Iterable[Document]) -> int:
    """Write `corpus.jsonl`; says how many documents."""
    return write_objects(
        path,
        (
            {"_id": d.document_id, "title": d.title, "text": d.text}
            | ({"keywords": d.keywords} if d.keywords else {})
            | ({"journal": d.journal} if d.journal else {})
            for d in documents
        ),
    )


def _unique_documents(
    numbered: Callable[[], Iterable[tuple[int, Document]]], path: str | Path, *, in_parts: bool
) -> Iterator[Document]:
    def ids() -> Iterator[tuple[int, str]]:
        return ((line, document.document_id) for line, document in numbered())

    counted = "documents of its files" if in_parts else ""
    unique, tagged = UniqueAmongMany(path, "document id", ids, numbered=counted), 0
    for line, document in at_least_one(numbered(), path, "documents"):
        unique.add(document.document_id, line)
        tagged += "</" in document.text and OF_HTML.search(document.text) is not None
        yield document
    unique.settle()
    if tagged:
        message = f"{tagged:,} texts hold tags of HTML, which are read as they stand"
        say_taken(str(path), f"{message}; what a reader sees is read of .html files in a folder")


def _numbered_documents(
    place: Location | Dataset, parts: Sequence[Path], chosen: Mapping[str, str]
) -> Iterator[tuple[int, Document]]:
    """Each document with its line, or its number where no line of one file holds it."""
    if isinstance(place, Dataset):
        for number, row in enumerate(place.rows("docs"), start=1):
            yield number, _dataset_document(row)
        return
    number = 0
    keys = _keys(parts[0] if parts else place, DOCUMENTS, chosen)
    files: Sequence[Location] = parts or [place]
    for part in files:
        for record in _records(part, "documents", DOCUMENTS, chosen):
            number += 1
            document = document_of(record, keys, keys.number_of(record))
            yield number if parts else record.line, document


def document_of(record: JsonLine, keys: Keys, document_id: str | None = None) -> Document:
    """A document by its fields, under whichever of their usual names; `document_id` is that of one without an id."""
    key = keys.of(record)
    has_id = document_id is None or record.fields.get(key["_id"]) is not None
    return Document(
        record.identifier(key["_id"]) if has_id else str(document_id),
        record.passages(key["text"]),
        record.string(key["title"], default=""),
        record.listed(key["keywords"]),
        record.listed(key["journal"]),
    )


def _dataset_document(row: Any) -> Document:  # noqa: ANN401 - a named tuple of ir_datasets
    if isinstance(getattr(row, "text", None), str):
        return Document(str(row.doc_id), row.text, getattr(row, "title", None) or "")
    return Document(str(row.doc_id), row.default_text())


# -- queries -------------------------------------------------------------------------------------


def read_queries(source: str | Path, chosen: Mapping[str, str] = NONE) -> Iterator[Query]:
    """Every query of a collection in its order. Each id occurs once, and there is at least one query.

    chosen: the columns of a table, or the keys of JSON, by their fields.
    """
    place = locate(source, QUERY_FILES)
    _check_chosen(source, place, chosen)
    unique = Unique(_name(place), "query id")

    def read() -> Iterator[Query]:
        for line, query in at_least_one(_numbered_queries(place, chosen), unique.path, "queries"):
            unique.add(query.query_id, line)
            yield query

    return read()


def write_queries(path: str | Path, queries: Iterable[Query]) -> int:
    """Write `queries.jsonl`; says how many queries."""
    return write_objects(
        path,
        ({"_id": q.query_id, "text": q.text, **({"kind": q.kind} if q.kind else {})} for q in queries),
    )


def _numbered_queries(place: Location | Dataset, chosen: Mapping[str, str]) -> Iterator[tuple[int, Query]]:
    if isinstance(place, Dataset):
        for number, row in enumerate(place.rows("queries"), start=1):
            yield number, Query(str(row.query_id), row.default_text())
        return
    keys = _keys(place, QUERIES, chosen)
    for record in _records(place, "queries", QUERIES, chosen):
        yield record.line, query_of(record, keys, keys.number_of(record))


def query_of(record: JsonLine, keys: Keys, query_id: str | None = None) -> Query:
    """A query by its fields, under whichever of their usual names; `query_id` is that of one without an id."""
    key = keys.of(record)
    has_id = query_id is None or record.fields.get(key["_id"]) is not None
    return Query(
        record.identifier(key["_id"]) if has_id else str(query_id),
        record.words(key["text"]),
        record.string(key["kind"], default=""),
    )


# -- judgements ----------------------------------------------------------------------------------


def read_judgements(
    source: str | Path, split: str = "test", *, document_ids: Container[str] | None = None
) -> Judgements:
    """How relevant documents are to queries: query_id -> document_id -> grade.

    `split` chooses among the files of a BEIR folder and means nothing for a single file. Where the ids of
    the corpus are given, a judgement of any other document is an error.
    """
    place = split_file(bundled(source), split) if is_folder(source) else locate(source, ())
    name = _name(place)
    rows = _dataset_judgements(place.split(split)) if isinstance(place, Dataset) else _judgements_in(place)
    unique = Unique(name, "judgement of query and document")
    judgements: Judgements = {}
    for line, query_id, document_id, grade in at_least_one(rows, name, "judgements"):
        if document_ids is not None and document_id not in document_ids:
            raise outside(name, document_id, line)
        unique.add(f"{query_id}\t{document_id}", line)
        judgements.setdefault(query_id, {})[document_id] = grade
    return judgements


def write_judgements(path: str | Path, judgements: Mapping[str, Mapping[str, int]]) -> int:
    """Write a BEIR `qrels/<split>.tsv`; says how many judgements."""
    rows = (
        (query, document, str(judgements[query][document]))
        for query in judgements
        for document in judgements[query]
    )
    return write_columns(path, chain([OF_BEIR], rows), "\t") - 1


def _judgements_in(place: Location) -> Iterator[tuple[int, str, str, int]]:
    """Query id, document id and grade of each row of a table, of JSON, or of columns as BEIR and TREC write them."""
    if is_json(place):
        keys = Keys(OF_JUDGEMENTS)
        for record in read_json(place, "judgements"):
            query, document, key = keys.of(record).values()
            grade = grade_of(str(record.fields.get(key, "")), place, record.line)
            yield record.line, record.identifier(query), record.identifier(document), grade
        return
    if not is_table(place) or bare(place.name.lower()).endswith(".tsv"):
        yield from read_qrels(place)
        return
    for row in read_sheet(place, JUDGEMENTS):
        grade = grade_of(str(row.fields.get("grade", "")), place, row.line)
        yield row.line, row.identifier("query_id"), row.identifier("doc_id"), grade


def _dataset_judgements(dataset: Dataset) -> Iterator[tuple[int, str, str, int]]:
    for number, row in enumerate(dataset.rows("qrels"), start=1):
        yield number, str(row.query_id), str(row.doc_id), int(row.relevance)


# -- runs ----------------------------------------------------------------------------------------


def read_run(path: str | Path) -> Run:
    """The ranked documents of a TREC run: query_id -> document_id -> score, in the order of the file."""
    run: Run = {}
    unique = Unique(path, "result for query and document")
    for line, query_id, document_id, score in at_least_one(read_results(reachable(path)), path, "results"):
        unique.add(f"{query_id}\t{document_id}", line)
        run.setdefault(query_id, {})[document_id] = score
    return run


def write_run(path: str | Path, run: Mapping[str, Mapping[str, float]], name: str = "sparse-adapt") -> int:
    """Write a TREC run, best score first and ties in the order given; says how many results."""
    return write_columns(path, _results(run, name), " ")


def _results(run: Mapping[str, Mapping[str, float]], name: str) -> Iterator[tuple[str, ...]]:
    for query_id, scores in run.items():
        ranked = sorted(scores.items(), key=lambda pair: -pair[1])
        for rank, (document_id, score) in enumerate(ranked, start=1):
            yield query_id, "Q0", document_id, str(rank), repr(float(score)), name


# -- what several of them share ------------------------------------------------------------------


def outside(path: str | Path, document_id: str, line: int) -> InputError:
    """The error for a document that the corpus doesn't have."""
    problem = f'document "{document_id}" is not in the corpus; remove it or choose the corpus that has it'
    return InputError(path, problem, line=line)


def _name(place: Location | Dataset) -> str | Path:
    return place.name if isinstance(place, Dataset) else place


def _records(
    place: Location, what: str, layout: Layout, chosen: Mapping[str, str] = NONE
) -> Iterator[JsonLine]:
    """Each entry of a file by its fields, as the end of the file's name says. `what`: the entries, in words.

    Raises InputError for a name that doesn't say it.
    """
    if isinstance(place, Path) and place.is_dir():
        return read_loose(place)
    if is_table(place):
        return read_sheet(place, layout, chosen)
    check_ending(place)
    readers = {**READERS[what], **registry().all_of(f"readers.{what}")}
    name = bare(place.name.lower())
    ending = name if name in readers else ".trec" if WIKI.fullmatch(name) else ending_of(place)
    if ending not in readers:
        raise no_such_ending(place, what, (*table_endings(), *readers))
    reader = readers[ending]
    records: Iterator[JsonLine] = (resolve_name(reader) if isinstance(reader, str) else reader)(place)
    return records


def _keys(place: Location, layout: Layout, chosen: Mapping[str, str]) -> Keys:
    """The keys of a file's entries; the columns of a table have our names by then."""
    return Keys(layout.names, {} if is_table(place) else chosen)


OF_HTML = re.compile(r"</(?:p|div|span|li|td|h[1-6]|body|html)>", re.IGNORECASE)
MARKUP = (".trec", ".sgml", ".sgm", ".xml")
WIKI = re.compile(r"wiki_\d+")  # as WikiExtractor calls its files
READERS: Mapping[str, Mapping[str, Callable[[Location], Iterator[JsonLine]]]] = {
    "documents": {**JSON, **dict.fromkeys(MARKUP, read_trec_documents)},
    "queries": {**JSON, **dict.fromkeys(MARKUP, read_topics), ".txt": read_words},
}
