"""Terms in place of their pieces against terms beside them, by group of query: `python -m benchmarks.beside`.

A corpus of new terms is taught by the usual stages with their default settings, in place of the pieces and beside
them, and by rows alone. Measured on unseen queries: those that mean a term, those that say one, control queries, and
two words of documents that say none; and how many queries of each kind, and background queries, activate a term. Models
are made in --runs, where what is done stays. Behind each model stands what is left where its terms are lowered until
the share --calibrated of background queries activates one.
"""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from benchmarks.tables import RESULTS, Results, line, spread
from sparse_adapt.collection.sources import file_beside
from sparse_adapt.files.place import Place
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.calibrate import amounts_for
from sparse_adapt.pipeline.demo import Scene, read_scene
from sparse_adapt.pipeline.plan import settings_of
from sparse_adapt.retrieve.activity import Activity, background_queries
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import evaluate_vectors
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.stages.table import find_stage
from sparse_adapt.terms.mining import read_terms

BASE = "splade-tiny"
GROUPS = ("semantic", "explicit", "control")


class Way(NamedTuple):
    """How terms are taught: where they stand, the stages behind the extension, and how their settings differ."""

    name: str
    pieces: str
    stages: tuple[str, ...]
    differs: Mapping[str, object] = {}


WAYS = (
    Way("in place", "replace", ("warmup", "dictionary", "distill")),
    Way("beside", "beside", ("warmup", "dictionary", "distill")),
    Way("beside, no warm-up", "beside", ("dictionary", "distill")),
    Way("in place, rows alone", "replace", ("dictionary",), {"train": "rows"}),
    Way("beside, rows alone", "beside", ("dictionary",), {"train": "rows"}),
)


def main() -> None:
    """Teach in every way with every seed, and print a table as Markdown."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--corpus", default="gatrocraptic")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--calibrated", type=float, default=0.05)
    parser.add_argument("--ways", nargs="+", default=[way.name for way in WAYS], metavar="WAY")
    parser.add_argument("--runs", type=Path, default=Path("runs/beside"))
    given = parser.parse_args()
    results = Results("beside", RESULTS)
    terms = file_beside(given.corpus, "terms.json")
    assert terms is not None, f"{given.corpus}: brings no terms"
    scene = read_scene(given.corpus, [term.text for term in read_terms(terms)])
    about = {"corpus": given.corpus}
    if not results.holds(about | {"way": "base"}):
        results.add(
            about | {"way": "base", "stage": "", "seed": 0, **figures(SparseEncoder.load(BASE), scene)}
        )
    for way in WAYS:
        for seed in range(given.seeds) if way.name in given.ways else ():
            for stage, place in teach(way, given.corpus, terms, seed, given.runs / given.corpus):
                entry = about | {"way": way.name, "stage": stage, "seed": seed}
                if results.holds(entry):
                    continue
                model = SparseEncoder.load(place)
                measured = figures(model, scene)
                lower(model, given.calibrated)
                results.add(entry | measured | {"calibrated": figures(model, scene)})
    results.conclude(table([each for each in results.rows if each["corpus"] == given.corpus]))


def teach(way: Way, corpus: str, terms: Path, seed: int, runs: Path) -> list[tuple[str, Path]]:
    """The model after each stage of one way."""
    place, made = runs / way.pieces / "extend", list[tuple[str, Path]]()
    if not place.is_dir():
        settings = settings_of("extend", "default", {"pieces": way.pieces})
        carry_out_stage("extend", BASE, {"terms": terms}, Place(place), settings)
    for stage in way.stages:
        before, place = place, place.parent / f"{place.name}-{stage}-{seed}{'-rows' * bool(way.differs)}"
        if not place.is_dir():
            settings = settings_of(stage, "default", {"seed": seed, **way.differs})
            named = {"corpus": corpus} if find_stage(stage).trains else {}
            carry_out_stage(stage, str(before), named, Place(place, resume=True), settings)
        made.append((stage, place))
    return made


@torch.no_grad()
def lower(model: SparseEncoder, share: float) -> None:
    """Lower terms until at most a share of background queries activates one."""
    assert model.output_bias is not None, BASE
    amounts = torch.from_numpy(amounts_for(model, share))
    model.output_bias[[token.token_id for token in model.new_tokens]] -= amounts


def figures(model: SparseEncoder, scene: Scene) -> dict[str, Any]:
    """nDCG@10 of each group of unseen queries, MRR@10 of two words, and shares of queries that activate a term."""
    documents = encode(model, [document.full_text for document in scene.documents], "document")
    asked = scene.splits["test"]
    texts = [query.text for query in asked.queries]
    queries = encode(model, texts, "query")
    result = evaluate_vectors(queries, documents, asked)
    active = np.asarray(Activity.of(model, texts, "query", vectors=queries).active.any(axis=1))
    kinds = np.array([query.kind for query in asked.queries])
    measured: dict[str, Any] = {group: result.means(group)["ndcg@10"] for group in GROUPS}
    measured["active"] = {group: float(active[kinds == group].mean()) for group in GROUPS}
    measured["active"]["background"] = float(
        Activity.of(model, background_queries(), "query").active.any(axis=1).mean()
    )
    if scene.known is not None:
        two = encode(model, [query.text for query in scene.known.queries], "query")
        measured["two words"] = evaluate_vectors(two, documents, scene.known).means()["mrr@10"]
    return measured


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """A row for each way and stage, and behind it what calibration leaves, as Markdown."""
    lines = [
        "| terms | after | seeds | semantic | explicit | control | two words | background queries that activate one |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for way, stage in dict.fromkeys((each["way"], each["stage"]) for each in rows):
        own = [each for each in rows if (each["way"], each["stage"]) == (way, stage)]
        lines.append(line([way, stage, str(len(own)), *_cells(own)]))
        if all("calibrated" in each for each in own):
            lines.append(
                line(["", "calibrated", str(len(own)), *_cells([each["calibrated"] for each in own])])
            )
    return "\n".join(lines) + "\n"


def _cells(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    keys = [*GROUPS, "two words"]
    shown = [spread([each[key] for each in rows if key in each] or [float("nan")]) for key in keys]
    return [*shown, spread([100 * each["active"]["background"] for each in rows], 1) + " %"]


if __name__ == "__main__":
    main()
