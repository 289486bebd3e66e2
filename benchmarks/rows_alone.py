"""How far rows alone carry: `python -m benchmarks.rows_alone [--models splade-tiny] [--corpora gatrocraptic coined]`.

Each model is extended by the terms of a corpus and taught their definitions, once with rows alone and once with
defaults, and measured on development queries, background texts and general questions that no stage learns from.
With `--taught "rows on states"` rows read the last states of each model's body, or of a dense encoder with
splade-tiny's tokens; such a model activates nothing but terms and some common words, so that its ranking means nothing.
What is done stays in benchmarks/results/NAME.json. Prints a table as Markdown.
"""

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.stats import rankdata

from benchmarks.grafts import graft_body, layers_of_head
from benchmarks.stages import DEVELOPMENT, with_other_queries
from benchmarks.tables import Results, line, spread
from sparse_adapt.files.place import Place
from sparse_adapt.model.folder import ModelFolder
from sparse_adapt.model.layout import is_dense
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.objectives.meanings import new_logits
from sparse_adapt.objectives.texts import Texts
from sparse_adapt.pipeline.plan import settings_for
from sparse_adapt.retrieve.encode import encode
from sparse_adapt.retrieve.evaluate import Collection, evaluate_vectors, read_collection
from sparse_adapt.stages.runner import carry_out_stage
from sparse_adapt.synthetic.background import LIKE_QUERIES, synthetic
from sparse_adapt.synthetic.general import general_measure

QUESTIONS, SEED = 1000, 65_537  # general questions, and background texts by a seed that no stage has
AT_ONCE = 256
LINEAR = 10.0  # what states are raised by, so that the head's activation passes them on as they are
COMMON, ACTIVE, INACTIVE = (
    ("the", "of", "and", "to", "in"),
    5.0,
    -50.0,
)  # words that a head has to activate; biases
TRAINING: Mapping[str, Mapping[str, Any]] = {"rows alone": {"train": "rows"}, "every weight": {}}
ON_STATES = "rows on states"  # of the body, by a head that passes them on
COLUMNS = (
    "semantic",
    "control",
    "area_control",
    "area_background",
    "area_questions",
    "first",
    "false_activations",
)


def main() -> None:
    """Teach and measure what isn't done yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=["splade-tiny"])
    parser.add_argument("--corpora", nargs="+", default=["gatrocraptic", "coined"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--taught", nargs="+", choices=[*TRAINING, ON_STATES], default=list(TRAINING))
    parser.add_argument("--name", default="rows_alone")
    arguments = parser.parse_args()
    results = Results(arguments.name)
    for cell in itertools.product(arguments.corpora, arguments.models, arguments.seeds, arguments.taught):
        entry = dict(zip(("corpus", "model", "seed", "taught"), cell, strict=True))
        if not results.holds(entry):
            results.add(entry | one(**entry))
            print(results.rows[-1], flush=True)
    results.conclude(table(results.rows))


def one(corpus: str, model: str, seed: int, training: str) -> dict[str, Any]:
    """The figures of one model that was taught, and the processor seconds that its examples took."""
    with tempfile.TemporaryDirectory() as work:
        place = Path(work)
        if training == ON_STATES:
            training = "rows alone"
            of_states(model).save(place / "states")
            model = str(place / "states")
        whole = with_other_queries(DEVELOPMENT / corpus, place / "corpus")
        carry_out_stage("extend", model, {"terms": f"{whole}/terms.json"}, Place(place / "extended"))
        started = time.process_time()
        settings = settings_for("dictionary", overrides={"seed": seed, **TRAINING[training]})
        named = {"corpus": whole, "dictionary": f"{whole}/dictionary.jsonl"}
        carry_out_stage("dictionary", str(place / "extended"), named, Place(place / "taught"), settings)
        seconds = round(time.process_time() - started)
        encoder = SparseEncoder.load(str(place / "taught"))
        return measured(encoder, read_collection(whole, "test")) | {"seconds": seconds}


def of_states(source: str) -> SparseEncoder:
    """A model whose head hands on the last states of a body, and activates common words alone."""
    if is_dense(ModelFolder.of(source).path):
        base = SparseEncoder.load("splade-tiny")
        model = graft_body(source, base, base.tokenize(COMMON))
    else:
        model = SparseEncoder.load(source)
    head, bias = layers_of_head(model.masked_lm, source), model.output_bias
    assert bias is not None, "of a head like BERT's"
    common = [model.tokenizer.convert_tokens_to_ids(word) for word in COMMON]
    with torch.no_grad():
        head.dense.weight.copy_(torch.eye(head.dense.out_features))
        head.dense.bias.fill_(LINEAR)
        head.norm.weight.fill_(1.0)
        head.norm.bias.zero_()
        bias.fill_(INACTIVE)
        bias[common] = ACTIVE
    return model


def measured(encoder: SparseEncoder, collection: Collection) -> dict[str, float]:
    """Ranking, areas under the curve of semantic queries against others, right term first, questions that activate
    one.
    """
    vectors = encode(encoder, [each.full_text for each in collection.documents], "document")
    result = evaluate_vectors(
        encode(encoder, [each.text for each in collection.queries], "query"), vectors, collection
    )
    logits = {
        kind: logits_of(encoder, [each.text for each in collection.queries if each.kind == kind])
        for kind in ("semantic", "control")
    }
    logits["background"] = logits_of(encoder, synthetic(QUESTIONS, SEED)[LIKE_QUERIES])
    logits["questions"] = logits_of(
        encoder, [question.text for question in general_measure().questions][:QUESTIONS]
    )
    figures = {kind: result.means(kind)["ndcg@10"] for kind in ("semantic", "control")}
    for kind in ("control", "background", "questions"):
        figures[f"area_{kind}"] = area(logits["semantic"].max(axis=1), logits[kind].max(axis=1))
    hidden = [each.query_id for each in collection.queries if each.kind == "semantic"]
    figures["first"] = right_first(encoder, hidden, logits["semantic"])
    figures["false_activations"] = float((logits["questions"].max(axis=1) > 0.0).mean())
    return {key: round(float(value), 3) for key, value in figures.items()}


@torch.no_grad()
def logits_of(encoder: SparseEncoder, texts: Sequence[str]) -> NDArray[np.float32]:
    """The largest logit of each new term in each text: (B, D)."""
    ids, new = encoder.tokenize(texts, "query"), Texts(encoder, [])
    parts = [
        new_logits(encoder, ids[start : start + AT_ONCE], new).cpu().numpy()
        for start in range(0, len(ids), AT_ONCE)
    ]
    return np.concatenate(parts)


def area(above: NDArray[np.float32], below: NDArray[np.float32]) -> float:
    """The chance that one of the first is larger than one of the second (Mann and Whitney 1947)."""
    ranks = rankdata(np.concatenate([above, below]))[: len(above)]
    return float((ranks.sum() - len(above) * (len(above) + 1) / 2) / (len(above) * len(below)))


def right_first(encoder: SparseEncoder, names: Sequence[str], logits: NDArray[np.float32]) -> float:
    """The share of semantic queries whose own term, which their name holds, has the largest logit."""
    terms = [token.token.strip() for token in encoder.new_tokens]
    first = [terms[int(row)] for row in logits.argmax(axis=1)]
    if len(terms) == 1:
        return 1.0
    return statistics.fmean(
        term.casefold() in name.casefold() for term, name in zip(first, names, strict=True)
    )


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Means over the seeds, with the spread."""
    lines = [line(["corpus", "model", "learns", *COLUMNS, "seconds"]), "| --- | --- | --- |" + " ---: |" * 8]
    for key in dict.fromkeys((each["corpus"], each["model"], each["taught"]) for each in rows):
        own = [each for each in rows if (each["corpus"], each["model"], each["taught"]) == key]
        cells = [spread([each[column] for each in own]) for column in COLUMNS]
        seconds = f"{statistics.fmean(each['seconds'] for each in own):.0f}"
        lines.append(line([key[0], Path(key[1]).name, key[2], *cells, seconds]))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
