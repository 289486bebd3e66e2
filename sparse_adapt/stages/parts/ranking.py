"""Made-up texts rank the documents as a dense encoder does: what is asked for without a new term is found, too.

The dense encoder that judges which term a text means ranks documents far better than a small sparse model does, for
any question about them and without a label. So made-up texts are asked of the documents as these stood before the
stage, and their weights learn to give the dense encoder's ranking (listwise, by the divergence of softmaxes; Cao et
al. 2007, ICML). Only the asking side learns: documents that learnt to be told apart by these texts alone would lose
most of their weights. And only on old tokens: which new ones a text lights is `recall`'s; nor on words that say
nothing of a topic, for that an order can be learnt by them doesn't make it right for another question.

Dimensions: B texts, R of them that rank, N documents, C tokens that documents hold, D new tokens, V vocabulary.
"""

from collections.abc import Sequence

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from sparse_adapt.made_up.judged import JudgedMeanings
from sparse_adapt.made_up.windows import Meanings, Samples
from sparse_adapt.model.batches import TokenIds
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.stages.parts.texts import vectors
from sparse_adapt.terms.function_words import function_tokens
from sparse_adapt.training import losses

SHARPNESS = 30.0  # what a unit of cosine counts in the softmax: .1 more is twenty times as relevant
MOST = 128  # documents that the texts of a step are ranked over


class Ranking:
    """Documents as they stood, and the dense encoder's ranking of them."""

    def __init__(self, reference: SparseEncoder, documents: Sequence[TokenIds]) -> None:
        """`documents`: those that samples know, in their order."""
        self.activate = reference.form.activate
        topical = np.zeros(reference.vocabulary_size, np.float32)
        topical[: reference.old_size] = 1.0
        topical[np.flatnonzero(function_tokens(reference.tokenizer))] = 0.0
        self.rows = csr_matrix(vectors(reference, documents).multiply(topical))
        self.rows.eliminate_zeros()

    def among(self, samples: Samples) -> tuple[Tensor, Tensor]:
        """Which documents a step ranks, and the old tokens (C) that these hold.

        Those nearest to any of the texts, where they aren't few enough to be ranked whole.
        """
        nearest = _answers(samples)[1].amax(dim=0)
        chosen = nearest.topk(min(MOST, len(nearest))).indices.sort().values
        return chosen, torch.from_numpy(np.unique(self.rows[chosen.numpy()].indices).astype(np.int64))

    def divergence(self, logits: Tensor, samples: Samples, documents: Tensor, tokens: Tensor) -> Tensor:
        """From the dense encoder's softmax over documents to that of the scores, in nats: a mean over R texts.

        logits: (B, C) largest raw ones of `tokens` in the samples' texts; those that mean anything don't count.
        """
        answered, closeness = _answers(samples)
        held = torch.from_numpy(self.rows[documents.numpy()][:, tokens.numpy()].toarray()).to(logits.device)
        scores = losses.scores(self.activate(logits[answered.to(logits.device)]), held)
        wanted = SHARPNESS * closeness[:, documents].to(logits.device)
        return losses.kl(scores, wanted, torch.ones_like(wanted, dtype=torch.bool))


def ranking(
    reference: SparseEncoder,
    token_ids: Sequence[TokenIds],
    meanings: Meanings | JudgedMeanings | None,
    weight: float,
) -> Ranking | None:
    """Of the documents that a judge knows, by their rows among `token_ids`; None without any, or without a weight."""
    if not weight or not isinstance(meanings, JudgedMeanings) or not len(meanings.documents):
        return None
    return Ranking(reference, [token_ids[row] for row in meanings.documents])


def _answers(samples: Samples) -> tuple[Tensor, Tensor]:
    """Which of the samples' texts rank documents (B), and the cosines of those to each document (R, N)."""
    assert samples.closeness is not None and samples.answered is not None, "of a judge that knows documents"
    return samples.answered, samples.closeness[samples.answered]
