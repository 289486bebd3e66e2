"""Exact words in a base model's vectors, with nothing taught: `python -m benchmarks.exact_words --data DIR`.

DIR holds the four collections and MS MARCO's pool. Each collection's words are put into the base model by its documents
alone. nDCG@10 of its test queries, and of MS MARCO's with the same statistics, for the base model, for words alone
(BM25 with titles and stems), and for both by share of words and by the number of weights that documents keep; beside
each the entries of a document. No setting was chosen here by SciFact, MedQuAD or MS MARCO.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from benchmarks.measure import take_turns
from benchmarks.tables import CONTROL, MEASURE, Results, line
from sparse_adapt.model.exact.defaults import HEAVIEST, SHARE
from sparse_adapt.model.exact.words import FIRST_WORD
from sparse_adapt.model.forms import heaviest
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import tokenize
from sparse_adapt.pipeline.plan import BASE_MODEL
from sparse_adapt.pipeline.words import WordOptions, exact_words, idf_table
from sparse_adapt.retrieve.columns import beside, split
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, evaluate_vectors, read_collection
from sparse_adapt.retrieve.hybrid import document_vectors, rescaled
from sparse_adapt.retrieve.search import Searcher
from sparse_adapt.selection.retention import EncodedCollection, encode_unscaled, with_exact_words

T = TypeVar("T")
COLLECTIONS = ("scifact", "cranfield", "cacm", "medquad")
BY_TABLE = "idf queries + words"
SHARES, KEPT = (0.25, 0.5, 0.75, 1.0), (None, 96, 64, 48, 32)


def main() -> None:
    """Measure, print a table, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default=BASE_MODEL)
    parser.add_argument("--speed", action="store_true", help="time and latency on SciFact instead, as ratios")
    asked, results = parser.parse_args(), Results("exact-words")
    if asked.speed:
        print("\n".join(speed(asked.data, asked.model)))
        return
    results.rows = []
    for row in measure(asked.data, asked.model):
        results.add(row)
    results.conclude("\n".join([*table(results.rows), ""]))


def measure(data: Path, name: str) -> Iterator[dict[str, Any]]:
    """A row for each collection and way, with MS MARCO's nDCG@10 beside its own."""
    model = SparseEncoder.load(name)
    control = encode_unscaled(model, read_collection(data / CONTROL, "test"))
    for collection in COLLECTIONS:
        encoded = encode_unscaled(model, read_collection(data / collection, "test"))
        documents = encoded.collection.documents
        model.words = exact_words(model, documents.__iter__, WordOptions())
        words, scale = model.words, model.words.settings.scale
        ways: list[tuple[str, float, int | None]] = [("base", 0.0, None), ("words alone", 1.0, 0)]
        ways += [("base + words", share, None) for share in SHARES]
        ways += [("base + words", share, kept) for share in (SHARE, 1.0) for kept in KEPT[1:]]
        for way, share, kept in ways:
            model.words = words.with_settings(share=share)
            found = [reached(model, each, way, kept) for each in (encoded, control)]
            row = {"collection": collection, "way": way, "share": share, "kept": kept, "scale": scale}
            yield {**row, MEASURE: found[0][0], "entries": found[0][1], "control": found[1][0]}
            if (share, kept) == (1.0, HEAVIEST):
                yield {**row, "way": BY_TABLE, **of_table(model, encoded, control)}
        model.words = model.query_side = None


def speed(data: Path, name: str) -> Iterator[str]:
    """What words cost beside the base model, each in one run: statistics, encoding, and exact search of each query."""
    model, collection = SparseEncoder.load(name), read_collection(data / COLLECTIONS[0], "test")
    documents, queries = collection.documents, [query.text for query in collection.queries]
    encode(model, [documents[0].full_text], "document")  # compiles
    plain, base = _timed(lambda: document_vectors(model, documents))
    words, counting = _timed(lambda: exact_words(model, documents.__iter__, WordOptions()))
    _, adding = _timed(lambda: words.documents(documents))
    whole = beside(heaviest(plain, HEAVIEST), words.documents(documents), FIRST_WORD)
    asked = encode(model, queries, "query")
    hybrid = beside(asked, words.queries(queries, model.tokenizer), FIRST_WORD)
    searchers = {"base": (Searcher(plain), asked), "words": (Searcher(whole), hybrid)}
    contestants = {key: partial(searcher.top_k, rows, 10) for key, (searcher, rows) in searchers.items()}
    turns = take_turns(contestants, 5, "processor")
    yield f"encoding {len(documents):,} documents {base:.1f} s; statistics and scale {counting:.1f} s"
    yield f"words of the documents {adding:.1f} s: encoding at {base / (base + adding):.2f} of its speed"
    seconds = f"{turns.median('base'):.3f} s, with words {turns.median('words'):.3f} s"
    yield f"exact search of {len(queries):,} queries {seconds}: {turns.ratio('base', 'words'):.2f} times"


def _timed(do: Callable[[], T]) -> tuple[T, float]:
    """What something gives, and the seconds of the processor that it takes."""
    started = time.process_time()
    return do(), time.process_time() - started


def reached(
    model: SparseEncoder, encoded: EncodedCollection, way: str, kept: int | None
) -> tuple[float, float]:
    """nDCG@10 and the entries of a document, of vectors without words that are there already."""
    if way == "base":
        return _measured(encoded)
    whole = with_exact_words(model, encoded)
    if way == "words alone":
        queries, documents = (split(each, FIRST_WORD)[1] for each in (whole.queries, whole.documents))
        return _measured(whole._replace(queries=queries, documents=documents))
    return _measured(whole._replace(documents=rescaled(whole.documents, None, kept)))


def of_table(
    model: SparseEncoder, encoded: EncodedCollection, control: EncodedCollection
) -> dict[str, float]:
    """The same where a table of inverse document frequencies weighs queries, with exact words."""
    table = idf_table(model, lambda: encoded.collection.documents)
    found = []
    for each in (encoded, control):
        texts = [query.text for query in each.collection.queries]
        ids = tokenize(model.tokenizer, texts, table.longest, special=False)
        found.append(reached(model, each._replace(queries=table.vectors(ids)), BY_TABLE, HEAVIEST))
    return {MEASURE: found[0][0], "entries": found[0][1], "control": found[1][0]}


def _measured(encoded: EncodedCollection) -> tuple[float, float]:
    collection: Collection = encoded.collection
    result = evaluate_vectors(encoded.queries, encoded.documents, collection)
    return result.means()[MEASURE], result.means()["nonzero_document"]


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Each way by collection, the mean of all, MS MARCO's mean, and the share of the base model's entries."""
    yield line(["way", "share", "weights kept", *COLLECTIONS, "mean", "MS MARCO, mean", "entries"])
    base = {row["collection"]: row for row in rows if row["way"] == "base"}
    for way in dict.fromkeys((row["way"], row["share"], row["kept"]) for row in rows):
        of = [row for row in rows if (row["way"], row["share"], row["kept"]) == way]
        shares = [row["entries"] / base[row["collection"]]["entries"] for row in of]
        values = [row[MEASURE] for row in of]
        controls = [row["control"] for row in of]
        mark = " (default)" if way == ("base + words", SHARE, HEAVIEST) else ""
        yield line(
            [
                f"{way[0]}{mark}",
                f"{way[1]:g}",
                "all" if way[2] is None else str(way[2]),
                *(f"{value:.3f}" for value in values),
                f"{sum(values) / len(values):.3f}",
                f"{sum(controls) / len(controls):.3f}",
                f"{sum(shares) / len(shares):.2f}",
            ]
        )


if __name__ == "__main__":
    main()
