"""What a model makes of each position of a text, and which position activated a token.

Dimensions: L positions of a text, H hidden, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import group_by_length, names_of, pad
from sparse_adapt.report.sections import Heat, Warm

TOKENS_A_PASS = 4096
NAMED = 3  # tokens of a position that are named
LIGHT = 0.05  # of the warmest position, below which nothing is written behind a token

Floats = NDArray[np.float32]


class TextStates(NamedTuple):
    """A text as token ids (L) and the states of its positions (L, H)."""

    token_ids: list[int]
    states: Floats


@torch.inference_mode()
def read_texts(model: SparseEncoder, texts: Sequence[str]) -> list[TextStates]:
    """The states of every position of some texts, as the output rows are multiplied with."""
    token_ids = model.tokenize(texts)
    by_text: dict[int, TextStates] = {}
    for group in group_by_length([len(ids) for ids in token_ids], TOKENS_A_PASS):
        ids, mask = pad([token_ids[row] for row in group], model.tokenizer.pad_token_id or 0)
        states = model.hidden(ids.to(model.device), mask.to(model.device)).float().cpu().numpy()
        for place, row in enumerate(group):
            by_text[row] = TextStates(token_ids[row], states[place, : len(token_ids[row])])
    return [by_text[row] for row in range(len(texts))]


@torch.inference_mode()
def output_row_of(model: SparseEncoder, token_id: int) -> tuple[Floats, float]:
    """The output row (H) of a token, and its bias."""
    bias = 0.0 if model.output_bias is None else float(model.output_bias[token_id])
    return model.output_rows[token_id].float().cpu().numpy(), bias


def weights_at(model: SparseEncoder, read: TextStates, token_id: int) -> Floats:
    """The weight of a token that each position would give by itself: (L)."""
    row, bias = output_row_of(model, token_id)
    logits = torch.from_numpy(read.states @ row + bias)
    factor = float(model.token_scales_of(np.array([token_id]))[0])
    return np.asarray(model.form.activate(logits).numpy() * factor, np.float32)


def heat_of(model: SparseEncoder, text: str, token_id: int, title: str) -> Heat:
    """A text, each token as dark as the weight that its position gives one token of the vocabulary."""
    read = read_texts(model, [text])[0]
    weights = weights_at(model, read, token_id)
    return Heat(title, list(_warm(model, read, weights)), _describe(model, read, weights, token_id))


@torch.inference_mode()
def heat_of_all(model: SparseEncoder, text: str, title: str) -> Heat:
    """A text, each token as dark as the weights sum to whose largest logit lies at its position."""
    read = read_texts(model, [text])[0]
    logits = torch.from_numpy(read.states) @ model.output_rows.float().cpu().T
    if model.output_bias is not None:
        logits = logits + model.output_bias.float().cpu()
    best = logits.max(dim=0)
    weights = model.form.activate(best.values).numpy() * model.token_scales_of()
    sums = np.bincount(best.indices.numpy(), weights, minlength=len(read.token_ids)).astype(np.float32)
    named = [
        _heaviest(model, weights, np.flatnonzero(best.indices.numpy() == place))
        for place in range(len(read.token_ids))
    ]
    note = "The figure behind a word: the sum of the vector's weights that come from its position, and the heaviest of "
    note += f"these tokens. {end_tokens_note(model)}"
    return Heat(title, list(_warm(model, read, sums, named)), note)


def end_tokens_note(model: SparseEncoder) -> str:
    """What the tokens stand for that the tokenizer puts around a text; nothing where there are none."""
    first, last = model.tokenizer.cls_token, model.tokenizer.sep_token
    return f"{first} and {last} stand for the start and the end of a text." if first and last else ""


def _heaviest(model: SparseEncoder, weights: Floats, token_ids: NDArray[np.int64]) -> str:
    """The heaviest of some tokens (n,), by weights (V,)."""
    order = token_ids[np.argsort(-weights[token_ids], kind="stable")][:NAMED]
    return " ".join(names_of(model.tokenizer, [int(each) for each in order if weights[each] > 0]))


def _warm(
    model: SparseEncoder, read: TextStates, weights: Floats, named: Sequence[str] | None = None
) -> Iterator[Warm]:
    """Each token of a text with its weight (L,); special ones only where they weigh something."""
    largest, first = float(weights.max(initial=0.0)), int(weights.argmax())
    special = set(model.tokenizer.all_special_ids)
    for place, name in enumerate(names_of(model.tokenizer, read.token_ids)):
        if read.token_ids[place] in special and weights[place] < LIGHT * largest:
            continue
        warmth = float(weights[place]) / largest if largest > 0 else 0.0
        figure = f"{weights[place]:.2f}" if warmth >= LIGHT else ""
        if figure and named is not None:
            figure = f"{figure} {named[place]}".strip()
        yield Warm(name, warmth, figure, marked=largest > 0 and place == first)


def _describe(model: SparseEncoder, read: TextStates, weights: Floats, token_id: int) -> str:
    """Which position activates a token most, by weights (L,), in a sentence."""
    token = names_of(model.tokenizer, [token_id])[0]
    if not weights.any():
        return f"No position activates {token}."
    place = int(weights.argmax())
    name = names_of(model.tokenizer, [read.token_ids[place]])[0]
    return f"The position of {name} activates {token} most, with a weight of {weights[place]:.2f}."
