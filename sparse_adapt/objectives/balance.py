"""Loss weights as shares of the gradient rather than of the loss, measured before the first step.

A term's value says nothing of how hard it pulls: a divergence of 0.1 may move the model more than a penalty
of 50. Here a weight of 1 lets a term pull as hard as the first term does, 0.1 a tenth as hard, whatever the
model, the teacher's scale or the corpus (after Chen et al. 2018, arXiv:1711.02257, once instead of always).
"""

from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from sparse_adapt.model.encoder import Encoder
from sparse_adapt.training.loop import Task, beside_of, random_at

BATCHES = 4
BEFORE_THE_FIRST = 1 << 40  # steps that no training reaches, so that these batches are none of its own


def balanced(encoder: Encoder, stage: Task[Any], apart: Collection[str] = ()) -> dict[str, float]:
    """The stage's weights, each divided by its term's gradient beside that of the first term with a weight.

    A term without gradient keeps its weight, and so do those that stand `apart`. Leaves the encoder as it was.
    """
    wanted = {key: weight for key, weight in stage.weights.items() if weight > 0 and key not in apart}
    if not wanted:
        return dict(stage.weights)
    beside_of(stage, encoder.device)
    lengths = dict.fromkeys(wanted, 0.0)
    trained = {id(p): p for p in encoder.parameters()}
    needed = {key: parameter.requires_grad for key, parameter in trained.items()}
    for parameter in trained.values():
        parameter.requires_grad_(True)
    for number in range(BATCHES):
        batch: Any = stage.batch(random_at(stage.settings.seed, BEFORE_THE_FIRST + number))
        for key, value in gradients(stage.terms(encoder, batch), wanted, list(trained.values())).items():
            lengths[key] += value / BATCHES
    for identity, parameter in trained.items():
        parameter.requires_grad_(needed[identity])
    first = lengths[next(iter(wanted))]
    return {
        key: weight * (first / lengths[key] if lengths.get(key, 0.0) > 0 and first > 0 else 1.0)
        for key, weight in stage.weights.items()
    }


def gradients(
    terms: Mapping[str, Tensor], wanted: Mapping[str, float], parameters: list[torch.nn.Parameter]
) -> dict[str, float]:
    """Length of each term's gradient with respect to all parameters; a term is a scalar: ()."""
    lengths = {}
    for key in wanted:
        if not terms[key].requires_grad:
            lengths[key] = 0.0
            continue
        slopes = torch.autograd.grad(terms[key], parameters, retain_graph=True, allow_unused=True)
        squares = [part.float().square().sum() for part in slopes if part is not None]
        lengths[key] = float(torch.stack(squares).sum().sqrt()) if squares else 0.0
    return lengths
