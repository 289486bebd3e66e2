"""The GPU kernel against the textbook: on a GPU where there is one, else in triton's interpreter."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest
import torch
from torch.testing import assert_close

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="triton is not installed")

SIZES = [(1, 1, 1, 1), (2, 5, 40, 16), (5, 300, 131, 70), (3, 140, 257, 64)]


def check(sizes: tuple[int, int, int, int], dtype: torch.dtype, device: str) -> None:
    """Maxima and places of one seeded problem with holes in its mask and a text without tokens."""
    from sparse_adapt.model.head import triton
    from sparse_adapt.model.head.pooling import pack_rows, plain_splade_pool

    texts, length, vocabulary, units = sizes
    generator = torch.Generator().manual_seed(length)
    hidden = torch.randint(-4, 5, (texts, length, units), generator=generator).to(device, dtype)
    weight = torch.randint(-4, 5, (vocabulary, units), generator=generator).to(device, dtype)
    mask = (torch.rand(texts, length, generator=generator) < 0.7).to(device)
    mask[-1] = texts == 1
    maximum, position = triton.pool(*pack_rows(hidden, mask), weight)
    expected, expected_position = plain_splade_pool(hidden.float(), weight.float(), None, mask)
    assert torch.equal(maximum, expected)  # whole numbers: sums are exact, and ties are many
    assert torch.equal(position, expected_position)


def check_broken_number(device: str) -> None:
    """A product that is not a number is seen, and only in its own text."""
    from sparse_adapt.model.head import triton

    states = torch.ones(4, 16, device=device)
    states[3, 2] = float("nan")
    starts = torch.tensor([0, 2, 4], device=device)
    places = torch.tensor([0, 1, 0, 1], device=device)
    maximum, position = triton.pool(states, starts, places, torch.ones(3, 16, device=device))
    assert maximum.tolist() == [[16.0] * 3, [float("inf")] * 3]
    assert position.tolist() == [[0] * 3, [1] * 3]


@pytest.mark.skipif(torch.cuda.is_available(), reason="the kernel itself is tested on this GPU")
def test_the_kernel_in_the_interpreter():
    done = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "ok"


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("sizes", SIZES)
def test_the_kernel_on_a_gpu(sizes, dtype):
    check(sizes, dtype, "cuda")
    check_broken_number("cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_the_whole_head_on_a_gpu(precision):
    from sparse_adapt.model.head.pooling import plain_splade_pool, splade_pool

    hidden = torch.randn(3, 20, 64, device="cuda", requires_grad=True)
    weight = torch.randn(1001, 64, device="cuda", requires_grad=True)
    bias = torch.randn(1001, device="cuda", requires_grad=True)
    mask = torch.ones(3, 20, device="cuda")
    with torch.autocast("cuda", torch.bfloat16, enabled=precision == torch.bfloat16):
        results = [head(hidden, weight, bias, mask)[0].float() for head in (splade_pool, plain_splade_pool)]
    loose = {} if precision == torch.float32 else {"rtol": 0.03, "atol": 0.3}
    assert_close(results[0], results[1], **loose)
    if precision == torch.float32:
        slopes = [torch.autograd.grad(result.relu().sum(), (hidden, weight, bias)) for result in results]
        for slope, expected in zip(*slopes, strict=True):
            assert_close(slope, expected)


if __name__ == "__main__":
    for each in SIZES:
        check(each, torch.float32, "cpu")
    check(SIZES[1], torch.float16, "cpu")  # the interpreter multiplies the bits of bfloat16 as integers
    check_broken_number("cpu")
    sys.stdout.write("ok\n")
