"""Texts with some words masked, read once: a vector of each, and what the masked words cost.

In several processes each reads its share of the texts. Dimensions: B texts, L positions, H hidden.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from sparse_adapt.errors import ConfigError
from sparse_adapt.model.encoder import Encoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.tokens import PADDED_TOKENS_A_PASS, TokenIds, pad, read_by_length
from sparse_adapt.training import losses
from sparse_adapt.training.sharing import own_share, shared_out, summed_over_processes

SHOWN = -1  # label of a word that wasn't masked

Vectors = Callable[[Tensor, Tensor, Tensor], Tensor]  # of states (B, L, H), attention mask and ids (B, L)


def mask_token(encoder: Encoder, stage: str) -> int:
    """The token that masks a word. Raises ConfigError, naming the stage, where the tokenizer has none."""
    mask_id: int | None = encoder.tokenizer.mask_token_id
    if mask_id is None:
        raise ConfigError(f"{stage}: this model's tokenizer has no token that masks; choose another model")
    return mask_id


def read_masked(
    encoder: Encoder,
    ids: Sequence[TokenIds],
    labels: Sequence[TokenIds],
    vectors: Vectors,
    vocabulary: Sequence[int],
) -> tuple[Tensor, Tensor]:
    """The vector of every text, a row each (B, width), and the mean cost of all masked words of these texts: ().

    labels: the token that was masked at each place, or SHOWN; vocabulary: sorted ids that the softmax runs over,
    none where no word is masked, which costs 0.
    """
    states: list[Tensor] = []
    hidden: list[Tensor] = []

    pad_id = encoder.tokenizer.pad_token_id or 0

    def read(rows: Sequence[int]) -> Tensor:  # (rows, width)
        def of_group(
            padded: Tensor, mask: Tensor, group: list[int]
        ) -> Tensor:  # (B, L), (B, L) -> (B, width)
            of_group = encoder.hidden(padded, mask)
            words = pad([labels[rows[each]] for each in group], SHOWN)[0].to(encoder.device)
            states.append(of_group[words != SHOWN])
            hidden.append(words[words != SHOWN])
            return vectors(of_group, mask, padded)

        texts = [ids[row] for row in rows]
        return read_by_length(texts, PADDED_TOKENS_A_PASS, pad_id, encoder.device, of_group)

    everything = range(len(ids))
    each_state = shared_out(read, everything)
    if not vocabulary:
        return each_state, each_state.sum() * 0.0
    count = sum(label != SHOWN for text in labels for label in text)
    words = torch.cat(hidden)
    mean = losses.masked_words(
        encoder.for_words(torch.cat(states)),
        encoder.output_rows,
        encoder.output_bias,
        words,
        torch.tensor(vocabulary, device=encoder.device),
    )
    mine = bool(
        own_share(everything)
    )  # a process without texts of its own has read another's, and adds nothing
    return each_state, summed_over_processes(mean * (len(words) / max(1, count) if mine else 0.0))


def unmasked(encoder: SentenceEncoder, ids: Sequence[TokenIds]) -> Tensor:
    """The vector of every text as it is: (B, H)."""
    return read_masked(encoder, ids, [[SHOWN] * len(each) for each in ids], encoder.vectors, [])[0]
