"""Texts as tensors: nothing lost, nothing added, little padding."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.model.tokens import group_by_length, pad, read_by_length

LENGTHS = st.lists(st.integers(0, 300), max_size=60)


def test_pad_by_hand():
    ids, mask = pad([[5, 6, 7], [8], [9, 10]], 1)
    assert ids.tolist() == [[5, 6, 7], [8, 1, 1], [9, 10, 1]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 0]]
    assert ids.dtype == mask.dtype == torch.long


@given(st.lists(st.lists(st.integers(0, 9), max_size=7), min_size=1, max_size=9))
def test_padding_can_be_taken_away_again(texts):
    ids, mask = pad(texts, 3)
    assert [row[keep.bool()].tolist() for row, keep in zip(ids, mask, strict=True)] == texts
    assert (ids[mask == 0] == 3).all()


def test_a_text_of_nothing_keeps_a_place_that_is_masked():
    ids, mask = pad([[]], 4)
    assert (ids.tolist(), mask.tolist()) == ([[4]], [[0]])


def test_groups_by_hand():
    # longest first: 50 alone makes 2 at 100; then 30, 20, 10 at 3 x 30 = 90
    assert list(group_by_length([20, 50, 10, 50, 30], 100)) == [[1, 3], [4, 0, 2]]


@given(LENGTHS, st.integers(1, 500))
def test_each_text_is_in_one_group_and_groups_fit(lengths, tokens):
    groups = list(group_by_length(lengths, tokens))
    assert sorted(index for group in groups for index in group) == list(range(len(lengths)))
    for group in groups:
        assert len(group) == 1 or len(group) * max(lengths[index] for index in group) <= max(
            tokens, len(group)
        )


@given(LENGTHS, st.integers(1, 500))
def test_groups_get_shorter_and_equal_texts_keep_their_order(lengths, tokens):
    order = [index for group in group_by_length(lengths, tokens) for index in group]
    assert order == sorted(order, key=lambda index: (-lengths[index], index))


def test_a_text_longer_than_a_group_stands_alone():
    assert list(group_by_length([500, 3], 100)) == [[0], [1]]


def test_no_texts_make_no_groups():
    assert list(group_by_length([], 100)) == []


@pytest.mark.parametrize("lengths", [[0], [0, 5], [3, 0, 9]])
def test_a_text_of_no_tokens_has_no_weights(lengths, tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    with torch.no_grad():
        weights = encoder([list(range(60, 60 + length)) for length in lengths]).weights
    assert [bool(row.any()) for row in weights] == [length > 0 for length in lengths]
    assert weights.isfinite().all()


def test_vectors_come_in_the_order_of_the_texts_whatever_the_groups(tiny_model, monkeypatch):
    from sparse_adapt.model import sparse

    encoder = SparseEncoder.load(tiny_model)
    texts = [list(range(60, 60 + length)) for length in (4, 30, 1, 12, 30, 7)]
    with torch.no_grad():
        alone = torch.cat([encoder([text]).maximum for text in texts])
        places = torch.cat([encoder([text]).position for text in texts])
        for tokens in (1, 31, 70, 4096):
            monkeypatch.setattr(sparse, "PADDED_TOKENS_A_PASS", tokens)
            together = encoder(texts)
            torch.testing.assert_close(together.maximum, alone, atol=1e-5, rtol=1e-5)
            assert torch.equal(together.position, places)


def test_no_texts_make_an_empty_matrix(tiny_model):
    encoder = SparseEncoder.load(tiny_model)
    assert encoder([]).weights.shape == (0, 200)
    assert encoder.tokenize([]) == []


def test_texts_read_by_length_come_back_in_their_order():
    texts, seen = [[5], [1, 2, 3, 4], [7, 8], [9]], []

    def read(ids, mask, group):
        seen.append((group, ids.shape[1]))
        assert (ids * (1 - mask)).sum() == 0
        return (ids * mask).sum(dim=1, keepdim=True)

    found = read_by_length(texts, 4, 0, torch.device("cpu"), read)
    assert found.tolist() == [[5], [10], [15], [9]]
    assert seen == [([1], 4), ([2, 0], 2), ([3], 1)]
