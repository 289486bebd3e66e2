"""Writers of exports: entries and documents a second, beside the encoder that feeds them.

    python -m benchmarks.exporting --data DIR

The documents are cranfield, encoded once and read from memory, so that a writer is timed alone, fsync and all. A writer
must never be what an export waits for: `ratio` is how many times as fast as the encoder it is.
"""

import json
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from benchmarks.measure import options, take_turns
from benchmarks.tables import RESULTS, line
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.errors import MissingExtraError
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.engines.formats import engines, require
from sparse_adapt.plugins.engines.layout import ExportSource
from sparse_adapt.plugins.engines.writing import write_export
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.vectors.folder import EncodedBatch, Vectors
from sparse_adapt.retrieve.vectors.manifest import stamp_of_model, token_names

MODEL, COLLECTION = "splade-tiny", "cranfield"
ENCODER = "encoder"
COLUMNS = ("format", "time", "documents a second", "entries a second", "times the encoder")

Row = dict[str, object]


def writers(vectors: Vectors, model: SparseEncoder, folder: Path) -> dict[str, Callable[[], object]]:
    """Each format that holds vectors and whose package is there, ready to write the same blocks."""
    ready: dict[str, Callable[[], object]] = {}
    for row in engines():
        if row.holds == "encoder":
            continue
        try:
            require(row.to_write)
        except MissingExtraError as error:
            print(error, file=sys.stderr)
            continue
        source = ExportSource(vectors, encoder=model)
        place = Place(folder / row.name, overwrite=True)
        ready[row.name] = partial(write_export, row.name, source, place)
    return ready


def measure(data: Path, turns: int, clock: str, documents: int | None = None) -> list[Row]:
    """A row a format, the encoder first."""
    model = SparseEncoder.load(MODEL)
    texts = list(read_documents(data / COLLECTION))[:documents]
    encoded = encode(model, [text.full_text for text in texts], "document")
    block = EncodedBatch([text.document_id for text in texts], encoded)
    vectors = Vectors(stamp_of_model(model, MODEL), token_names(model), [block])
    encoding = take_turns(
        {ENCODER: lambda: encode(model, [text.full_text for text in texts], "document")}, 1, clock, 0
    )
    with TemporaryDirectory() as folder:
        times = take_turns(writers(vectors, model, Path(folder)), turns, clock)
    seconds = {ENCODER: encoding.median(ENCODER)} | {name: times.median(name) for name in times.seconds}
    return [
        {
            "format": name,
            "seconds": each,
            "documents_a_second": len(texts) / each,
            "entries_a_second": encoded.nnz / each,
            "ratio": seconds[ENCODER] / each,
        }
        for name, each in seconds.items()
    ]


def markdown(rows: list[Row]) -> str:
    """The table."""
    lines = [COLUMNS, ("---",) * len(COLUMNS)]
    lines += [
        (
            str(row["format"]),
            f"{row['seconds']:.2f} s",
            f"{row['documents_a_second']:,.0f}",
            f"{row['entries_a_second']:,.0f}",
            f"{row['ratio']:.1f}",
        )
        for row in rows
    ]
    return "\n".join(map(line, lines)) + "\n"


def main() -> None:
    """Measure, print the table, save both."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--documents", type=int, help="at most so many; by default all")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rows = measure(arguments.data, arguments.turns, arguments.clock, arguments.documents)
    RESULTS.mkdir(exist_ok=True)
    how = {"threads": arguments.threads, "clock": arguments.clock, "turns": arguments.turns}
    about = {"model": MODEL, "collection": COLLECTION, "documents": arguments.documents}
    (RESULTS / "exporting.json").write_text(json.dumps({**about, **how, "rows": rows}, indent=2) + "\n")
    (RESULTS / "exporting.md").write_text(markdown(rows))
    print(markdown(rows))


if __name__ == "__main__":
    main()
