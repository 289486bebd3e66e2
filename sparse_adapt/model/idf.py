"""How much a token tells: token scales for weights, from the share of documents that have it.

Dimensions: B texts, V vocabulary.
"""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.errors import ModelError
from sparse_adapt.files.folders import write_json
from sparse_adapt.model.tokens import TokenIds

TokenScales = NDArray[np.float32]
Shares = NDArray[np.float64]
BACKGROUND = 0.25  # part of general language in how many texts a token is counted in, where it is known
EVERY = 0.25  # what a token counts in a mean that every document has, where one that none has counts 1
DOCUMENTS = 2_048  # of many so many tell
TOKEN_SCALES_FILE = "token_scales.json"
DECIMALS = 5  # of a factor in that file


def rows_for_idf(count: int) -> list[int]:
    """Evenly spaced rows of documents from which token scales are taken: all, where there are few."""
    return [int(row) for row in np.unique(np.linspace(0, count - 1, min(count, DOCUMENTS)).astype(int))]


def sqrt_idf(documents: csr_matrix, background: Shares | None = None) -> TokenScales:
    """A factor for each token (V): the square root of ln((N + 1) / (n + 1)), n documents giving it weight.

    Folded into the queries' weights once it takes from a SPLADE model's scores what is in every document.
    `background`: as `shares_of` counts it in texts of general language; it then makes a part of n. A word that
    everybody uses tells little, though a corpus of one field may hardly use it.
    """
    present = np.bincount(documents.indices, minlength=documents.shape[1])
    return np.sqrt(_idf(present, documents.shape[0], background)).astype(np.float32)


def fourth_root(documents: csr_matrix, background: Shares | None = None) -> TokenScales:
    """A factor for each token (V), for queries and documents both: their product is the root of the idf."""
    return np.sqrt(sqrt_idf(documents, background))


def of_mean(documents: Sequence[TokenIds], size: int, background: Shares | None = None) -> TokenScales:
    """What each token (V, `size`) counts in a dense vector that is a mean of token states: EVERY to 1, by its idf.

    A word that every document says tells little of any. After Arora, Liang and Ma 2017 (SIF), who weigh word vectors
    alone; states have read their neighbours, so that here none counts nothing.
    """
    present = document_frequencies(documents, size)
    share = _idf(present, len(documents), background) / np.log(len(documents) + 1)
    token_scales: TokenScales = (EVERY + (1.0 - EVERY) * share).astype(np.float32)
    return token_scales


def document_frequencies(texts: Sequence[TokenIds], size: int) -> NDArray[np.int64]:
    """How many texts say each token of a vocabulary: (V), `size`."""
    return np.bincount(np.concatenate([np.unique(ids) for ids in texts]), minlength=size)


def _idf(present: NDArray[np.int64], count: int, background: Shares | None) -> NDArray[np.float64]:
    """ln((N + 1) / (n + 1)) of each token (V), `present` in n of `count` documents, and `background` in n as well."""
    known = present if background is None else (1.0 - BACKGROUND) * present + BACKGROUND * count * background
    idf: NDArray[np.float64] = np.log((count + 1) / (known + 1))
    return idf


def shares_of(texts: csr_matrix) -> Shares:
    """The share of texts (B, V) that give each token weight: (V), exactly 1 where all of them do."""
    shares: Shares = np.asarray((texts > 0).sum(axis=0)).ravel() / texts.shape[0]
    return shares


def of_all(token_scales: TokenScales | None, size: int) -> TokenScales:
    """A factor for every token (V) of a vocabulary of `size`: 1 without token scales; one that is missing is the
    largest.
    """
    if token_scales is None:
        return np.ones(size, np.float32)
    return np.pad(token_scales, (0, size - len(token_scales)), constant_values=token_scales.max()).astype(
        np.float32
    )


def scaled(vectors: csr_matrix, token_scales: TokenScales) -> csr_matrix:
    """Every weight (B, V) times the factor of its token (V); weights that become 0 are no longer stored."""
    product = vectors.copy()
    product.data = product.data * token_scales[product.indices]
    product.eliminate_zeros()
    return product


def read_scales(folder: Path, size: int) -> TokenScales | None:
    """The factor of each token (V), where a model's folder has them: never negative, at most `size`."""
    path = folder / TOKEN_SCALES_FILE
    if not path.is_file():
        return None
    try:
        token_scales = np.array(json.loads(path.read_text(encoding="utf-8"))["token_scales"], np.float32)
    except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
        raise ModelError(f"{path}: damaged ({error}); delete it to do without idf") from error
    if (
        token_scales.ndim != 1
        or not 0 < len(token_scales) <= size
        or not (np.isfinite(token_scales) & (token_scales >= 0)).all()
    ):
        raise ModelError(f"{path}: not the scales of {size:,} tokens; delete it to do without idf")
    return token_scales


def write_scales(folder: Path, token_scales: TokenScales) -> None:
    """Write the factor of each token (V) beside a model."""
    write_json(
        folder / TOKEN_SCALES_FILE, {"token_scales": [round(float(each), DECIMALS) for each in token_scales]}
    )
