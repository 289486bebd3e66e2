"""Which base model a pack fits: its checksum, and whether a taught model still holds all that its base does.

Dimensions: V rows of a model, H width of a row.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sparse_adapt.errors import ModelError
from sparse_adapt.files.marker import checksum_of_texts
from sparse_adapt.model.idf import of_all
from sparse_adapt.model.saved import BEFORE_PIECES, bias_twins, differing_part
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.plugins.packs.pack import BIAS, INPUT, OUTPUT, TABLE, checksum_of_tensor

UNTOUCHED = (*BEFORE_PIECES, "post_processor")  # parts of a tokenizer that no extension touches


def check_takes_packs(encoder: SparseEncoder, source: str | Path) -> None:
    """Raise ModelError for a model whose terms have more than rows in one model."""
    if encoder.query_encoder is not None:
        raise ModelError(
            f"{source}: a second model reads queries, which would need rows of its own; a term pack is of one model"
        )


def rows_of(encoder: SparseEncoder) -> dict[str, Tensor]:
    """What a model has of each token: input rows (V, H), output rows (V, H) unless tied, biases (V), a table (V)."""
    rows: dict[str, Tensor] = {INPUT: encoder.input_rows.detach()}
    if encoder.output_rows is not encoder.input_rows:
        rows[OUTPUT] = encoder.output_rows.detach()
    if encoder.output_bias is not None:
        rows[BIAS] = encoder.output_bias.detach()
    if encoder.query_side is not None:
        rows[TABLE] = torch.from_numpy(encoder.query_side.weights)
    return rows


def rows_at(encoder: SparseEncoder, ids: Sequence[int]) -> dict[str, Tensor]:
    """Copies of a model's rows of some tokens, of each kind: (tokens, H), biases (tokens,)."""
    return {kind: tensor[list(ids)].cpu().clone() for kind, tensor in rows_of(encoder).items()}


def checksum_of_weights(encoder: SparseEncoder) -> str:
    """SHA-256 over all weights of a model and its vocabulary.

    Weights count by their values: neither their files nor the names that a library gives them matter.
    """
    weights = [tensor for _, tensor in _body(encoder)] + list(rows_of(encoder).values())
    vocabulary = sorted(encoder.tokenizer.get_vocab().items(), key=lambda each: each[1])
    tokens = [f"{token_id} {token}" for token, token_id in vocabulary]
    tokens += [f"{token.token_id} {token.token}" for token in encoder.new_tokens if token.beside]
    return checksum_of_texts([*sorted(map(checksum_of_tensor, weights)), *tokens])


def difference(model: SparseEncoder, base: SparseEncoder) -> str:
    """The first thing that a model holds otherwise than its base does, in words; empty where nothing moved."""
    vocabulary = model.tokenizer.get_vocab()
    for token, token_id in base.tokenizer.get_vocab().items():
        if vocabulary.get(token) != token_id:
            return f"the id of the token {token!r}"
    if part := differing_part(model.tokenizer, base.tokenizer, UNTOUCHED):
        return f"the tokenizer's {part}"
    if model.form != base.form:
        return "the form, by which logits become weights"
    of_words = model.words is not None and base.words is None and base.token_scales is None  # came with them
    if not of_words and not np.array_equal(
        model.token_scales_of(), of_all(base.token_scales, model.vocabulary_size)
    ):
        return "what each token counts (token_scales.json)"
    return _moved(model, base)


def _moved(model: SparseEncoder, base: SparseEncoder) -> str:
    """The first weight of the base that a model has otherwise, in words."""
    here, there = dict(_body(model)), dict(_body(base))
    rows, old = rows_of(model), rows_of(base)
    if here.keys() != there.keys() or rows.keys() != old.keys():
        return "its layers"
    for name, tensor in there.items():
        if not torch.equal(here[name], tensor):
            return name
    names, taken = base.tokens, {token.token_id for token in model.new_tokens} - ids_of(base)
    taken.update(range(len(base.tokenizer), len(model.tokenizer)))
    for kind, tensor in old.items():
        same_rows = torch.tensor([row for row in range(len(tensor)) if row not in taken])
        same = (rows[kind][same_rows] == tensor[same_rows]).reshape(len(same_rows), -1).all(dim=1)
        if not same.all():
            first = int(same_rows[int((~same).nonzero()[0])])
            return f"the {kind} of the token {names[first]!r}"
    return ""


def ids_of(model: SparseEncoder) -> set[int]:
    """The ids of all that has a name in a model: its tokenizer's tokens, and terms beside their pieces."""
    return {*model.tokenizer.get_vocab().values(), *(token.token_id for token in model.new_tokens)}


def _body(encoder: SparseEncoder) -> Iterator[tuple[str, Tensor]]:
    """Every weight that isn't a token's, by its name, each once."""
    rows = {id(each) for each in (encoder.input_rows, encoder.output_rows, encoder.output_bias)}
    twins = {twin for _, twin in bias_twins(encoder.masked_lm)}
    for name, parameter in encoder.masked_lm.named_parameters():
        if id(parameter) not in rows and name not in twins:
            yield name, parameter.detach()
