"""Rows of new terms fitted to a body that stands still: its hidden states are computed once, and read many times.

A step of training reads texts anew, because the body has moved. As long as it stands still, the logit of a term is
one product of its row with states that never change, so thousands of texts teach it in seconds. A row learns slowly
along directions in which states vary little, and a dense encoder's states vary along few. In the coordinates of a fit
the variance is 1 along any direction (whitening), or along the widest one alone. Rows are taken there and back so that
every logit stays what it was, and the model stays an ordinary one.

Dimensions: S texts of a stage, B texts, N tokens of all texts, D tokens that learn, H width of the states.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds, group_by_length, pad
from sparse_adapt.objectives.meanings import recall
from sparse_adapt.objectives.targets import Targets
from sparse_adapt.objectives.texts import Texts, marks
from sparse_adapt.report.progress import passing
from sparse_adapt.synthetic.windows import Samples
from sparse_adapt.training import losses

MEASURED_ON = 100_000  # states, at most, that tell mean and variance


@dataclass(frozen=True, slots=True)
class Coordinates:
    """mean: (H); spread: standard deviations (H) along the columns of `axes` (H, H), or one for any direction."""

    mean: Tensor
    spread: Tensor
    axes: Tensor | None = None

    def of_states(self, states: Tensor) -> Tensor:
        """States (N, H) in these coordinates."""
        moved = states - self.mean
        return (moved if self.axes is None else moved @ self.axes) / self.spread

    def of_rows(self, rows: Tensor) -> Tensor:
        """Plain rows (D, H) in these coordinates."""
        return (rows if self.axes is None else rows @ self.axes) * self.spread

    def plain_rows(self, rows: Tensor) -> Tensor:
        """Rows (D, H) of these coordinates as plain ones."""
        plain = rows / self.spread
        return plain if self.axes is None else plain @ self.axes.T

    def at_mean(self, rows: Tensor) -> Tensor:
        """The logits (D) that rows of these coordinates have at the mean, by which biases differ from plain ones."""
        return rows @ self.mean / self.spread if self.axes is None else self.plain_rows(rows) @ self.mean


def coordinates(states: Tensor, *, centred: bool, floor: float) -> Coordinates:
    """Coordinates in which states (N, H) have variance 1, and mean 0 if wanted.

    floor: variance of a direction, as a share of the largest, from which on it becomes 1; narrower ones stay below it.
    """
    some = states[:: 1 + len(states) // MEASURED_ON]
    mean = some.mean(dim=0) * float(centred)
    covariance = torch.cov((some - mean).T)
    if floor >= 1.0:
        return Coordinates(mean, torch.linalg.eigvalsh(covariance)[-1].sqrt())
    variances, axes = torch.linalg.eigh(covariance)
    return Coordinates(mean, variances.clamp_min(floor * variances[-1]).sqrt(), axes)


FITTED = 8_000  # synthetic texts from anywhere, and as many that mean a term, to which rows are fitted
OWN = 512  # of the stage's texts that say a term, and of those that say none, at most


class FittedTexts(NamedTuple):
    """Token ids, and the terms (B, D) that are active, and that are inactive, in each."""

    token_ids: Sequence[TokenIds]
    says: NDArray[np.bool_]
    inactive: NDArray[np.bool_]


def fitted_texts(
    texts: Texts, about: NDArray[np.bool_], general: Texts, terms: NDArray[np.int64]
) -> FittedTexts:
    """The stage's texts that say a term, as many others, and all of the general passages.

    terms: which D of the new tokens are fitted, by their place among them; about: (S, D) those that a text may mean,
    so that they needn't be inactive there.
    """
    says = texts.says[:, terms]
    saying = says.any(axis=1)
    own = np.concatenate([np.flatnonzero(saying == mention)[:OWN] for mention in (True, False)])
    mentions = np.concatenate([says[own], general.says[:, terms]])
    means = np.concatenate([about[own], general.says[:, terms]])
    token_ids = [*(texts.ids[row] for row in own), *general.ids]
    return FittedTexts(token_ids, mentions, ~means & ~mentions)


TOKENS_A_PASS = 4096
STEPS, RATE = 800, 1e-2  # of the fit; its rate falls linearly to nothing
READ, SYNTHETIC = 64, 448  # texts of a step


class States:
    """Hidden states of texts behind one another, and where each text begins."""

    @torch.no_grad()
    def __init__(self, encoder: SparseEncoder, token_ids: Sequence[TokenIds]) -> None:
        """`token_ids`: B texts, none of which is empty."""
        self.lengths = np.array([len(ids) for ids in token_ids], dtype=np.int64)
        self.starts = np.cumsum([0, *self.lengths[:-1]])
        pad_id, advance = (
            encoder.tokenizer.pad_token_id or 0,
            passing("texts that rows are fitted to", len(token_ids)),
        )
        states: Tensor | None = None
        for group in group_by_length(self.lengths.tolist(), TOKENS_A_PASS):
            ids, mask = pad([token_ids[row] for row in group], pad_id)
            hidden = encoder.hidden(ids.to(encoder.device), mask.to(encoder.device))[mask.bool()]
            if states is None:
                states = hidden.new_empty(int(self.lengths.sum()), hidden.shape[1])
            states[torch.from_numpy(self.places(group))] = hidden
            advance(len(group))
        assert states is not None, "of some texts"
        self.states = states

    def places(self, rows: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows (tokens of the texts,) of the states of some texts, one text behind the other."""
        lengths = self.lengths[rows]
        begins = np.cumsum(lengths) - lengths
        return np.asarray(np.arange(int(lengths.sum())) + np.repeat(self.starts[rows] - begins, lengths))

    def largest(self, rows: NDArray[np.int64], output: Tensor, bias: Tensor) -> Tensor:
        """Largest logit in each of some texts, of rows (D, H) with biases (D): (B, D)."""
        logits = self.states[torch.from_numpy(self.places(rows))] @ output.T + bias
        texts = torch.from_numpy(np.repeat(np.arange(len(rows)), self.lengths[rows])).to(logits.device)
        lowest = logits.new_full((len(rows), len(output)), -torch.inf)
        return lowest.scatter_reduce(0, texts[:, None].expand_as(logits), logits, "amax")


@dataclass(frozen=True, slots=True)
class FittingExamples:
    """What is wanted of texts: first of some that may say a term, then of synthetic ones.

    says, inactive: (texts, D) terms that are active, and terms that are inactive, in the first.
    """

    says: NDArray[np.bool_]
    inactive: NDArray[np.bool_]
    samples: Samples
    targets: Targets
    inactive_weight: float

    def draw(self, random: Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Rows of some of the first (READ,), and of some synthetic ones (SYNTHETIC,)."""
        return random.integers(0, len(self.says), READ), random.integers(
            0, len(self.samples.token_ids), SYNTHETIC
        )

    def loss(
        self, read: Tensor, synthetic: Tensor, rows: NDArray[np.int64], made: NDArray[np.int64]
    ) -> Tensor:
        """Of the logits of the new tokens in what was drawn, (READ, D) and (SYNTHETIC, D)."""
        active = losses.hinge_above(read, marks(self.says[rows], read), self.targets.mention)
        inactive = losses.hinge_below(read, marks(self.inactive[rows], read), self.targets.none)
        return (
            active
            + self.inactive_weight * inactive
            + recall(synthetic, self.samples.of(made), self.targets, self.inactive_weight)
        )


class Fitting(NamedTuple):
    """How rows are fitted.

    token_ids: the D tokens that learn, in the order of the examples' columns. floor: share of the largest variance that
    a direction of the states has at least when all are brought to one variance; with 1 only the largest is. reread:
    steps after which texts that say such a token are read again; never with 0.
    """

    token_ids: Sequence[int]
    seed: int
    floor: float = 1.0
    reread: int = 0


def fit_rows(
    encoder: SparseEncoder, token_ids: Sequence[TokenIds], examples: FittingExamples, how: Fitting
) -> None:
    """Give some tokens of an encoder the output rows, and biases, that suit the examples best.

    token_ids: the texts of the examples, in their order.
    """
    unique = {ids: row for row, ids in enumerate(dict.fromkeys(map(tuple, token_ids)))}
    place = np.array([unique[tuple(ids)] for ids in token_ids])
    fit = _Fit(encoder, list(unique), how)
    optimiser = torch.optim.Adam(fit.learnt, lr=RATE)
    random, advance = np.random.default_rng(how.seed), passing("steps that fit rows", STEPS)
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1.0 - step / STEPS)
        if how.reread and step and step % how.reread == 0:
            fit.read_again()
        read, made = examples.draw(random)
        logits = fit.states.largest(
            place[np.concatenate([read, len(examples.says) + made])], fit.rows, fit.bias
        )
        optimiser.zero_grad()
        examples.loss(logits[:READ], logits[READ:], read, made).backward()
        optimiser.step()
        advance(1)
    fit.put_back()


class _Fit:
    """Rows (D, H) and biases (D) that learn, where they see the states; which texts the rows themselves change."""

    def __init__(self, encoder: SparseEncoder, texts: Sequence[TokenIds], how: Fitting) -> None:
        self.encoder, self.texts = encoder, texts
        self.token_ids = torch.tensor(how.token_ids)
        self.states = States(encoder, texts)
        biases = encoder.output_bias
        self.seen: Coordinates = coordinates(self.states.states, centred=biases is not None, floor=how.floor)
        self.states.states = self.seen.of_states(self.states.states)
        rows = self.seen.of_rows(encoder.output_rows.detach()[self.token_ids])
        bias = rows.new_zeros(len(rows))
        if biases is not None:
            bias = biases.detach()[self.token_ids] + self.seen.at_mean(rows)
        self.rows, self.bias = rows.requires_grad_(), bias.requires_grad_(biases is not None)
        self.learnt = [each for each in (self.rows, self.bias) if each.requires_grad]
        changing = set(how.token_ids) if encoder.output_rows is encoder.input_rows else set()
        self.changed = [row for row, ids in enumerate(texts) if not changing.isdisjoint(ids)]

    @torch.no_grad()
    def put_back(self) -> None:
        """Give the model the rows and biases as they are by now."""
        self.encoder.output_rows[self.token_ids] = self.seen.plain_rows(self.rows)
        if self.encoder.output_bias is not None:
            self.encoder.output_bias[self.token_ids] = self.bias - self.seen.at_mean(self.rows)

    @torch.no_grad()
    def read_again(self) -> None:
        """Read the texts that say a token whose row is an input row too: the body sees another row there by now."""
        if not self.changed:
            return
        self.put_back()
        again = States(self.encoder, [self.texts[row] for row in self.changed])
        self.states.states[torch.from_numpy(self.states.places(self.changed))] = self.seen.of_states(
            again.states
        )
