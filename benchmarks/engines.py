"""Engines in this process beside exact search: size on disk, time to build, latency of a query.

    sparse-adapt encode --model splade-tiny --corpus DIR/scifact -o VECTORS
    python -m benchmarks.engines --vectors VECTORS --queries DIR/scifact [--documents N] [--model MODEL]

The documents are the vectors themselves, or N of them, repeated with the noise of `benchmarks.searching`. Each engine
loads an export of its own; a query is put alone, and the fastest of its turns counts, since other programs only slow
it down. What a build takes is processor time, that of an engine's own processes included. The size is that of the files
an engine keeps, beyond those for one document and without write-ahead logs; an engine without files works in memory.
Prints the tables, and draws docs/images/engines.svg. With another model, such as one with exact words, figures lie
beside them under its folder's name, and nothing is drawn.
"""

import math
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import psutil
import torch

from benchmarks.drawing import Drawing
from benchmarks.measure import options
from benchmarks.searching import repeated
from benchmarks.tables import Results, line
from sparse_adapt.collection.readers import read_queries
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines.formats import engines, open_engine
from sparse_adapt.plugins.engines.layout import ExportSource
from sparse_adapt.plugins.engines.writing import write_export
from sparse_adapt.retrieve.search import Searcher
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors, join_blocks, open_vectors
from sparse_adapt.retrieve.vectors.shards import encode_queries

MODEL, EXACT = "splade-tiny", "exact"
TOPS, MOST_QUERIES = (1, 10, 100), 50
SAME_LUCENE = ("opensearch-seismic", "elasticsearch")  # which `opensearch` stands for
FORMATS = [
    row.name for row in engines() if row.holds == "vectors" and row.in_process and row.name not in SAME_LUCENE
]
COLUMNS = ("engine", "export", "index", "build", *(f"top {k}" for k in TOPS))
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "engines.svg"
Search = Callable[[EncodedBatch, int], object]


def bytes_in(folder: Path) -> int:
    """The bytes of a folder's files, without write-ahead logs."""
    files = (path for path in folder.rglob("*") if path.is_file() and "pg_wal" not in path.parts)
    return sum(path.stat().st_size for path in files)


def processor_seconds(folder: Path) -> float:
    """What this process has worked, those that it waited for, and those that run in a folder."""
    servers = 0.0
    for process in psutil.process_iter(["cwd", "cpu_times"]):
        if (process.info["cwd"] or "").startswith(str(folder)):
            servers += sum(process.info["cpu_times"][:2])
    return sum(os.times()[:4]) + servers


@contextmanager
def opened(name: str, source: ExportSource) -> Iterator[dict[str, Any]]:
    """An engine with an export in it: how it searches, and what that took."""
    with tempfile.TemporaryDirectory() as folder:
        export = write_export(name, source, Place(Path(folder) / "export"))
        files = Path(folder) / "kept"
        files.mkdir()
        before, tempfile.tempdir = tempfile.tempdir, str(files)
        try:
            start = processor_seconds(files)
            with open_engine(name, export.path) as engine:
                seconds, size = processor_seconds(files) - start, bytes_in(files)
                row = {
                    "engine": engine.name,
                    "export": bytes_in(export.path),
                    "index": size,
                    "build": seconds,
                }
                yield {**row, "search": engine.search_all}
        finally:
            tempfile.tempdir = before


def latencies(search: Search, queries: EncodedBatch, turns: int) -> dict[str, float]:
    """Seconds of a query for each number of results: the fastest of its turns, the median over queries."""
    times = {}
    for k in TOPS:
        fastest = []
        for row, query_id in enumerate(queries.ids):
            query, seconds = EncodedBatch([query_id], queries.vectors[row]), []
            for _ in range(turns):
                start = time.perf_counter()
                search(query, k)
                seconds.append(time.perf_counter() - start)
            fastest.append(min(seconds))
        times[f"top {k}"] = median(fastest)
    return times


def exactly(documents: EncodedBatch, queries: EncodedBatch, turns: int) -> dict[str, Any]:
    """What exact search took."""
    start = time.process_time()
    searcher = Searcher(documents.vectors)
    seconds = time.process_time() - start
    times = latencies(lambda query, k: list(searcher.top_k(query.vectors, k)), queries, turns)
    return {"engine": "exact search", "build": seconds, **times}


def measure(
    vectors: Vectors, queries: EncodedBatch, formats: list[str], turns: int, results: Results
) -> None:
    """An entry for each format that has none yet."""
    documents = join_blocks(vectors.blocks)
    one = EncodedBatch(documents.ids[:1], documents.vectors[:1])
    for name in formats:
        fields = {"format": name, "documents": len(documents.ids)}
        if results.holds(fields):
            continue
        if name == EXACT:
            results.add({**fields, **exactly(documents, queries, turns)})
            continue
        with opened(name, ExportSource(vectors._replace(blocks=[one]))) as engine:
            empty = engine["index"]
        with opened(name, ExportSource(vectors._replace(blocks=[documents]))) as engine:
            search: Search = engine.pop("search")
            entry = {**fields, **engine, "index": max(engine["index"] - empty, 0)}
            results.add({**entry, **latencies(search, queries, turns)})


def in_milliseconds(seconds: float) -> str:
    """A latency with what digits mean something."""
    return f"{1000 * seconds:,.0f} ms" if seconds >= 0.01 else f"{1000 * seconds:.2g} ms"


def page(entries: list[dict[str, Any]]) -> str:
    """A table for each number of documents."""
    parts = []
    for documents in sorted({each["documents"] for each in entries}):
        lines = [
            f"{documents:,} documents",
            "",
            line(COLUMNS),
            line(("---", *("---:",) * (len(COLUMNS) - 1))),
        ]
        for each in entries:
            if each["documents"] == documents:
                sizes = (
                    f"{each[part] / 1e6:,.0f} MB" if each.get(part) else "" for part in ("export", "index")
                )
                times = (in_milliseconds(each[f"top {k}"]) for k in TOPS)
                lines.append(line((str(each["engine"]), *sizes, f"{each['build']:,.1f} s", *times)))
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


LEFT, TOP, ROW, WIDE, RIGHT = 260, 66, 26, 360, 50  # margins, a row, the width of the scale, in pixels
SCALE = (0.0001, 0.001, 0.01, 0.1, 1.0)  # seconds: each step ten times as long


def drawing(entries: list[dict[str, Any]]) -> str:
    """How long a search for ten documents takes, an engine a row: a bar to the smaller index, a dot at the larger."""
    sizes = [each["documents"] for each in entries]
    few, many = min(sizes), max(sizes)
    rows = [each for each in entries if each["documents"] == few]
    larger = {each["format"]: each["top 10"] for each in entries if each["documents"] == many}
    summary = "; ".join(f"{each['engine']} {in_milliseconds(each['top 10'])}" for each in rows)
    picture = Drawing(
        LEFT + WIDE + RIGHT, TOP + ROW * len(rows) + 40, "How long a search for ten documents takes", summary
    )

    def place(seconds: float) -> float:
        return LEFT + WIDE * (math.log10(seconds / SCALE[0])) / (len(SCALE) - 1)

    picture.text(20, 28, "A search for ten documents", "head")
    picture.text(20, 48, f"bar: {few:,} documents, dot: {many:,}", "small muted")
    for number, each in enumerate(rows):
        y = TOP + ROW * number
        picture.text(LEFT - 12, y + 13, str(each["engine"]).split(" (")[0], "small", "end")
        picture.bar(LEFT, y + 2, max(2.0, place(each["top 10"]) - LEFT), ROW - 12, "barm")
        picture.dot(place(larger[each["format"]]), y + 9)
    for seconds in SCALE:
        picture.text(
            place(seconds), TOP + ROW * len(rows) + 20, in_milliseconds(seconds), "small muted", "middle"
        )
    return picture.finished()


def main() -> None:
    """Measure, print the page, save both; entries that are there are kept."""
    parser = options(__doc__)
    parser.add_argument("--vectors", type=Path, required=True)
    parser.add_argument("--queries", type=Path, required=True)
    parser.add_argument("--model", default=MODEL, help="that made the vectors")
    parser.add_argument(
        "--documents", type=int, help="so many, repeated with noise; by default those of the folder"
    )
    parser.add_argument("--formats", nargs="+", default=[EXACT, *FORMATS])
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    texts = list(read_queries(arguments.queries))[:MOST_QUERIES]
    vectors, usual = open_vectors(arguments.vectors), arguments.model == MODEL
    queries = vectors.aligned(encode_queries(SparseEncoder.load(arguments.model), texts))
    results = Results("engines" if usual else f"engines-{Path(arguments.model).name}")
    if arguments.documents:
        many = repeated(join_blocks(vectors.blocks).vectors, arguments.documents)
        vectors = vectors._replace(blocks=[EncodedBatch([f"d{row}" for row in range(many.shape[0])], many)])
    measure(vectors, queries, arguments.formats, arguments.turns, results)
    results.conclude(page(results.rows))
    if usual:
        PICTURE.write_text(drawing(results.rows))


if __name__ == "__main__":
    main()
