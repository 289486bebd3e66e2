"""Exact words in a base model's vectors, with nothing taught: `python -m benchmarks.exact_words --data DIR`.

DIR holds the four collections and MS MARCO's pool. Each collection's words are put into the base model by its documents
alone. nDCG@10 of its test queries, and of MS MARCO's with the same statistics, for the base model, for words alone
(BM25 with titles and stems), and for both by share of words and by the number of weights that documents keep, and with
tokens that count all alike; beside each the entries of a document. No setting was chosen here by SciFact, MedQuAD or
MS MARCO. Draws docs/images/exact-words.svg. With --questions: what each share and number of weights changes on the
package's general questions, without a judgement of the collection, and by how much chance could.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple, TypeVar

import numpy as np

from benchmarks.drawing import Drawing
from benchmarks.measure import take_turns
from benchmarks.tables import CONTROL, MEASURE, Results, line
from sparse_adapt.collection.readers import Document
from sparse_adapt.collection.streams import sample
from sparse_adapt.model.exact.defaults import HEAVIEST, SHARE
from sparse_adapt.model.exact.words import FIRST_WORD, ExactWords
from sparse_adapt.model.forms import heaviest
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import tokenize
from sparse_adapt.pipeline.plan import BASE_MODEL
from sparse_adapt.pipeline.words import SAMPLE, SEED, WordOptions, add_exact_words, idf_table, scale_of
from sparse_adapt.retrieve.columns import beside, split
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, evaluate_vectors, read_collection
from sparse_adapt.retrieve.hybrid import document_vectors
from sparse_adapt.retrieve.search import Searcher
from sparse_adapt.retrieve.significance import Values, interval
from sparse_adapt.selection.models import may_forget
from sparse_adapt.selection.questions import general_collection
from sparse_adapt.selection.retention import EncodedCollection, encode_unscaled, with_exact_words

T = TypeVar("T")
COLLECTIONS = ("scifact", "cranfield", "cacm", "medquad")
BY_TABLE = "idf queries + words"
ALIKE = "base + words, tokens alike"  # without token scales
DRAWN = Path(__file__).parents[1] / "docs" / "images" / "exact-words.svg"
LEFT, TOP, SIDE, GAP = 60, 78, 300, 110  # of a panel; between two
ACROSS = (0.3, 1.5)  # entries of a document, beside the base model's
SHARES, KEPT = (0.25, 0.5, 0.7, 1.0), (None, 96, 64, 48, 32)
ASKED = (
    *(("base + words", SHARE, kept) for kept in KEPT[:-1]),
    *(("base + words", share, HEAVIEST) for share in (0.5, 1.0)),
    *((ALIKE, share, HEAVIEST) for share in SHARES[1:]),
)  # of the package's questions


def main() -> None:
    """Measure, print a table, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default=BASE_MODEL)
    parser.add_argument("--questions", action="store_true", help="the package's general questions instead")
    parser.add_argument("--speed", action="store_true", help="time and latency on SciFact instead, as ratios")
    asked, results = parser.parse_args(), Results("exact-words")
    if asked.speed:
        print("\n".join(speed(asked.data, asked.model)))
        return
    if asked.questions:
        results = Results("exact-words-questions")
        for row in questions(asked.data, asked.model, results):
            results.add(row)
        results.conclude("\n".join([*table_of_questions(results.rows), ""]))
        return
    results.rows = []
    for row in measure(asked.data, asked.model):
        results.add(row)
    results.conclude("\n".join([*table(results.rows), ""]))
    DRAWN.write_text(drawing(results.rows))


def measure(data: Path, name: str) -> Iterator[dict[str, Any]]:
    """A row for each collection and way, with MS MARCO's nDCG@10 beside its own."""
    model = SparseEncoder.load(name)
    control = encode_unscaled(model, read_collection(data / CONTROL, "test"))
    for collection in COLLECTIONS:
        encoded = encode_unscaled(model, read_collection(data / collection, "test"))
        documents = encoded.collection.documents
        words = add_exact_words(model, documents.__iter__, WordOptions())
        scales, alike = model.token_scales, with_tokens_alike(model, words, documents)
        ways: list[tuple[str, float, int | None]] = [("base", 0.0, None), ("words alone", 1.0, 0)]
        ways += [("base + words", share, None) for share in SHARES]
        ways += [("base + words", share, kept) for share in (SHARE, 1.0) for kept in KEPT[1:]]
        ways += [(ALIKE, share, HEAVIEST) for share in SHARES[1:]]
        for way, share, kept in ways:
            of_way, model.token_scales = (alike, None) if way == ALIKE else (words, scales)
            model.words = of_way.with_settings(share=share, heaviest=kept)
            found = [reached(model, each, way) for each in (encoded, control)]
            row = {"collection": collection, "way": way, "share": share, "kept": kept}
            row["scale"] = of_way.settings.scale
            yield {**row, MEASURE: found[0][0], "entries": found[0][1], "control": found[1][0]}
            if (way, share) == (ALIKE, 1.0):
                yield {**row, "way": BY_TABLE, **of_table(model, encoded, control)}
        model.words = model.token_scales = model.query_side = None


def with_tokens_alike(model: SparseEncoder, words: ExactWords, documents: Sequence[Document]) -> ExactWords:
    """The same exact words scaled for a model without token scales, which is what `model` is left as."""
    model.token_scales = model.words = None
    some = sample(documents, SAMPLE, SEED)
    weights = encode(model, [each.full_text for each in some], "document")
    equal = words.with_settings(share=1.0, scale=1.0, pieces=1.0)
    return words.with_settings(scale=scale_of(model, equal, some, weights))


def questions(data: Path, name: str, results: Results) -> Iterator[dict[str, Any]]:
    """Points that general questions gain over the base model with their 95 % interval, all and each kind.

    The package's questions and passages, with the statistics of each collection. What `results` hold isn't measured.
    """
    model = SparseEncoder.load(name)
    plain = encode_unscaled(model, general_collection())
    base = evaluate_vectors(plain.queries, plain.documents, plain.collection)
    kinds = np.array([query.kind for query in base.queries])
    for collection in COLLECTIONS:
        documents = read_collection(data / collection, "test").documents
        words = add_exact_words(model, documents.__iter__, WordOptions())
        scales, alike = model.token_scales, with_tokens_alike(model, words, documents)
        for way, share, kept in ASKED:
            row = {"collection": collection, "way": way, "share": share, "kept": kept}
            if results.holds(row):
                continue
            of_way, model.token_scales = (alike, None) if way == ALIKE else (words, scales)
            model.words = of_way.with_settings(share=share, heaviest=kept)
            whole = with_exact_words(model, plain).with_scales(model, model.token_scales)
            found = evaluate_vectors(whole.queries, whole.documents, whole.collection)
            gap = 100 * (found.values[MEASURE] - base.values[MEASURE])
            chosen = {"all": kinds != "", **{kind: kinds == kind for kind in base.kinds}}
            gains = {kind: _points(gap[rows]) for kind, rows in chosen.items()}
            yield {**row, "forgets": may_forget(found, base), **gains}
        model.words = model.token_scales = None


def table_of_questions(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Points of all questions and of searches by way and statistics; in brackets what is refused."""
    yield line(["way", "share", "weights kept", *COLLECTIONS])
    cells = {(row["way"], row["share"], row["kept"], row["collection"]): _cell(row) for row in rows}
    for way, share, kept in ASKED:
        found = (cells.get((way, share, kept, collection), "") for collection in COLLECTIONS)
        yield line([way, f"{share:g}", "all" if kept is None else str(kept), *found])


def _points(gap: Values) -> list[float]:
    """The mean and its 95 % interval."""
    found = interval(gap)
    return [round(each, 2) for each in (found.value, found.low, found.high)]


def _cell(row: dict[str, Any]) -> str:
    gains = f"{row['all'][0]:+.1f}, {row['search'][0]:+.1f}"
    return f"({gains})" if row["forgets"] else gains


def speed(data: Path, name: str) -> Iterator[str]:
    """What words cost beside the base model, each in one run: statistics, encoding, and exact search of each query."""
    model, collection = SparseEncoder.load(name), read_collection(data / COLLECTIONS[0], "test")
    documents, queries = collection.documents, [query.text for query in collection.queries]
    encode(model, [documents[0].full_text], "document")  # compiles
    plain, base = _timed(lambda: document_vectors(model, documents))
    words, counting = _timed(lambda: add_exact_words(model, documents.__iter__, WordOptions()))
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


def reached(model: SparseEncoder, encoded: EncodedCollection, way: str) -> tuple[float, float]:
    """nDCG@10 and the entries of a document, of vectors without words and token scales that are there already."""
    if way == "base":
        return _measured(encoded)
    whole = with_exact_words(model, encoded).with_scales(model, model.token_scales)
    if way == "words alone":
        queries, documents = (split(each, FIRST_WORD)[1] for each in (whole.queries, whole.documents))
        return _measured(whole._replace(queries=queries, documents=documents))
    return _measured(whole)


def of_table(
    model: SparseEncoder, encoded: EncodedCollection, control: EncodedCollection
) -> dict[str, float]:
    """The same where a table of inverse document frequencies weighs queries, with exact words."""
    table = idf_table(model, lambda: encoded.collection.documents)
    found = []
    for each in (encoded, control):
        texts = [query.text for query in each.collection.queries]
        ids = tokenize(model.tokenizer, texts, table.longest, special=False)
        found.append(reached(model, each._replace(queries=table.vectors(ids)), BY_TABLE))
    return {MEASURE: found[0][0], "entries": found[0][1], "control": found[1][0]}


def _measured(encoded: EncodedCollection) -> tuple[float, float]:
    collection: Collection = encoded.collection
    result = evaluate_vectors(encoded.queries, encoded.documents, collection)
    return result.means()[MEASURE], result.means()["nonzero_document"]


class Point(NamedTuple):
    """One way in the mean of all collections: entries beside the base model's, both measures, and each collection's."""

    way: str
    share: float
    kept: int | None
    entries: float
    mean: float
    control: float
    each: tuple[float, ...]


def points(rows: Sequence[dict[str, Any]]) -> Iterator[Point]:
    """Every way in the order in which it was measured."""
    base = {row["collection"]: row for row in rows if row["way"] == "base"}
    for way in dict.fromkeys((row["way"], row["share"], row["kept"]) for row in rows):
        of = [row for row in rows if (row["way"], row["share"], row["kept"]) == way]
        entries = fmean(row["entries"] / base[row["collection"]]["entries"] for row in of)
        values = tuple(row[MEASURE] for row in of)
        yield Point(*way, entries, fmean(values), fmean(row["control"] for row in of), values)


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Each way by collection, the mean of all, MS MARCO's mean, and the share of the base model's entries."""
    yield line(["way", "share", "weights kept", *COLLECTIONS, "mean", "MS MARCO, mean", "entries"])
    for point in points(rows):
        mark = " (default)" if point[:3] == ("base + words", SHARE, HEAVIEST) else ""
        yield line(
            [
                f"{point.way}{mark}",
                f"{point.share:g}",
                "all" if point.kept is None else str(point.kept),
                *(f"{value:.3f}" for value in (*point.each, point.mean, point.control)),
                f"{point.entries:.2f}",
            ]
        )


def drawing(rows: Sequence[dict[str, Any]]) -> str:
    """Quality against entries of a document, in the mean of the collections and on MS MARCO; a line for each share."""
    measured = list(points(rows))
    lines = {
        f"share {share:g}": [each for each in measured if each[:2] == ("base + words", share)]
        for share in (SHARE, 1.0)
    }
    lines |= {"base": measured[:1], "words": measured[1:2]}
    description = (
        "nDCG@10 by entries of a document: base, words alone, and both by the weights that documents keep"
    )
    picture = Drawing(2 * (LEFT + SIDE) + GAP, TOP + SIDE + 56, description, "\n".join(table(rows)))
    _panel(picture, LEFT, "The four collections, in the mean", (0.44, 0.56), lines, lambda each: each.mean)
    _panel(
        picture, LEFT + SIDE + GAP, "MS MARCO with their words", (0.5, 0.74), lines, lambda each: each.control
    )
    return picture.finished()


def _panel(
    picture: Drawing,
    left: float,
    title: str,
    span: tuple[float, float],
    lines: Mapping[str, Sequence[Point]],
    measure: Callable[[Point], float],
) -> None:
    """One measure by entries; a point of a line says how many weights are kept."""

    def place(point: Point) -> tuple[float, float]:
        x = (point.entries - ACROSS[0]) / (ACROSS[1] - ACROSS[0])
        y = (measure(point) - span[0]) / (span[1] - span[0])
        return left + SIDE * x, TOP + SIDE * (1 - y)

    picture.text(left, 28, title, "head")
    picture.text(left, 50, "nDCG@10", "small")
    picture.line(left, TOP + SIDE, left + SIDE, TOP + SIDE)
    picture.line(left, TOP, left, TOP + SIDE)
    for number in range(5):
        value, entries = (low + (high - low) * number / 4 for low, high in (span, ACROSS))
        picture.text(left - 8, TOP + SIDE * (1 - number / 4) + 4, f"{value:.2f}", "small muted", "end")
        picture.text(left + SIDE * number / 4, TOP + SIDE + 20, f"{entries:.2f}", "small muted", "middle")
    picture.text(
        left + SIDE / 2, TOP + SIDE + 42, "entries of a document, beside the base's", "small", "middle"
    )
    highest = max(lines, key=lambda name: measure(lines[name][0]) * (len(lines[name]) > 1))
    for name, found in lines.items():
        ordered = sorted(found, key=lambda each: each.entries)
        places = [place(each) for each in ordered]
        for one, other in pairwise(places):
            picture.line(*one, *other)
        for each, (x, y) in zip(ordered, places, strict=True):
            picture.dot(x, y)
            if len(ordered) == 1:
                picture.text(x + 9, y + 4, name, "small")
                continue
            label = "all" if each.kept is None else str(each.kept)
            picture.text(x, y - 9 if name == highest else y + 18, label, "small", "middle")
        if len(ordered) > 1:
            picture.text(
                places[-1][0] - 14,
                places[-1][1] - 9 if name == highest else places[-1][1] + 18,
                name,
                "small muted",
                "end",
            )


if __name__ == "__main__":
    main()
