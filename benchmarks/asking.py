"""One query, from words to weights: by the model, by the model's table, by raw `tokenizers` and a dictionary.

    python -m benchmarks.asking --data DIR [--threads 1] [--clock processor]

The queries of medquad and splade-tiny. The table is that of inverse document frequencies, since all tables take the
same time; tokenizer and dictionary are the files that `export opensearch` writes. Prints microseconds a query.
"""

import json
import tempfile
from pathlib import Path

import torch
from tokenizers import Tokenizer

from benchmarks.measure import Work, options, take_turns
from sparse_adapt.collection.readers import read_documents, read_queries
from sparse_adapt.engines.writing import export_corpus
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.words import idf_table
from sparse_adapt.retrieve.encode import encode

MODEL, DOCUMENTS = "splade-tiny", 64
BY_MODEL, BY_TABLE, RAW = "by the model", "by its table", "raw tokenizers and a dictionary"


def contestants(data: Path, folder: Path) -> tuple[dict[str, Work], int]:
    """Each way of weighing all queries, one query at a time, and how many queries there are."""
    queries = [query.text for query in read_queries(data / "medquad")]
    documents = list(read_documents(data / "medquad"))[:DOCUMENTS]
    whole, by_table = SparseEncoder.load(MODEL), SparseEncoder.load(MODEL)
    by_table.query_side = idf_table(by_table, lambda: iter(documents))
    export_corpus("opensearch", by_table, lambda: documents, Place(folder / "export"))
    table = json.loads((folder / "export" / "query" / "idf.json").read_text(encoding="utf-8"))
    tokenizer = Tokenizer.from_file(str(folder / "export" / "query" / "tokenizer.json"))

    def raw(text: str) -> dict[str, float]:
        return {each: table[each] for each in tokenizer.encode(text, add_special_tokens=False).tokens}

    return {
        BY_MODEL: lambda: [encode(whole, [text], "query") for text in queries],
        BY_TABLE: lambda: [encode(by_table, [text], "query") for text in queries],
        RAW: lambda: [raw(text) for text in queries],
    }, len(queries)


def main() -> None:
    """Measure and print."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        ways, count = contestants(arguments.data, Path(folder))
        times = take_turns(ways, arguments.turns, arguments.clock)
    for name in ways:
        ratio = times.ratio(name, BY_MODEL)
        print(
            f"{name}: {1e6 * times.median(name) / count:,.0f} microseconds a query, 1/{ratio:.1f} of the model's"
        )


if __name__ == "__main__":
    main()
