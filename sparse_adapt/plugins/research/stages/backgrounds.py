"""Background texts that keep their vectors while an encoder of either kind learns."""

import copy

import torch
from torch import Tensor

from sparse_adapt.model.idf import Shares, document_frequencies
from sparse_adapt.model.kinds import EitherEncoder
from sparse_adapt.model.sentence import SentenceEncoder
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.objectives.anchor import Background, SparseBackground
from sparse_adapt.objectives.token_scales import LearntScales
from sparse_adapt.plugins.research.stages.masked import unmasked
from sparse_adapt.synthetic.background import LIKE_PASSAGES, TEXTS, synthetic
from sparse_adapt.training import losses


class DenseBackground(Background):
    """Their dense vectors by that model."""

    def __init__(self, encoder: SentenceEncoder, before: SentenceEncoder, seed: int) -> None:
        """`before`: whose vectors are to stay."""
        texts = synthetic(TEXTS, seed)
        super().__init__(encoder.tokenize(texts))
        self.before, self.before_ids = before.requires_grad_(False), before.tokenize(texts)
        self.count_as(encoder)

    def count_as(self, encoder: SentenceEncoder) -> None:
        """Have the model before count each token in a mean as the encoder does, if that has token scales."""
        if encoder.token_scales is not None:
            self.before.token_scales = encoder.token_scales_of()[: self.before.vocabulary_size]

    def distance(
        self, encoder: SentenceEncoder, rows: list[int], token_scales: LearntScales | None = None
    ) -> Tensor:
        """Squared distance to the vectors that were, of length 1."""
        with torch.no_grad():
            wanted = unmasked(self.before, [self.before_ids[row] for row in rows]).to(encoder.device)
        return losses.distance(unmasked(encoder, [self.ids[row] for row in rows]), wanted)

    def share(self, size: int) -> Shares:
        """Say it."""
        return document_frequencies(self.ids[LIKE_PASSAGES], size) / len(self.ids[LIKE_PASSAGES])


def background_for(encoder: EitherEncoder, before: EitherEncoder | None, seed: int) -> Background:
    """For an encoder of either kind; without a model before, what it says now is to stay."""
    match encoder, before or copy.deepcopy(encoder):
        case SparseEncoder(), SparseEncoder() as reference:
            return SparseBackground(encoder, reference, seed)
        case SentenceEncoder(), SentenceEncoder() as reference:
            return DenseBackground(encoder, reference, seed)
    raise AssertionError("an extension doesn't make a dense encoder of a sparse one")
