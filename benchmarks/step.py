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
from sparse_adapt.model.addresses import resolve
from sparse_adapt.model.batches import pad
from sparse_adapt.model.head.pooling import activate, plain_splade_pool
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.training.losses import flops, margin_mse

MODEL = "splade-tiny"
QUERIES, CANDIDATES, MAX_TOKENS = 8, 8, 128
DOCUMENT_SPARSITY, QUERY_SPARSITY = 3e-5, 5e-5
OURS, THEIRS, TEXTBOOK = "sparse-adapt", "sentence-transformers", "textbook"


class Batch:
    """The texts of one step and what a teacher thinks of them."""

    def __init__(self, folder: Path) -> None:
        documents = [document.full_text for document in read_documents(folder)]
        stride = len(documents) // (QUERIES * CANDIDATES)
        self.queries = [query.text for query in read_queries(folder)][:QUERIES]
        self.candidates = documents[::stride][: QUERIES * CANDIDATES]
        generator = torch.Generator().manual_seed(0)
        self.teacher = torch.randn(QUERIES, CANDIDATES, generator=generator) * 4
        self.teacher[:, 0] = 12.0  # sentence-transformers takes the first for the positive


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
    present = torch.ones(QUERIES, CANDIDATES, dtype=torch.bool)

    def work() -> object:
        queries, documents = encode()
        scores = torch.einsum("qv,qnv->qn", queries, documents.view(QUERIES, CANDIDATES, -1))
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
    columns = [batch.queries, *(batch.candidates[first::CANDIDATES] for first in range(CANDIDATES))]
    features = [model.preprocess(column) for column in columns]
    loss_of = their_losses.SpladeLoss(
        model, their_losses.SparseMarginMSELoss(model), DOCUMENT_SPARSITY, QUERY_SPARSITY
    )
    labels = batch.teacher[:, :1] - batch.teacher[:, 1:]
    model.train()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-6)

    def work() -> object:
        loss = sum(loss_of([dict(each) for each in features], labels).values())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss.item()

    return work


STEPS: dict[str, Callable[[Batch, str], Work]] = {OURS: ours, THEIRS: theirs, TEXTBOOK: textbook}


def measure(
    data: Path, turns: int, clock: str, source: str = MODEL, names: Sequence[str] = tuple(STEPS)
) -> dict[str, object]:
    """The row of the table, for some contestants; the model is an alias or a folder."""
    batch = Batch(data / "medquad")
    times = take_turns({name: STEPS[name](batch, source) for name in names}, turns, clock)
    tokens = sum(map(len, _tokens(batch, source)))
    return {
        "work": f"distillation step, {QUERIES} queries x {CANDIDATES} texts, {MAX_TOKENS} tokens, {Path(source).name}",
        "seconds": {name: times.median(name) for name in names},
        "ratio": {name: times.ratio(OURS, name) for name in names if name != OURS},
        "memory": {name: peak_memory("benchmarks.step", name, str(data), source) for name in names},
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
    arguments = parser.parse_args()
    if arguments.memory:
        name, data, source = arguments.memory
        print_peak_memory(STEPS[name](Batch(Path(data) / "medquad"), source))
        return
    torch.set_num_threads(arguments.threads)
    print(measure(arguments.data, arguments.turns, arguments.clock))


if __name__ == "__main__":
    main()
