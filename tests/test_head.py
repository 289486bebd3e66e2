"""The tiled head against the textbook expression, which builds every logit."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from sparse_adapt.model.head import cpu, dense, device, filter, threads
from sparse_adapt.model.head.pooling import activate, pack_rows, plain_splade_pool, splade_pool
from sparse_adapt.model.head.threads import share_out

SIZES = [(1, 1, 1, 1), (1, 1, 257, 3), (3, 7, 501, 5), (5, 33, 1031, 16), (2, 130, 2049, 8)]


@pytest.fixture
def small_blocks(monkeypatch):
    """Cut even small inputs into many blocks, with a last one that isn't full."""
    monkeypatch.setattr(cpu, "BLOCK_ROWS", 40)
    monkeypatch.setattr(cpu, "BLOCK_LOGITS", 1500)
    monkeypatch.setattr(cpu, "NARROWEST", 17)
    monkeypatch.setitem(device.TILE_NUMBERS, "cpu", 4096)


def inputs(texts: int, length: int, vocabulary: int, units: int, dtype: torch.dtype = torch.float32):
    """Seeded hidden states, rows, bias and a mask with holes in it; every text keeps one position."""
    generator = torch.Generator().manual_seed(texts * 1000 + length)
    hidden = torch.randn(texts, length, units, generator=generator, dtype=dtype)
    weight = torch.randn(vocabulary, units, generator=generator, dtype=dtype)
    bias = torch.randn(vocabulary, generator=generator, dtype=dtype)
    mask = (torch.rand(texts, length, generator=generator) < 0.7).long()
    mask[torch.arange(texts), torch.randint(length, (texts,), generator=generator)] = 1
    return hidden, weight, bias, mask


def gradients(pool, tensors: tuple[Tensor, ...], share: float) -> tuple[Tensor, ...]:
    """Gradients of a weighted sum of a share of the maxima."""
    hidden, weight, bias, mask = tensors
    leaves = [tensor.detach().clone().requires_grad_() for tensor in (hidden, weight, bias)]
    maximum, _ = pool(*leaves, mask)
    generator = torch.Generator().manual_seed(7)
    slopes = torch.randn(maximum.shape, generator=generator, dtype=torch.float64)
    slopes *= torch.rand(maximum.shape, generator=generator) < share
    return torch.autograd.grad((maximum * slopes.to(maximum.dtype)).sum(), leaves)


def assert_no_worse(result: Tensor, reference: Tensor, exact: Tensor):
    """The error is within twice the reference's own: sums of the same numbers in another order."""
    floor = torch.finfo(reference.dtype).eps * exact.abs().max()
    assert (result - exact).abs().max() <= 2 * (reference - exact).abs().max() + floor


@pytest.mark.parametrize("sizes", SIZES)
def test_maxima_and_positions_are_those_of_the_textbook(sizes, small_blocks):
    tensors = inputs(*sizes, dtype=torch.float64)
    maximum, position = splade_pool(*tensors)
    expected, expected_position = plain_splade_pool(*tensors)
    assert_close(maximum, expected, rtol=1e-12, atol=1e-12)
    assert torch.equal(position, expected_position)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("by_text", [False, True])
def test_what_is_not_asked_for_is_told_only_above_zero(by_text, whole, monkeypatch):
    monkeypatch.setattr("sparse_adapt.model.head.filter.multiplies_whole", lambda: whole)
    hidden, weight, bias, mask = inputs(5, 33, 1031, 16)
    bias -= 6.0  # about half the maxima below zero
    mask[2] = 0
    asked = torch.rand(5, 1031, generator=torch.Generator().manual_seed(1)) < 0.1
    asked = asked if by_text else asked[0]
    maximum, position = splade_pool(hidden, weight, bias, mask, asked)
    expected, expected_position = plain_splade_pool(hidden, weight, bias, mask)
    told = ((expected > 0) | asked) & (mask.sum(dim=1, keepdim=True) > 0)
    assert 0.2 < told.float().mean() < 0.8
    assert_close(maximum[told], expected[told], rtol=1e-5, atol=1e-5)
    assert torch.equal(position[told], expected_position[told])
    assert maximum[~told].isneginf().all() and not position[~told].any()


@pytest.mark.parametrize("whole", [True, False])
def test_weights_learn_the_same_where_only_they_are_asked_for(whole, monkeypatch):
    monkeypatch.setattr("sparse_adapt.model.head.filter.multiplies_whole", lambda: whole)
    hidden, weight, bias, mask = inputs(5, 33, 1031, 16)
    bias -= 6.0
    slopes = []
    for asked in (None, torch.zeros(1031, dtype=torch.bool)):
        leaves = [tensor.clone().requires_grad_() for tensor in (hidden, weight, bias)]
        loss = activate(splade_pool(*leaves, mask, asked)[0]).sum(dim=0).square().sum()
        slopes.append(torch.autograd.grad(loss, leaves))
    for quick, slow in zip(*slopes, strict=True):
        assert slow.abs().max() > 0
        assert_close(quick, slow, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("share", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("sizes", SIZES)
def test_gradients_are_those_of_the_textbook_in_float64(sizes, share, small_blocks):
    tensors = inputs(*sizes, dtype=torch.float64)
    for result, expected in zip(
        gradients(splade_pool, tensors, share), gradients(plain_splade_pool, tensors, share), strict=True
    ):
        assert_close(result, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("share", [0.01, 1.0])
def test_float32_errs_no_more_than_the_textbook_does(share, small_blocks):
    tensors = inputs(5, 33, 1031, 64)
    exact_tensors = (*(tensor.double() for tensor in tensors[:3]), tensors[3])
    for result, reference, exact in zip(
        gradients(splade_pool, tensors, share),
        gradients(plain_splade_pool, tensors, share),
        gradients(plain_splade_pool, exact_tensors, share),
        strict=True,
    ):
        assert_no_worse(result, reference, exact)


@pytest.mark.parametrize("units", [16, 768])
def test_bfloat16_autocast_errs_no_more_than_the_textbook_does(units):
    tensors = inputs(4, 40, 1031, units)
    exact_tensors = (*(tensor.double() for tensor in tensors[:3]), tensors[3])
    exact = plain_splade_pool(*exact_tensors)[0]
    with torch.autocast("cpu", torch.bfloat16):
        maximum = splade_pool(*tensors)[0]
        reference = plain_splade_pool(*tensors)[0]
        slopes = gradients(splade_pool, tensors, 0.05), gradients(plain_splade_pool, tensors, 0.05)
    assert maximum.dtype == torch.float32
    assert_no_worse(maximum, reference, exact)
    for result, expected, true in zip(
        *slopes, gradients(plain_splade_pool, exact_tensors, 0.05), strict=True
    ):
        assert_no_worse(result, expected, true)


def test_bfloat16_inputs_keep_their_type_in_gradients():
    hidden, weight, bias, mask = (tensor.bfloat16() for tensor in inputs(2, 9, 130, 8))
    leaves = [tensor.requires_grad_() for tensor in (hidden, weight, bias)]
    maximum, _ = splade_pool(*leaves, mask)
    assert maximum.dtype == torch.float32
    assert [slope.dtype for slope in torch.autograd.grad(maximum.sum(), leaves)] == [torch.bfloat16] * 3


def test_gradcheck_with_and_without_bias(small_blocks):
    hidden, weight, bias, mask = inputs(2, 5, 40, 3, dtype=torch.float64)
    leaves = [tensor.requires_grad_() for tensor in (hidden, weight, bias)]
    assert torch.autograd.gradcheck(lambda *each: splade_pool(*each, mask)[0], leaves)
    assert torch.autograd.gradcheck(lambda *each: splade_pool(*each, None, mask)[0], leaves[:2])


@pytest.mark.parametrize("wanted", [0, 1, 2])
def test_only_the_wanted_gradient_is_computed(wanted):
    tensors = inputs(3, 7, 501, 5, dtype=torch.float64)
    leaves = [tensor.clone().requires_grad_(index == wanted) for index, tensor in enumerate(tensors[:3])]
    splade_pool(*leaves, tensors[3])[0].sum().backward()
    expected = [tensor.clone().requires_grad_() for tensor in tensors[:3]]
    plain_splade_pool(*expected, tensors[3])[0].sum().backward()
    assert_close(leaves[wanted].grad, expected[wanted].grad)
    assert all(leaf.grad is None for index, leaf in enumerate(leaves) if index != wanted)


def test_the_first_of_tied_positions_wins():
    row = torch.tensor([1.0, 2.0, -1.0])
    hidden = torch.stack([-row, row, row, row]).unsqueeze(0).requires_grad_()  # positions 1, 2, 3 tie
    weight = torch.tensor([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    mask = torch.tensor([[1, 0, 1, 1]])  # and 1 is masked
    maximum, position = splade_pool(hidden, weight, None, mask)
    assert position.tolist() == [[2, 2]]
    maximum.sum().backward()
    assert hidden.grad[0].abs().sum(dim=1).tolist() == [0.0, 0.0, 3.0, 0.0]  # |1| + |1| + |1|


def test_a_text_without_tokens_has_no_maximum_and_no_gradient():
    hidden, weight, bias, mask = inputs(3, 6, 50, 4)
    mask[1] = 0
    leaves = [tensor.requires_grad_() for tensor in (hidden, weight, bias)]
    maximum, position = splade_pool(*leaves, mask)
    assert maximum[1].eq(float("-inf")).all() and position[1].eq(0).all()
    assert activate(maximum)[1].eq(0).all()
    slopes = torch.autograd.grad(maximum, leaves, torch.ones_like(maximum))
    assert slopes[0][1].eq(0).all()
    assert_close(slopes[2], torch.full((50,), 2.0))  # a 1 from each of the two texts that have tokens


def test_nothing_but_masked_texts():
    hidden, weight, bias, _ = inputs(2, 3, 10, 4)
    maximum, position = splade_pool(hidden, weight, bias, torch.zeros(2, 3))
    assert maximum.eq(float("-inf")).all() and position.eq(0).all()


def test_no_texts_at_all():
    maximum, position = splade_pool(torch.zeros(0, 4, 3), torch.zeros(9, 3), None, torch.zeros(0, 4))
    assert maximum.shape == position.shape == (0, 9)


def test_a_broken_number_is_not_hidden():
    hidden, weight, bias, mask = inputs(2, 6, 50, 4)
    mask[:] = 1
    hidden[1, 2, 0] = float("nan")
    maximum, _ = splade_pool(hidden, weight, bias, mask)
    assert maximum[1].isnan().all() and not maximum[0].isnan().any()


def test_a_padded_batch_equals_its_texts_one_by_one():
    hidden, weight, bias, _ = inputs(4, 30, 700, 32)
    lengths = [30, 1, 17, 8]
    mask = torch.stack([(torch.arange(30) < length).long() for length in lengths])
    maximum, position = splade_pool(hidden, weight, bias, mask)
    exact = plain_splade_pool(hidden.double(), weight.double(), bias.double(), mask)[0]
    reference = plain_splade_pool(hidden, weight, bias, mask)[0]
    for text, length in enumerate(lengths):
        alone, where = splade_pool(
            hidden[text : text + 1, :length], weight, bias, mask[text : text + 1, :length]
        )
        assert torch.equal(where[0], position[text])
        assert_no_worse(alone[0], reference[text], exact[text])
        assert_no_worse(maximum[text], reference[text], exact[text])


def test_whole_numbers_pool_to_the_same_bits_in_any_batch(small_blocks):
    hidden, weight, bias, mask = (tensor.round() for tensor in inputs(5, 33, 1031, 16))
    maximum, position = splade_pool(hidden, weight, bias, mask)
    for text in range(5):
        alone = splade_pool(hidden[text : text + 1], weight, bias, mask[text : text + 1])
        assert torch.equal(alone[0][0], maximum[text]) and torch.equal(alone[1][0], position[text])


@pytest.mark.parametrize("share", [0.02, 1.0])
def test_the_same_input_gives_the_same_bits(share, small_blocks, monkeypatch):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    tensors = inputs(5, 33, 1031, 16)
    for first, second in zip(
        gradients(splade_pool, tensors, share), gradients(splade_pool, tensors, share), strict=True
    ):
        assert torch.equal(first, second)


def test_threads_change_nothing_but_the_time(small_blocks, monkeypatch):
    tensors = tuple(tensor.round() for tensor in inputs(5, 33, 1031, 16))
    alone = *splade_pool(*tensors), *gradients(splade_pool, tensors, 0.02)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    torch.set_num_threads(3)
    together = *splade_pool(*tensors), *gradients(splade_pool, tensors, 0.02)
    assert torch.get_num_threads() == 3
    assert all(torch.equal(first, second) for first, second in zip(alone, together, strict=True))


def test_rows_multiplied_by_the_dozen_give_the_same_products_in_few_shapes(small_blocks, monkeypatch):
    states, weight = torch.arange(90.0).view(45, 2), torch.arange(80.0).view(40, 2)
    bounds, shapes, multiply = np.array([0, 7, 19, 45]), set(), torch.mm

    def note(left, right, out):
        shapes.add(left.shape[0])
        multiply(left, right, out=out)

    monkeypatch.setattr(torch, "mm", note)

    def compare(block, logits):
        assert torch.equal(logits, states[block.rows] @ weight[block.tokens].T)

    cpu.multiply(states, bounds, weight, compare, rows_by=12)
    assert shapes == {24, 36}


def test_an_error_in_a_thread_is_raised_and_ends_the_rest(monkeypatch):
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    begun = []

    def fail(item: int) -> None:
        begun.append(item)
        raise KeyError(item)

    torch.set_num_threads(2)
    with pytest.raises(KeyError):
        share_out(lambda: fail, range(1000), 1000)
    assert len(begun) <= 2  # one for each thread


def test_nothing_is_kept_for_the_backward_pass_but_inputs_and_positions():
    tensors = inputs(2, 130, 2049, 8)
    leaves = [tensor.requires_grad_() for tensor in tensors[:3]]
    kept: list[int] = []

    def note(tensor: Tensor) -> Tensor:
        kept.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        splade_pool(*leaves, tensors[3])
    assert max(kept) == 2049 * 8  # the rows; positions are 2 x 2049, all logits would be 2 x 130 x 2049


@pytest.mark.parametrize("sizes", SIZES)
def test_the_way_of_other_devices_agrees(sizes, small_blocks):
    hidden, weight, _, mask = inputs(*sizes, dtype=torch.float64)
    mask[0] *= int(sizes[0] == 1)  # a text without tokens, where another is left
    rows = pack_rows(hidden, mask)
    for result, expected in zip(device.pool(*rows, weight), cpu.pool(*rows, weight), strict=True):
        assert_close(result, expected)


@pytest.mark.parametrize("way", [cpu, dense, device])
def test_every_way_back_gives_the_same_gradients(way: ModuleType, small_blocks):
    hidden, weight, bias, mask = inputs(3, 7, 501, 5, dtype=torch.float64)
    leaves = [tensor.requires_grad_() for tensor in (hidden, weight)]
    maximum, position = plain_splade_pool(*leaves, bias, mask)
    slopes = torch.randn(maximum.shape, dtype=torch.float64).relu()
    of_hidden, of_weight = torch.autograd.grad(maximum, leaves, slopes)
    assert_close(way.hidden_gradient(slopes, position, weight.detach(), 7), of_hidden)
    assert_close(way.weight_gradient(slopes, position, hidden.detach()), of_weight)


GROWTH = """
import os, resource, sys, torch
from sparse_adapt.model.head import pooling

def growth():
    held = lambda: int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() >> 20
    torch.nn.functional.gelu(torch.zeros(64, 128))
    before = held()
    for rows in range(65, 1065):
        torch.nn.functional.gelu(torch.zeros(rows, 128))
    return held() - before

torch.set_num_threads(1)
if os.fork() == 0:  # the library reads the variable at its first use
    os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"] = "1024"
    print(growth(), flush=True)
    os._exit(0)
os.wait()
print(growth())
"""


@pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="reads from /proc, which Linux has, what a process holds"
)
def test_code_that_a_library_makes_for_shapes_is_not_kept_for_all_of_them():
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("ONEDNN", "DNNL"))
    }
    said = subprocess.check_output([sys.executable, "-c", GROWTH], env=environment)
    all_of_them, few = map(int, said.split())
    assert few <= max(64, all_of_them / 2)  # megabytes; 30 and 550 with AVX-512


def test_a_size_of_its_cache_that_a_user_has_set_stays(monkeypatch):
    name = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
    for given, expected in (("7", "7"), (None, "32")):
        monkeypatch.delenv(name, raising=False) if given is None else monkeypatch.setenv(name, given)
        importlib.reload(filter)
        assert os.environ[name] == expected
