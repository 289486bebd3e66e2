"""What every generator of contradictions can do, and how it is taught a domain: by restoring spans of its texts.

Spans hide 15 % of the tokens, three together on average: Raffel et al. 2020, arXiv:1910.10683; for what masks, Joshi
et al. 2020, arXiv:1907.10529.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

import torch
from numpy.random import Generator
from torch import Tensor, nn

from sparse_adapt.errors import ConfigError, unknown
from sparse_adapt.report.progress import Progress, no_progress
from sparse_adapt.training.loop import random_at, schedule

LONGEST_FILL = 4  # tokens of what a masked language model writes
NOISE, SPAN = 0.15, 3.0  # share of the tokens, mean length
SHORTEST = 4  # tokens of a text that teaches
BATCH, RAMP = 16, 0.1
OPTIMISERS = {"adamw": 3e-4, "adafactor": 1e-3}  # and their learning rates; the second as published

Spans = Sequence[tuple[int, int]]  # first token and the one after the last, in order, never touching


class Gaps(NamedTuple):
    """Some chunks of a sentence, and what stands before, between and behind them: one text more than chunks."""

    between: tuple[str, ...]
    chunks: tuple[str, ...]

    def filled(self, fills: Sequence[str]) -> str:
        """The sentence with something in the place of each chunk."""
        parts = zip(fills, self.between[1:], strict=True)
        return self.between[0] + "".join(fill + text for fill, text in parts)


class Filler(Protocol):
    """A generator that writes into gaps."""

    def admit(self, chunks: Iterable[str], texts: Iterable[str] = ()) -> None:
        """Write nothing but what the noun chunks of some texts are made of, where that has to be said."""

    def fits(self, text: str) -> bool:
        """Whether a text is short enough to be read whole."""

    def fill(self, sentences: Sequence[Gaps], count: int) -> list[list[tuple[str, ...]]]:
        """At most `count` ways to fill all gaps of each sentence, best first; some may be what stood there."""

    def parameters(self) -> Iterable[nn.Parameter]:
        """What is tuned."""

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text without special ones, cut where the model ends."""

    def denoising(self, token_ids: Sequence[Sequence[int]], spans: Sequence[Spans]) -> Tensor:
        """Cross entropy of the tokens in spans that are hidden: a mean, with its gradient, ()."""

    def training(self, on: bool) -> None:
        """Drop out, or don't."""

    def save(self, folder: Path) -> None:
        """Write the generator, so that `load_filler` reads the same."""


def compared_as(text: str) -> str:
    """What texts have in common that differ in nothing but spaces and case."""
    return "".join(text.split()).casefold()


# -- to learn the domain ----------------------------------------------------------------------------


def tune(
    filler: Filler,
    texts: Sequence[str],
    steps: int,
    *,
    seed: int = 0,
    learning_rate: float | None = None,
    optimiser_name: str = "adamw",
    progress: Progress = no_progress,
) -> list[float]:
    """Teach a generator in place; the loss of each step. None where no text is long enough.

    `learning_rate`: the highest; that of OPTIMISERS where none is given.
    """
    token_ids = [ids for ids in filler.tokenize(texts) if len(ids) >= SHORTEST]
    if not token_ids:
        return []
    parameters = list(filler.parameters())
    for parameter in parameters:
        parameter.requires_grad_(True)
    optimiser = optimiser_of(optimiser_name, parameters, learning_rate)
    highest, history = optimiser.param_groups[0]["lr"], []
    filler.training(True)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        for step in range(steps):
            random = random_at(seed, step)
            rows = random.choice(len(token_ids), min(BATCH, len(token_ids)), replace=False)
            part = [token_ids[row] for row in rows]
            loss = filler.denoising(part, [draw_spans(len(ids), random) for ids in part])
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 1.0)
            for group in optimiser.param_groups:
                group["lr"] = highest * schedule(step, steps, RAMP)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            history.append(float(loss.detach()))
            progress(1)
    filler.training(False)
    return history


def optimiser_of(
    name: str, parameters: Sequence[nn.Parameter], learning_rate: float | None = None
) -> torch.optim.Optimizer:
    """The optimiser of that name, without weight decay, at its own rate where none is given.

    Raises ConfigError for another name.

    Adafactor: Shazeer and Stern 2018, arXiv:1804.04235.
    """
    if name not in OPTIMISERS:
        raise ConfigError(unknown("optimiser", name, tuple(OPTIMISERS)))
    rate = OPTIMISERS[name] if learning_rate is None else learning_rate
    kind = torch.optim.AdamW if name == "adamw" else torch.optim.Adafactor
    return kind(parameters, lr=rate, weight_decay=0.0)


def draw_spans(length: int, random: Generator, share: float = NOISE, mean: float = SPAN) -> Spans:
    """Spans of `length` tokens that are hidden: so many tokens as the share says, at least one, at most half."""
    hidden = min(max(1, round(length * share)), length // 2)
    if not hidden:
        return []
    count = max(1, min(round(hidden / mean), length - hidden))
    inside = _parts(hidden, count, random)
    between = _parts(length - hidden, count, random)
    spans, place = [], 0
    for gap, own in zip(between, inside, strict=True):
        spans.append((place + gap, place + gap + own))
        place += gap + own
    turned = random.integers(2)  # the text ends with a span, or begins with one
    return [(length - end, length - start) for start, end in reversed(spans)] if turned else spans


def _parts(total: int, count: int, random: Generator) -> list[int]:
    """`total` as a sum of `count` numbers of one or more, drawn among all such sums."""
    cuts = sorted(random.choice(total - 1, count - 1, replace=False) + 1) if count > 1 else []
    ends = [0, *(int(cut) for cut in cuts), total]
    return [after - before for before, after in pairwise(ends)]
