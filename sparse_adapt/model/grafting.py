"""A sparse model on the body of another encoder: the body keeps its weights, the head comes from a SPLADE model.

Both have to cut texts into the same tokens. The decoder's rows are those of the SPLADE model, in the first part of the
body's width; principal components of the body's own embeddings fill the rest, and count nothing at first. The head's
dense layer begins as the ridge regression of the SPLADE model's on the body's last states. What comes out reads texts
roughly as the SPLADE model does, and the stages `logits` and `preserve` teach it the rest.

Dimensions: N tokens of all texts, V vocabulary, H width of the body, S width of the SPLADE model.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn
from transformers import AutoModelForMaskedLM, PreTrainedModel, PreTrainedTokenizerFast

from sparse_adapt.errors import ConfigError, ModelError, first_line
from sparse_adapt.model.folder import ModelFolder, ModelSource
from sparse_adapt.model.layout import transformer_in
from sparse_adapt.model.saved import differing_part, longest_text, read_body, read_tokenizer
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import PADDED_TOKENS_A_PASS, TokenIds, group_by_length, pad

RIDGE = 1e-3  # of the mean variance of a state's coordinates


class _Layers(NamedTuple):
    """What stands between a body and its decoder: a dense layer, an activation, a norm."""

    dense: nn.Linear
    norm: nn.LayerNorm


def graft_body(source: ModelSource, sparse: SparseEncoder, token_ids: Sequence[TokenIds]) -> SparseEncoder:
    """A SPLADE model with the body of the encoder at `source`, and the head of `sparse`, fitted on some texts.

    source: a folder, the name of an installed package or `hub:owner/name`; token_ids: texts in the tokens of `sparse`.
    Raises ConfigError where the two tokenizers differ, ModelError where the encoder has no body with a head of one
    dense layer and one norm, or a body narrower than `sparse`.
    """
    source = ModelFolder.of(source)
    check_tokens(source, sparse.tokenizer)
    masked_lm = _with_head(transformer_in(source.path, source), source)
    width, narrow = masked_lm.get_output_embeddings().in_features, sparse.output_rows.shape[1]
    if width < narrow:
        raise ModelError(
            f"{source}: its body is {width} wide, the SPLADE model {narrow}; choose a wider encoder"
        )
    head, theirs = layers_of_head(masked_lm, source), layers_of_head(sparse.masked_lm, "the SPLADE model")
    with torch.no_grad():
        _take_rows(masked_lm, sparse)
        _take_norm(head.norm, theirs.norm)
        _fit(masked_lm, head.dense, sparse, theirs.dense, token_ids)
    longest = min(sparse.max_tokens, longest_text(masked_lm, sparse.tokenizer))
    return SparseEncoder(masked_lm, sparse.tokenizer, (), longest, sparse.form).eval()


def check_tokens(source: ModelSource, other: PreTrainedTokenizerFast) -> None:
    """Raise ConfigError, naming the first token that differs, where an encoder cuts texts differently."""
    one = read_tokenizer(transformer_in(ModelFolder.of(source).path, source), source)
    first, second = one.get_vocab(), other.get_vocab()
    for token, place in sorted(second.items(), key=lambda item: item[1]):
        if first.get(token) != place:
            raise ConfigError(
                f"{source}: its tokenizer differs from the SPLADE model's, first in the token {token!r}; "
                "choose two models with one vocabulary"
            )
    more = first.keys() - second.keys()
    if more:
        raise ConfigError(f"{source}: its tokenizer has {min(more)!r}, which the SPLADE model lacks")
    if part := differing_part(one, other):
        raise ConfigError(f"{source}: its tokenizer's {part} differs from the SPLADE model's")


def layers_of_head(masked_lm: PreTrainedModel, source: ModelSource) -> _Layers:
    """The head of a masked language model. Raises ModelError for one that is made in another way."""
    body, decoder = set(masked_lm.base_model.modules()), masked_lm.get_output_embeddings()
    outside = [each for each in masked_lm.modules() if each not in body and each is not decoder]
    layers = [each for each in outside if isinstance(each, nn.Linear)]
    norms = [each for each in outside if isinstance(each, nn.LayerNorm)]
    if len(layers) != 1 or len(norms) != 1:
        raise ModelError(
            f"{source}: its head has {len(layers)} dense layers and {len(norms)} norms, not one of each; "
            "choose a model with a head like BERT's"
        )
    return _Layers(layers[0], norms[0])


def _with_head(place: Path, source: ModelSource) -> PreTrainedModel:
    """The body in a folder with a head for masked words of its family's kind, whose rows are its own."""
    body = read_body(place, source)
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            body.config.tie_word_embeddings = False
            masked_lm = AutoModelForMaskedLM.from_config(body.config, dtype=torch.float32)
    except ValueError as error:  # of a family that transformers has no such head for
        raise ModelError(
            f"{source}: no transformer with a head for masked words ({first_line(error)})"
        ) from error
    assert isinstance(masked_lm, PreTrainedModel)
    masked_lm.base_model.load_state_dict(body.state_dict(), strict=False)  # without the pooler
    masked_lm.config.architectures = [type(masked_lm).__name__]
    masked_lm.eval()
    return masked_lm


def _take_rows(masked_lm: PreTrainedModel, sparse: SparseEncoder) -> None:
    """Give the decoder the SPLADE model's rows and biases, and principal components of the body's embeddings beside."""
    decoder, rows = masked_lm.get_output_embeddings(), sparse.output_rows
    input_rows: Tensor = masked_lm.get_input_embeddings().weight  # type: ignore[assignment]
    centred = input_rows - input_rows.mean(dim=0)
    directions = torch.linalg.eigh(centred.T @ centred)[1].flip(1)  # the largest first
    beside = centred @ directions[:, : decoder.in_features - rows.shape[1]]
    if beside.shape[1]:
        beside = beside * (rows.std() / beside.std())
    decoder.weight.copy_(torch.cat([rows, beside], dim=1))
    if sparse.output_bias is not None:
        decoder.bias.copy_(sparse.output_bias)


def _take_norm(norm: nn.LayerNorm, theirs: nn.LayerNorm) -> None:
    """Let the norm's first coordinates be scaled as the SPLADE model's, and silence the others."""
    width = len(theirs.weight)
    norm.weight.zero_()
    norm.bias.zero_()
    norm.weight[:width] = theirs.weight
    norm.bias[:width] = theirs.bias


def _fit(
    masked_lm: PreTrainedModel,
    dense: nn.Linear,
    sparse: SparseEncoder,
    theirs: nn.Linear,
    token_ids: Sequence[TokenIds],
) -> None:
    """Fit the dense layer to say what the SPLADE model's says, again and again over the body's width.

    So the norm, which sees all of the width, finds the same mean and variance as the SPLADE model's.
    """
    states, wanted = _seen(masked_lm, dense, sparse, theirs, token_ids)
    states = torch.cat([states, states.new_ones(len(states), 1)], dim=1).double()
    penalty = RIDGE * len(states) * states[:, :-1].var(dim=0).mean() * torch.eye(states.shape[1])
    solution = torch.linalg.solve(
        states.T @ states + penalty, states.T @ wanted.double()
    ).float()  # (H + 1, S)
    again = torch.arange(dense.out_features) % wanted.shape[1]
    dense.weight.copy_(solution[:-1].T[again])
    dense.bias.copy_(solution[-1][again])


def _seen(
    masked_lm: PreTrainedModel,
    dense: nn.Linear,
    sparse: SparseEncoder,
    theirs: nn.Linear,
    token_ids: Sequence[TokenIds],
) -> tuple[Tensor, Tensor]:
    """What reaches the dense layer (N, H), and what the SPLADE model's dense layer says of the same tokens (N, S)."""
    states, wanted = [], []
    pad_id = sparse.tokenizer.pad_token_id or 0
    for group in group_by_length([len(ids) for ids in token_ids], PADDED_TOKENS_A_PASS):
        ids, mask = pad([token_ids[row] for row in group], pad_id)
        with _inputs_of(dense) as ours, _inputs_of(theirs) as of_theirs:
            for model in (masked_lm, sparse.masked_lm):
                model(input_ids=ids, attention_mask=mask)
        states.append(ours[0][0][mask.bool()])
        wanted.append(of_theirs[0][1][mask.bool()])
    return torch.cat(states), torch.cat(wanted)


@contextmanager
def _inputs_of(layer: nn.Linear) -> Iterator[list[tuple[Tensor, Tensor]]]:
    """What goes into a layer (B, L, H) and comes out of it (B, L, S) while the block runs."""
    seen: list[tuple[Tensor, Tensor]] = []
    hook = layer.register_forward_hook(lambda _, given, made: seen.append((given[0], made)))
    try:
        yield seen
    finally:
        hook.remove()
