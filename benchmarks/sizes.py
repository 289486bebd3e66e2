"""Head, training step and encoding at the sizes that people run: 22 M parameters (6 x 384) and 110 M (12 x 768).

    python -m benchmarks.sizes --data DIR [--size 22M] [--threads 1] [--clock processor]

The models are random, of BERT's shape, with the tokenizer of splade-tiny; the bias of their heads is such that a text
lights about 200 tokens, as with a trained model. DIR holds the collection `medquad` in BEIR layout. Prints a Markdown
table and saves it with all figures under benchmarks/results. On a busy machine take one thread and the processor's
clock; ratios are taken within a turn.
"""

import json
import tempfile
from pathlib import Path
from typing import NamedTuple

import torch
from transformers import BertConfig, BertForMaskedLM

from benchmarks import encoding, head, step
from benchmarks.measure import options
from benchmarks.run import Row, cells, machine, markdown
from benchmarks.tables import RESULTS
from sparse_adapt.model.saved import fetch, read_tokenizer
from sparse_adapt.model.sparse import SparseEncoder

LIT = 200  # tokens of a text
PROBES = 8  # texts by which the bias is set


class Shape(NamedTuple):
    """A model's shape, and how much of the work is done with it."""

    layers: int
    width: int
    texts: int  # that are encoded
    turns: int


SHAPES = {"22M": Shape(6, 384, 32, 2), "110M": Shape(12, 768, 8, 1)}


def make(name: str, data: Path, folder: Path) -> Path:
    """A random model of that size, in a folder of its own under `folder`."""
    shape = SHAPES[name]
    tokenizer = read_tokenizer(fetch(encoding.MODEL), encoding.MODEL)
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
        model.output_bias.sub_(read.maximum.topk(LIT, dim=1).values[:, -1].mean())
    place = folder / name
    model.save(place)
    return place


def measure(name: str, data: Path, clock: str, folder: Path) -> list[Row]:
    """The rows of one size."""
    shape, source = SHAPES[name], str(make(name, data, folder))
    return [
        head.measure(head.SIZES[0][0], shape.width, shape.turns, clock),
        step.measure(data, shape.turns, clock, source, (step.OURS, step.THEIRS)),
        encoding.measure(data, shape.turns, clock, source, shape.texts),
    ]


def main() -> None:
    """Measure, print the table, save both."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--size", choices=SHAPES, action="append", help="by default both, one after the other"
    )
    parser.add_argument("--name", default="sizes", help="of the result files")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for size in arguments.size or SHAPES:
            for row in measure(size, arguments.data, arguments.clock, Path(folder)):
                rows.append(row)
                print(cells(row), flush=True)
    RESULTS.mkdir(exist_ok=True)
    content = {"machine": machine(arguments.clock), "rows": rows}
    (RESULTS / f"{arguments.name}.json").write_text(json.dumps(content, indent=2) + "\n")
    (RESULTS / f"{arguments.name}.md").write_text(markdown(rows))
    print(markdown(rows))


if __name__ == "__main__":
    main()
