"""Documents, queries, judgements and runs, read and written in any of the usual layouts.

| what | layouts |
|---|---|
| documents | BEIR folder, JSONL (`_id`, optional `title`, `text`), a JSON list, tables (TSV, CSV, XLSX, |
|  | Parquet), TREC `<DOC>`, `Posts.xml`, SMART, a folder of text, Markdown, HTML and PDF files |
| queries | BEIR folder, JSONL (`_id`, `text`, optional `kind`), a JSON list, tables, TREC and NTCIR topics, |
|  | a text file with a query a line |
| judgements | BEIR folder and split, TSV of three columns, TREC qrels of four, other tables |
| runs | TREC run of six columns |

The end of a file's name says what the file is, never its contents: a name that doesn't say it is refused, and so is a
file that isn't what its name says. The first three are also read from an `ir_datasets` id and from the name of a
bundled corpus, and any file may be compressed (`.gz`, `.bz2`, `.xz`, `.zst`) and lie at any address that fsspec reads.
Readers stream: they hold one line, and of the documents before it 8 bytes each. Whatever is wrong raises InputError
with file and line; a missing file does so at the call, before anything is read.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path, PurePath
from typing import Any

from sparse_adapt.collection.columns import (
    DOCUMENTS,
    JUDGEMENTS,
    NONE,
    OF_BEIR,
    OF_DOCUMENTS,
    OF_QUERIES,
    QUERIES,
    Keys,
    Layout,
    grade_of,
    read_qrels,
    read_results,
    write_columns,
)
from sparse_adapt.collection.dumps import read_posts, read_smart
from sparse_adapt.collection.lines import (
    JsonLine,
    ListEntry,
    read_list,
    read_objects,
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
from sparse_adapt.collection.sheets import is_table
from sparse_adapt.collection.sources import TABLES, Dataset, bundled, is_folder, lies_at, locate, split_file
from sparse_adapt.collection.streams import Unique, UniqueAmongMany, at_least_one
from sparse_adapt.collection.tables import read_sheet
from sparse_adapt.collection.texts import read_loose
from sparse_adapt.collection.trec import read_topics, read_trec_documents
from sparse_adapt.errors import ConfigError, InputError

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

    chosen: the columns of a table by their fields.
    """
    place = locate(source, DOCUMENT_FILES)
    if chosen and (isinstance(place, Dataset) or not is_table(place)):
        raise ConfigError(f"{source}: is no table (CSV, TSV, XLSX, Parquet), so its columns can't be chosen")
    if isinstance(place, Path) and place.is_dir():
        say_taken(str(place), "no corpus.jsonl, so its text, Markdown, HTML and PDF files are read")
    return _unique_documents(partial(_numbered_documents, place, chosen), _name(place))


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
    numbered: Callable[[], Iterable[tuple[int, Document]]], path: str | Path
) -> Iterator[Document]:
    def ids() -> Iterator[tuple[int, str]]:
        return ((line, document.document_id) for line, document in numbered())

    unique, tagged = UniqueAmongMany(path, "document id", ids), 0
    for line, document in at_least_one(numbered(), path, "documents"):
        unique.add(document.document_id, line)
        tagged += "</" in document.text and OF_HTML.search(document.text) is not None
        yield document
    unique.settle()
    if tagged:
        message = f"{tagged:,} texts hold tags of HTML, which are read as they stand"
        say_taken(str(path), f"{message}; what a reader sees is read of .html files in a folder")


def _numbered_documents(
    place: Location | Dataset, chosen: Mapping[str, str]
) -> Iterator[tuple[int, Document]]:
    """Each document with its line, or its number where no line holds it."""
    if isinstance(place, Dataset):
        for number, row in enumerate(place.rows("docs"), start=1):
            yield number, _dataset_document(row)
        return
    keys = Keys(OF_DOCUMENTS)
    for record in _records(place, "documents", DOCUMENTS, chosen):
        yield (
            record.line,
            document_of(record, keys, str(record.line) if isinstance(record, ListEntry) else None),
        )


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


def read_queries(source: str | Path) -> Iterator[Query]:
    """Every query of a collection in its order. Each id occurs once, and there is at least one query."""
    place = locate(source, QUERY_FILES)
    unique = Unique(_name(place), "query id")

    def read() -> Iterator[Query]:
        for line, query in at_least_one(_numbered_queries(place), unique.path, "queries"):
            unique.add(query.query_id, line)
            yield query

    return read()


def write_queries(path: str | Path, queries: Iterable[Query]) -> int:
    """Write `queries.jsonl`; says how many queries."""
    return write_objects(
        path,
        ({"_id": q.query_id, "text": q.text, **({"kind": q.kind} if q.kind else {})} for q in queries),
    )


def _numbered_queries(place: Location | Dataset) -> Iterator[tuple[int, Query]]:
    if isinstance(place, Dataset):
        for number, row in enumerate(place.rows("queries"), start=1):
            yield number, Query(str(row.query_id), row.default_text())
        return
    keys = Keys(OF_QUERIES)
    for record in _records(place, "queries", QUERIES):
        yield record.line, query_of(record, keys, str(record.line) if isinstance(record, ListEntry) else None)


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
    """Query id, document id and grade of each row of a table, or of columns as BEIR and TREC write them."""
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
    readers = READERS[what]
    name = bare(place.name.lower())
    ending = name if name in readers else ".trec" if WIKI.fullmatch(name) else PurePath(name).suffix
    if ending not in readers:
        known = ", ".join((*TABLES, *readers))
        problem = f"the end of its name doesn't say what it is ({ending or 'none'}); rename it, or link to it by a name"
        raise InputError(place, f"{problem} that ends in one of {known}, whichever the {what} are")
    return readers[ending](place)


OF_HTML = re.compile(r"</(?:p|div|span|li|td|h[1-6]|body|html)>", re.IGNORECASE)
MARKUP = (".trec", ".sgml", ".sgm", ".xml")
WIKI = re.compile(r"wiki_\d+")  # as WikiExtractor calls its files
SMART = dict.fromkeys((".all", ".qry", ".smart"), read_smart)
JSON = {".jsonl": read_objects, ".ndjson": read_objects, ".json": read_list}
READERS: Mapping[str, Mapping[str, Callable[[Location], Iterator[JsonLine]]]] = {
    "documents": JSON | dict.fromkeys(MARKUP, read_trec_documents) | SMART | {"posts.xml": read_posts},
    "queries": JSON | dict.fromkeys(MARKUP, read_topics) | SMART | {".txt": read_words},
}
