"""Whether to weigh matches by idf, and what tells so without a label: `python -m benchmarks.weighing --data DIR`.

The base model alone, each match counted by a power of its token's idf. Beside the real test queries stands what a
user without labels can measure on the same documents: synthetic queries of each kind (how well the ranking agrees with
BM25 and a dense model, and how high the document stands that the query was made from) and known items. The power that
three collections would choose is then tried on the fourth, and so is the one that each piece of evidence chooses.
"""

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from scipy.sparse import csr_matrix

from benchmarks.tables import line
from sparse_adapt.collection.readers import Document, Query
from sparse_adapt.model.idf import TokenScales, rows_for_idf, scaled, sqrt_idf
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import BASE_MODEL
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, evaluate_vectors, read_collection
from sparse_adapt.selection.models import held_out_collection
from sparse_adapt.selection.retention import known_items
from sparse_adapt.synthetic.queries import HELD, QuerySettings, make_queries
from sparse_adapt.teachers.candidates import gather
from sparse_adapt.teachers.settings import CandidateSettings
from sparse_adapt.teachers.teacher import make_teacher

POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
COLLECTIONS = ("scifact", "cranfield", "cacm", "medquad")
EVIDENCE = 1_000  # documents that synthetic queries and known items are made from
KNOWN = 500
RESULTS = Path(__file__).with_name("results")

Curve = list[float]  # a figure at each of the powers


def main() -> None:
    """Measure, print both tables, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--collections", nargs="*", default=list(COLLECTIONS))
    arguments = parser.parse_args()
    path = RESULTS / "weighing.json"
    rows = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    for name in arguments.collections:
        if name not in rows:
            rows[name] = measured(arguments.data / name)
            path.write_text(json.dumps(rows) + "\n", encoding="utf-8")
    text = tables(rows)
    path.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)


def measured(folder: Path) -> dict[str, Curve]:
    """Each figure of a collection at each power: the real one under "real", and every piece of evidence."""
    encoder = SparseEncoder.load(BASE_MODEL)
    collection = read_collection(folder)
    vectors = encode(encoder, [each.full_text for each in collection.documents], "document")
    queries = encode(encoder, [query.text for query in collection.queries], "query")
    idf = sqrt_idf(vectors[rows_for_idf(vectors.shape[0])]) ** 2
    curves = {"real": curve(queries, vectors, idf, collection, "ndcg@10")}
    some = slice(None, None, max(1, -(-len(collection.documents) // EVIDENCE)))
    documents = collection.documents[some]
    curves |= synthetic(encoder, documents, vectors[some], idf)
    curves |= known(encoder, documents, vectors[some], idf)
    return curves


def curve(
    queries: csr_matrix, documents: csr_matrix, idf: TokenScales, of: Collection, measure: str
) -> Curve:
    """A measure at each power; idf: (V)."""
    results = (
        evaluate_vectors(scaled(queries, np.power(idf, power)), documents, of, 100) for power in POWERS
    )
    return [round(float(result.values[measure].mean()), 5) for result in results]


def synthetic(
    encoder: SparseEncoder, documents: Sequence[Document], vectors: csr_matrix, idf: TokenScales
) -> dict[str, Curve]:
    """Agreement with other rankers, and rank of the source, by kind of synthetic query."""
    collected = make_queries(documents, QuerySettings(count=1))
    held_out = collected.of(HELD)
    teacher = make_teacher(encoder, collected.documents).others
    settings = CandidateSettings(count=21, depth=10, from_teacher=10, from_student=10)
    gathered = gather(held_out, collected.documents, teacher, settings)
    texts = {each.document_id: each for each in collected.documents}
    agreed = held_out_collection(texts, gathered.candidates)
    cut = [row for row, each in enumerate(collected.documents) if each != documents[row]]
    vectors = vectors.tolil()
    vectors[cut] = encode(encoder, [collected.documents[row].full_text for row in cut], "document")
    vectors = vectors.tocsr()
    rows = {each.document_id: row for row, each in enumerate(collected.documents)}
    of_pool = vectors[[rows[each.document_id] for each in agreed.documents]]
    curves: dict[str, Curve] = {}
    for kind in sorted({query.kind for query in held_out}):
        some = {query.query_id for query in held_out if query.kind == kind}
        part = [query for query in agreed.queries if query.query_id in some]
        if part:
            chosen = Collection(agreed.documents, tuple(part), agreed.judgements)
            queries = encode(encoder, [query.text for query in part], "query")
            curves[f"{kind}: agreement"] = curve(queries, of_pool, idf, chosen, "ndcg@10")
        own = [query for query in held_out if query.kind == kind]
        judged = {query.query_id: {query.document_id: 1} for query in own}
        sources = Collection(
            tuple(collected.documents), tuple(Query(each.query_id, each.text) for each in own), judged
        )
        queries = encode(encoder, [query.text for query in own], "query")
        curves[f"{kind}: source"] = curve(queries, vectors, idf, sources, "mrr@10")
    return curves


def known(
    encoder: SparseEncoder, documents: Sequence[Document], vectors: csr_matrix, idf: TokenScales
) -> dict[str, Curve]:
    """How high a document stands for a few of its words."""
    rows = np.unique(np.linspace(0, len(documents) - 1, min(KNOWN, len(documents))).astype(np.int64))
    items = known_items(documents, rows, seed=0)
    curves = {}
    for kind in sorted({query.kind for query in items.queries}):
        part = tuple(query for query in items.queries if query.kind == kind)
        queries = encode(encoder, [query.text for query in part], "query")
        curves[kind] = curve(
            queries, vectors, idf, Collection(items.documents, part, items.judgements), "mrr@10"
        )
    return curves


# -- the tables -----------------------------------------------------------------------------------


def tables(rows: Mapping[str, Mapping[str, Curve]]) -> str:
    """What each piece of evidence says of idf; what is gained by choosing with it, in sample and left out."""
    names = list(rows)
    kinds = list(dict.fromkeys(kind for curves in rows.values() for kind in curves))
    head = ["points of idf^1/2", *names]
    lines = [line(head), "| --- |" + " ---: |" * len(names)]
    for kind in kinds:
        cells = [
            f"{100 * (rows[n][kind][2] - rows[n][kind][0]):+.1f}" if kind in rows[n] else "" for n in names
        ]
        lines.append(line([kind, *cells]))
    lines += ["", line(["chosen by", *names, "mean"]), "| --- |" + " ---: |" * (len(names) + 1)]
    for label, powers in choices(rows, kinds).items():
        gains = [100 * (rows[n]["real"][p] - rows[n]["real"][0]) for n, p in zip(names, powers, strict=True)]
        cells = [f"{POWERS[p]:g}: {gain:+.1f}" for p, gain in zip(powers, gains, strict=True)]
        lines.append(line([label, *cells, f"{np.mean(gains):+.1f}"]))
    return "\n".join(lines) + "\n"


def _points(curves: Mapping[str, Curve], kind: str) -> str:
    """What the root of the idf gains, where that kind was measured."""
    return f"{100 * (curves[kind][2] - curves[kind][0]):+.1f}" if kind in curves else ""


def choices(rows: Mapping[str, Mapping[str, Curve]], kinds: Sequence[str]) -> dict[str, list[int]]:
    """The place of the power that each way of choosing takes on each collection."""
    names = list(rows)
    real = {name: np.array(rows[name]["real"]) for name in names}
    ways = {
        "its own test queries (the most there is)": [int(real[name].argmax()) for name in names],
        "all collections together (in sample)": [int(np.sum([*real.values()], axis=0).argmax())] * len(names),
        "the other collections (left out)": [
            int(np.sum([real[other] for other in names if other != name], axis=0).argmax()) for name in names
        ],
    }
    for kind in kinds:
        if kind != "real" and all(kind in rows[name] for name in names):
            ways[kind] = [int(np.argmax(rows[name][kind])) for name in names]
    return ways


if __name__ == "__main__":
    main()
