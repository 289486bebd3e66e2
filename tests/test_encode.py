"""Encoding against the model itself, text by text; the filtered head against the textbook."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch.testing import assert_close

from sparse_adapt.errors import InputError, ModelError
from sparse_adapt.model.head import threads
from sparse_adapt.model.head.filter import bounds_above, bounds_by_products, multiplies_whole, positive_logits
from sparse_adapt.model.head.pooling import pack_rows, plain_splade_pool
from sparse_adapt.model.sparse import SparseEncoder
from sparse_adapt.report.messages import forget_unread, tell_unread
from sparse_adapt.retrieve.encode import encode


@pytest.fixture
def model(tiny_model) -> SparseEncoder:
    return SparseEncoder.load(tiny_model)


@pytest.fixture
def texts(twelve_documents) -> list[str]:
    return [document.full_text for document in twelve_documents]


@torch.no_grad()
def one_by_one(model: SparseEncoder, texts: list[str]) -> np.ndarray:
    return torch.cat([model(model.tokenize([text])).weights for text in texts]).numpy()


@pytest.mark.parametrize("filtered", [False, True])
@pytest.mark.parametrize("tokens_a_batch", [1, 40, 8192])
def test_rows_are_the_texts_in_their_order(model, texts, tokens_a_batch, filtered):
    vectors = encode(model, texts, "document", tokens_a_batch=tokens_a_batch, filtered=filtered)
    assert vectors.dtype == np.float32 and vectors.shape == (12, model.vocabulary_size)
    np.testing.assert_allclose(vectors.toarray(), one_by_one(model, texts), rtol=1e-5, atol=1e-6)


def test_columns_of_a_row_are_sorted_and_nothing_stored_is_zero(model, texts):
    vectors = encode(model, texts, "document", tokens_a_batch=64)
    checked = csr_matrix((vectors.data, vectors.indices, vectors.indptr), shape=vectors.shape)
    assert checked.has_sorted_indices and checked.has_canonical_format
    assert (vectors.data > 0).all()


def test_a_text_without_weights_keeps_its_row(model, texts):
    with torch.no_grad():
        model.output_bias.fill_(-1000.0)
    vectors = encode(model, texts, "document")
    assert vectors.shape == (12, model.vocabulary_size) and vectors.nnz == 0


def test_one_model_serves_several_threads(model, texts):
    """As a service does: their queries and documents come out as they do one after the other."""
    alone = {side: encode(model, texts, side).toarray() for side in ("query", "document")}

    def ask(number: int) -> bool:
        side = ("query", "document")[number % 2]
        return np.allclose(encode(model, texts, side).toarray(), alone[side], rtol=1e-5, atol=1e-6)

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(ask, range(120)))
    assert "forward" not in vars(model.masked_lm.get_output_embeddings())


def test_no_texts_give_no_rows(model):
    assert encode(model, [], "document").shape == (0, model.vocabulary_size)


def test_progress_counts_every_text_once(model, texts):
    seen: list[int] = []
    encode(model, texts, "document", tokens_a_batch=60, progress=seen.append)
    assert sum(seen) == 12 and len(seen) > 1


def test_threads_change_no_bit(model, texts, monkeypatch):
    alone = encode(model, texts, "document", tokens_a_batch=60)
    monkeypatch.setattr(threads, "WORTH_A_THREAD", 1)
    torch.set_num_threads(3)
    together = encode(model, texts, "document", tokens_a_batch=60)
    assert (alone != together).nnz == 0


def test_a_model_in_training_stays_so_and_is_encoded_without_dropout(model, texts):
    expected = encode(model, texts, "document")
    model.train()
    assert (encode(model, texts, "document") != expected).nnz == 0
    assert model.training


def test_the_model_still_gives_logits_afterwards(model, texts):
    encode(model, texts, "document")
    ids = torch.tensor(model.tokenize(texts[:1]))
    assert model.masked_lm(input_ids=ids).logits.shape[-1] == model.vocabulary_size


def test_a_broken_model_is_refused(model, texts):
    with torch.no_grad():
        model.input_rows[5:] = float("nan")
    with pytest.raises(ModelError, match="not numbers"):
        encode(model, texts, "document")


@pytest.mark.parametrize("scale", [0.05, 1.0, 30.0])
def test_the_filter_keeps_every_logit_above_zero(scale):
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(4, 37, 24, generator=generator) * scale
    weight = torch.randn(999, 24, generator=generator)
    bias = -torch.rand(999, generator=generator) * 14 * scale  # about half the maxima below zero
    mask = torch.ones(4, 37).long()
    mask[1, 20:] = 0
    mask[2] = 0
    rows = pack_rows(hidden, mask)
    result = positive_logits(rows.states, rows.starts, weight, bias)
    expected = plain_splade_pool(hidden, weight, bias, mask)[0]
    assert 0.2 < (expected > 0).float().mean() < 0.8
    assert_close(result.relu(), expected.relu(), rtol=1e-5, atol=1e-5 * scale)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(positive_logits(rows.states, rows.starts, weight, bias), result)


@pytest.mark.parametrize("offset", [0.0, 5.0, -300.0])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e4])
@pytest.mark.parametrize("above", [bounds_above, bounds_by_products])
def test_no_product_exceeds_its_bound_and_the_bound_is_near(above, scale, offset):
    generator = torch.Generator().manual_seed(7)
    states = (torch.randn(60, 48, generator=generator) + offset) * scale
    states[3] *= 20.0  # one word that stands out
    weight = torch.randn(1500, 48, generator=generator)
    weight[0] = 0.0
    starts = torch.tensor([0, 1, 1, 20, 60])
    bounds = above(states, starts, weight)
    for text, (first, last) in enumerate([(0, 1), (1, 1), (1, 20), (20, 60)]):
        if first < last:
            largest = (states[first:last].double() @ weight.T.double()).amax(dim=0)
            assert (bounds[text] >= largest).all()
            spread = (states[first:last] - states[first:last].mean(dim=0)).norm(dim=1).max()
            room = 0.06 * spread + 1e-4 * states[first:last].norm(dim=1).max()
            assert (bounds[text] - largest <= room * weight.norm(dim=1)).all()


def test_the_bound_is_reached_where_all_numbers_round_the_same_way():
    steps = torch.tensor([[127.0] + [0.49] * 63, [-127.0] + [-0.49] * 63])  # mean 0, step 1: .49 rounds to 0
    weight = torch.tensor([[0.0] + [64.0] * 63])  # whole numbers as it is
    bound = bounds_above(steps, torch.tensor([0, 2]), weight).item()
    product = 0.49 * 64 * 63  # and .49 x sqrt(63) x 64 x sqrt(63) is all of the bound
    assert product <= bound < 1.01 * product


WHOLE = """
import numpy as np, torch
from sparse_adapt.model.head.filter import MOST_OF_A_ROW, MOST_OF_A_STATE, largest_whole

random = np.random.default_rng(5)
signs = [random.choice([-1, 1], size) for size in ((50, 384), (700, 384))]
signs[0][7], signs[1][9] = 1, 1
states, rows = (torch.from_numpy(each * most) for each, most in zip(signs, (MOST_OF_A_STATE, MOST_OF_A_ROW)))
found = largest_whole(states.to(torch.int8), torch.tensor([0, 1, 1, 8, 50]), rows.to(torch.int8))
products = states @ rows.T
for text, (first, last) in enumerate([(0, 1), (1, 1), (1, 8), (8, 50)]):
    assert first == last or torch.equal(found[text].long(), products[first:last].amax(dim=0))
assert found[2, 9] == 384 * 127 * 64
"""


@pytest.mark.parametrize("instructions", ["AVX2", "ALL"])
def test_the_largest_whole_numbers_fit_whatever_a_processor_multiplies_by(instructions):
    environment = {**os.environ, "ONEDNN_MAX_CPU_ISA": instructions}
    subprocess.run([sys.executable, "-c", WHOLE], env=environment, check=True)


def test_only_instructions_for_whole_numbers_have_them_multiplied(monkeypatch):
    """With AVX2 alone torch multiplies them by a loop, thirty times as slow as float32."""
    for known in (
        {"avx2": True, "avx512_vnni": True},
        {"avx2": True, "avx512_vnni": False},
        {"avx2": True},
        {},
    ):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda known=known: known, raising=False)
        assert multiplies_whole() == bool(known.get("avx512_vnni"))


@pytest.mark.parametrize("whole", [True, False])
def test_states_have_the_same_logits_alone_and_among_others(monkeypatch, whole):
    """Whatever a quick look multiplies by, the logits above zero are products of one text."""
    monkeypatch.setattr("sparse_adapt.model.head.filter.multiplies_whole", lambda: whole)
    generator = torch.Generator().manual_seed(11)
    states, weight = torch.randn(400, 32, generator=generator), torch.randn(3000, 32, generator=generator)
    bias, edges = -torch.full((3000,), 9.0), [0, 1, 130, 130, 400]
    together = positive_logits(states, torch.tensor(edges), weight, bias).relu()
    assert 0.05 < (together > 0).float().mean() < 0.9
    for text, (first, last) in enumerate(pairwise(edges)):
        alone = positive_logits(states[first:last], torch.tensor([0, last - first]), weight, bias).relu()
        assert torch.equal(alone[0], together[text])


@pytest.fixture
def nothing_said():
    """Nothing that an earlier test left to be said."""
    forget_unread()


def test_a_text_without_a_word_has_no_weights_and_is_counted(tiny_model, capfd, nothing_said):
    model = SparseEncoder.load(tiny_model)
    texts = ["", "zorvex", " \n", "\u200b\u00ad", "the team"]
    vectors = encode(model, texts, "document")
    assert [row.nnz > 0 for row in vectors] == [False, True, False, False, True]
    assert (vectors[[1, 4]] != encode(model, ["zorvex", "the team"], "document")).nnz == 0
    tell_unread()
    assert capfd.readouterr().err == "3 texts hold no word, and so nothing finds them\n"
    tell_unread()
    assert capfd.readouterr().err == ""


def test_a_string_by_itself_is_refused(tiny_model):
    with pytest.raises(InputError, match="put it in brackets"):
        encode(SparseEncoder.load(tiny_model), "hello", "query")


def test_what_is_cut_is_counted_and_not_tokenised_to_its_end(tiny_model, capfd, monkeypatch, nothing_said):
    model = SparseEncoder.load(tiny_model)  # which reads 64 tokens
    longest, long = model.max_tokens, "team " * 100
    whole = model.tokenizer([long], add_special_tokens=False)["input_ids"][0]
    ids = model.tokenize([long, "team", long])
    assert ids[0] == [*model.tokenizer([long])["input_ids"][0][: longest - 1], 3] and len(ids[1]) == 3
    tell_unread()
    left = len(whole) - (longest - 2)
    said = f"1 text is longer than the {longest} tokens that the model reads: {left} tokens at their ends"
    assert capfd.readouterr().err == f"{said} were left out\n"
    endless = [long * 200, "\n" * 100_000 + "team", "team" * 10_000]
    seen: list[int] = []
    real = type(model.tokenizer).__call__
    monkeypatch.setattr(
        type(model.tokenizer),
        "__call__",
        lambda self, texts, **rest: seen.extend(map(len, texts)) or real(self, texts, **rest),
    )
    assert model.tokenize(endless)[0] == ids[0]
    assert seen[0] <= 100 * longest
    tell_unread()
