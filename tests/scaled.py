"""A model whose tokens have token scales."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.model.sparse import SparseEncoder


def with_scales(folder: Path) -> SparseEncoder:
    """A model whose tokens have token scales."""
    encoder = SparseEncoder.load(folder)
    encoder.token_scales = some_scales(encoder.vocabulary_size)
    return encoder


def some_scales(size: int) -> NDArray[np.float32]:
    """Token scales of a model's tokens (V): between .5 and 1.5 but for one, which is 0."""
    token_scales = np.random.default_rng(0).uniform(0.5, 1.5, size).round(2).astype(np.float32)
    token_scales[size // 2] = 0.0
    return token_scales
