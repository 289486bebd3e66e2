"""Which texts say a term, which activate it, and how strongly: matrices with a row a text and a column a term.

A text says a term where the model reads its token there, or the pieces that it stands beside, and activates it where
its vector has a weight for it.

Dimensions: N texts, T terms, L positions of a text, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from sparse_adapt.model.forms import Side
from sparse_adapt.model.head.pooling import splade_pool
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import TokenIds, group_by_length, pad
from sparse_adapt.model.windows import cut_up
from sparse_adapt.retrieve.columns import only
from sparse_adapt.retrieve.encode import TOKENS_A_BATCH, encode
from sparse_adapt.synthetic.background import LIKE_QUERIES, synthetic

BACKGROUND_TEXTS = 4_000  # texts that mean anything, half of them like queries: one sample for every figure
BACKGROUND_SEED = 65_537  # of background texts, other ones than stages are taught by

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]


def background_queries(seed: int = BACKGROUND_SEED) -> list[str]:
    """Texts like queries that mean anything."""
    return synthetic(BACKGROUND_TEXTS, seed)[LIKE_QUERIES]


def new_terms(model: SparseEncoder) -> list[int]:
    """The tokens that a model was given: (T)."""
    return [token.token_id for token in model.new_tokens]


def weights_of(vectors: csr_matrix, terms: Sequence[TokenIds]) -> Floats:
    """The weight of terms of several tokens in vectors (N, V or more columns), that of the lightest: (N, T)."""
    columns = np.unique([token for tokens in terms for token in tokens]).astype(np.int32)
    weights = only(vectors, columns).toarray()
    found = np.zeros((vectors.shape[0], len(terms)), np.float32)
    for place, tokens in enumerate(terms):
        found[:, place] = weights[:, np.searchsorted(columns, list(tokens))].min(axis=1)
    return found


@torch.inference_mode()
def position_logits(model: SparseEncoder, token_ids: TokenIds, tokens: Sequence[int] | None = None) -> Floats:
    """The logits of some tokens, by default of all of the vocabulary, at every position of one text: (L, T or V)."""
    ids = torch.tensor([list(token_ids)], device=model.device)
    training = model.training
    model.eval()
    hidden = model.hidden(ids, torch.ones_like(ids))[0].float()
    model.train(training)
    wanted = slice(None) if tokens is None else list(tokens)
    logits = hidden @ model.output_rows[wanted].float().T
    if model.output_bias is not None:
        logits = logits + model.output_bias[wanted].float()
    return logits.cpu().numpy()


@dataclass(frozen=True)
class Activity:
    """What texts of one side say and activate of terms; each matrix is made when it is first asked for."""

    model: SparseEncoder
    texts: Sequence[str]
    side: Side
    tokens: Sequence[int]
    given: csr_matrix | None = None

    @classmethod
    def of(
        cls,
        model: SparseEncoder,
        texts: Sequence[str],
        side: Side,
        *,
        tokens: Sequence[int] | None = None,
        vectors: csr_matrix | None = None,
    ) -> "Activity":
        """The activity of some tokens, by default a model's new ones. `vectors`: (N, V), where they are known."""
        return cls(model, texts, side, new_terms(model) if tokens is None else tokens, vectors)

    @cached_property
    def vectors(self) -> csr_matrix:
        """The weights of all tokens: (N, V)."""
        return encode(self.model, self.texts, self.side) if self.given is None else self.given

    @cached_property
    def says(self) -> Bools:
        """Which text says which term: (N, T)."""
        said = np.zeros((len(self.texts), len(self.tokens)), np.bool_)
        for owner, ids in zip(self._read[1], self._read[0], strict=True):
            said[owner] |= np.isin(self.tokens, self.model.says_in(ids))
        return said

    @property
    def says_any(self) -> Bools:
        """Which text says a term: (N,)."""
        return np.asarray(self.says.any(axis=1))

    @cached_property
    def weights(self) -> Floats:
        """The weight of each term in each text: (N, T)."""
        return weights_of(self.vectors, [[token] for token in self.tokens])

    @property
    def active(self) -> Bools:
        """Which text activates which term: (N, T)."""
        return self.weights > 0

    @cached_property
    def logits(self) -> Floats:
        """The largest logit of each term in each text, negative ones too: (N, T); -inf in a text without a word.

        The model's body is asked, and of its output rows those of the terms alone.
        """
        (token_ids, owners), tokens = self._read, list(self.tokens)
        model, nothing = self.model.for_side(self.side), self.model.tokenize([""], self.side)[0]
        rows, bias = model.output_rows[tokens], model.output_bias
        best = np.full((len(self.texts), len(tokens)), -np.inf, np.float32)
        there = [row for row, ids in enumerate(token_ids) if tokens and list(ids) != list(nothing)]
        for group in group_by_length([len(token_ids[row]) for row in there], TOKENS_A_BATCH):
            texts = [there[place] for place in group]
            padded = pad([token_ids[row] for row in texts], model.tokenizer.pad_token_id or 0)
            ids, mask = (each.to(model.device) for each in padded)
            with torch.inference_mode():
                states = model.hidden(ids, mask)
                most, _ = splade_pool(states, rows, None if bias is None else bias[tokens], mask)
            np.maximum.at(best, owners[texts], most.float().cpu().numpy())
        return best

    @cached_property
    def positive_logits(self) -> Floats:
        """The same as the weights tell them, for which no text is read: (N, T), 0 where a term isn't active."""
        scales = np.maximum(
            self.model.token_scales_of(np.array(self.tokens, np.int64)), np.finfo(np.float32).tiny
        )
        return np.asarray(self.model.form.largest_logits(torch.from_numpy(self.weights / scales)).numpy())

    @cached_property
    def _read(self) -> tuple[list[list[int]], NDArray[np.int64]]:
        """The token ids of texts, or of their windows where the model reads by some, and the text that each is of."""
        texts, owners = self.texts, np.arange(len(self.texts))
        if self.side == "document" and self.model.windows is not None:
            prompt = self.model.form.prompt(self.side)
            texts, owners = cut_up(texts, self.model.tokenizer, self.model.windows, prompt)
        return self.model.tokenize(texts, self.side), owners
