"""Does it pay to mask the hardest words: dynamic against random masking under the same budget.

    python -m benchmarks.masking --data DIR [--collection cranfield] [--kinds sparse dense] [--seeds 1]

Each row begins with the model that was extended as in `benchmarks.teaching`, and learns from nine documents of ten.
Both maskings draw the same sentences in the same batches and hide as many words of each. Prints nDCG@10, how many new
tokens, masked one at a time in the documents set aside, are predicted right among all of the model, and which share
of its time the stage took to choose words; saves that under benchmarks/results. What is done stays in --work. Biases
and attention alone, in either stage: the same, but for what learns beside the new rows.
"""

import argparse
import json
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.tables import CONTROL, MEASURE, Results, line
from benchmarks.teaching import MODELS, measure, prepare
from sparse_adapt.collection.examples import read_pairs, write_pairs
from sparse_adapt.collection.readers import read_documents, write_documents
from sparse_adapt.files.place import Place
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.model.tokens import pad
from sparse_adapt.objectives.masked import mask_token
from sparse_adapt.plugins.research.stages.dynamic import Dynamic
from sparse_adapt.plugins.research.stages.pairs import Contrast
from sparse_adapt.plugins.research.stages.sentences import Sentences
from sparse_adapt.retrieve.evaluate import read_collection
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.synthetic.queries import HELD

ASIDE = 10  # of so many documents one is set aside
EVERY = 10_000  # candidates of a sentence: all of its words
PART = 64  # sentences read at once

Overrides = Mapping[str, Any]
NT_XENT: Overrides = {"form": "nt-xent"}


class Row(NamedTuple):
    """One line of the table: how words are masked, if they are, and whether pairs follow."""

    name: str
    dynamic: Overrides | None
    contrast: bool
    pairs: Overrides = {}  # noqa: RUF012 - never written to; what differs in the stage over pairs


ROWS = (
    Row("extended", None, False),
    Row("random", {"masking": "random"}, False),
    Row("dynamic", {}, False),
    Row("contrast", None, True),
    Row("random, contrast", {"masking": "random"}, True),
    Row("dynamic, contrast", {}, True),
    Row("dynamic, biases alone", {"train": "biases"}, False),
    Row("dynamic, attention alone", {"train": "attention"}, False),
    Row("contrast, biases alone", None, True, {"train": "biases"}),
    Row("contrast, attention alone", None, True, {"train": "attention"}),
)


def set_aside(folder: Path) -> Path:
    """A folder with the documents to learn from and their pairs; the others are in aside.jsonl."""
    shared = folder / "kept"
    if not (shared / "pairs.jsonl").is_file():
        documents = list(read_documents(folder))
        shared.mkdir(exist_ok=True)
        write_documents(shared / "aside.jsonl", documents[::ASIDE])
        left = [document for place, document in enumerate(documents) if place % ASIDE]
        write_documents(shared / "corpus.jsonl", left)
        ids = {document.document_id for document in left}
        write_pairs(
            shared / "pairs.jsonl",
            [pair for pair in read_pairs(folder / "pairs.jsonl") if pair.document_id in ids],
        )
    return shared


def teach(
    row: Row, shared: Path, extended: Path, place: Path, overrides: Mapping[str, Overrides]
) -> tuple[str, list[Any]]:
    """The model of a row and the records of its stages; rows that begin alike share models."""
    model, records = str(extended), []
    if row.dynamic is not None:
        place = place / ("-".join(map(str, row.dynamic.values())) or "dynamic")
        if not (place / "model").is_dir():
            settings = Dynamic.model_validate({**overrides["dynamic"], **row.dynamic})
            carry_out_stage(
                "dynamic", model, {"corpus": shared}, Place(place / "model", resume=True), settings
            )
        model = str(place / "model")
        records.append(json.loads((place / "model" / "stage.json").read_text()))
    if row.contrast:
        made = place / "-".join(("contrast", *map(str, row.pairs.values())))
        if not made.is_dir():
            wanted = Contrast.model_validate({**overrides["contrast"], **NT_XENT, **row.pairs})
            files = {"pairs": shared / "pairs.jsonl", "corpus": shared}
            carry_out_stage("contrast", model, files, Place(made, resume=True), wanted)
        model = str(made)
        records.append(json.loads((made / "stage.json").read_text()))
    return model, records


@torch.no_grad()
def guessed_right(encoder: Encoder, texts: Sequence[str]) -> tuple[int, int]:
    """How many new tokens of texts are predicted right where each alone is masked, and how many there are."""
    new, mask_id = {token.token_id for token in encoder.new_tokens}, mask_token(encoder, "benchmark")
    sentences = Sentences(encoder, texts, longest=64, candidates=EVERY)
    masked_words = [
        (sentence.token_ids, place)
        for sentence in sentences.usable
        for place, token in enumerate(sentence.token_ids)
        if token in new
    ]
    right = 0
    for start in range(0, len(masked_words), PART):
        part = masked_words[start : start + PART]
        ids, mask = pad([ids for ids, _ in part], encoder.tokenizer.pad_token_id or 0)
        rows, places = torch.arange(len(part)), torch.tensor([place for _, place in part])
        answers = ids[rows, places].clone()
        ids[rows, places] = mask_id
        states = encoder.for_words(encoder.hidden(ids, mask)[rows, places])
        logits = states @ encoder.output_rows.T
        if encoder.output_bias is not None:
            logits += encoder.output_bias
        right += int((logits.argmax(dim=1) == answers).sum())
    return right, len(masked_words)


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """Means over the seeds as Markdown."""
    lines = [
        f"| model | collection | row | seeds | {MEASURE} | new tokens predicted right | non-zeros document / query | "
        "seconds | choosing words |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for key in dict.fromkeys((each["kind"], each["collection"], each["row"]) for each in results):
        rows = [each for each in results if (each["kind"], each["collection"], each["row"]) == key]
        of_index, document, query = (
            statistics.fmean(each["measures"]["measured"][name] for each in rows)
            for name in (MEASURE, "nonzero_document", "nonzero_query")
        )
        right, masked = (sum(each[name] for each in rows) for name in ("right", "asked"))
        seconds = statistics.fmean(sum(each["seconds"]) for each in rows)
        shares = [each["choosing"] for each in rows if each["choosing"] is not None]
        cells = [*key, str(len(rows)), f"{of_index:.3f}", f"{right / max(1, masked):.1%}"]
        cells += [f"{document:.0f} / {query:.0f}", f"{seconds:.0f}"]
        cells.append(f"{statistics.fmean(shares):.1%}" if shares else "")
        lines.append(line(cells))
    return "\n".join(lines) + "\n"


def choosing_share(records: Sequence[Mapping[str, Any]]) -> float | None:
    """Share of the masking stage's time that choosing words took, where it chose any."""
    for record in records:
        if record["stage"] == "dynamic" and record["settings"]["masking"] == "dynamic":
            return float(record["choosing_seconds"]) / float(record["seconds"])
    return None


def main() -> None:
    """Measure what isn't measured yet, save after each row, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--collection", default="cranfield")
    parser.add_argument("--kinds", nargs="*", choices=MODELS, default=["sparse"])
    parser.add_argument("--rows", nargs="*", default=[row.name for row in ROWS])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="STAGE.KEY=VALUE", help="dynamic.steps=100, as JSON"
    )
    parser.add_argument("--terms", type=int, default=2000, help="at most, of the trained vocabulary")
    parser.add_argument("--held", action="store_true", help="measure on queries set aside instead of test")
    parser.add_argument("--control", action="store_true", help=f"measure on {CONTROL} too")
    parser.add_argument("--work", type=Path, default=Path("runs/teaching"))
    arguments = parser.parse_args()
    results = Results(f"masking{'-held' if arguments.held else ''}")
    overrides: dict[str, dict[str, Any]] = {"dynamic": {}, "contrast": {}}
    for key, value in (each.split("=", 1) for each in arguments.set):
        stage, name = key.split(".", 1)
        overrides[stage][name] = json.loads(value)
    also = {"control": read_collection(arguments.data / CONTROL)} if arguments.control else {}
    for kind in arguments.kinds:
        folder = prepare(arguments.collection, arguments.data, kind, arguments.terms, arguments.work)
        shared, extended = set_aside(folder), folder / kind / "extended"
        aside = [document.full_text for document in read_documents(shared / "aside.jsonl")]
        source, split = (folder, HELD) if arguments.held else (arguments.data / arguments.collection, "test")
        measured = {"measured": read_collection(source, split), **also}
        for row, seed in ((row, seed) for seed in range(arguments.seeds) for row in ROWS):
            done = {"kind": kind, "collection": arguments.collection, "row": row.name, "seed": seed}
            if row.name not in arguments.rows or results.holds(done):
                continue
            place = folder / kind / "masking" / f"seed-{seed}"
            seeded = {stage: {**settings, "seed": seed} for stage, settings in overrides.items()}
            model, records = teach(row, shared, extended, place, seeded)
            right, masked = guessed_right(load_encoder(model), aside)
            results.add(
                {
                    **done,
                    "settings": overrides,
                    "seconds": [record["seconds"] for record in records],
                    "choosing": choosing_share(records),
                    "right": right,
                    "asked": masked,
                    "measures": measure(model, kind, measured),
                }
            )
            print(table(results.rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    results.conclude(table(results.rows))


if __name__ == "__main__":
    main()
