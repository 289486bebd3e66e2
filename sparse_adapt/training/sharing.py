"""One training in several processes: the texts of each step are shared out, its loss is that of the whole batch.

Every process goes through the same steps with the same weights and the same batch, which the first one draws.
Texts are what costs, so each process reads its share of them, and all gather the vectors; then each works out
the same loss of all of them, so that a batch's mean is squared once and not in parts (which is why gradients of
parts are not averaged here, as DistributedDataParallel does). Backwards, a process follows the loss into its own
texts only, and the sum over processes is the gradient of one process with the whole batch.

Dimensions: B texts, V vocabulary.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, distributed, nn

from sparse_adapt.model.encoder import Encoder
from sparse_adapt.model.sparse import Pooled, SparseEncoder
from sparse_adapt.model.tokens import TokenIds

T = TypeVar("T")


def own_share(items: Sequence[T]) -> Sequence[T]:
    """What this process works on: each n-th of the items where there are n processes, all of them alone."""
    rank, processes = _place()
    return items[rank::processes]


def shared_out(work: Callable[[Sequence[T]], Tensor], items: Sequence[T]) -> Tensor:
    """`work(items)`, a row for each of B items, where each process works on its share and all get every row.

    The loss that is made of it has to be the same in every process.
    """
    processes = _place()[1]
    if processes == 1 or not items:
        return work(items)
    rows = work(own_share(items) or items[:1])  # fewer items than processes: someone repeats the first
    most = -(-len(items) // processes)
    filled = torch.cat([rows, rows.new_zeros(most - len(rows), *rows.shape[1:])])
    gathered: Tensor = _Gathered.apply(filled)  # type: ignore[no-untyped-call]
    return gathered[: len(items)]


def summed_over_processes(value: Tensor) -> Tensor:
    """The sum of a value of any shape over all processes, of which each passes its own part."""
    if _place()[1] == 1:
        return value
    summed: Tensor = _Summed.apply(value)  # type: ignore[no-untyped-call]
    return summed


def add_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Give every process the sum of the gradients of all. Who has none anywhere keeps none."""
    if _place()[1] == 1:
        return
    listed = list(parameters)
    present = torch.tensor([float(p.grad is not None) for p in listed], device=listed[0].device)
    distributed.all_reduce(present, distributed.ReduceOp.MAX)
    for parameter, anywhere in zip(listed, present.tolist(), strict=True):
        if anywhere:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            distributed.all_reduce(parameter.grad)


def sharing(encoder: Encoder) -> Encoder:
    """The encoder, or, where there are several processes, one that shares out the texts of each forward pass.

    A dense encoder has no such pass: stages that read one share out themselves.
    """
    if _place()[1] == 1 or not isinstance(encoder, SparseEncoder):
        return encoder
    return SharingEncoder(encoder)


class SharingEncoder(SparseEncoder):
    """An encoder with the weights of another whose forward pass each process does a share of."""

    def __init__(self, encoder: SparseEncoder) -> None:
        parts = encoder.tokenizer, encoder.new_tokens, encoder.max_tokens, encoder.form, encoder.query_side
        super().__init__(encoder.masked_lm, *parts)
        self.tokens_at_once = encoder.tokens_at_once

    def forward(self, token_ids: Sequence[TokenIds], wanted: Tensor | None = None) -> Pooled:
        """Largest logit of every token in every text (B, V); positions, which no loss asks for, are all -1."""

        def read(share: Sequence[int]) -> Tensor:  # (texts, 1 or 2, V)
            theirs = None if wanted is None else wanted.expand(len(token_ids), -1)[list(share)]
            pooled = super(SharingEncoder, self).forward([token_ids[row] for row in share], theirs)
            return torch.stack(
                [pooled.maximum] if pooled.summed is None else [pooled.maximum, pooled.summed], dim=1
            )

        maximum, *summed = shared_out(read, range(len(token_ids))).unbind(dim=1)
        positions = torch.full((1, 1), -1, device=maximum.device).expand(maximum.shape)
        return Pooled(maximum, positions, self.form, *summed)


class _Gathered(torch.autograd.Function):
    """Rows of all processes, dealt back into the order that `own_share` took them from."""

    @staticmethod
    def forward(_: object, rows: Tensor) -> Tensor:  # (own rows, ...) -> (rows of all, ...)
        parts = [torch.empty_like(rows) for _ in range(_place()[1])]
        distributed.all_gather(parts, rows.contiguous())
        return torch.stack(parts, dim=1).flatten(0, 1)

    @staticmethod
    def backward(_: object, gradient: Tensor) -> Tensor:  # (rows of all, ...) -> (own rows, ...)
        return own_share(gradient)  # type: ignore[arg-type,return-value]


class _Summed(torch.autograd.Function):
    """A sum over processes."""

    @staticmethod
    def forward(_: object, value: Tensor) -> Tensor:  # of any shape, which stays
        summed = value.detach().clone()
        distributed.all_reduce(summed)
        return summed

    @staticmethod
    def backward(_: object, gradient: Tensor) -> Tensor:
        return gradient


def _place() -> tuple[int, int]:
    """Which process this is, and of how many."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1
