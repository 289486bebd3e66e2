"""What a model makes of each position of a text, and which position activated a token.

Dimensions: L positions of a text, V vocabulary.
"""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.report.sections import Heat, Warm
from sparse_adapt.retrieve.activity import Floats, position_logits

NAMED = 3  # tokens of a position that are named
LIGHT = 0.05  # of the warmest position, below which nothing is written behind a token


def weights_at(model: SparseEncoder, token_ids: TokenIds, token_id: int) -> Floats:
    """The weight of a token that each position of a text would give by itself: (L)."""
    logits = torch.from_numpy(position_logits(model, token_ids, [token_id])[:, 0])
    factor = float(model.token_scales_of(np.array([token_id]))[0])
    return np.asarray(model.form.activate(logits).numpy() * factor, np.float32)


def heat_of(model: SparseEncoder, text: str, token_id: int, title: str) -> Heat:
    """A text, each token as dark as the weight that its position gives one token of the vocabulary."""
    token_ids = model.tokenize([text])[0]
    weights = weights_at(model, token_ids, token_id)
    return Heat(title, list(_warm(model, token_ids, weights)), _describe(model, token_ids, weights, token_id))


def heat_of_all(model: SparseEncoder, text: str, title: str) -> Heat:
    """A text, each token as dark as the weights sum to whose largest logit lies at its position."""
    token_ids = model.tokenize([text])[0]
    best = torch.from_numpy(position_logits(model, token_ids)).max(dim=0)
    weights = model.form.activate(best.values).numpy() * model.token_scales_of()
    sums = np.bincount(best.indices.numpy(), weights, minlength=len(token_ids)).astype(np.float32)
    named = [
        _heaviest(model, weights, np.flatnonzero(best.indices.numpy() == place))
        for place in range(len(token_ids))
    ]
    note = "The figure behind a word: the sum of the vector's weights that come from its position, and the heaviest of "
    note += f"these tokens. {end_tokens_note(model)}"
    return Heat(title, list(_warm(model, token_ids, sums, named)), note)


def end_tokens_note(model: SparseEncoder) -> str:
    """What the tokens stand for that the tokenizer puts around a text; nothing where there are none."""
    first, last = model.tokenizer.cls_token, model.tokenizer.sep_token
    return f"{first} and {last} stand for the start and the end of a text." if first and last else ""


def _heaviest(model: SparseEncoder, weights: Floats, token_ids: NDArray[np.int64]) -> str:
    """The heaviest of some tokens (n,), by weights (V,)."""
    order = token_ids[np.argsort(-weights[token_ids], kind="stable")][:NAMED]
    return " ".join(model.names_of([int(each) for each in order if weights[each] > 0]))


def _warm(
    model: SparseEncoder, token_ids: TokenIds, weights: Floats, named: Sequence[str] | None = None
) -> Iterator[Warm]:
    """Each token of a text with its weight (L,); special ones only where they weigh something."""
    largest, first = float(weights.max(initial=0.0)), int(weights.argmax())
    special = set(model.tokenizer.all_special_ids)
    for place, name in enumerate(model.names_of(token_ids)):
        if token_ids[place] in special and weights[place] < LIGHT * largest:
            continue
        warmth = float(weights[place]) / largest if largest > 0 else 0.0
        figure = f"{weights[place]:.2f}" if warmth >= LIGHT else ""
        if figure and named is not None:
            figure = f"{figure} {named[place]}".strip()
        yield Warm(name, warmth, figure, marked=largest > 0 and place == first)


def _describe(model: SparseEncoder, token_ids: TokenIds, weights: Floats, token_id: int) -> str:
    """Which position activates a token most, by weights (L,), in a sentence."""
    token = model.names_of([token_id])[0]
    if not weights.any():
        return f"No position activates {token}."
    place = int(weights.argmax())
    name = model.names_of([token_ids[place]])[0]
    return f"The position of {name} activates {token} most, with a weight of {weights[place]:.2f}."
