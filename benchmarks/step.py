"""A whole distillation step: encode queries and candidates, margins and sparsity, gradients, AdamW.

    python -m benchmarks.step --data DIR

Eight queries of the collection with eight candidates each, all cut at 128 tokens. sentence-transformers runs
its own `SpladeLoss(SparseMarginMSELoss)` on its own model; the textbook runs this project's losses on pooled
whole logits. Same model, texts, targets, optimiser and threads.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from sentence_transformers import SparseEncoder as TheirEncoder
from sentence_transformers.sparse_encoder import losses as their_losses
from torch import Tensor

from benchmarks.measure import Work, options, peak_memory, print_peak_memory, take_turns
from sparse_adapt.collection.readers import read_documents, read_queries
from sparse_adapt.model.folder import resolve
from sparse_adapt.model.head.pooling import activate, plain_splade_pool
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import pad
from sparse_adapt.training.losses import flops, margin_mse

MODEL = "splade-tiny"
QUERIES, MAX_TOKENS = 8, 128  # each query has as many candidates
DOCUMENT_SPARSITY, QUERY_SPARSITY = 3e-5, 5e-5
OURS, THEIRS, TEXTBOOK = "sparse-adapt", "sentence-transformers", "textbook"


class Batch:
    """The texts of one step and what a teacher thinks of them."""

    def __init__(self, folder: Path, size: int = QUERIES, *, low: bool = False) -> None:
        """`size`: how many queries, and how many candidates each has.

        `low`: whether matrices are multiplied in bfloat16 on the way forward, as `precision = "bfloat16"` has it.
        """
        self.size, self.low = size, low
        documents = [document.full_text for document in read_documents(folder)]
        stride = len(documents) // size**2
        self.queries = [query.text for query in read_queries(folder)][:size]
        self.candidates = documents[::stride][: size**2]
        generator = torch.Generator().manual_seed(0)
        self.teacher = torch.randn(size, size, generator=generator) * 4
        self.teacher[:, 0] = 12.0  # sentence-transformers takes the first for the positive

    def forward(self) -> torch.autocast:
        """The precision of the way forward, as a context."""
        return torch.autocast("cpu", torch.bfloat16, enabled=self.low)


def ours(batch: Batch, source: str = MODEL) -> Work:
    """This project's encoder and losses."""
    model = SparseEncoder.load(source)
    model.max_tokens = MAX_TOKENS
    query_ids, document_ids = model.tokenize(batch.queries), model.tokenize(batch.candidates)
    return _with_our_losses(model, batch, lambda: (model.weights(query_ids), model.weights(document_ids)))


def textbook(batch: Batch, source: str = MODEL) -> Work:
    """The same losses on weights pooled from whole logits of one padded batch."""
    model = SparseEncoder.load(source)
    model.max_tokens = MAX_TOKENS
    padded = [pad(model.tokenize(texts), 0) for texts in (batch.queries, batch.candidates)]

    def weights(ids: Tensor, mask: Tensor) -> Tensor:
        hidden = model.hidden(ids, mask)
        return activate(plain_splade_pool(hidden, model.output_rows, model.output_bias, mask)[0])

    return _with_our_losses(model, batch, lambda: (weights(*padded[0]), weights(*padded[1])))


def _with_our_losses(model: SparseEncoder, batch: Batch, encode: Callable[[], tuple[Tensor, Tensor]]) -> Work:
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6)
    present = torch.ones(batch.size, batch.size, dtype=torch.bool)

    def work() -> object:
        with batch.forward():
            queries, documents = encode()
        scores = torch.einsum("qv,qnv->qn", queries, documents.view(batch.size, batch.size, -1))
        loss = margin_mse(scores, batch.teacher, present)
        loss = loss + DOCUMENT_SPARSITY * flops(documents) + QUERY_SPARSITY * flops(queries)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.item()

    return work


def theirs(batch: Batch, source: str = MODEL) -> Work:
    """sentence-transformers' encoder and its trainer's loss: a positive and seven negatives a query."""
    model = TheirEncoder(resolve(source), device="cpu")
    model.max_seq_length = MAX_TOKENS
    columns = [batch.queries, *(batch.candidates[first :: batch.size] for first in range(batch.size))]
    features = [model.preprocess(column) for column in columns]
    loss_of = their_losses.SpladeLoss(
        model, their_losses.SparseMarginMSELoss(model), DOCUMENT_SPARSITY, QUERY_SPARSITY
    )
    labels = batch.teacher[:, :1] - batch.teacher[:, 1:]
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6)

    def work() -> object:
        with batch.forward():
            loss = sum(loss_of([dict(each) for each in features], labels).values())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.item()

    return work


STEPS: dict[str, Callable[[Batch, str], Work]] = {OURS: ours, THEIRS: theirs, TEXTBOOK: textbook}


def measure(
    batch: Batch,
    data: Path,
    turns: int,
    clock: str,
    source: str = MODEL,
    names: Sequence[str] = tuple(STEPS),
) -> dict[str, object]:
    """The row of the table, for some contestants; the model is an alias or a folder."""
    also = ["--size", str(batch.size), *(["--low"] if batch.low else [])]
    times = take_turns({name: STEPS[name](batch, source) for name in names}, turns, clock)
    tokens = sum(map(len, _tokens(batch, source)))
    return {
        "work": f"distillation step, {batch.size} queries x {batch.size} texts, {MAX_TOKENS} tokens, "
        f"{Path(source).name}{', bfloat16' if batch.low else ''}",
        "seconds": {name: times.median(name) for name in names},
        "ratio": {name: times.ratio(OURS, name) for name in names if name != OURS},
        "memory": {name: peak_memory("benchmarks.step", name, str(data), source, *also) for name in names},
        "tokens_per_second": {name: tokens / times.median(name) for name in names},
    }


def _tokens(batch: Batch, source: str) -> list[list[int]]:
    model = SparseEncoder.load(source)
    model.max_tokens = MAX_TOKENS
    return model.tokenize([*batch.queries, *batch.candidates])


def main() -> None:
    """Print the row, or the memory of one contestant."""
    parser = options(__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument(
        "--memory", nargs=3, metavar=("NAME", "DIR", "MODEL"), help="used by the benchmark itself"
    )
    parser.add_argument("--size", type=int, default=QUERIES, help="queries, and candidates of each")
    parser.add_argument("--low", action="store_true", help="in bfloat16")
    arguments = parser.parse_args()
    if arguments.memory:
        name, data, source = arguments.memory
        batch = Batch(Path(data) / "medquad", arguments.size, low=arguments.low)
        print_peak_memory(STEPS[name](batch, source))
        return
    torch.set_num_threads(arguments.threads)
    batch = Batch(arguments.data / "medquad", arguments.size, low=arguments.low)
    print(measure(batch, arguments.data, arguments.turns, arguments.clock))


if __name__ == "__main__":
    main()
