"""Lessons of made-up texts: which term each of them lights.

Dimensions: B texts, D new tokens, V vocabulary.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sparse_adapt.model.dense import DenseEncoder
from sparse_adapt.model.head.pooling import splade_pool
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import read_by_length
from sparse_adapt.stages.parts.about import Sources
from sparse_adapt.stages.parts.targets import Targets
from sparse_adapt.stages.parts.texts import Texts, general_passages
from sparse_adapt.synthetic.judged import JudgedMeanings
from sparse_adapt.synthetic.samples import MadeUpTexts, Samples
from sparse_adapt.synthetic.windows import Meanings
from sparse_adapt.training import losses
from sparse_adapt.training.sharing import shared_out

if TYPE_CHECKING:
    from sparse_adapt.stages.parts.six_terms import SixTermsReading

SHORT_TOKENS_A_PASS = 768  # of made-up texts, which are short: as many of like length


def recall_term(read: "SixTermsReading") -> Tensor:
    """A term is lit by the made-up texts that mean it, and by no others."""
    task = read.task
    if not task.taught_by_made_up:
        return read.nothing
    return recall(read.made_up, read.drawn.samples, task.targets, task.settings.silence)


def new_logits(
    encoder: SparseEncoder, token_ids: Sequence[Sequence[int]], texts: Texts, body_learns: bool = True
) -> Tensor:
    """Largest raw logits of the new tokens in some texts: (B, D).

    `body_learns`: whether gradients go further than to the rows. Texts that say no new token have no others where
    nothing else learns.
    """
    new = slice(texts.first, texts.first + texts.new)
    rows = encoder.output_rows[new]
    bias = None if encoder.output_bias is None else encoder.output_bias[new]
    if not token_ids:
        return rows.new_zeros(0, texts.new)

    def largest(ids: Tensor, mask: Tensor, _: list[int]) -> Tensor:
        with torch.set_grad_enabled(body_learns and torch.is_grad_enabled()):
            states = encoder.hidden(ids, mask)
        return splade_pool(states, rows, bias, mask)[0]

    def logits(share: Sequence[Sequence[int]]) -> Tensor:
        pad_id = encoder.tokenizer.pad_token_id or 0
        with encoder.looked_up(share):
            return read_by_length(share, SHORT_TOKENS_A_PASS, pad_id, encoder.device, largest)

    return shared_out(logits, token_ids)


def meanings(
    reference: SparseEncoder, sources: Sources, judge: str, seed: int, documents: Sequence[int] = ()
) -> MadeUpTexts:
    """Made-up texts from a stage's sources, judged by the dense encoder of that name; by nobody where it is "none".

    The judge compares them with general passages, too, and others are made of these: what people write who mean no
    term. `documents`: the rows of the sources that a search is to find.
    """
    if judge == "none" or not sources.about.shape[1]:
        return Meanings(reference, sources.token_ids, sources.about)
    passages = general_passages(reference)
    sources += Sources(passages.ids, passages.says)
    random = np.random.default_rng(seed)
    return JudgedMeanings(reference, sources.token_ids, sources.about, judge_named(judge), random, documents)


@lru_cache(maxsize=1)
def judge_named(name: str) -> DenseEncoder:
    """The judge of that name: one for every stage of a run, which then needn't encode the ordinary words again."""
    return DenseEncoder(name, rough=True)


def recall(meant: Tensor, samples: Samples, targets: Targets, silence: float) -> Tensor:
    """How far made-up texts are from lighting what they mean; `meant` (B, D) as the hinges take it.

    Judged by degrees, a term's logit follows the nearness; else it is lit above or silent below a bound.
    """
    if samples.nearness is not None:
        wanted = targets.border + targets.slope * samples.nearness.to(meant.device)
        wanted = wanted.clamp(targets.far, targets.meant)
        return losses.graded(meant, wanted, targets.far, targets.meant, silence)
    lit = losses.hinge_above(meant, samples.meant.to(meant.device), targets.meant)
    return lit + silence * losses.hinge_below(meant, samples.quiet.to(meant.device), targets.quiet)


def marks(array: NDArray[np.bool_], beside: Tensor) -> Tensor:
    """A boolean array as a tensor on the device of another."""
    return torch.from_numpy(np.ascontiguousarray(array)).to(beside.device)
