"""The SPLADE head: hidden states in, one number per text and vocabulary token out.

Dimensions: B texts, L positions, H hidden, V vocabulary.
The weight of a token is max over unmasked positions of log(1 + relu(logit)); both functions are
monotone, so one maximum over positions comes first and one elementwise pass after
(Formal et al. 2021, arXiv:2107.05720 and arXiv:2109.10086).
"""

from torch import Tensor


def plain_splade_pool(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, attention_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Largest raw logit of each token and where it was, by the textbook: the reference for `splade_pool`.

    Builds the whole (B, L, V) tensor.
    """
    logits = hidden @ weight.T
    if bias is not None:
        logits = logits + bias
    logits = logits.masked_fill(~attention_mask.bool().unsqueeze(-1), float("-inf"))
    maximum, position = logits.max(dim=1)
    return maximum, position


def splade_pool(
    hidden: Tensor, weight: Tensor, bias: Tensor | None, attention_mask: Tensor
) -> tuple[Tensor, Tensor]:
    """Largest raw logit of each token over unmasked positions, and the position that held it.

    hidden: (B, L, H); weight: (V, H); bias: (V) or None; attention_mask: (B, L).
    Returns maximum (B, V), differentiable in the first three, and position (B, V).
    """
    return plain_splade_pool(hidden, weight, bias, attention_mask)


def activate(maximum: Tensor) -> Tensor:
    """Weights from maximum logits, log(1 + relu(x)) in float32: (B, V), never negative."""
    return maximum.float().relu().log1p()
