"""The loss terms: a value by hand, what leaves them unchanged, and what happens at the edges."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import tensor
from torch.testing import assert_close

from sparse_adapt.model.head.pooling import activate
from sparse_adapt.training import losses

ALL = torch.ones(1, 3, dtype=torch.bool)


def scores(seed: int, queries: int = 4, candidates: int = 5) -> torch.Tensor:
    return torch.rand(queries, candidates, generator=torch.Generator().manual_seed(seed)) * 20 - 5


def real(seed: int, queries: int = 4, candidates: int = 5) -> torch.Tensor:
    """Which candidates are there: at least two a query, and at least one missing somewhere."""
    chosen = torch.rand(queries, candidates, generator=torch.Generator().manual_seed(seed)) < 0.6
    chosen[:, :2] = True
    chosen[0, -1] = False
    return chosen


PER_QUERY = {
    **losses.KD,
    "rank": lambda student, teacher, present: losses.rank_loss(student, teacher, present, 1.0),
    "contrast": lambda student, teacher, present: losses.contrast_loss(student, teacher > 4.0, present, 3.0),
}


# -- kd ------------------------------------------------------------------------------------------


def test_mse_by_hand():
    student, teacher = tensor([[3.0, 1.0, 2.0]]), tensor([[4.0, -1.0, 2.0]])
    assert_close(losses.mse(student, teacher, ALL), tensor(5 / 3))  # (1 + 4 + 0) / 3
    present = tensor([[True, False, True]])
    assert_close(losses.mse(student, teacher, present), tensor(0.5))  # (1 + 0) / 2


def test_margin_mse_by_hand():
    student = tensor([[3.0, 1.0, 2.0]])  # gaps 2, 1
    teacher = tensor([[9.0, 5.0, 8.0]])  # gaps 4, 1
    assert_close(losses.margin_mse(student, teacher, ALL), tensor(2.0))  # ((2-4)^2 + 0) / 2


def test_margin_mse_takes_gaps_from_the_teachers_best_that_is_there():
    student = tensor([[3.0, 1.0, 2.0]])
    teacher = tensor([[9.0, 5.0, 8.0]])
    present = tensor([[False, True, True]])  # best is the third: student gap 2-1 = 1, teacher gap 8-5 = 3
    assert_close(losses.margin_mse(student, teacher, present), tensor(4.0))


def test_kl_by_hand():
    student = tensor([[0.0, 0.0]])  # 1/2, 1/2
    teacher = tensor([[math.log(3.0), 0.0]])  # 3/4, 1/4
    nats = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)  # .1308
    assert_close(losses.kl(student, teacher, ALL[:, :2]), tensor(nats))


def test_kl_is_a_mean_over_queries():
    student, teacher = scores(1, 1), scores(2, 1)
    everywhere = torch.ones(1, 5, dtype=torch.bool)
    one = losses.kl(student, teacher, everywhere)
    assert_close(losses.kl(student.repeat(3, 1), teacher.repeat(3, 1), everywhere.repeat(3, 1)), one)


def test_a_temperature_lets_the_lesser_candidates_count():
    everywhere = ALL[:, :3]
    teacher = tensor([[8.0, 4.0, 0.0]])
    student = tensor([[8.0, 0.0, 4.0]], requires_grad=True)  # only the lesser two change places
    pulls = []
    for temperature in (1.0, 4.0):
        losses.kl(student, teacher, everywhere, temperature).backward()
        pulls.append(student.grad.abs()[0, 1:].max().item())
        student.grad = None
    assert pulls[1] > 10 * pulls[0]
    assert_close(losses.kl(teacher, teacher, everywhere, 4.0), tensor(0.0))


@pytest.mark.parametrize("name", ["margin_mse", "kl"])
def test_a_shift_of_a_querys_scores_changes_nothing(name):
    student, teacher, present = scores(1), scores(2), real(3)
    shift = tensor([[0.0], [3.0], [-2.0], [10.0]])
    loss = losses.KD[name]
    assert_close(loss(student + shift, teacher, present), loss(student, teacher, present))
    assert_close(loss(student, teacher + shift, present), loss(student, teacher, present))


def test_mse_grows_with_the_square_of_the_scale():
    student, teacher, present = scores(1), scores(2), real(3)
    assert_close(losses.mse(3 * student, 3 * teacher, present), 9 * losses.mse(student, teacher, present))


@pytest.mark.parametrize("name", losses.KD)
def test_kd_is_zero_where_the_student_agrees_and_positive_elsewhere(name):
    teacher, present = scores(2), real(3)
    assert_close(losses.KD[name](teacher.clone(), teacher, present), tensor(0.0))
    assert losses.KD[name](scores(1), teacher, present) > 0.1


@pytest.mark.parametrize("name", PER_QUERY)
@settings(max_examples=20, deadline=None)
@given(st.permutations(range(5)), st.permutations(range(4)), st.integers(0, 99))
def test_the_order_of_candidates_and_queries_is_nothing(name, candidates, queries, seed):
    student, teacher, present = scores(seed), scores(seed + 1), real(seed + 2)
    moved = [each[list(queries)][:, list(candidates)] for each in (student, teacher, present)]
    assert_close(PER_QUERY[name](*moved), PER_QUERY[name](student, teacher, present))


@pytest.mark.parametrize("name", PER_QUERY)
def test_what_stands_in_padding_is_nothing(name):
    student, teacher, present = scores(1), scores(2), real(3)
    other_student = torch.where(present, student, tensor(777.0)).requires_grad_()
    other_teacher = torch.where(present, teacher, tensor(999.0))
    loss = PER_QUERY[name](other_student, other_teacher, present)
    assert_close(loss, PER_QUERY[name](student, teacher, present))
    loss.backward()
    assert (other_student.grad[~present] == 0).all()
    assert (other_student.grad[present] != 0).any()


@pytest.mark.parametrize("name", ["margin_mse", "kl", "rank", "contrast"])
def test_a_single_candidate_has_nothing_to_teach(name):
    student = tensor([[3.0]]).requires_grad_()
    loss = PER_QUERY[name](student, tensor([[5.0]]), tensor([[True]]))
    assert loss.item() == 0.0
    loss.backward()
    assert student.grad.item() == 0.0


@pytest.mark.parametrize("name", PER_QUERY)
def test_losses_are_float32_whatever_the_scores_are(name):
    student = scores(1).bfloat16()
    assert PER_QUERY[name](student, scores(2), real(3)).dtype == torch.float32


# -- rank, contrast ------------------------------------------------------------------------------


def test_rank_by_hand():
    student = tensor([[math.log(2.0), 0.0, 0.0]])  # softmax 1/2, 1/4, 1/4
    teacher = tensor([[1.0, 7.0, 2.0]])
    assert_close(losses.rank_loss(student, teacher, ALL, 1.0), tensor(math.log(4.0)))
    # at tau 1/2 the logits double: 4, 1, 1 of 6
    assert_close(losses.rank_loss(student, teacher, ALL, 0.5), tensor(math.log(6.0)))


def test_rank_passes_over_a_best_candidate_that_is_not_there():
    student, teacher = tensor([[math.log(3.0), 0.0, 0.0]]), tensor([[1.0, 7.0, 2.0]])
    present = tensor([[True, False, True]])  # softmax 3/4, 1/4 and the best is the third
    assert_close(losses.rank_loss(student, teacher, present, 1.0), tensor(math.log(4.0)))


def test_rank_does_not_change_with_a_shift_and_sharpens_with_tau():
    student, teacher, present = scores(1), scores(2), real(3)
    assert_close(
        losses.rank_loss(student + 4, teacher, present, 1.0), losses.rank_loss(student, teacher, present, 1.0)
    )
    right = teacher.clone()
    assert losses.rank_loss(right, teacher, present, 0.5) < losses.rank_loss(right, teacher, present, 1.0)


def test_contrast_by_hand():
    student = tensor([[6.0, 2.0, 4.0]])
    positive = tensor([[True, False, False]])
    # gaps 4 and 2; margin 5 leaves 1 and 3
    assert_close(losses.contrast_loss(student, positive, ALL, 5.0), tensor(2.0))
    positive = tensor([[True, False, True]])  # pairs 6-2 and 4-2: 1 and 3
    assert_close(losses.contrast_loss(student, positive, ALL, 5.0), tensor(2.0))
    assert losses.contrast_loss(student, positive, ALL, 2.0).item() == 0.0


def test_contrast_compares_within_a_query_only():
    student = tensor([[6.0, 0.0], [100.0, 100.0]])
    positive = tensor([[True, False], [True, True]])  # the second query has no negative
    assert_close(losses.contrast_loss(student, positive, positive | True, 7.0), tensor(1.0))
    nothing = torch.zeros_like(positive)
    assert losses.contrast_loss(student, nothing, positive | True, 7.0).item() == 0.0


def test_scores_by_hand():
    queries, documents = tensor([[1.0, 2.0], [0.0, 1.0]]), tensor([[3.0, 4.0], [5.0, 0.0]])
    assert_close(losses.scores(queries, documents), tensor([[11.0, 5.0], [4.0, 0.0]]))
    with torch.autocast("cpu", torch.bfloat16):
        assert losses.scores(queries * 1.001, documents)[0, 0].item() == pytest.approx(11.011, rel=1e-6)


# -- calibrate -----------------------------------------------------------------------------------


def test_scale_by_hand():
    scale = losses.Scale.between([-8.0, 10.0], [2.0, 11.0])  # spreads 9 and 4.5, means 1 and 6.5
    assert scale == pytest.approx((0.5, 6.0))
    assert_close(losses.rescaled(tensor([-8.0, 10.0, 1.0]), scale), tensor([2.0, 11.0, 6.5]))


def test_calibrated_scores_are_never_negative():
    assert_close(losses.rescaled(tensor([-20.0, 0.0]), losses.Scale(0.5, 6.0)), tensor([0.0, 6.0]))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=2, max_size=9), st.integers(0, 99))
def test_calibration_gives_the_teacher_the_students_mean_and_spread(teacher, seed):
    student = (scores(seed, 1, len(teacher))[0] + 60).tolist()
    scale = losses.Scale.between(teacher, student)
    assert scale.slope >= 0.0
    there = torch.tensor(teacher, dtype=torch.float64) * scale.slope + scale.offset
    assert there.mean().item() == pytest.approx(sum(student) / len(student), abs=1e-3)
    if torch.tensor(teacher).std() > 1e-3:
        assert_close(there.std(), torch.tensor(student).std().double(), rtol=1e-4, atol=1e-4)


def test_a_teacher_without_an_opinion_maps_to_the_students_mean():
    scale = losses.Scale.between([8.3, 8.3, 8.3], [1.0, 2.0, 6.0])
    assert_close(losses.rescaled(tensor([8.3]), scale), tensor([3.0]))


# -- sparsity ------------------------------------------------------------------------------------

VECTORS = tensor([[1.0, 0.0, 4.0], [3.0, 0.0, 0.0]])  # means 2, 0, 2


def test_flops_by_hand():
    assert_close(losses.flops(VECTORS), tensor(8.0))  # 4 + 0 + 4
    assert_close(losses.flops(VECTORS, tensor([0.5, 1.0, 0.0])), tensor(1.0))  # (2 * .5)^2


def test_flops_grows_with_the_square_of_the_scale_and_not_with_repetition():
    assert_close(losses.flops(3 * VECTORS), 9 * losses.flops(VECTORS))
    assert_close(losses.flops(VECTORS.repeat(5, 1)), losses.flops(VECTORS))
    assert_close(losses.flops(VECTORS.flip(0)), losses.flops(VECTORS))


def test_empty_vectors_cost_nothing_and_break_nothing():
    empty = torch.zeros(3, 4, requires_grad=True)
    cost = losses.flops(empty) + losses.cross_sparsity(empty, empty, torch.ones(4))
    cost.backward()
    assert cost.item() == 0.0
    assert empty.grad.isfinite().all()


def test_cross_sparsity_by_hand():
    queries = tensor([[2.0, 0.0, 1.0], [0.0, 2.0, 1.0]])  # means 1, 1, 1
    assert_close(losses.cross_sparsity(queries, VECTORS, tensor([1.0, 1.0, 1.0])), tensor(4.0))  # 2 + 0 + 2
    assert_close(losses.cross_sparsity(queries, VECTORS, tensor([1.0, 1.0, 0.0])), tensor(2.0))


def test_cross_sparsity_is_the_mean_score_of_all_pairs():
    queries, documents = scores(1).relu(), scores(2).relu()
    mean = (queries @ documents.T).mean()
    assert_close(losses.cross_sparsity(queries, documents, torch.ones(5)), mean)


def test_frequency_penalty_by_hand():
    """1 / (1 + (x^(log_a 2) - 1)^b), a .1, b 10: arXiv:2505.15070."""
    share = tensor([0.1, 1.0, 0.2, 0.05])
    # log_.1 2 = -.30103: .1 -> 2, 1 -> 1, .2 -> 1.6233, .05 -> 2.4641
    expected = tensor([0.5, 1.0, 1 / (1 + 0.6233**10), 1 / (1 + 1.4641**10)])
    assert_close(losses.frequency_penalty(share), expected, atol=1e-3, rtol=1e-3)
    assert_close(expected, tensor([0.5, 1.0, 0.9912, 0.0217]), atol=1e-3, rtol=1e-2)


@settings(max_examples=30, deadline=None)
@given(st.floats(0.01, 0.5), st.floats(2.0, 20.0))
def test_frequency_penalty_rises_from_zero_to_one_through_a_half(midpoint, steepness):
    share = torch.cat([torch.linspace(0.0, 1.0, 101), tensor([midpoint])])
    penalty = losses.frequency_penalty(share, midpoint, steepness)
    assert penalty.isfinite().all()
    assert penalty[0] < 1e-2
    assert penalty[100] == 1.0
    assert (penalty[:101].diff() >= 0).all()
    assert penalty[101].item() == pytest.approx(0.5, abs=1e-3)


# -- hinges, expand, distance --------------------------------------------------------------------

VALUES = tensor([[3.0, -1.0, 0.0], [5.0, 2.0, 1.0]])


def test_hinge_above_by_hand():
    where = tensor([[True, True, False], [True, False, False]])
    # 4-3, 4+1, none of 5: 1, 5, 0
    assert_close(losses.hinge_above(VALUES, where, 4.0), tensor(2.0))


def test_hinge_above_reaches_a_dead_token():
    """The reason for raw logits: a weight that relu cut off has no gradient, a logit has."""
    raw = tensor([[-3.0]], requires_grad=True)
    losses.hinge_above(raw, raw < 0, 1.0).backward()
    assert raw.grad.item() == -1.0
    cut = tensor([[-3.0]], requires_grad=True)
    losses.hinge_above(activate(cut), cut < 0, 1.0).backward()
    assert cut.grad.item() == 0.0


@pytest.mark.parametrize("hinge", [losses.hinge_above, losses.hinge_below])
def test_a_hinge_moves_with_values_and_bound_together(hinge):
    where = VALUES > -2
    assert_close(hinge(VALUES + 7, where, 1.5 + 7), hinge(VALUES, where, 1.5))
    assert hinge(VALUES, where, 1.5) > 0


@pytest.mark.parametrize("hinge", [losses.hinge_above, losses.hinge_below])
def test_a_hinge_over_nothing_is_zero_with_a_gradient_of_zero(hinge):
    values = VALUES.clone().requires_grad_()
    loss = hinge(values, torch.zeros(2, 3, dtype=torch.bool), 1.0)
    loss.backward()
    assert loss.item() == 0.0
    assert (values.grad == 0).all()


def test_hinge_below_by_hand():
    everywhere = torch.ones(2, 3, dtype=torch.bool)
    # above 1: 2, 0, 0 of the first text and 4, 1, 0 of the second
    assert_close(
        losses.hinge_below(VALUES, everywhere, 1.0), tensor(3.5 / 3**0.5)
    )  # (2 + 5) / 2 by the root of 3 tokens
    where = tensor([[True, True, True], [False, True, False]])
    assert_close(losses.hinge_below(VALUES, where, 1.0), tensor(1.5 / 3**0.5))  # (2 + 1) / 2 by the root
    where = tensor([[False, False, False], [False, True, False]])
    assert_close(losses.hinge_below(VALUES, where, 1.0), tensor(1.0 / 3**0.5))  # one text that counts


def test_expand_by_hand():
    values = tensor([[0.0, math.log(3.0)]])  # sigmoid 1/2, 3/4
    both = tensor([[True, True]])
    assert_close(losses.expand_loss(values, both), tensor((math.log(2.0) + math.log(4 / 3)) / 2))
    assert_close(losses.expand_loss(values, ~both[:, :1] | tensor([[False, True]])), tensor(math.log(4 / 3)))
    assert losses.expand_loss(values, ~both).item() == 0.0


def test_expand_falls_as_values_rise_and_reaches_dead_tokens():
    values = tensor([[-30.0, -1.0, 4.0]], requires_grad=True)
    everywhere = torch.ones(1, 3, dtype=torch.bool)
    loss = losses.expand_loss(values, everywhere)
    loss.backward()
    assert (values.grad < 0).all()
    assert values.grad[0, 0].item() == pytest.approx(-1 / 3, abs=1e-4)
    assert losses.expand_loss(values + 1, everywhere) < loss


def test_distance_by_hand():
    anchors = tensor([[3.0, 4.0, 0.0], [0.0, 2.0, 0.0]])  # squared lengths 25 and 4
    vectors = tensor([[3.0, 4.0, 5.0], [0.0, 0.0, 0.0]])  # squared gaps 25 and 4
    assert_close(losses.distance(vectors, anchors), tensor(1.0))
    kept = tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    assert_close(losses.distance(vectors, anchors, kept), tensor(0.5))  # (0 + 1) / 2


def test_drift_by_hand():
    before = tensor([[1.0, 0.5, 0.0], [0.0, 2.0, 0.0]])
    values = tensor([[0.5, 0.5, 0.3], [0.0, 2.06, 0.0]])
    # from .1 on a difference counts .05 less than itself
    wanted = (0.5 - 0.05 + 0.3 - 0.05) / 1.5, 0.06**2 / 0.2 / 2.0
    assert_close(losses.drift(values, before, torch.ones(2, 3)), tensor(sum(wanted) / 2))
    kept = tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0]])
    assert_close(losses.drift(values, before, kept), tensor(0.45 / 1.5 / 2))
    assert losses.drift(torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2)).item() == 0.0


def test_what_had_weight_goes_on_below_zero():
    maximum = tensor([[1.0, -2.0, -2.0, float("-inf")]]).requires_grad_()
    weights = losses.unclipped(maximum, tensor([[0.0, 0.7, 0.0, 0.0]]), activate)
    assert_close(weights, tensor([[math.log(2.0), -2.0, 0.0, 0.0]]))
    weights.sum().backward()
    assert maximum.grad.tolist() == [[0.5, 1.0, 0.0, 0.0]]


def test_distance_does_not_change_with_the_scale_and_is_one_for_an_empty_vector():
    vectors, anchors = scores(1).relu(), scores(2).relu()
    assert_close(losses.distance(4 * vectors, 4 * anchors), losses.distance(vectors, anchors))
    assert_close(losses.distance(torch.zeros_like(anchors), anchors), tensor(1.0))
    assert losses.distance(anchors, anchors).item() == 0.0
    assert losses.distance(torch.zeros(2, 3), torch.zeros(2, 3)).item() == 0.0


# -- total ---------------------------------------------------------------------------------------


def test_total_by_hand():
    terms = {"kd": tensor(2.0), "rank": tensor(3.0)}
    assert_close(losses.total(terms, {"rank": 10.0, "kd": 0.5}), tensor(31.0))  # .5 * 2 + 10 * 3


@pytest.mark.parametrize("weights", [{"kd": 1.0}, {"kd": 1.0, "rank": 1.0, "more": 1.0}, {}])
def test_total_insists_on_a_weight_for_each_term(weights):
    with pytest.raises(AssertionError):
        losses.total({"kd": tensor(2.0), "rank": tensor(3.0)}, weights)


class TestGraded:
    def test_by_hand(self):
        values = torch.tensor([[3.0, 0.0], [0.5, -9.0]])
        wanted = torch.tensor([[5.0, -1.0], [1.0, -4.0]])
        # active: 2 too low, Huber 2 - 1/2 = 1.5, counts 5; 1/2 too low, 1/8, counts 1; by the fourth root of 2 tokens
        # inactive: 1 too high, 1/2, and below the lowest, free; 1/2 over 2 texts and the root of 2 tokens
        expected = 2**0.25 * (5 * 1.5 + 0.125) / 6 + 0.5 / 2 / 2**0.5
        assert_close(losses.graded(values, wanted, -4.0, 6.0), torch.tensor(expected))
        twice = expected + 0.5 / 2 / 2**0.5
        assert_close(losses.graded(values, wanted, -4.0, 6.0, inactive_weight=2.0), torch.tensor(twice))

    def test_what_is_surely_meant_outweighs_what_is_nearly(self):
        """Of 28 terms one is meant and 10 are wanted a little: a gradient for that one above their sum."""
        values = torch.full((1, 28), -2.0, requires_grad=True)
        wanted = torch.full((1, 28), -4.0)
        wanted[0, :11] = torch.tensor([5.0] + [0.3] * 10)
        losses.graded(values, wanted, -4.0, 5.0).backward()
        assert values.grad is not None
        pull = -values.grad[0]
        assert pull[0] > pull[1:11].sum() > 0.0

    def test_nothing_to_gain_beyond_the_highest_and_the_lowest(self):
        wanted = torch.tensor([[5.0, -4.0]])
        assert losses.graded(torch.tensor([[9.0, -8.0]]), wanted, -4.0, 5.0) == 0.0

    def test_without_a_text_it_is_zero_and_has_a_gradient(self):
        values = torch.zeros(0, 3, requires_grad=True)
        loss = losses.graded(values, torch.zeros(0, 3), -4.0, 5.0)
        loss.backward()
        assert loss == 0.0


# -- infonce ---------------------------------------------------------------------------------------


def of_pairs(seed: int, queries: int, documents: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Scores, each query's own document, and no others that are relevant."""
    own = torch.arange(queries) % documents
    return scores(seed, queries, documents), own, torch.zeros(queries, documents, dtype=torch.bool)


def test_infonce_by_hand():
    values = tensor([[2.0, 1.0], [0.0, 3.0]])
    nothing = torch.zeros(2, 2, dtype=torch.bool)
    # softmax at the own one: e^2/(e^2+e^1) = 1/(1+e^-1), and 1/(1+e^-3)
    expected = (math.log1p(math.exp(-1.0)) + math.log1p(math.exp(-3.0))) / 2
    assert_close(losses.infonce(values, tensor([0, 1]), nothing, 1.0), tensor(expected))
    sharper = (math.log1p(math.exp(-2.0)) + math.log1p(math.exp(-6.0))) / 2  # gaps by 0.5
    assert_close(losses.infonce(values, tensor([0, 1]), nothing, 0.5), tensor(sharper))


def test_infonce_takes_no_relevant_document_for_a_negative():
    values, own, relevant = of_pairs(3, 3, 4)
    relevant[0, 2] = True
    kept = [0, 1, 3]
    alone = losses.infonce(values[:1, kept], tensor([0]), torch.zeros(1, 3, dtype=torch.bool), 2.0)
    assert_close(losses.infonce(values[:1], own[:1], relevant[:1], 2.0), alone)
    relevant[range(3), own] = True  # a query's own document stays, marked or not
    assert_close(losses.infonce(values[:1], own[:1], relevant[:1], 2.0), alone)


def test_infonce_of_one_pair_or_of_copies_only_is_zero():
    values = tensor([[4.0]], requires_grad=True)
    loss = losses.infonce(values, tensor([0]), torch.zeros(1, 1, dtype=torch.bool), 0.05)
    loss.backward()
    assert loss.item() == 0.0
    assert values.grad is not None
    assert values.grad.item() == 0.0
    everything = torch.ones(2, 2, dtype=torch.bool)
    assert losses.infonce(tensor([[1.0, 9.0], [9.0, 1.0]]), tensor([0, 1]), everything, 1.0).item() == 0.0


@settings(deadline=None)
@given(st.integers(0, 99), st.integers(1, 6), st.integers(1, 6), st.floats(-50, 50))
def test_infonce_is_blind_to_a_querys_level_and_to_the_order_of_documents(seed, queries, documents, shift):
    values, own, relevant = of_pairs(seed, queries, documents)
    loss = losses.infonce(values, own, relevant, 1.5)
    assert_close(losses.infonce(values + shift, own, relevant, 1.5), loss, atol=1e-4, rtol=1e-4)
    order = torch.randperm(documents, generator=torch.Generator().manual_seed(seed))
    moved = order.argsort()[own]
    assert_close(losses.infonce(values[:, order], moved, relevant[:, order], 1.5), loss)


# -- nt-xent ---------------------------------------------------------------------------------------

TWO = tensor([[0, 2], [1, 3]])  # queries 0 and 1, their documents 2 and 3


def test_ntxent_by_hand():
    alike = tensor(
        [
            [9.0, 0.0, 2.0, 1.0],
            [0.0, 9.0, 1.0, 2.0],
            [2.0, 1.0, 9.0, 0.0],
            [1.0, 2.0, 0.0, 9.0],
        ]
    )
    nothing = torch.zeros(4, 4, dtype=torch.bool)
    # each of the four texts has a 2 at its partner, and a 0 and a 1 elsewhere; its 9 with itself is left out
    expected = math.log((math.exp(2.0) + math.exp(1.0) + 1.0) / math.exp(2.0))
    assert_close(losses.ntxent(alike, TWO, nothing, 1.0), tensor(expected))
    sharper = math.log1p(math.exp(-10.0) + math.exp(-20.0))  # gaps of 1 and 2 by 0.1
    assert_close(losses.ntxent(alike, TWO, nothing, 0.1), tensor(sharper), atol=1e-8, rtol=1e-3)


def test_ntxent_takes_no_related_text_for_a_negative():
    alike, related = scores(5, 4, 4), torch.zeros(4, 4, dtype=torch.bool)
    related[0, 1] = related[1, 0] = related[0, 2] = related[2, 0] = True  # of these the partner stays
    kept = losses.ntxent(alike, TWO, related, 2.0)
    moved = alike.clone()
    moved[0, 1], moved[1, 0] = 50.0, -50.0
    assert_close(losses.ntxent(moved, TWO, related, 2.0), kept)
    assert losses.ntxent(moved, TWO, torch.zeros_like(related), 2.0) > kept + 1.0


def test_ntxent_of_one_pair_or_of_copies_only_is_zero():
    alike = tensor([[1.0, 0.3], [0.3, 1.0]], requires_grad=True)
    loss = losses.ntxent(alike, tensor([[0, 1]]), torch.zeros(2, 2, dtype=torch.bool), 0.1)
    loss.backward()
    assert loss.item() == 0.0
    assert alike.grad is not None
    assert (alike.grad == 0.0).all()
    everything = torch.ones(4, 4, dtype=torch.bool)
    assert losses.ntxent(scores(1, 4, 4), TWO, everything, 0.1).item() == 0.0


@settings(deadline=None)
@given(st.integers(0, 99), st.integers(1, 5), st.floats(-50, 50))
def test_ntxent_is_blind_to_level_order_and_which_side_is_the_query(seed, count, shift):
    alike = scores(seed, 2 * count, 2 * count)
    alike = alike + alike.T
    pairs = torch.stack([torch.arange(count), torch.arange(count) + count], dim=1)
    nothing = torch.zeros(2 * count, 2 * count, dtype=torch.bool)
    loss = losses.ntxent(alike, pairs, nothing, 1.5)
    assert_close(losses.ntxent(alike + shift, pairs, nothing, 1.5), loss, atol=1e-4, rtol=1e-4)
    assert_close(losses.ntxent(alike, pairs.flip(1), nothing, 1.5), loss)
    order = torch.randperm(2 * count, generator=torch.Generator().manual_seed(seed))
    moved = alike[order][:, order]
    assert_close(losses.ntxent(moved, order.argsort()[pairs], nothing, 1.5), loss)


# -- masked words ----------------------------------------------------------------------------------


def test_masked_words_by_hand():
    rows = tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    states = tensor([[2.0, 1.0]])
    # over the first two: logits 2 + 0 and 1 + 0.5; the third, with the highest, is out of the question
    loss = losses.masked_words(states, rows, tensor([0.0, 0.5, 0.0]), tensor([1]), tensor([0, 1]))
    assert_close(loss, tensor(math.log1p(math.exp(0.5))))
    without = losses.masked_words(states, rows, None, tensor([1]), tensor([0, 1]))
    assert_close(without, tensor(math.log1p(math.exp(1.0))))


@pytest.mark.parametrize("seed", range(3))
def test_masked_words_over_domain_tokens_alone_are_those_of_a_vocabulary_that_has_no_others(seed):
    random = torch.Generator().manual_seed(seed)
    rows, bias = torch.randn(9, 4, generator=random), torch.randn(9, generator=random)
    states, domain = torch.randn(5, 4, generator=random), tensor([2, 5, 6, 8])
    words = tensor([5, 5, 2, 8, 6])
    restricted = losses.masked_words(states, rows, bias, words, domain)
    own = torch.searchsorted(domain, words)
    full = losses.masked_words(states, rows[domain], bias[domain], own, torch.arange(4))
    assert_close(restricted, full)
    assert_close(full, torch.nn.functional.cross_entropy(states @ rows[domain].T + bias[domain], own))
    over_all = losses.masked_words(states, rows, bias, words, torch.arange(9))
    assert restricted < over_all  # fewer words to mistake it for


def test_masked_words_of_none_is_zero_and_has_a_gradient_of_zero():
    states = torch.zeros(0, 4, requires_grad=True)
    loss = losses.masked_words(
        states, torch.ones(9, 4), None, torch.zeros(0, dtype=torch.long), torch.arange(3)
    )
    loss.backward()
    assert loss.item() == 0.0


def test_masked_words_over_one_word_have_nothing_to_learn():
    assert losses.masked_words(torch.ones(2, 4), torch.ones(9, 4), None, tensor([3, 3]), tensor([3])) == 0.0


# -- costs of words --------------------------------------------------------------------------------


def test_word_costs_by_hand():
    rows = tensor([[1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    states = tensor([[2.0, 1.0], [0.0, 3.0], [1.0, 1.0]])
    # over the first two: gaps 2 - 1 = 1 for token 0, 3 - 0 = 3 for token 1, 0 for either
    costs = losses.word_costs(states, rows, None, tensor([0, 1, 1]), tensor([0, 1]), tensor([0, 0, 2]), 3)
    first = math.log1p(math.exp(-1.0)) + math.log1p(math.exp(-3.0))  # a word of two pieces
    assert_close(costs, tensor([first, 0.0, math.log(2.0)]))  # the second has no pieces


@pytest.mark.parametrize("seed", range(3))
def test_word_costs_add_up_to_the_mean_of_the_masked_words_times_their_number(seed):
    random = torch.Generator().manual_seed(seed)
    rows, bias = torch.randn(9, 4, generator=random), torch.randn(9, generator=random)
    states, domain = torch.randn(5, 4, generator=random), tensor([2, 5, 6, 8])
    pieces, owners = tensor([5, 5, 2, 8, 6]), tensor([1, 0, 1, 3, 3])
    costs = losses.word_costs(states, rows, bias, pieces, domain, owners, 4)
    assert_close(costs.sum(), 5 * losses.masked_words(states, rows, bias, pieces, domain))
    order = torch.randperm(5, generator=random)
    again = losses.word_costs(states[order], rows, bias, pieces[order], domain, owners[order], 4)
    assert_close(again, costs)


def test_word_costs_of_nothing_are_none():
    nothing = torch.zeros(0, dtype=torch.long)
    costs = losses.word_costs(torch.zeros(0, 4), torch.ones(9, 4), None, nothing, torch.arange(3), nothing, 2)
    assert costs.tolist() == [0.0, 0.0]
