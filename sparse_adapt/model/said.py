"""Which texts say which new tokens. Dimensions: B texts, T new tokens in their order."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.model.sparse import SparseEncoder


def says(model: SparseEncoder, texts: Sequence[str]) -> NDArray[np.bool_]:
    """Which texts say which new token: (B, T)."""
    places = {token.token_id: place for place, token in enumerate(model.new_tokens)}
    said = np.zeros((len(texts), len(places)), np.bool_)
    for row, ids in enumerate(model.tokenize(texts)):
        for token_id in places.keys() & set(ids):
            said[row, places[token_id]] = True
    return said
