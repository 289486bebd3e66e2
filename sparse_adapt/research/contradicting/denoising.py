"""A generator taught the domain by denoising spans: 15 % of the tokens, three together on average.

Raffel et al. 2020, arXiv:1910.10683; for what masks, Joshi et al. 2020, arXiv:1907.10529.
"""

from collections.abc import Sequence
from itertools import pairwise

import torch
from numpy.random import Generator
from torch import nn

from sparse_adapt.errors import ConfigError, unknown
from sparse_adapt.report.watching import Heard, silent
from sparse_adapt.research.contradicting.gaps import Filler, Spans
from sparse_adapt.training.loop import random_at, schedule

NOISE, SPAN = 0.15, 3.0  # share of the tokens, mean length
SHORTEST = 4  # tokens of a text that teaches
BATCH, LEARNING_RATE, RAMP = 16, 3e-4, 0.1
OPTIMISERS = ("adamw", "adafactor")  # the second as published


def tune(
    filler: Filler,
    texts: Sequence[str],
    steps: int,
    *,
    seed: int = 0,
    learning_rate: float = LEARNING_RATE,
    optimiser_name: str = "adamw",
    progress: Heard = silent,
) -> list[float]:
    """Teach a generator in place; the loss of each step. None where no text is long enough."""
    token_ids = [ids for ids in filler.tokenize(texts) if len(ids) >= SHORTEST]
    if not token_ids:
        return []
    parameters = list(filler.parameters())
    for parameter in parameters:
        parameter.requires_grad_(True)
    optimiser = optimiser_of(optimiser_name, parameters, learning_rate)
    history = []
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
                group["lr"] = learning_rate * schedule(step, steps, RAMP)
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)
            history.append(float(loss.detach()))
            progress(1)
    filler.training(False)
    return history


def optimiser_of(
    name: str, parameters: Sequence[nn.Parameter], learning_rate: float
) -> torch.optim.Optimizer:
    """The optimiser of that name, without weight decay. Raises ConfigError for another name.

    Adafactor: Shazeer and Stern 2018, arXiv:1804.04235.
    """
    if name not in OPTIMISERS:
        raise ConfigError(unknown("optimiser", name, OPTIMISERS))
    kind = torch.optim.AdamW if name == "adamw" else torch.optim.Adafactor
    return kind(parameters, lr=learning_rate, weight_decay=0.0)


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
