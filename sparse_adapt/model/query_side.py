"""Queries without a model: each token of a query, once, at the weight that a table gives it.

Read from `SparseStaticEmbedding` of sentence-transformers, or from OpenSearch's `idf.json` and
`query_token_weights.txt`, and written as all but the last. Dimensions: B texts, V vocabulary.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file
from scipy.sparse import csr_matrix
from transformers import PreTrainedTokenizerFast

from sparse_adapt.errors import InputError, ModelError
from sparse_adapt.files.folders import write_json
from sparse_adapt.model.folder import ModelSource
from sparse_adapt.model.idf import document_frequencies
from sparse_adapt.model.layout import TABLE, TABLE_FILES, read_json
from sparse_adapt.model.saved import check_same_tokens, read_tokenizer, write_tokenizer
from sparse_adapt.model.tokens import TokenIds, names_of_all

CONFIG_FILE, WEIGHTS_FILE, WEIGHT = "config.json", "model.safetensors", "weight"
ALIKE = 1e-3  # share of the heaviest weight by which those of a table may differ that are called equal


@dataclass(frozen=True, slots=True)
class QuerySide:
    """A weight for each token (V) of a query, and how many tokens of a query are read.

    `frozen`: whether sentence-transformers leaves it alone when it trains.
    """

    weights: NDArray[np.float32]
    longest: int
    frozen: bool = True

    def vectors(self, token_ids: Sequence[TokenIds]) -> csr_matrix:
        """The weights of queries (B, V), each of their tokens counted once; a weight of zero isn't stored."""
        rows = [np.unique(np.asarray(ids, np.int64)) for ids in token_ids]
        columns = np.concatenate([np.zeros(0, np.int64), *rows])
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        shape = (len(rows), len(self.weights))
        matrix = csr_matrix((self.weights[columns], columns.astype(np.int32), starts), shape=shape)
        matrix.eliminate_zeros()
        return matrix

    def grown(self, rows: int, pieces: Mapping[int, Sequence[int]]) -> "QuerySide":
        """The table of so many tokens: a new one weighs as much as the heaviest of its pieces, by its id."""
        weights = np.zeros(max(rows, len(self.weights)), np.float32)
        weights[: len(self.weights)] = self.weights
        for token_id, parts in pieces.items():
            weights[token_id] = weights[list(parts)].max()
        return replace(self, weights=weights)

    def times(self, token_scales: NDArray[np.float32]) -> "QuerySide":
        """The table with each weight times the factor (V) of its token."""
        return replace(self, weights=(self.weights * token_scales).astype(np.float32))

    def towards(self, other: "QuerySide", share: float) -> "QuerySide":
        """The table so far on the way to another of the same tokens."""
        return replace(self, weights=self.weights + np.float32(share) * (other.weights - self.weights))

    def with_idf(self, texts: Sequence[TokenIds], new: Sequence[int]) -> "QuerySide":
        """The table with weights of new tokens from their frequency in texts, on the scale of its other tokens.

        The inverse document frequency is ln(1 + (N - n + .5) / (n + .5)), n of N texts with the token (Geng, Wang, Ru
        and Yang 2024, arXiv:2411.04403). The scale is that of least squares over the tokens that the texts say. A new
        token weighs no more than the heaviest of the others; in a table of equal weights it weighs as much as they.
        """
        weights = self.weights.copy()
        holding = document_frequencies(texts, len(weights))
        idf: NDArray[np.float64] = np.log1p((len(texts) - holding + 0.5) / (holding + 0.5))
        known = (holding > 0) & (weights > 0.0)
        known[list(new)] = False
        if not known.any():
            return self
        own, heaviest = weights[known].astype(np.float64), float(weights[known].max())
        alike = heaviest - float(own.min()) < ALIKE * heaviest
        scale = float(own @ idf[known]) / float(idf[known] @ idf[known])
        weights[list(new)] = heaviest if alike else np.minimum(scale * idf[list(new)], heaviest)
        return replace(self, weights=weights)


# -- in files ---------------------------------------------------------------------------------------


def read_query_side(
    place: Path | None, tokenizer: PreTrainedTokenizerFast, size: int, longest: int, source: ModelSource
) -> QuerySide | None:
    """The table at a place, a file or a module's folder, for so many tokens (`size`); None without a place.

    `tokenizer` and `longest` are the model's; a module's tokenizer has to cut as the model's does. Raises ModelError
    for weights that are no numbers or below zero, or of another vocabulary.
    """
    if place is None:
        return None
    if place.is_file():
        return QuerySide(_checked(_of_file(place, tokenizer), size, place), longest)
    other = read_tokenizer(place, source)
    check_same_tokens(tokenizer, other, source)
    stored = read_json(place / CONFIG_FILE) if (place / CONFIG_FILE).is_file() else {}
    frozen = isinstance(stored, dict) and bool(stored.get("frozen"))
    path = place / WEIGHTS_FILE
    if not path.is_file():
        raise ModelError(
            f"{place}: holds no {WEIGHTS_FILE} with the weights of queries; pickles are not read"
        )
    try:
        weights = load_file(path)[WEIGHT]
    except (OSError, SafetensorError, KeyError, TypeError) as error:
        raise ModelError(f"{path}: damaged ({error!r}); fetch the model again") from error
    return QuerySide(_checked(weights, size, path), min(int(other.model_max_length), 10**9), frozen)


def write_query_side(folder: Path, side: QuerySide, tokenizer: PreTrainedTokenizerFast) -> dict[str, str]:
    """Write a table as a module of sentence-transformers, and once more for OpenSearch: the kind of each module."""
    module, size = f"query_0_{TABLE}", len(tokenizer)
    (folder / module).mkdir(exist_ok=True)
    write_json(folder / module / CONFIG_FILE, {"frozen": side.frozen})
    save_file({WEIGHT: np.ascontiguousarray(side.weights[:size])}, folder / module / WEIGHTS_FILE)
    longest = tokenizer.model_max_length
    write_tokenizer(folder / module, tokenizer, side.longest)
    tokenizer.model_max_length = longest
    weights = zip(names_of_all(tokenizer, size), side.weights[:size].tolist(), strict=True)
    write_json(folder / TABLE_FILES[0], {token: weight for token, weight in weights if weight})
    return {module: TABLE}


def read_weights(path: Path) -> dict[str, float]:
    """The weight of each token in a table. Raises InputError for what is none."""
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".json" or (text.startswith("{") and not text.startswith("{\t")):
            table: Mapping[str, float] = json.loads(text)
        else:
            lines = text.split("\n")
            table = {line.rpartition("\t")[0]: float(line.rpartition("\t")[2]) for line in lines if line}
        return {token: float(weight) for token, weight in table.items()}
    except (OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise InputError(path, f"isn't a table of tokens and weights ({error}); make it anew") from error


def _of_file(path: Path, tokenizer: PreTrainedTokenizerFast) -> NDArray[np.float32]:
    """The weights (V) of a table in a file, by a tokenizer's ids; 0 for a token that it lacks."""
    try:
        named = read_weights(path)
    except InputError as error:
        raise ModelError(str(error)) from error
    ids = tokenizer.get_vocab()
    weights = np.zeros(len(tokenizer), np.float32)
    for token, weight in named.items():
        if token not in ids:
            raise ModelError(
                f"{path}: weighs {token!r}, which the tokenizer doesn't have; take both from one model"
            )
        weights[ids[token]] = weight
    return weights


def _checked(weights: NDArray[np.float32], size: int, path: Path) -> NDArray[np.float32]:
    """Weights (V) for `size` tokens: finite, never negative, 0 where a file has fewer. Raises ModelError for others."""
    if weights.ndim != 1 or not 0 < len(weights) <= size:
        raise ModelError(f"{path}: not the weights of {size:,} tokens; take it from the same model")
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise ModelError(f"{path}: holds weights that are no numbers, or below zero; fetch the model again")
    return np.pad(weights.astype(np.float32), (0, size - len(weights)))
