"""The head alone, forward and backward: this project, sentence-transformers' pooling, the textbook.

    python -m benchmarks.head

All three are given hidden states and give gradients of states, rows and bias, for a loss as in training:
weighted sums of weights and the squared mean of each token's. The bias is such that 200 tokens of a text have
a weight, as in a trained model.
"""

from collections.abc import Callable

import torch
from sentence_transformers.sparse_encoder.modules import SpladePooling
from torch import Tensor

from benchmarks.measure import (
    Work,
    matrix_product,
    options,
    peak_memory,
    print_peak_memory,
    product_rate,
    take_turns,
)
from sparse_adapt.model.head.pooling import activate, splade_pool

TEXTS, LENGTH, ACTIVE = 8, 256, 200
SIZES = [(30_522, 128), (30_522, 768), (72_000, 128), (72_000, 768)]
OURS, THEIRS, TEXTBOOK = "sparse-adapt", "sentence-transformers", "textbook"

Head = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
Row = dict[str, object]


def ours(hidden: Tensor, weight: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
    """This project's weights (B, V)."""
    return activate(splade_pool(hidden, weight, bias, mask)[0])


def theirs(hidden: Tensor, weight: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
    """The decoder as transformers applies it, then sentence-transformers' pooling module in training mode."""
    logits = torch.nn.functional.linear(hidden, weight, bias)
    features = {"token_embeddings": logits, "attention_mask": mask}
    pooled: Tensor = SpladePooling().train()(features)["sentence_embedding"]
    return pooled


def textbook(hidden: Tensor, weight: Tensor, bias: Tensor, mask: Tensor) -> Tensor:
    """The formula as papers write it."""
    logits = hidden @ weight.T + bias
    return (torch.log1p(torch.relu(logits)) * mask.unsqueeze(-1)).max(dim=1).values


HEADS: dict[str, Head] = {OURS: ours, THEIRS: theirs, TEXTBOOK: textbook}


def problem(vocabulary: int, units: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Seeded states, rows, bias and mask, of which about `ACTIVE` weights a text are positive."""
    generator = torch.Generator().manual_seed(vocabulary + units)
    hidden = torch.randn(TEXTS, LENGTH, units, generator=generator)
    weight = torch.randn(vocabulary, units, generator=generator)
    mask = torch.ones(TEXTS, LENGTH, dtype=torch.long)
    with torch.no_grad():
        highest = splade_pool(hidden, weight, None, mask)[0]
    bias = torch.full((vocabulary,), -float(highest.flatten().kthvalue(TEXTS * (vocabulary - ACTIVE)).values))
    return hidden.requires_grad_(), weight.requires_grad_(), bias.requires_grad_(), mask


def step(head: Head, tensors: tuple[Tensor, Tensor, Tensor, Tensor]) -> Work:
    """One forward and backward pass."""
    generator = torch.Generator().manual_seed(1)
    slopes = torch.randn(TEXTS, len(tensors[1]), generator=generator)

    def work() -> object:
        weights = head(*tensors)
        loss = (weights * slopes).sum() + weights.mean(dim=0).square().sum()
        return torch.autograd.grad(loss, tensors[:3])

    return work


def measure(vocabulary: int, units: int, turns: int, clock: str) -> Row:
    """A row of the table: seconds, ratios, memory, and the share of the machine's matrix-product rate."""
    tensors = problem(vocabulary, units)
    contestants = {name: step(head, tensors) for name, head in HEADS.items()}
    times = take_turns({**contestants, "product": matrix_product(torch.float32)}, turns, clock)
    forward = 2 * TEXTS * LENGTH * vocabulary * units
    memory = {name: peak_memory("benchmarks.head", name, str(vocabulary), str(units)) for name in HEADS}
    return {
        "work": f"head, forward + backward, B {TEXTS}, L {LENGTH}, V {vocabulary:,}, H {units}, float32",
        "seconds": {name: times.median(name) for name in HEADS},
        "ratio": {name: times.ratio(OURS, name) for name in (THEIRS, TEXTBOOK)},
        "memory": memory,
        "tokens_per_second": {name: TEXTS * LENGTH / times.median(name) for name in HEADS},
        "rate_share": forward / times.median(OURS) / product_rate(times.median("product")),
    }


def main() -> None:
    """Print one row for each size, or the memory of one contestant."""
    parser = options(__doc__)
    parser.add_argument("--memory", nargs=3, metavar=("NAME", "V", "H"), help="used by the benchmark itself")
    arguments = parser.parse_args()
    if arguments.memory:
        name, vocabulary, units = arguments.memory
        small = [each[..., :64].detach().requires_grad_() for each in problem(64 + ACTIVE, 64)[:1]]
        weight = torch.randn(300, 64, requires_grad=True)
        step(
            HEADS[name], (small[0], weight, torch.zeros(300, requires_grad=True), torch.ones(TEXTS, LENGTH))
        )()
        print_peak_memory(step(HEADS[name], problem(int(vocabulary), int(units))))
        return
    torch.set_num_threads(arguments.threads)
    for size in SIZES:
        print(measure(*size, arguments.turns, arguments.clock))


if __name__ == "__main__":
    main()
