"""The four published experiments beside ours: `python -m benchmarks.ladder`.

H1 fine-tunes without a new token, H2 adds the token, H3 a warm-up, H4 definitions: each is a run file that comes with
the package, and is carried out here with several seeds. What is done stays in --runs. Prints a table and draws
docs/images/ladder.svg; the figures of each seed are in benchmarks/results/ladder.json. A second table holds what each
experiment is expected to show against what it shows. With --epochs the stages are shorter than the published ones, and
with --model they begin with another model, so tables, picture and figures go into --runs instead.
"""

import argparse
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import corpora
from benchmarks.drawing import Drawing
from benchmarks.tables import RESULTS, Results, line
from diagnostics.advice import HEAVY
from diagnostics.token import diagnose
from sparse_adapt.collection.readers import read_documents, read_judgements, read_queries
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.run import NoListener, run_stages
from sparse_adapt.pipeline.runfile import read_plan
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import evaluate_vectors, read_collection
from sparse_adapt.retrieve.search import top_k

TERM, HARD, DECOY, CORPUS = "Gatrocraptic", "semantic-01", "workshop-tools", "gatrocraptic"
DRAWN = Path(__file__).parents[1] / "docs" / "images" / "ladder.svg"

Figures = Mapping[str, Any]


class Expected(NamedTuple):
    """What the source expects of an experiment, the figure that says so, and whether a seed's figures meet it."""

    experiment: str
    words: str
    figure: Callable[[Figures], str]
    meets: Callable[[Figures], bool]


class Line(NamedTuple):
    """One line of the table: what it says, how a seed's figures come about, what was published for each experiment."""

    title: str
    figure: Callable[[Figures], str]
    published: Mapping[str, str]


def main() -> None:
    """Carry out every experiment with every seed, and print a table as Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=float, help="of every stage, to try the command out")
    parser.add_argument("--model", help="to begin with, in place of that of the run files")
    parser.add_argument("--runs", type=Path, default=Path("runs/ladder"))
    arguments = parser.parse_args()
    shorter = {} if arguments.epochs is None else {"epochs": arguments.epochs}
    tried = bool(shorter or arguments.model)
    results = Results("ladder", arguments.runs if tried else RESULTS)
    for seed, name in itertools.product(range(arguments.seeds), corpora.RUN_FILES):
        if not results.holds({"experiment": name, "seed": seed}):
            plan = read_plan(corpora.run_file(name), {"seed": seed, **shorter})
            plan = replace(plan, model=arguments.model or plan.model)
            folder = arguments.runs / f"{name}-{seed}"
            folder.mkdir(parents=True, exist_ok=True)
            figures = measure(SparseEncoder.load(run_stages(plan, folder, NoListener())[-1].folder))
            results.add({"experiment": name, "seed": seed, **figures})
    results.conclude(f"{table(results.rows)}\n{statuses(results.rows)}")
    (arguments.runs / DRAWN.name if tried else DRAWN).write_text(drawing(results.rows))


def measure(model: SparseEncoder) -> dict[str, Any]:
    """What a model makes of the term in the document that says it most, and of the hard query."""
    documents = list(read_documents(CORPUS))
    report = diagnose(TERM, model, documents)
    logits, ranks = report.logits, report.ranking["ranks"]
    query = next(query for query in read_queries(CORPUS) if query.query_id == HARD)
    vector = encode(model, [query.text], "query")
    vectors = encode(model, [document.full_text for document in documents], "document")
    names = [documents[int(row)].document_id for row in top_k(vector, vectors, len(documents))[0][0]]
    relevant = read_judgements(CORPUS, "train")[HARD]
    collection = read_collection(CORPUS, "test")
    tests = encode(model, [each.text for each in collection.queries], "query")
    result = evaluate_vectors(tests, vectors, collection)
    return {
        "single": report.vocabulary["single"],
        "mean_logit": min(each["where_it_stands"]["average"] for each in logits if each["where_it_stands"]),
        "largest_logit": min(each["everywhere"]["largest"]["logit"] for each in logits),
        "weight": min(each["encoder_weight"] for each in report.weights),
        "rank": None if None in ranks else max(rank for rank in ranks if rank),
        "nonzero": report.ranking["nonzero"],
        "query_weight": float(vector[:, list(report.vocabulary["token_ids"])].toarray().min()),
        "decoy_rank": names.index(DECOY) + 1 if DECOY in names else None,
        "on_top": len(set(names[: len(relevant)]) & set(relevant)),
        "relevant": len(relevant),
        "semantic": float(result.means("semantic")["ndcg@10"]),
        "control": float(result.means("control")["ndcg@10"]),
        "document_tokens": float(np.diff(vectors.indptr).mean()),
    }


LINES = (
    Line(
        "mean logit where the term stands",
        lambda seed: f"{seed['mean_logit']:.2f}",
        {"H2": "-3.57", "H3": ".36", "H4": "8.14"},
    ),
    Line(
        "its largest logit in that document",
        lambda seed: f"{seed['largest_logit']:.2f}",
        {"H2": "-3.49 where it stands", "H3": ".36", "H4": "9.30"},
    ),
    Line(
        "its weight there",
        lambda seed: f"{seed['weight']:.2f}",
        {"H1": "0", "H2": "0", "H3": ".31", "H4": "2.33"},
    ),
    Line(
        "its rank among the document's tokens",
        lambda seed: "none" if seed["rank"] is None else f"{seed['rank']} of {seed['nonzero']}",
        {"H2": "none", "H3": "26 of 29", "H4": "1 of 14"},
    ),
    Line(
        "its weight in the hard query",
        lambda seed: f"{seed['query_weight']:.2f}",
        {"H3": "0", "H4": "1.44"},
    ),
    Line(
        "rank of the decoy for the hard query",
        lambda seed: "none" if seed["decoy_rank"] is None else str(seed["decoy_rank"]),
        {"H1": "2", "H3": "1"},
    ),
    Line("relevant documents on top", lambda seed: f"{seed['on_top']} of {seed['relevant']}", {}),
    Line("nDCG@10, unseen semantic queries", lambda seed: f"{seed['semantic']:.3f}", {}),
    Line("nDCG@10, unseen control queries", lambda seed: f"{seed['control']:.3f}", {}),
)


def table(rows: Sequence[Figures]) -> str:
    """What was published and what each seed gives, experiment by experiment."""
    heads = ["", *(part for name in corpora.RUN_FILES for part in (f"{name} published", f"{name} ours"))]
    lines = [line(heads), "| --- |" + " ---: |" * (2 * len(corpora.RUN_FILES))]
    for row in LINES:
        cells = [row.title]
        for name in corpora.RUN_FILES:
            ours = [row.figure(each) for each in rows if each["experiment"] == name]
            cells += [row.published.get(name, ""), ", ".join(ours)]
        lines.append(line(cells))
    return "\n".join(lines) + "\n"


EXPECTED = (
    Expected(
        "H1",
        "no weight in the term's document",
        lambda seed: f"{seed['weight']:.2f}",
        lambda seed: bool(seed["weight"] == 0),
    ),
    Expected(
        "H1",
        "the decoy among the first two for the hard query",
        lambda seed: _rank(seed["decoy_rank"]),
        lambda seed: seed["decoy_rank"] in (1, 2),
    ),
    Expected(
        "H2",
        "a negative logit where the term stands",
        lambda seed: f"{seed['mean_logit']:.2f}",
        lambda seed: bool(seed["mean_logit"] < 0),
    ),
    Expected(
        "H2",
        "no weight in the term's document",
        lambda seed: f"{seed['weight']:.2f}",
        lambda seed: bool(seed["weight"] == 0),
    ),
    Expected(
        "H3",
        "some weight there",
        lambda seed: f"{seed['weight']:.2f}",
        lambda seed: bool(seed["weight"] > 0),
    ),
    Expected(
        "H3",
        "but not among the ten heaviest tokens",
        lambda seed: _rank(seed["rank"]),
        lambda seed: seed["rank"] is None or seed["rank"] > HEAVY,
    ),
    Expected(
        "H3",
        "none in the hard query",
        lambda seed: f"{seed['query_weight']:.2f}",
        lambda seed: bool(seed["query_weight"] == 0),
    ),
    Expected(
        "H3",
        "whose first document is the decoy",
        lambda seed: _rank(seed["decoy_rank"]),
        lambda seed: seed["decoy_rank"] == 1,
    ),
    Expected(
        "H4",
        "the heaviest token of its document",
        lambda seed: _rank(seed["rank"]),
        lambda seed: seed["rank"] == 1,
    ),
    Expected(
        "H4",
        "weight in the hard query",
        lambda seed: f"{seed['query_weight']:.2f}",
        lambda seed: bool(seed["query_weight"] > 0),
    ),
)


def _rank(rank: int | None) -> str:
    return "none" if rank is None else str(rank)


def statuses(rows: Sequence[Figures]) -> str:
    """What the source expects of each experiment, what each seed shows, and of how many it holds."""
    lines = [line(["", "expected", "actual", "status"]), "| --- | --- | ---: | --- |"]
    for each in EXPECTED:
        seeds = [seed for seed in rows if seed["experiment"] == each.experiment]
        met = sum(map(each.meets, seeds))
        status = (
            "holds" if met == len(seeds) else f"holds for {met} of {len(seeds)} seeds" if met else "differs"
        )
        lines.append(line([each.experiment, each.words, ", ".join(map(each.figure, seeds)), status]))
    return "\n".join(lines) + "\n"


# -- the picture ----------------------------------------------------------------------------------

PUBLISHED = {
    "weight": {"H1": 0.0, "H2": 0.0, "H3": 0.31, "H4": 2.33},
    "query_weight": {"H3": 0.0, "H4": 1.44},
}
PANELS = (
    ("weight", "weight in the document that says the term"),
    ("query_weight", "weight in the hard query, which means it"),
)
WIDTH, HEIGHT, BASE, TOP, LARGEST = 760, 250, 190, 60, 3.0


def drawing(rows: Sequence[Figures]) -> str:
    """Bars of what was published, and a dot for each seed of ours, in two panels."""
    drawn = Drawing(
        WIDTH,
        HEIGHT,
        "What each step of the published recipe brings",
        "Two panels, four experiments each: the term's weight in its document, and in a query that means it. "
        "Bars are the published values, dots are ours, a seed each.",
    )
    for panel, (key, title) in enumerate(PANELS):
        left = 30 + 370 * panel
        drawn.text(left, 32, title, "head")
        drawn.line(left, BASE, left + 320, BASE)
        for number, name in enumerate(corpora.RUN_FILES):
            middle = left + 40 + 78 * number
            if (value := PUBLISHED[key].get(name)) is not None:
                height = max(2.0, (BASE - TOP) * value / LARGEST)
                drawn.bar(middle - 16, BASE - height, 32, height, "barm")
                drawn.text(middle, BASE - height - 6, f"{value:g}", "small muted", "middle")
            for seed, each in enumerate(row for row in rows if row["experiment"] == name):
                drawn.dot(middle - 10 + 10 * seed, BASE - (BASE - TOP) * min(each[key], LARGEST) / LARGEST)
            drawn.text(middle, BASE + 18, name, "small", "middle")
    drawn.bar(30, 226, 14, 10, "barm")
    drawn.text(50, 236, "published", "small muted")
    drawn.dot(135, 231)
    drawn.text(146, 236, "ours, a seed each", "small muted")
    return drawn.finished()


if __name__ == "__main__":
    main()
