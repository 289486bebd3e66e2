"""Whether the general questions see what a model forgets: `python -m benchmarks.forgetting --data DIR`.

DIR holds cranfield and msmarco_pool. Models that are known to forget are made from the base model on Cranfield: masked
words of its documents alone, as published, and ranking by synthetic queries at one, three and ten times the learning
rate; and models interpolated by half. Each is measured beside the base model, on the general questions that come with
the package and on MS MARCO's. What is done stays in the results. Prints a table, and draws docs/images/forgetting.svg.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import sparse_adapt as sa
from benchmarks.drawing import Drawing
from benchmarks.tables import CONTROL, MEASURE, Results, line
from sparse_adapt.collection.examples import Candidates
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import BASE_MODEL
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, evaluate_vectors, read_collection
from sparse_adapt.selection.general import FIRST
from sparse_adapt.selection.models import merge
from sparse_adapt.selection.questions import general_collection
from sparse_adapt.synthetic.queries import QuerySettings, make_queries
from sparse_adapt.teachers.candidates import gather
from sparse_adapt.teachers.settings import CandidateSettings
from sparse_adapt.teachers.teacher import make_teacher

CORPUS = "cranfield"
MASKED_STEPS = (10, 100, 300)
RATES, RATE, NEW_RATE = (1, 3, 10), 6e-5, 3e-4  # times the default of `rank`
QUERIES = 600
DEPTH = 100
PICTURE = Path(__file__).parents[1] / "docs" / "images" / "forgetting.svg"


def main() -> None:
    """Measure what isn't there yet, print the table, draw the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    arguments = parser.parse_args()
    collections = {"general": general_collection(), "msmarco": read_collection(arguments.data / CONTROL)}
    base = {name: values_of(SparseEncoder.load(BASE_MODEL), each) for name, each in collections.items()}
    results = Results("forgetting")
    for seed in arguments.seeds:
        for name, model in models(arguments.data / CORPUS, seed, results):
            entry: dict[str, Any] = {"model": name, "seed": seed}
            for of, collection in collections.items():
                entry[of] = change(values_of(model, collection), base[of])
            results.add(entry)
    results.conclude(table(results.rows))
    PICTURE.write_text(drawing(results.rows))


def models(corpus: Path, seed: int, results: Results) -> Iterator[tuple[str, SparseEncoder]]:
    """Models that aren't measured yet, by name."""

    def missing(name: str) -> bool:
        return not results.holds({"model": name, "seed": seed})

    base = SparseEncoder.load(BASE_MODEL)
    common: dict[str, Any] = {"seed": seed, "device": "cpu", "progress": False}
    for steps in MASKED_STEPS:
        name = f"masked words, {steps} steps"
        if missing(name):
            settings = common | {"steps": steps, "epochs": None}
            yield name, taught("warmup", corpus, preset="published", **settings)
    scored: list[Candidates] = []
    for rate in RATES:
        name, back = (f"rank, {rate} times the rate{rest}" for rest in ("", ", interpolated by half"))
        if missing(name) or missing(back):
            rates = {"learning_rate": rate * RATE, "new_learning_rate": rate * NEW_RATE}
            scored = scored or candidates(corpus, base, seed)
            ranked = taught("rank", corpus, candidates=scored, **rates, **common)
            if missing(name):
                yield name, ranked
            if missing(back):
                yield back, merge(base, ranked, 0.5)


def taught(stage: str, corpus: Path, **settings: Any) -> SparseEncoder:  # noqa: ANN401 - of any stage
    """The base model after a stage."""
    encoder = sa.train(stage, BASE_MODEL, str(corpus), **settings).encoder
    assert isinstance(encoder, SparseEncoder), type(encoder)
    return encoder


def candidates(corpus: Path, base: SparseEncoder, seed: int) -> list[Candidates]:
    """Candidates of synthetic queries, scored by BM25 and the base model."""
    made = make_queries(list(read_documents(corpus)), QuerySettings(count=QUERIES, seed=seed))
    teacher = make_teacher(base, made.documents, "bm25")
    return gather(made.queries, made.documents, teacher, CandidateSettings(seed=seed)).candidates


def values_of(model: SparseEncoder, collection: Collection) -> dict[str, np.ndarray]:
    """Measures of each query: (Q,)."""
    documents = encode(model, [each.full_text for each in collection.documents], "document")
    queries = encode(model, [query.text for query in collection.queries], "query")
    return evaluate_vectors(queries, documents, collection, DEPTH).values


def change(ours: dict[str, np.ndarray], base: dict[str, np.ndarray]) -> dict[str, float]:
    """The mean change of nDCG@10, its standard error, and that of first answers that are right."""
    gaps = ours[MEASURE] - base[MEASURE]
    return {
        "base": round(float(base[MEASURE].mean()), 5),
        "change": round(float(gaps.mean()), 5),
        "error": round(float(gaps.std(ddof=1) / np.sqrt(len(gaps))), 5),
        "first": round(float((ours[FIRST] - base[FIRST]).mean()), 5),
        "queries": len(gaps),
    }


# -- table and picture ----------------------------------------------------------------------------


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A row a model, in points; the least change first."""
    heads = [
        "model",
        "seed",
        "general questions",
        "standard errors",
        "first right",
        "MS MARCO",
        "standard errors",
    ]
    lines = [line(heads), line(["---", *["---:"] * (len(heads) - 1)])]
    for each in sorted(rows, key=lambda each: -each["general"]["change"]):
        ours, theirs = each["general"], each["msmarco"]
        cells = [
            each["model"],
            str(each["seed"]),
            *_points(ours),
            f"{100 * ours['first']:+.1f}",
            *_points(theirs),
        ]
        lines.append(line(cells))
    return "\n".join(lines) + "\n"


def _points(of: dict[str, float]) -> tuple[str, str]:
    """A change with its standard error, and how many of these it is."""
    return (
        f"{100 * of['change']:+.1f} ± {100 * of['error']:.1f}",
        f"{of['change'] / max(of['error'], 1e-9):+.1f}",
    )


LEFT, TOP, SIDE, RIGHT = 60, 60, 360, 340  # margins and side of the square, in pixels
TICKS = (0, 1, 2, 5, 10, 20)  # points lost; distances are of their roots, so that small losses stand apart
ABOVE = 0.3  # of the same roots, for what gains


def drawing(rows: Sequence[dict[str, Any]]) -> str:
    """Each model by what it loses on MS MARCO (to the left) and on the general questions (downwards), in points."""
    description = "What models lose on the general questions, beside what they lose on MS MARCO's"
    picture = Drawing(LEFT + SIDE + RIGHT, TOP + SIDE + 60, description, table(rows))

    def place(points: float) -> float:
        """How far from the left or from below so many points gained or lost stand."""
        root = np.sign(points) * np.sqrt(abs(points))
        return float(SIDE * (1 + (root - ABOVE) / (np.sqrt(TICKS[-1]) + ABOVE)))

    picture.text(LEFT, 28, "Points of nDCG@10 that models lose", "head")
    picture.text(LEFT, 50, "the package's questions", "small")
    picture.text(LEFT + SIDE / 2, TOP + SIDE + 44, "MS MARCO's 97 questions", "small", "middle")
    for points in TICKS:
        label = f"-{points}" if points else "0"
        picture.text(LEFT + place(-points), TOP + SIDE + 20, label, "small muted", "middle")
        picture.text(LEFT - 10, TOP + SIDE - place(-points) + 4, label, "small muted", "end")
    picture.line(LEFT, TOP + SIDE, LEFT + SIDE, TOP)
    picture.line(LEFT, TOP + SIDE - place(0), LEFT + SIDE, TOP + SIDE - place(0))
    picture.line(LEFT + place(0), TOP, LEFT + place(0), TOP + SIDE)
    for number, each in enumerate(sorted(rows, key=lambda each: -each["general"]["change"]), start=1):
        x, y = (place(100 * each[of]["change"]) for of in ("msmarco", "general"))
        picture.dot(LEFT + x, TOP + SIDE - y)
        picture.text(LEFT + x - 8, TOP + SIDE - y + 4, str(number), "small", "end")
        picture.text(LEFT + SIDE + 24, TOP + 22 * number, f"{number}  {each['model']}", "small")
    return picture.finished()


if __name__ == "__main__":
    main()
