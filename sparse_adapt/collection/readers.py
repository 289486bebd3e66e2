"""Documents, queries, judgements, candidates and runs, read and written in any of the usual layouts.

| what | layouts |
|---|---|
| documents | BEIR folder, JSONL (`_id`, optional `title`, `text`), TSV (id, text or id, title, text), CSV, XLSX, |
|  | Parquet, TREC `<DOC>`, a folder of text, Markdown, HTML and PDF files |
| queries | BEIR folder, JSONL (`_id`, `text`, optional `kind`), TSV (id, text), CSV, XLSX, Parquet |
|  | TREC and NTCIR topics |
| judgements | BEIR folder and split, TSV of three columns, TREC qrels of four |
| candidates | JSONL (`query_id`, `query`, `doc_ids`, `teacher_scores`, optional `doc_texts`) |
| runs | TREC run of six columns |

The first three are also read from an `ir_datasets` id, the first four from the name of a bundled corpus,
and any file may be compressed (`.gz`, `.bz2`, `.xz`, `.zst`) and lie at any address that fsspec reads. Readers
stream: they hold one line, and of the documents before it 8 bytes each. Whatever
is wrong raises InputError with file and line; a missing file does so at the call, before anything is read. Of a text
that is HTML, what a reader sees is read, and that is said.
"""

from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

from sparse_adapt.collection.addresses import Address, Location, place_of, reachable
from sparse_adapt.collection.columns import read_qrels, read_results, read_table, write_columns
from sparse_adapt.collection.compression import bare, variants
from sparse_adapt.collection.lines import (
    JsonLine,
    Unique,
    at_least_one,
    read_lines,
    read_objects,
    write_objects,
)
from sparse_adapt.collection.loose import read_loose
from sparse_adapt.collection.names import OF_DOCUMENTS, OF_QUERIES, key_of, say_taken
from sparse_adapt.collection.pages import is_page, text_of_page
from sparse_adapt.collection.sheets import is_table, read_sheet
from sparse_adapt.collection.sources import Dataset, bundled, lies_at, locate, split_file
from sparse_adapt.collection.topics import read_topics
from sparse_adapt.collection.trec import read_trec_documents
from sparse_adapt.collection.unique import UniqueAmongMany
from sparse_adapt.errors import InputError

DOCUMENT_FILES = (*variants("corpus.jsonl", "corpus.tsv", "corpus.csv"), "corpus.parquet", "corpus.xlsx")
QUERY_FILES = (*variants("queries.jsonl", "queries.tsv", "queries.csv"), "queries.parquet", "queries.xlsx")
CANDIDATE_FILES = variants("candidates.jsonl")
CANDIDATE_QUERIES = ("query_id", "qid", "query-id", "_id", "id")
BESIDE = ("title", "keywords", "journal")  # what a document may have beside its text
HEADER = ("query-id", "corpus-id", "score")


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
    """One information need in words. `kind` ("control", "hidden"), where given, groups queries in reports."""

    query_id: str
    text: str
    kind: str = ""


Judgements = dict[str, dict[str, int]]
Run = dict[str, dict[str, float]]


@dataclass(frozen=True, slots=True)
class Candidates:
    """A query, documents for it, and how relevant a teacher finds each: any real number, higher is better."""

    query_id: str
    query: str
    document_ids: tuple[str, ...]
    teacher_scores: tuple[float, ...]
    texts: tuple[str, ...] = ()


# -- documents -----------------------------------------------------------------------------------


def read_documents(source: str | Path) -> Iterator[Document]:
    """Every document of a corpus in its order. Each id occurs once, and there is at least one document."""
    place = locate(source, DOCUMENT_FILES)
    if isinstance(place, Dataset):
        return _unique_documents(partial(_dataset_documents, place), place.name)
    if isinstance(place, Path) and place.is_dir():
        say_taken(str(place), "no corpus.jsonl, so its text, Markdown, HTML and PDF files are read")
        return _unique_documents(partial(_loose_documents, place), place)
    if is_table(place):
        read = _table_documents
    elif _is_tsv(place):
        read = _tsv_documents
    else:
        read = _trec_documents if _is_markup(place) else _json_documents
    return _unique_documents(partial(read, place), place)


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
            | {name: value for name in BESIDE[1:] if (value := getattr(d, name))}
            for d in documents
        ),
    )


def _unique_documents(
    numbered: Callable[[], Iterable[tuple[int, Document]]], path: str | Path
) -> Iterator[Document]:
    def ids() -> Iterator[tuple[int, str]]:
        return ((line, document.document_id) for line, document in numbered())

    unique = UniqueAmongMany(path, "document id", ids)
    for line, document in at_least_one(numbered(), path, "documents"):
        unique.add(document.document_id, line)
        if is_page(document.text):
            say_taken(str(path), "texts hold HTML; what a reader sees of it is read")
            document = replace(document, text=text_of_page(document.text).text)
        yield document
    unique.settle()


def _json_documents(path: Location) -> Iterator[tuple[int, Document]]:
    for record in read_objects(path):
        yield record.line, _document(record)


def _document(record: JsonLine) -> Document:
    keys = {field: key_of(record.fields, names) for field, names in OF_DOCUMENTS.items()}
    document_id, title = record.identifier(keys["_id"]), record.string(keys["title"], default="")
    beside = record.listed(keys["keywords"]), record.listed(keys["journal"])
    return Document(document_id, record.string(keys["text"]), title, *beside)


def _tsv_documents(path: Location) -> Iterator[tuple[int, Document]]:
    orders = {2: ("_id", "text"), 3: ("_id", "title", "text")}
    for line, cells in read_table(path, orders, OF_DOCUMENTS):
        yield line, Document(cells["_id"], cells["text"], *(cells.get(name, "") for name in BESIDE))


def _table_documents(path: Location) -> Iterator[tuple[int, Document]]:
    for record in read_sheet(path, OF_DOCUMENTS):
        yield record.line, _document(record)


def _trec_documents(path: Location) -> Iterator[tuple[int, Document]]:
    for each in read_trec_documents(path):
        yield each.line, Document(each.document_id, each.text, each.title)


def _loose_documents(folder: Path) -> Iterator[tuple[int, Document]]:
    for number, each in enumerate(read_loose(folder), start=1):
        yield number, Document(each.name, each.text, each.title)


def _dataset_documents(dataset: Dataset) -> Iterator[tuple[int, Document]]:
    for number, row in enumerate(dataset.rows("docs"), start=1):
        if isinstance(getattr(row, "text", None), str):
            yield number, Document(str(row.doc_id), row.text, getattr(row, "title", None) or "")
        else:
            yield number, Document(str(row.doc_id), row.default_text())


# -- queries -------------------------------------------------------------------------------------


def read_queries(source: str | Path) -> Iterator[Query]:
    """Every query of a collection in its order. Each id occurs once, and there is at least one query."""
    place = locate(source, QUERY_FILES)
    if isinstance(place, Dataset):
        return _unique_queries(_dataset_queries(place), place.name)
    if is_table(place):
        return _unique_queries(map(_query, read_sheet(place, OF_QUERIES)), place)
    if _is_tsv(place):
        return _unique_queries(_tsv_queries(place), place)
    if _is_markup(place):
        return _unique_queries(((line, Query(*topic)) for line, *topic in read_topics(place)), place)
    return _unique_queries(map(_query, read_objects(place)), place)


def write_queries(path: str | Path, queries: Iterable[Query]) -> int:
    """Write `queries.jsonl`; says how many queries."""
    return write_objects(
        path,
        ({"_id": q.query_id, "text": q.text, **({"kind": q.kind} if q.kind else {})} for q in queries),
    )


def _unique_queries(numbered: Iterable[tuple[int, Query]], path: str | Path) -> Iterator[Query]:
    unique = Unique(path, "query id")
    for line, query in at_least_one(numbered, path, "queries"):
        unique.add(query.query_id, line)
        yield query


def _query(record: JsonLine) -> tuple[int, Query]:
    keys = {field: key_of(record.fields, names) for field, names in OF_QUERIES.items()}
    query_id, kind = record.identifier(keys["_id"]), record.string("kind", default="")
    return record.line, Query(query_id, record.words(keys["text"]), kind)


def _tsv_queries(path: Location) -> Iterator[tuple[int, Query]]:
    for line, cells in read_table(path, {2: ("_id", "text")}, OF_QUERIES):
        if not cells["text"].strip():
            raise InputError(path, "the query is empty; fill it in or remove the line", line=line)
        yield line, Query(cells["_id"], cells["text"])


def _dataset_queries(dataset: Dataset) -> Iterator[tuple[int, Query]]:
    for number, row in enumerate(dataset.rows("queries"), start=1):
        yield number, Query(str(row.query_id), row.default_text())


# -- judgements ----------------------------------------------------------------------------------


def read_judgements(
    source: str | Path, split: str = "test", *, document_ids: Container[str] | None = None
) -> Judgements:
    """How relevant documents are to queries: query_id -> document_id -> grade.

    `split` chooses among the files of a BEIR folder and means nothing for a single file. Where the ids of
    the corpus are given, a judgement of any other document is an error.
    """
    place = split_file(bundled(source), split) if _is_folder(source) else locate(source, ())
    name = place.name if isinstance(place, Dataset) else place
    rows = _dataset_judgements(place.split(split)) if isinstance(place, Dataset) else read_qrels(place)
    unique = Unique(name, "judgement of query and document")
    judgements: Judgements = {}
    for line, query_id, document_id, grade in at_least_one(rows, name, "judgements"):
        if document_ids is not None and document_id not in document_ids:
            raise _unknown(name, document_id, line)
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
    return write_columns(path, chain([HEADER], rows), "\t") - 1


def _dataset_judgements(dataset: Dataset) -> Iterator[tuple[int, str, str, int]]:
    for number, row in enumerate(dataset.rows("qrels"), start=1):
        yield number, str(row.query_id), str(row.doc_id), int(row.relevance)


# -- candidates ----------------------------------------------------------------------------------


def read_candidates(
    source: str | Path, *, document_ids: Container[str] | None = None
) -> Iterator[Candidates]:
    """Every query with its scored documents, from `candidates.jsonl`.

    Where the ids of the corpus are given, any other id is an error unless the file holds the texts itself.
    """
    place = locate(source, CANDIDATE_FILES) if _is_folder(source) else reachable(source)
    assert not isinstance(place, Dataset)
    return _read_candidates(place, document_ids)


def write_candidates(path: str | Path, candidates: Iterable[Candidates]) -> int:
    """Write `candidates.jsonl`; says how many queries."""
    return write_objects(path, map(_candidates_fields, candidates))


def _read_candidates(path: Location, document_ids: Container[str] | None) -> Iterator[Candidates]:
    unique = Unique(path, "query id")
    for record in at_least_one(read_objects(path), path, "candidates"):
        candidates = _candidates(record)
        unique.add(candidates.query_id, record.line)
        for document_id in candidates.document_ids:
            if document_ids is not None and not candidates.texts and document_id not in document_ids:
                raise _unknown(path, document_id, record.line)
        yield candidates


def _candidates(record: JsonLine) -> Candidates:
    query_id = record.identifier(key_of(record.fields, CANDIDATE_QUERIES))
    query = record.words(key_of(record.fields, ("query", "text")))
    documents, scores = record.identifiers("doc_ids"), record.numbers("teacher_scores")
    texts = record.strings("doc_texts")
    if not documents:
        raise record.error('"doc_ids" is empty; give the query a document or remove the line')
    for key, values in (("teacher_scores", scores), ("doc_texts", texts or documents)):
        if len(values) != len(documents):
            counts = f'{len(documents)} "doc_ids" but {len(values)} "{key}"'
            raise record.error(f"{counts}; give every document one")
    if len(set(documents)) < len(documents):
        double = next(document for document in documents if documents.count(document) > 1)
        raise record.error(f'"doc_ids" holds "{double}" twice; remove one of them')
    return Candidates(query_id, query, documents, scores, texts)


def _candidates_fields(candidates: Candidates) -> dict[str, object]:
    fields: dict[str, object] = {
        "query_id": candidates.query_id,
        "query": candidates.query,
        "doc_ids": candidates.document_ids,
        "teacher_scores": candidates.teacher_scores,
    }
    return {**fields, "doc_texts": candidates.texts} if candidates.texts else fields


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


def _is_folder(source: str | Path) -> bool:
    """Whether a source is a folder in the BEIR layout, which an address of a single file never is."""
    place = place_of(source)
    return not isinstance(place, Address) and bundled(place).is_dir()


def _is_tsv(path: Location) -> bool:
    return bare(path.name).endswith(".tsv") or _first_character(path) not in "{<["


def _is_markup(path: Location) -> bool:
    return not bare(path.name).endswith(".jsonl") and _first_character(path) == "<"


def _first_character(path: Location) -> str:
    """What a file without a telling name starts with: a brace (JSON), a bracket (topics) or else (TSV)."""
    if bare(path.name).endswith(".jsonl"):
        return "{"
    return next((text.lstrip()[0] for _, text in read_lines(path) if text.strip()), "{")


def _unknown(path: str | Path, document_id: str, line: int) -> InputError:
    problem = f'document "{document_id}" is not in the corpus; remove it or choose the corpus that has it'
    return InputError(path, problem, line=line)
