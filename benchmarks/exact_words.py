"""Exact words in a base model's vectors, with nothing taught: `python -m benchmarks.exact_words --data DIR`.

DIR holds the four collections and MS MARCO's pool. Each collection's words are put into the base model by its documents
alone. nDCG@10 of its test queries, and of MS MARCO's with the same statistics, for the base model, for words alone
(BM25 with titles and stems), and for both by share of words and by the number of weights that documents keep; beside
each the entries of a document. No setting was chosen here by SciFact, MedQuAD or MS MARCO.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.tables import CONTROL, MEASURE, Results, line
from sparse_adapt.model.exact.words import FIRST_WORD
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import tokenize
from sparse_adapt.pipeline.plan import BASE_MODEL
from sparse_adapt.pipeline.words import HEAVIEST, SHARE, WordOptions, exact_words, idf_table
from sparse_adapt.retrieve.columns import split
from sparse_adapt.retrieve.evaluate import Collection, evaluate_vectors, read_collection
from sparse_adapt.retrieve.hybrid import rescaled
from sparse_adapt.selection.retention import EncodedCollection, encode_unscaled, with_exact_words

COLLECTIONS = ("scifact", "cranfield", "cacm", "medquad")
BY_TABLE = "idf queries + words"
SHARES, KEPT = (0.25, 0.5, 0.75, 1.0), (None, 96, 64, 48, 32)


def main() -> None:
    """Measure, print a table, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default=BASE_MODEL)
    asked, results = parser.parse_args(), Results("exact-words")
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
