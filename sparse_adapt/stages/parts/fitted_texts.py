"""The texts that are read for a fit of rows beside made-up ones: some of a stage's own, and general passages.

Dimensions: S texts of the stage, B texts of the fit, D terms.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sparse_adapt.model.tokens import TokenIds
from sparse_adapt.stages.parts.texts import Texts

FITTED = 8_000  # made-up texts from anywhere, and as many that mean a term, to which rows are fitted
OWN = 512  # of the stage's texts that say a term, and of those that say none, at most


class FittedTexts(NamedTuple):
    """Token ids, and the terms (B, D) that are lit, and that are silent, in each."""

    token_ids: Sequence[TokenIds]
    says: NDArray[np.bool_]
    quiet: NDArray[np.bool_]


def fitted_texts(
    texts: Texts, about: NDArray[np.bool_], general: Texts, terms: NDArray[np.int64]
) -> FittedTexts:
    """The stage's texts that say a term, as many others, and all of the general passages.

    terms: which D of the new tokens are fitted, by their place among them; about: (S, D) those that a text may mean,
    so that they needn't be silent there.
    """
    says = texts.says[:, terms]
    saying = says.any(axis=1)
    own = np.concatenate([np.flatnonzero(saying == said)[:OWN] for said in (True, False)])
    said = np.concatenate([says[own], general.says[:, terms]])
    meant = np.concatenate([about[own], general.says[:, terms]])
    token_ids = [*(texts.ids[row] for row in own), *general.ids]
    return FittedTexts(token_ids, said, ~meant & ~said)
