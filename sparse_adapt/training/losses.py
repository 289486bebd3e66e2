"""The six distillation terms, and those for pairs, contradictions and masked words: pure functions, in float32.

Dimensions: Q queries, N candidates each, V all tokens, D domain tokens (the new ones), B texts.
`student` and `teacher` are scores (Q, N); `present` (Q, N) marks real candidates among padding. A loss is a scalar: ().
"""

import math
from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, pstdev
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

SMALL_CHANGE = 0.1  # of a weight, below which `drift` counts its square


class Scale(NamedTuple):
    """A rising line from teacher scores to student scores."""

    slope: float
    offset: float

    @classmethod
    def between(cls, teacher: Sequence[float], student: Sequence[float]) -> "Scale":
        """The line that gives the teacher's scores the mean and the spread of the student's.

        Flat where the teacher gives every candidate the same score.
        """
        spread = pstdev(teacher)
        slope = pstdev(student) / spread if spread > 1e-6 else 0.0
        return cls(slope, fmean(student) - slope * fmean(teacher))


def scores(queries: Tensor, documents: Tensor) -> Tensor:
    """Dot products (Q, B) of query (Q, V) and document (B, V) weights, float32 also within autocast."""
    with torch.autocast(queries.device.type, enabled=False):
        return queries.float() @ documents.float().T


def rescaled(teacher: Tensor, scale: Scale) -> Tensor:
    """Teacher scores (Q, N) on the student's scale, nothing below zero.

    A SPLADE score is never negative, so a teacher's -8 would leave a squared error that no training removes.
    """
    return (teacher.float() * scale.slope + scale.offset).clamp_min(0.0)


def mse(student: Tensor, teacher: Tensor, present: Tensor) -> Tensor:
    """Mean squared difference over all pairs, the plain `kd`: (Q, N) against (Q, N)."""
    return (teacher.float() - student.float())[present].square().mean()


def margin_mse(student: Tensor, teacher: Tensor, present: Tensor) -> Tensor:
    """Mean squared difference of the gaps to the teacher's best candidate: blind to any shift of a query's scores.

    Hofstätter et al. 2020, arXiv:2010.02666.
    """
    best = teacher.masked_fill(~present, float("-inf")).argmax(dim=1, keepdim=True)
    others = present.scatter(1, best, False)
    if not others.any():
        return student.sum() * 0.0
    gap_student = student.float().gather(1, best) - student.float()
    gap_teacher = teacher.float().gather(1, best) - teacher.float()
    return (gap_student - gap_teacher)[others].square().mean()


def kl(student: Tensor, teacher: Tensor, present: Tensor, temperature: float = 1.0) -> Tensor:
    """Divergence of the student's softmax over a query's candidates from the teacher's, in nats.

    A temperature above 1 lets more than the best candidate count; times its square, gradients keep their size
    (Hinton et al. 2015, arXiv:1503.02531).
    """
    absent = ~present
    student_log = (student.float() / temperature).masked_fill(absent, -1e9).log_softmax(dim=1)
    teacher_log = (teacher.float() / temperature).masked_fill(absent, -1e9).log_softmax(dim=1)
    nats = functional.kl_div(student_log, teacher_log, log_target=True, reduction="batchmean")
    return temperature**2 * nats


KD = {"mse": mse, "margin_mse": margin_mse, "kl": kl}


def rank_loss(student: Tensor, teacher: Tensor, present: Tensor, tau: float) -> Tensor:
    """-log softmax(student / tau) at the teacher's best candidate; tau below 1 sharpens."""
    best = teacher.masked_fill(~present, float("-inf")).argmax(dim=1)
    return functional.cross_entropy(student.float().masked_fill(~present, -1e9) / tau, best)


def contrast_loss(student: Tensor, positive: Tensor, present: Tensor, margin: float) -> Tensor:
    """Mean over positive x negative of max(0, margin - (s_pos - s_neg)); `positive` (Q, N) marks the relevant."""
    pairs = (positive & present).unsqueeze(2) & (~positive & present).unsqueeze(1)
    if not pairs.any():
        return student.sum() * 0.0
    gaps = student.float().unsqueeze(2) - student.float().unsqueeze(1)
    return (margin - gaps).relu()[pairs].mean()


def cross_sparsity(queries: Tensor, documents: Tensor, old: Tensor) -> Tensor:
    """Sum over old tokens of mean query weight x mean document weight: what an average match costs.

    queries, documents: (rows, V); old: (V) 1 for each old token.
    """
    return (queries.float().mean(dim=0) * documents.float().mean(dim=0) * old).sum()


def flops(vectors: Tensor, token_weights: Tensor | None = None) -> Tensor:
    """Expected scoring work: squared mean weight of each token, summed over the vocabulary.

    vectors: (rows, V), never negative; token_weights: (V) or None, as in the document-frequency-aware form
    (Porco et al. 2025, arXiv:2505.15070). Paria et al. 2020, arXiv:2004.05665.
    """
    means = vectors.float().mean(dim=0)
    return (means if token_weights is None else means * token_weights).square().sum()


def frequency_penalty(document_share: Tensor, midpoint: float = 0.1, steepness: float = 10.0) -> Tensor:
    """A factor in [0, 1] for each token: near 0 for rare ones, 1/2 at `midpoint`, near 1 for those in most documents.

    document_share: (V) share of documents in which the token's weight is positive. With x the share and a the
    midpoint, 1 / (1 + (x^(log_a 2) - 1)^steepness): Porco et al. 2025, arXiv:2505.15070.
    """
    share = document_share.float().clamp(1e-9, 1.0)
    exponent = torch.log(torch.tensor(2.0)) / torch.log(torch.tensor(midpoint))
    return 1.0 / (1.0 + (share.pow(exponent) - 1.0).clamp_min(1e-9).pow(steepness))


def hinge_above(values: Tensor, where: Tensor, floor: float) -> Tensor:
    """Mean over marked entries of max(0, floor - value): zero once all of them are high enough."""
    return (floor - values.float()).relu()[where].mean() if where.any() else values.sum() * 0.0


def hinge_share(values: Tensor, where: Tensor, floor: float) -> Tensor:
    """Mean over texts of the sum of max(0, floor - value) over their marked tokens, divided by the number of all D.

    values, where: (B, D). The published `domain`: the more domain tokens there are, the less each of them counts.
    """
    missing = (floor - values.float()).relu() * where
    return missing.sum() / max(1, where.numel())


def hinge_below(values: Tensor, where: Tensor, ceiling: float) -> Tensor:
    """Mean over texts of the sum of max(0, value - ceiling) over their marked tokens, by the root of D: (B, D) both.

    A mean over tokens would let each fire now and then, and a text activate several of many terms; a whole sum
    weighs silence so much that no term is ever active. The root stands between.
    """
    excess = (values.float() - ceiling).relu() * where
    return excess.sum() / where.any(dim=1).sum().clamp_min(1) / math.sqrt(max(1, where.shape[1]))


def graded(
    values: Tensor, wanted: Tensor, lowest: float, highest: float, inactive_weight: float = 1.0
) -> Tensor:
    """Distance of raw logits from wanted ones (Huber's, 1964), but for what lies beyond the lowest or the highest.

    values, wanted: (B, D). The mean over entries that want a positive logit, each counting as much as it wants and
    all of them D^(1/4) fold; and, `inactive_weight` fold, the mean over texts of the sum over the others by the root
    of D, for the reason that `hinge_below` gives. Of many terms a text wants several a little: as one, each of them
    would count as much as the one that is meant, and what should be inactive more than both.
    """
    count = max(1, wanted.shape[1])
    gap = values.float() - wanted
    gap = torch.where(wanted <= lowest, gap.relu(), torch.where(wanted >= highest, -(-gap).relu(), gap))
    far = functional.huber_loss(gap, torch.zeros_like(gap), reduction="none")
    active, weights = wanted > 0, wanted.clamp_min(0.0)
    above = (far * weights).sum() / weights.sum().clamp_min(1e-6)
    texts = (~active).any(dim=1).sum().clamp_min(1)
    return math.pow(count, 0.25) * above + inactive_weight * (far * ~active).sum() / texts / math.sqrt(count)


def expand_loss(values: Tensor, where: Tensor) -> Tensor:
    """Mean over the domain tokens of a query's relevant documents of -log sigmoid(its value in the query)."""
    return -functional.logsigmoid(values.float())[where].mean() if where.any() else values.sum() * 0.0


def expand_by_query(values: Tensor, where: Tensor) -> Tensor:
    """`expand` as published: the mean over each query's domain tokens first, and then over the queries that have some.

    A query of many domain tokens counts as much as one of a single token; in `expand` each token counts the same.
    values, where: (Q, D).
    """
    costs = -functional.logsigmoid(values.float()) * where
    count = where.sum(dim=1)
    some = count > 0
    return (costs.sum(dim=1) / count.clamp_min(1))[some].mean() if some.any() else values.sum() * 0.0


def distance(vectors: Tensor, anchors: Tensor, compared: Tensor | None = None) -> Tensor:
    """Squared distance to the anchors, relative to their squared length: 0 the same, 1 as far as an empty vector.

    vectors, anchors: (B, V); compared: (B, V) or (V), marks the dimensions that count.
    """
    gap = vectors.float() - anchors.float()
    if compared is not None:
        gap = gap * compared
    return (gap.square().sum(dim=1) / anchors.float().square().sum(dim=1).clamp_min(1e-6)).mean()


def unclipped(maximum: Tensor, before: Tensor, activate: Callable[[Tensor], Tensor]) -> Tensor:
    """Weights of maximum logits that go on below zero, as the logits do, where a token had weight `before`: all (B, V).

    A weight of zero has no gradient, so what a step silences by accident would stay inactive. `activate` makes
    weights of logits.
    """
    logits = maximum.float()
    weights = activate(logits)
    return torch.where(before > 0.0, weights + logits.clamp(max=0.0), weights)


def drift(values: Tensor, before: Tensor, compared: Tensor) -> Tensor:
    """What a text's weights have changed, relative to their sum: 0 the same, near 1 for an empty vector.

    values, before, compared: (B, V), the last as in `distance`. Absolute differences but for small ones (Girshick 2015,
    arXiv:1504.08083). Squared ones would spare the heaviest weights and give the many light ones away.
    """
    gap = (values - before) * compared
    far = functional.smooth_l1_loss(gap, torch.zeros_like(gap), reduction="none", beta=SMALL_CHANGE)
    return (far.sum(dim=1) / before.sum(dim=1).clamp_min(1e-6)).mean()


def total(terms: Mapping[str, Tensor], weights: Mapping[str, float]) -> Tensor:
    """Weighted sum; a term without a weight, or a weight without a term, is a bug."""
    assert terms.keys() == weights.keys(), (sorted(terms), sorted(weights))
    return torch.stack([weights[key] * term for key, term in terms.items()]).sum()


# -- pairs and masked words ------------------------------------------------------------------------


def infonce(scores: Tensor, own: Tensor, relevant: Tensor, temperature: float) -> Tensor:
    """-log softmax(score / temperature) at each query's own document, the batch's others being its negatives.

    scores: (Q, B); own: (Q) the column of each query's document; relevant: (Q, B) marks documents that aren't
    negatives of a query. 0 where a query has none. van den Oord et al. 2018, arXiv:1807.03748.
    """
    left_out = relevant.scatter(1, own.unsqueeze(1), False)
    return functional.cross_entropy((scores.float() / temperature).masked_fill(left_out, float("-inf")), own)


def contradict(
    twins: Tensor, contradictions: Tensor, left_out: Tensor, temperature: float, own: float = 1.0
) -> Tensor:
    """-log softmax of each anchor at its twin, all other twins and all contradictions being negatives.

    -log(e^(t_ii/tau) / sum_j (e^(t_ij/tau) + own^[i=j] e^(c_ij/tau))), the mean over anchors. twins, contradictions:
    (B, B) similarities t and c of anchor i to the twin and to the contradiction of anchor j; left_out: (B, 2 B) marks
    those that are no negatives; own: weight of an anchor's own contradiction, 0 to leave it out.
    Chen, Handa and Shirahama, JCSE; with own 1 the supervised form of Gao et al. 2021, arXiv:2104.08821.
    """
    count = len(twins)
    weights = torch.eye(count, device=twins.device) * (own - 1.0) + 1.0
    logits = torch.cat(
        [twins.float() / temperature, contradictions.float() / temperature + weights.log()], dim=1
    )
    target = torch.arange(count, device=twins.device)
    return functional.cross_entropy(logits.masked_fill(left_out, float("-inf")), target)


def ntxent(similarities: Tensor, pairs: Tensor, related: Tensor, temperature: float) -> Tensor:
    """-log softmax(similarity / temperature) at a text's partner among all other texts, both ways: NT-Xent.

    similarities: (T, T) of queries and documents alike; pairs: (P, 2) rows of a query and of its document;
    related: (T, T) marks texts that aren't negatives of one another. 0 where no pair has a negative. Chen et al.
    2020, arXiv:2002.05709, where each text has one partner and no other text is related to it.
    """
    anchors, partners = torch.cat([pairs, pairs.flip(1)]).unbind(1)
    itself = torch.eye(len(related), dtype=torch.bool, device=related.device)
    return infonce(similarities[anchors], partners, (related | itself)[anchors], temperature)


def masked_words(
    states: Tensor, rows: Tensor, bias: Tensor | None, words: Tensor, vocabulary: Tensor
) -> Tensor:
    """-log softmax at the word that was masked, over some of the vocabulary; 0 where nothing was masked.

    states: (M, H); rows: (V, H) and bias: (V), or None, of the decoder; words: (M) ids, each among
    `vocabulary` (D), sorted ids that the softmax runs over.
    """
    if not len(words):
        return states.sum() * 0.0
    logits = functional.linear(states, rows[vocabulary], None if bias is None else bias[vocabulary])
    return functional.cross_entropy(logits.float(), torch.searchsorted(vocabulary, words))


def word_costs(
    states: Tensor,
    rows: Tensor,
    bias: Tensor | None,
    pieces: Tensor,
    vocabulary: Tensor,
    owners: Tensor,
    words: int,
) -> Tensor:
    """For each of so many words the sum of -log softmax at its pieces, which were masked together: (words).

    owners: (M) the word that each masked piece is of; the others as in `masked_words`. 0 for a word without pieces.
    """
    logits = functional.linear(states, rows[vocabulary], None if bias is None else bias[vocabulary])
    costs = functional.cross_entropy(logits.float(), torch.searchsorted(vocabulary, pieces), reduction="none")
    return costs.new_zeros(words).index_add(0, owners, costs)
