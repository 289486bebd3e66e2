"""Head, training step and encoding at the sizes that people run: 22 M parameters (6 x 384) and 110 M (12 x 768).

    python -m benchmarks.sizes --data DIR [--size 22M] [--part step] [--threads 1] [--clock processor]
    python -m benchmarks.sizes --data DIR --model splade-tiny COPY --name sizes-of-copies

The models are random, of BERT's shape, with the tokenizer of splade-tiny; the bias of their heads is such that a text
activates about 200 tokens, as with a trained one. With --model the same is measured of models that exist, each with as
much work as 22 M. DIR holds the collection `medquad` in BEIR layout. Prints a Markdown table and saves it with all
figures under benchmarks/results; what is there already of other sizes and parts stays. On a busy machine take one
thread and the processor's clock; ratios are taken within a turn.
"""

import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from scipy.sparse import csr_matrix, vstack
from tokenizers import Tokenizer
from transformers.models.bert import BertConfig, BertForMaskedLM

import sparse_adapt as sa
from benchmarks import encoding, head, step
from benchmarks.measure import Work, options, take_turns
from benchmarks.run import Row, machine
from benchmarks.tables import RESULTS, line
from sparse_adapt.files.writing import write_json
from sparse_adapt.model.saved import tokenizer_of
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.pipeline.estimate import learn_once

WHOLE, EIGHT_BITS = "ONNX Runtime", "ONNX Runtime, 8 bits"
FILES = {WHOLE: "model.onnx", EIGHT_BITS: "eight_bits.onnx"}
ACTIVE = 200  # tokens of a text
PROBES = 8  # texts by which the bias is set


class Shape(NamedTuple):
    """A model's shape, and how much of the work is done with it."""

    layers: int
    width: int
    texts: int  # that are encoded
    queries: int  # of a step, each with as many candidates


SHAPES = {"22M": Shape(6, 384, 32, 8), "110M": Shape(12, 768, 8, 4)}


class Run(NamedTuple):
    """Options of all parts: the collections, turns, clock, the model and shape of each size, room for graphs."""

    data: Path
    turns: int
    clock: str
    models: dict[str, str]
    shapes: dict[str, Shape]
    folder: Path


def make(name: str, data: Path, folder: Path) -> Path:
    """A random model of that size, in a folder of its own under `folder`."""
    shape = SHAPES[name]
    tokenizer = tokenizer_of(encoding.MODEL)
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=shape.width,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.width // 32 if shape.width < 768 else 12,
        intermediate_size=4 * shape.width,
    )
    model = SparseEncoder(BertForMaskedLM(config), tokenizer)
    with torch.no_grad():
        read = model(model.tokenize(encoding.sample(data, PROBES)))
        assert model.output_bias is not None
        model.output_bias.sub_(read.maximum.topk(ACTIVE, dim=1).values[:, -1].mean())
    place = folder / name
    model.save(place)
    return place


def shape_of(model: str) -> Shape:
    """That of a model that exists, of which as much is asked as of the smaller size."""
    config = SparseEncoder.load(model).masked_lm.config
    return SHAPES["22M"]._replace(layers=config.num_hidden_layers, width=config.hidden_size)


def measure_head(name: str, run: Run) -> Row:
    """The head alone, at that width."""
    return head.measure(head.SIZES[0][0], run.shapes[name].width, run.turns, run.clock)


def measure_step(name: str, run: Run) -> Row:
    """A step of training, at that size."""
    return _step(name, run, low=False)


def measure_low_step(name: str, run: Run) -> Row:
    """The same step with products in bfloat16, of both libraries."""
    return _step(name, run, low=True)


def _step(name: str, run: Run, *, low: bool) -> Row:
    batch = step.Batch(run.data / "medquad", run.shapes[name].queries, low=low)
    names = step.OURS, step.THEIRS
    return step.measure(batch, run.data, run.turns, run.clock, run.models[name], names)


def measure_encoding(name: str, run: Run) -> Row:
    """Encoding at that size, beside sentence-transformers and ONNX Runtime in float32 and in 8 bits."""
    source, texts = run.models[name], run.shapes[name].texts
    folder = _graphs(source, run.folder / f"{name}-graphs")

    def in_onnx_runtime(texts: list[str], batch_size: int) -> dict[str, Work]:
        return {each: _onnx(each, folder, texts, batch_size) for each in FILES}

    return encoding.measure(run.data, run.turns, run.clock, source, texts, in_onnx_runtime)


def measure_estimate(name: str, run: Run) -> Row:
    """What `adapt` would expect the step of `measure_step` to take, from a part of its texts, and what it takes."""
    batch, source = step.Batch(run.data / "medquad", run.shapes[name].queries), run.models[name]
    encoder = SparseEncoder.load(source)
    encoder.max_tokens = step.MAX_TOKENS
    some = batch.candidates[:: batch.size]
    works = {
        "taken": step.ours(batch, source),
        "documents": lambda: learn_once(encoder, some),
        "queries": lambda: learn_once(encoder, batch.queries),
    }
    times = take_turns(works, run.turns, run.clock, warm_ups=0)
    expected = times.median("documents") * len(batch.candidates) / len(some) + times.median("queries")
    return {
        "work": f"the same step as `adapt` expects it, {name}",
        "seconds": {step.OURS: expected, "taken": times.median("taken")},
        "ratio": {"taken": times.median("taken") / expected},
    }


def tabulated(rows: Sequence[Row]) -> str:
    """The rows as a Markdown table, each contestant by its name."""
    columns = ("work", "seconds", "memory (MiB)", "share of the matrix-product rate (%)")
    kinds = (("seconds", 1.0, 2), ("memory", 2**-20, 0), ("rate_share", 100.0, 0))
    lines = [line(columns), line(["---"] * len(columns))]
    for row in rows:
        cells = [str(row["work"])]
        for key, scale, digits in kinds:
            cell: Any = row.get(key, {})
            values = cell if isinstance(cell, dict) else {step.OURS: cell}
            cells.append(", ".join(f"{name} {scale * value:,.{digits}f}" for name, value in values.items()))
        lines.append(line(cells))
    return "\n".join(lines) + "\n"


PARTS: dict[str, Callable[[str, Run], Row]] = {
    "head": measure_head,
    "step": measure_step,
    "step in bfloat16": measure_low_step,
    "estimate": measure_estimate,
    "encoding": measure_encoding,
}


# -- ONNX Runtime: the graph of `export onnx`, in float32 and with matrices of 8 bits ------------------
# sentence-transformers' backends onnx and int8 run the same model there; they need an older transformers.


def _graphs(source: str, folder: Path) -> Path:
    """A model's graph, and the same with matrices of 8 bits, in a folder that is made for them."""
    sa.export("onnx", source, None, folder, device="cpu")
    folded, less = folder / "folded.onnx", folder / FILES[EIGHT_BITS]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(
        folded
    )  # where the rows of tied embeddings are a matrix of their own
    onnxruntime.InferenceSession(str(folder / FILES[WHOLE]), options, providers=["CPUExecutionProvider"])
    quantize_dynamic(folded, less, weight_type=QuantType.QInt8, op_types_to_quantize=["MatMul", "Gemm"])
    return folder


def _onnx(name: str, folder: Path, texts: list[str], batch_size: int) -> Work:
    """Texts, longest first, from strings to CSR."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # it would count as work
    session = onnxruntime.InferenceSession(
        str(folder / FILES[name]), options, providers=["CPUExecutionProvider"]
    )
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.enable_padding()
    ordered = sorted(texts, key=len, reverse=True)

    def work() -> object:
        rows = []
        for first in range(0, len(ordered), batch_size):
            read = tokenizer.encode_batch(ordered[first : first + batch_size])
            ids, mask = ([getattr(each, key) for each in read] for key in ("ids", "attention_mask"))
            feed = {"input_ids": np.array(ids), "attention_mask": np.array(mask)}
            rows.append(csr_matrix(session.run(None, feed)[0]))
        return vstack(rows, format="csr")

    return work


def main() -> None:
    """Measure, print the table, save both."""
    parser = options(__doc__)
    parser.set_defaults(turns=2)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", choices=SHAPES, action="append", help="by default both")
    parser.add_argument("--model", nargs="*", default=[], help="models that exist, in place of random ones")
    parser.add_argument("--part", choices=PARTS, action="append", help="by default all")
    parser.add_argument("--name", default="sizes", help="of the result files")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    path = RESULTS / f"{arguments.name}.json"
    rows = json.loads(path.read_text())["rows"] if path.is_file() else {}
    with tempfile.TemporaryDirectory() as folder:
        if arguments.model:
            models = {Path(model).name: model for model in arguments.model}
            shapes = {name: shape_of(model) for name, model in models.items()}
        else:
            shapes = {size: SHAPES[size] for size in arguments.size or SHAPES}
            models = {size: str(make(size, arguments.data, Path(folder))) for size in shapes}
        run = Run(arguments.data, arguments.turns, arguments.clock, models, shapes, Path(folder))
        for size in shapes:
            for part in arguments.part or PARTS:
                rows[f"{size}, {part}"] = PARTS[part](size, run)
                write_json(path, {"machine": machine(arguments.clock), "rows": rows})
    table = tabulated(list(rows.values()))
    path.with_suffix(".md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
