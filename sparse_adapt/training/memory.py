"""How much memory a stage takes, and how many tokens at a time keep it below a bound.

What is held follows from the model's size; what a token's activations take is measured, for each body keeps others.
Memory is that of the process on a processor, and that of torch's tensors on a card.
Dimensions: H hidden, V vocabulary.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Self

import psutil
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from sparse_adapt.errors import ConfigError
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.training.loop import accelerator_for, choose_attention
from sparse_adapt.training.parameters import chosen
from sparse_adapt.training.settings import Training

AN_ENTRY = 60  # bytes of each entry of a text's vector: logits, positions, weights, losses and gradients
SPARE = 0.1  # of a bound: what a stage learns from, and blocks that are free but too small


class Costs(NamedTuple):
    """Bytes that teaching an encoder takes: at all times, for each text of a step, for each token read at a time.

    kept: for each token of a step, whether it is read at the time or not; longest: tokens of the longest text; there:
    bytes that are held or free by now.
    """

    fixed: float
    a_text: float
    kept: float
    a_token: float
    longest: int
    there: float = math.inf

    @classmethod
    def of(cls, encoder: Encoder, settings: Training) -> Self:
        """What the encoder costs where it is now, beside what is held already."""
        accelerator, longest = accelerator_for(settings), longest_text(encoder, settings)
        choose_attention(encoder, accelerator)
        ids = torch.arange(longest, device=encoder.device).remainder(len(encoder.tokenizer)).expand(2, -1)
        own = {each.untyped_storage().data_ptr() for each in encoder.parameters()}
        with accelerator.autocast():
            one, two = (
                saved_bytes(partial(encoder.states, ids[:rows], torch.ones_like(ids[:rows])), own)
                for rows in (1, 2)
            )
        rows, width = 4 * encoder.output_rows.numel(), encoder.output_rows.shape[1]
        copy = sum(4 * each.numel() for each in encoder.parameters())  # the model as it was
        learnt = sum(4 * each.numel() for each in chosen(encoder, settings.train))
        gradients, moments = max(learnt, 2 * rows), 2 * learnt
        passing = 2 * rows + max(0, 2 * one - two)  # the head's gradients; weights in another precision
        now = held(encoder.device)
        entries = encoder.vocabulary_size if isinstance(encoder, SparseEncoder) else width
        fixed = now + copy + gradients + moments + passing
        return cls(
            fixed, AN_ENTRY * entries, 4 * width, (two - one) / longest, longest, now + free(encoder.device)
        )

    def at_most(self, texts: float, tokens: float) -> int:
        """Bytes where all of a step's texts are read at a time, which have so many tokens each."""
        return round(self.fixed + texts * (self.a_text + tokens * (self.kept + self.a_token)))

    def tokens_within(self, memory: float, texts: float) -> int:
        """How many tokens may be read at a time within so many bytes: a power of two, for the same sums each time."""
        tokens = int(((1.0 - SPARE) * memory - self._besides(texts)) / self.a_token)
        return 1 << (tokens.bit_length() - 1) if tokens > 0 else 0

    def least(self, texts: float) -> float:
        """Bytes that a bound has to be, so that the longest text can be read."""
        power = 1 << (self.longest - 1).bit_length()
        return (self._besides(texts) + power * self.a_token) / (1.0 - SPARE)

    def checked(self, settings: Training, stage: str, texts: float) -> int:
        """Tokens that may be read at a time by a stage's bound. Raises ConfigError for one that is too little."""
        tokens = self.tokens_within(settings.memory_bytes, texts)
        if tokens < self.longest:
            raise ConfigError(
                f"{stage}: memory = {settings.memory!r} is too little for this model, whose training takes "
                f"{gigabytes(self.least(texts))} at least; give more, or lower --batch-size or --max-tokens"
            )
        return tokens

    def advice(self, settings: Training, stage: str, texts: float, tokens: float) -> str:
        """What to do where a stage may take more memory than there is, in words; empty where there is enough.

        texts: of a step, of so many tokens each. Raises ConfigError for a bound that is too little.
        """
        if settings.memory is not None:
            self.checked(settings, stage, texts)
        most = min(self.at_most(texts, tokens), settings.memory_bytes)
        if most <= self.there:
            return ""
        return (
            f"{stage} takes at most {gigabytes(most)} of memory, and {gigabytes(self.there)} are to be had here; "
            f"stop and pass --memory {math.floor(self.there / 1e8) / 10:g}G"
        )

    def _besides(self, texts: float) -> float:
        """Bytes beside the activations of what is read at a time."""
        return self.fixed + texts * (self.a_text + self.longest * self.kept)


def keep_within(encoder: Encoder, settings: Training, stage: str, texts: float) -> None:
    """Have an encoder read no more tokens at a time than a stage's bound on memory allows, where it has one.

    texts: of a step. Raises ConfigError for a bound that is too little.
    """
    if settings.memory is not None:
        encoder.tokens_at_once = Costs.of(encoder, settings).checked(settings, stage, texts)


def longest_text(encoder: Encoder, settings: Training) -> int:
    """Tokens of the longest text that a stage reads."""
    longest: int | None = getattr(settings, "longest", None)
    return min(encoder.max_tokens, longest or encoder.max_tokens)


def saved_bytes(work: Callable[[], Tensor], own: set[int]) -> int:
    """Bytes that autograd saves of some work for its way back: each storage once, without those at `own` addresses."""
    sizes: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.enable_grad(), saved_tensors_hooks(keep, lambda tensor: tensor):
        result = work()  # holds what was saved, so that no address comes twice
    del result
    return sum(sizes.values())


def held(device: torch.device) -> int:
    """Bytes that are held by now."""
    if device.type == "cuda":
        return torch.cuda.memory_allocated(device)
    if device.type == "mps":
        return torch.mps.current_allocated_memory()
    return int(psutil.Process().memory_info().rss)


def free(device: torch.device) -> int:
    """Bytes that are still to be had."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return int(psutil.virtual_memory().available)


def gigabytes(memory: float) -> str:
    """Bytes in words."""
    return f"{memory / 1e9:.1f} GB"
