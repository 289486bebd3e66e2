"""The head in a SPLADE model of sentence-transformers, in place of that library's pooling.

    from sentence_transformers import SparseEncoder
    from sparse_adapt.model.head.library import install
    encoder = install(SparseEncoder("naver/splade-v3"))

Dimensions: B texts, L positions, V vocabulary.
"""

from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from sparse_adapt.model.head.pooling import activate, splade_pool
from sparse_adapt.model.head.summing import splade_sum

Encoder = TypeVar("Encoder", bound=nn.Sequential)
TRIED = 3  # tokens


def install(encoder: Encoder) -> Encoder:
    """The `SparseEncoder` itself, with the weights and gradients of this head from now on, the same but for rounding.

    No tensor (B, L, V) is built any more; the model is trained, measured and saved as before. Raises TypeError for a
    model whose logits are more than one linear layer, pooled over positions.
    """
    parts: list[Any] = list(encoder)
    masked_lm, pooling = getattr(parts[0], "auto_model", None), parts[-1]
    decoder = masked_lm.get_output_embeddings() if masked_lm is not None else None
    if len(parts) != 2 or not hasattr(pooling, "pooling_strategy") or not isinstance(decoder, nn.Linear):
        raise TypeError("the model is no masked language model with a SpladePooling behind it")
    before = _logits(masked_lm)
    vars(decoder)["forward"] = _same
    if not torch.allclose(
        nn.functional.linear(_logits(masked_lm), decoder.weight, decoder.bias), before, atol=1e-4
    ):
        del decoder.forward
        raise TypeError("the model does more to its logits than one linear layer")
    pooling.forward = partial(_pool, decoder, pooling)
    return encoder


@torch.no_grad()
def _logits(masked_lm: Any) -> Tensor:  # noqa: ANN401 - a model of transformers
    """What the model makes of its first tokens: (1, TRIED, V), or the states (1, TRIED, H) where the decoder is out."""
    training, ids = masked_lm.training, torch.arange(TRIED, device=masked_lm.device).unsqueeze(0)
    logits: Tensor = masked_lm.eval()(input_ids=ids, attention_mask=torch.ones_like(ids)).logits
    masked_lm.train(training)
    return logits


def _pool(decoder: nn.Linear, pooling: Any, features: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
    """What SpladePooling makes of the logits (B, L, V), from the states before them."""
    head = features["token_embeddings"], decoder.weight, decoder.bias, features["attention_mask"]
    if pooling.pooling_strategy == "sum":
        weights = splade_sum(*head, pooling.activation_function)
    else:
        none = torch.zeros(len(decoder.weight), dtype=torch.bool, device=decoder.weight.device)
        weights = activate(splade_pool(*head, none)[0], pooling.activation_function)
    return features | {"sentence_embedding": weights}


def _same(states: Tensor) -> Tensor:
    return states
