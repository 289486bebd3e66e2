"""Encoding a collection: this project in float32 and with a filter of whole numbers, and sentence-transformers.

    python -m benchmarks.encoding --data DIR

A seeded sample of medquad, from strings to a sparse matrix, with splade-tiny and at most 256 tokens a text.
sentence-transformers runs at the batch size that is best for it on a part of the sample.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SparseEncoder as TheirEncoder
from torch import nn

from benchmarks.measure import (
    Work,
    matrix_product,
    options,
    peak_memory,
    print_peak_memory,
    product_rate,
    take_turns,
)
from sparse_adapt.collection.readers import read_documents
from sparse_adapt.model.folder import resolve
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.retrieve.encode import encode

MODEL = "splade-tiny"
TEXTS, PILOT = 512, 64
BATCH_SIZES = (1, 2, 4, 8, 16, 32)
FLOAT32, FILTERED, THEIRS = "sparse-adapt", "sparse-adapt filtered", "sentence-transformers"


def sample(data: Path, count: int = TEXTS) -> list[str]:
    """Seeded texts of the collection."""
    texts = [document.full_text for document in read_documents(data / "medquad")]
    return [texts[row] for row in np.random.default_rng(0).permutation(len(texts))[:count]]


def ours(texts: list[str], filtered: bool, source: str = MODEL) -> Work:
    """This project, from strings to CSR."""
    model = SparseEncoder.load(source)
    return lambda: encode(model, texts, "document", filtered=filtered)


def theirs(texts: list[str], batch_size: int, source: str = MODEL) -> Work:
    """sentence-transformers, from strings to its sparse tensor."""
    model = TheirEncoder(resolve(source), device="cpu")
    model.max_seq_length = SparseEncoder.load(source).max_tokens
    return lambda: model.encode_document(texts, batch_size=batch_size)


def best_batch_size(texts: list[str], clock: str, source: str = MODEL, turns: int = 2) -> int:
    """The batch size at which sentence-transformers is fastest."""
    contestants = {str(size): theirs(texts[:PILOT], size, source) for size in BATCH_SIZES}
    times = take_turns(contestants, turns, clock, warm_ups=min(1, turns - 1))
    return int(min(contestants, key=times.median))


def operations(model: SparseEncoder, lengths: list[int]) -> int:
    """Multiplications and additions of all matrix products that the texts need, without padding."""
    linear = sum(each.weight.numel() for each in model.masked_lm.modules() if isinstance(each, nn.Linear))
    config = model.masked_lm.config
    attention: int = sum(4 * length**2 for length in lengths) * config.hidden_size * config.num_hidden_layers
    return 2 * linear * sum(lengths) + attention


def measure(
    data: Path,
    turns: int,
    clock: str,
    source: str = MODEL,
    count: int = TEXTS,
    more: Callable[[list[str], int], Mapping[str, Work]] | None = None,
) -> dict[str, object]:
    """The row of the table; the model is an alias or a folder.

    more: further contestants for some texts, by the batch size that sentence-transformers runs at.
    """
    texts = sample(data, count)
    few = count < TEXTS
    batch_size = best_batch_size(texts[: PILOT // 4] if few else texts, clock, source, 1 if few else 2)
    contestants = {
        FLOAT32: ours(texts, False, source),
        FILTERED: ours(texts, True, source),
        THEIRS: theirs(texts, batch_size, source),
        **({} if more is None else more(texts, batch_size)),
    }
    product = str(torch.float32)
    times = take_turns({**contestants, product: matrix_product(torch.float32)}, turns, clock)
    model = SparseEncoder.load(source)
    lengths = [len(ids) for ids in model.tokenize(texts)]
    work = operations(model, lengths)
    names, lines_there = tuple(contestants), (FLOAT32, FILTERED, THEIRS)
    return {
        "work": f"encode {len(texts):,} texts of medquad, {sum(lengths):,} tokens, {Path(source).name}",
        "their_batch_size": batch_size,
        "seconds": {name: times.median(name) for name in names},
        "ratio": {
            THEIRS: times.ratio(FLOAT32, THEIRS),
            f"{THEIRS} / filtered": times.ratio(FILTERED, THEIRS),
            **{
                f"{name} / filtered": times.ratio(FILTERED, name) for name in names if name not in lines_there
            },
        },
        "memory": {
            name: peak_memory(
                "benchmarks.encoding", name, str(data), str(batch_size), source, str(min(count, PILOT))
            )
            for name in lines_there
        },
        "texts_per_second": {name: len(texts) / times.median(name) for name in names},
        "tokens_per_second": {name: sum(lengths) / times.median(name) for name in names},
        "rate_share": {
            name: work / times.median(name) / product_rate(times.median(product)) for name in lines_there
        },
    }


def main() -> None:
    """Print the row, or the memory of one contestant on a part of the sample."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument(
        "--memory",
        nargs=5,
        metavar=("NAME", "DIR", "BATCH", "MODEL", "TEXTS"),
        help="used by the benchmark itself",
    )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.memory:
        name, data, batch_size, source, count = arguments.memory
        texts = sample(Path(data), int(count))
        make: dict[str, Callable[[], Work]] = {
            FLOAT32: lambda: ours(texts, False, source),
            FILTERED: lambda: ours(texts, True, source),
            THEIRS: lambda: theirs(texts, int(batch_size), source),
        }
        print_peak_memory(make[name]())
        return
    print(measure(arguments.data, arguments.turns, arguments.clock))


if __name__ == "__main__":
    main()
