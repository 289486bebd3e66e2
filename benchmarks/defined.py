"""What definitions bring to exact words with nothing trained: `python -m benchmarks.defined CORPUS[=GLOSSARY] ...`.

Each corpus has queries of the kinds semantic, explicit and control and judgements of them; a corpus of the package
brings its definitions, others name a glossary. Measured: the base model, the same with exact words, and with words and
definitions; two words of documents that contain no defined word; the same queries over a mixed index, with the
package's passages; how many of the package's questions mean a word; milliseconds a query takes by itself.
"""

import argparse
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import vstack

from benchmarks.tables import RESULTS, Results, line
from sparse_adapt.collection.folder import CorpusFolder
from sparse_adapt.collection.glossary import read_dictionary
from sparse_adapt.collection.sources import file_beside
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.defined import defined_by
from sparse_adapt.pipeline.words import WordOptions, add_exact_words
from sparse_adapt.report.progress import no_progress_for
from sparse_adapt.retrieve.evaluate import Collection, evaluate_vectors, read_collection
from sparse_adapt.retrieve.hybrid import document_vectors, query_vectors
from sparse_adapt.selection.questions import SOME, general_collection
from sparse_adapt.selection.retention import known_of

BASE = "splade-tiny"
KINDS = ("semantic", "explicit", "control")
TIMED = 50  # queries


def main() -> None:
    """Measure each corpus, and print a table as Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+", metavar="CORPUS[=GLOSSARY]")
    parser.add_argument("--split", default="test")
    given = parser.parse_args()
    results = Results("defined", RESULTS)
    results.rows = []
    for named in given.corpora:
        corpus, _, glossary = named.partition("=")
        measure(corpus, glossary or str(file_beside(corpus, "dictionary.jsonl")), given.split, results)
    results.conclude(table(results.rows))


def measure(corpus: str, glossary: str, split: str, results: Results) -> None:
    """The three rows of one corpus."""
    folder, model = CorpusFolder(corpus), SparseEncoder.load(BASE)
    asked = read_collection(folder, split)
    definitions = read_dictionary(glossary)
    terms = [each.term.casefold() for each in definitions]
    contains = np.array([any(t in each.full_text.casefold() for t in terms) for each in asked.documents])
    known = known_of(asked.documents, contains)
    assert known is not None, "there are documents about other things"
    name = corpus.rstrip("/").rpartition("/")[2]
    results.add({"corpus": name, "model": "base", **figures(model, asked, known)})
    add_exact_words(model, folder.read, WordOptions())
    results.add({"corpus": name, "model": "words", **figures(model, asked, known)})
    model.words = defined_by(definitions, model, folder.read, no_progress_for)
    results.add({"corpus": name, "model": "definitions", **figures(model, asked, known)})


def figures(model: SparseEncoder, asked: Collection, known: Collection) -> dict[str, Any]:
    """nDCG@10 by kind, alone and in a mixed index, MRR@10 of two words, and the share of questions that mean a word."""
    general = general_collection(most=SOME)
    documents = document_vectors(model, asked.documents)
    texts = [query.text for query in asked.queries]
    queries = query_vectors(model, texts)
    alone = evaluate_vectors(queries, documents, asked)
    whole = Collection((*asked.documents, *general.documents), asked.queries, asked.judgements)
    mixed = evaluate_vectors(
        queries, vstack([documents, document_vectors(model, general.documents)]).tocsr(), whole
    )
    two = query_vectors(model, [query.text for query in known.queries])
    questions = [question.text for question in general.queries]
    meant = [] if model.words is None else model.words.meant_by(questions)
    return {
        **{kind: alone.means(kind)["ndcg@10"] for kind in KINDS},
        "two words": evaluate_vectors(two, documents, known).means()["mrr@10"],
        "mixed": {kind: mixed.means(kind)["ndcg@10"] for kind in KINDS},
        "meaning": sum(map(bool, meant)) / len(questions),
        "milliseconds": milliseconds(model, questions[-TIMED:]),
    }


def milliseconds(model: SparseEncoder, questions: Sequence[str]) -> float:
    """What a query takes by itself, in the mean of some that nobody asked before."""
    query_vectors(model, ["what warms up?"])
    fresh = [f"{question} {number}" for number, question in enumerate(questions)]
    start = time.perf_counter()
    for question in fresh:
        query_vectors(model, [question])
    return 1000.0 * (time.perf_counter() - start) / len(fresh)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A row for each corpus and model, as Markdown."""
    lines = [
        "| corpus | model | semantic | explicit | control | two words | mixed: semantic | control | questions "
        "that mean a word | ms a query |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        cells = [f"{row[kind]:.3f}" for kind in (*KINDS, "two words")]
        cells += [f"{row['mixed'][kind]:.3f}" for kind in ("semantic", "control")]
        cells += [f"{row['meaning']:.1%}", f"{row['milliseconds']:.1f}"]
        lines.append(line([row["corpus"], row["model"], *cells]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
