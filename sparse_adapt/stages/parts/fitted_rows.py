"""Rows of new terms fitted to a body that stands still: its hidden states are computed once, and read many times.

A step of training reads texts anew, because the body has moved. As long as it stands still, the logit of a term is
one product of its row with states that never change, so thousands of texts teach it in seconds. States of mean 0 and
like variance make one learning rate do for every model; both are folded back into rows and biases, so that the model
stays an ordinary one.

Dimensions: B texts, N tokens of all texts, D new tokens, H width of the states.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from sparse_adapt.made_up.samples import Samples
from sparse_adapt.model.batches import TokenIds, group_by_length, pad
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.stages.parts.made_up_lessons import marks, recall
from sparse_adapt.stages.parts.targets import Targets
from sparse_adapt.training import losses

TOKENS_A_PASS = 4096
STEPS, RATE = 800, 1e-2  # of the fit; its rate falls linearly to nothing
READ, MADE_UP = 64, 448  # texts of a step
MEASURED_ON = 100_000  # tokens, at most, that tell mean and variance


class States:
    """Hidden states of texts behind one another, and where each text begins."""

    @torch.no_grad()
    def __init__(self, encoder: SparseEncoder, token_ids: Sequence[TokenIds]) -> None:
        """`token_ids`: B texts, none of which is empty."""
        self.lengths = np.array([len(ids) for ids in token_ids], dtype=np.int64)
        self.starts = np.cumsum([0, *self.lengths[:-1]])
        pad_id = encoder.tokenizer.pad_token_id or 0
        states: Tensor | None = None
        for group in group_by_length(self.lengths.tolist(), TOKENS_A_PASS):
            ids, mask = pad([token_ids[row] for row in group], pad_id)
            found = encoder.hidden(ids.to(encoder.device), mask.to(encoder.device))[mask.bool()]
            if states is None:
                states = found.new_empty(int(self.lengths.sum()), found.shape[1])
            states[torch.from_numpy(self.places(group))] = found
        assert states is not None, "of some texts"
        self.states = states

    def places(self, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of the states of some texts, one text behind the other."""
        lengths = self.lengths[rows]
        begins = np.cumsum(lengths) - lengths
        return np.asarray(np.arange(int(lengths.sum())) + np.repeat(self.starts[rows] - begins, lengths))

    def largest(self, rows: NDArray[np.int64], output: Tensor, bias: Tensor) -> Tensor:
        """Largest logit in each of some texts, of rows (D, H) with biases (D): (B, D)."""
        logits = self.states[torch.from_numpy(self.places(rows))] @ output.T + bias
        texts = torch.from_numpy(np.repeat(np.arange(len(rows)), self.lengths[rows])).to(logits.device)
        lowest = logits.new_full((len(rows), len(output)), -torch.inf)
        return lowest.scatter_reduce(0, texts[:, None].expand_as(logits), logits, "amax")

    def standardise(self, centred: bool) -> tuple[Tensor, Tensor]:
        """Give the states variance 1 at most, along any direction, and mean 0 if wanted; what they had (H) before."""
        some = self.states[:: 1 + len(self.states) // MEASURED_ON]
        mean = some.mean(dim=0) * float(centred)
        scale = torch.linalg.eigvalsh(torch.cov((some - mean).T))[-1].sqrt()
        self.states = (self.states - mean) / scale
        return mean, scale


@dataclass(frozen=True, slots=True)
class FittedLessons:
    """What is wanted of texts: first of some that may say a term, then of made-up ones.

    says, quiet: (texts, D) terms that are lit, and terms that are silent, in the first.
    """

    says: NDArray[np.bool_]
    quiet: NDArray[np.bool_]
    samples: Samples
    targets: Targets
    silence: float

    def draw(self, random: Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of some of the first, and of some made-up ones."""
        return random.integers(0, len(self.says), READ), random.integers(
            0, len(self.samples.token_ids), MADE_UP
        )

    def loss(self, read: Tensor, made_up: Tensor, rows: NDArray[np.int64], made: NDArray[np.int64]) -> Tensor:
        """Of the logits of the new tokens in what was drawn, (READ, D) and (MADE_UP, D)."""
        lit = losses.hinge_above(read, marks(self.says[rows], read), self.targets.said)
        silent = losses.hinge_below(read, marks(self.quiet[rows], read), self.targets.quiet)
        return (
            lit + self.silence * silent + recall(made_up, self.samples.of(made), self.targets, self.silence)
        )


def fit_rows(
    encoder: SparseEncoder, token_ids: Sequence[TokenIds], lessons: FittedLessons, seed: int
) -> None:
    """Give the new tokens of an encoder the output rows, and biases, that suit the lessons best.

    token_ids: the texts of the lessons, in their order.
    """
    unique = {ids: row for row, ids in enumerate(dict.fromkeys(map(tuple, token_ids)))}
    place = np.array([unique[tuple(ids)] for ids in token_ids])
    states = States(encoder, list(unique))
    biases = encoder.output_bias
    mean, scale = states.standardise(centred=biases is not None)
    new = slice(encoder.old_size, encoder.old_size + len(encoder.new_tokens))
    rows = encoder.output_rows.detach()[new] * scale
    bias = rows.new_zeros(len(rows)) if biases is None else biases.detach()[new] + rows @ mean / scale
    learnt = [rows.requires_grad_()] if biases is None else [rows.requires_grad_(), bias.requires_grad_()]
    optimiser = torch.optim.Adam(learnt, lr=RATE)
    random = np.random.default_rng(seed)
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1.0 - step / STEPS)
        read, made = lessons.draw(random)
        logits = states.largest(place[np.concatenate([read, len(lessons.says) + made])], rows, bias)
        optimiser.zero_grad()
        lessons.loss(logits[:READ], logits[READ:], read, made).backward()
        optimiser.step()
    with torch.no_grad():
        encoder.output_rows[new] = rows / scale
        if biases is not None:
            biases[new] = bias - rows @ mean / scale
